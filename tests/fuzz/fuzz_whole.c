/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diagnose, explain and export from one end to the other: an answer, or an error that says why.
 *
 * "recording": snapshots of PyTorch, which meet histories that no allocator ever made. "whole": a
 * byte that chooses policy, limit and moment, then a .cft as in the target "cft"; grammar.py makes
 * some that combine features: streams, pools, devices, stacks, steps, trims, refusals, evidence.
 */
#include <frag/replay.h>

#include "explain/diagnose/diagnose.h"
#include "explain/moment/explain.h"
#include "trace/writers/export.h"
#include "fuzz.h"

/* Whatever fails says why. */
static int said(int rc, const struct frag_err *err)
{
	must(!rc || (rc == err->code && err->msg[0] && memchr(err->msg, 0, sizeof(err->msg))));
	return rc;
}

static void diagnose_whole(const struct frag_case *in)
{
	struct frag_answer texts = { 0 };
	struct frag_findings found = { .texts = &texts };
	struct frag_err err = { 0 };

	said(frag_diagnose(in, "fuzz", &found, &err), &err);
	frag_findings_release(&found);
	frag_answer_release(&texts);
}

static void explain_whole(const struct frag_case *in, struct frag_at at, enum frag_site_by by)
{
	const struct frag_explain_options opt = { .at = at, .by = by, .top = 10, .series = true };
	struct frag_answer texts = { 0 };
	struct frag_explained x = { 0 };
	struct frag_err err = { 0 };

	if (!said(frag_explain(in, &opt, &texts, &x, &err), &err)) {
		said(frag_explained_answer(&x, "fuzz", "fuzz", &err), &err);
		frag_explained_release(&x);
	}
	frag_answer_release(&texts);
}

/* In every form, as recorded and by the policy. */
static void export_whole(const struct frag_trace *t, const struct frag_policy_spec *spec,
			 const struct frag_target *target)
{
	for (unsigned i = 0; frag_export_formats[i / 2]; i++) {
		char *text = NULL;
		size_t len;
		struct frag_err err = { 0 };
		struct frag_export_job job = { .trace = t,
					       .spec = spec,
					       .as_recorded = i & 1,
					       .target = *target,
					       .name = "fuzz",
					       .policy = "pytorch",
					       .to = open_memstream(&text, &len) };

		must(job.to != NULL);
		said(frag_export_formats[i / 2]->write(&job, &err), &err);
		fclose(job.to);
		free(text);
	}
}

static void verify(struct frag_trace *t, uint32_t dev)
{
	const struct frag_settled *s = &t->devs[dev].settled;
	FRAG_AUTO(frag_verify_result_release) struct frag_verify_result r = { 0 };
	struct frag_err err = { 0 };

	if (!t->devs[dev].has_evidence ||
	    said(frag_verify(t, dev, NULL, UINT64_MAX, NULL, &r, &err), &err))
		return;
	must(!r.identical || (r.allocs_same == r.allocs && r.segments_same == r.segments &&
			      r.ooms_same == r.ooms && r.finals_same == r.finals));
	must(r.identical || r.first_difference[0]);
	must(!s->checked || !s->identical || !r.undetermined);
}

/* Takes the trace, NULL: it was refused. dice: policy, limit, moment. */
static void look(struct frag_trace *trace, unsigned dice)
{
	static const char *const policies[] = {
		"pytorch", "pytorch:expandable_segments:True",
		"vmm",	   "buddy",
		"caching", ("pytorch:max_split_size_mb:21,garbage_collection_threshold:0.6"),
		"bfc",	   "async"
	};
	static const uint64_t limits[] = { 0, 64 * FRAG_MIB, 100 * FRAG_MIB, FRAG_MIB << 12 };
	uint64_t limit = limits[dice >> 3 & 3], events = 0;
	struct frag_target target = { .card = { .context_bytes = UINT64_MAX }, .seed = 1 };
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *t = trace;
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
	struct frag_err err = { 0 };

	for (uint32_t d = 0; t && d < t->devs_count; d++)
		events += t->devs[d].events_count + t->devs[d].initial.blocks_count;
	if (!t || events > 20000u || t->devs_count > 8 || !fuzz_is_possible(t))
		return;
	if (limit)
		target.limit = (struct frag_limit){ .text = "fuzz", .bytes = limit };
	must(!frag_policy_spec_parse(policies[dice & 7], &spec, &err));
	if (said(frag_settle(t, &target.card, UINT64_MAX, false, &err), &err))
		return;
	for (uint32_t d = 0; d < t->devs_count; d++) {
		const struct frag_case in = { .events = { t, d, NULL },
					      .spec = spec,
					      .recorded = !(dice & 7),
					      .target = target,
					      .threads = 1 };
		uint64_t event = t->devs[d].events_count * (dice >> 5) / 8;

		verify(t, d);
		diagnose_whole(&in);
		if (!d && events < 500) /* a refusal is replayed under hundreds of settings */
			explain_whole(&in, (struct frag_at){ FRAG_AT_AUTO, 0 }, FRAG_BY_LINE);
		explain_whole(&in, (struct frag_at){ FRAG_AT_EVENT, event }, FRAG_BY_STACK);
	}
	export_whole(t, spec, &target);
}

void fuzz_recording(const uint8_t *data, size_t size)
{
	look(read_memory(&frag_reader_torch, data, size), 0);
}

void fuzz_whole(const uint8_t *data, size_t size)
{
	FRAG_AUTO_FREE char *copy = text_of(data, size);
	uint8_t *file = (uint8_t *)copy + 1;

	if (!size || size > 32768)
		return;
	fuzz_sign(file, size - 1);
	look(read_memory(&frag_reader_cft, file, size - 1), *data);
}
