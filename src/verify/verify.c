/* SPDX-License-Identifier: Apache-2.0 */
/* verify: is the simulation what really happened? */
#include <frag/replay.h>

#include <stdio.h>
#include <string.h>

#include "follow.h"

void frag_verify_result_release(struct frag_verify_result *r)
{
	frag_counters_free(r->counters);
	*r = (struct frag_verify_result){ 0 };
}

static void fill(const struct frag_trace_dev *td, struct follow_report *r,
		 struct frag_verify_result *out)
{
	*out = (struct frag_verify_result){
		.device_ordinal = td->ordinal,
		.allocs = follow_events(td, FRAG_EV_ALLOC),
		.allocs_same = r->allocs_same,
		.segments = follow_segments(td),
		.segments_same = r->segments_same,
		.ooms = follow_events(td, FRAG_EV_REFUSED),
		.ooms_same = r->ooms_same,
		.finals = r->finals,
		.finals_same = r->finals_same,
		.refusals = r->refusals_count,
		.trims = follow_events(td, FRAG_EV_TRIM),
		.pools = td->pools_count ? td->pools_count - 1 : 0,
		.uncertain = td->uncertain_blocks,
		.identical = r->diff == FOLLOW_SAME,
		.undetermined = r->open,
		.counters = r->counters,
		.peak_reserved_bytes = r->peak_held_bytes,
	};
	snprintf(out->first_difference, sizeof(out->first_difference), "%s", r->text);
	r->counters = NULL;
}

/* PyTorch records neither its memory limit nor, up to 2.2, its settings; a replay needs them. */
static void hint_at_missing(const struct frag_trace *trace, uint64_t limit_bytes, const char *conf,
			    struct frag_verify_result *out)
{
	size_t n = strlen(out->first_difference);
	const char *hint = NULL;

	if (out->identical || out->undetermined)
		return;
	if (!trace->settings.present && !conf && trace->settings.torch_last)
		hint = "; the file does not hold the allocator settings (PyTorch 2.1 and 2.2 omit "
		       "them): if there were any, give them with --conf";
	else if (limit_bytes == UINT64_MAX &&
		 (trace->settings.gc_threshold > 0 || out->ooms || out->refusals))
		hint = "; was there a memory limit? it is not in the file, give it with --limit";
	if (hint)
		snprintf(out->first_difference + n, sizeof(out->first_difference) - n, "%s", hint);
}

int frag_verify(struct frag_trace *trace, uint32_t dev, const struct frag_sim_config *card,
		uint64_t limit_bytes, const char *conf, struct frag_verify_result *out,
		struct frag_err *err)
{
	struct frag_sim_config h200 = { .context_bytes = UINT64_MAX };
	const struct frag_trace_dev *td = &trace->devs[dev];
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
	FRAG_AUTO(follow_report_release) struct follow_report r = { 0 };

	FRAG_TRY(follow_check(trace, dev, err));
	FRAG_TRY(follow_spec(trace, conf, &spec, err));
	if (!td->settled.checked)
		FRAG_TRY(frag_settle(trace, card, limit_bytes, limit_bytes != UINT64_MAX, err));
	limit_bytes = td->settled.limit_bytes;
	FRAG_TRY(follow_recording(td, spec, card ? card : &h200, limit_bytes, &r, err));
	fill(td, &r, out);
	if (td->settled.undetermined && !out->identical) {
		out->undetermined = true;
		snprintf(out->first_difference, sizeof(out->first_difference), "%s",
			 td->settled.difference);
	}
	hint_at_missing(trace, limit_bytes, conf, out);
	return 0;
}
