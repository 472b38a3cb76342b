/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragmentation: a tenth more is reserved at the peak than was ever live, and a setting needs less,
 * which is checked by replay. The lines to blame are those that pin most at the step end where most
 * bytes are non-releasable.
 */
#include "diagnose.h"

#include <frag/opt.h>

#include "recording/recording.h"
#include "recording/settled_shape.h"

#define LOSS_MIN (64 * FRAG_MIB)
#define CURE_PART 0.10 /* less reserved under another setting */

static const struct frag_own_allocator torch_cures[] = {
	{ NULL, "pytorch", "the defaults" },
	{ NULL, "pytorch:expandable_segments:True", "expandable_segments:True" },
	{ NULL, "pytorch:roundup_power2_divisions:8", "roundup_power2_divisions:8" },
	{ NULL, "pytorch:max_split_size_mb:512", "max_split_size_mb:512" },
};

/* The setting that reserves least at its peak; UINT64_MAX = none completes. Of a log of another
 * library: what that has. */
static int best_cure(const struct frag_checkup *c, const struct frag_own_allocator **which,
		     uint64_t *peak, struct frag_err *err)
{
	size_t n;
	const struct frag_own_allocator *cures =
		frag_own_allocators(c->in.events.trace->format, &n);
	struct frag_run_options opt;

	*peak = UINT64_MAX;
	if (!cures) {
		cures = torch_cures;
		n = FRAG_ARRAY_LEN(torch_cures);
	}
	frag_target_run_options(&c->in.target, &opt);
	opt.limit_bytes = c->in.limit_guessed ? UINT64_MAX : c->in.limit_bytes;
	for (size_t i = 0; i < n; i++) {
		FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
		FRAG_AUTO(frag_result_release) struct frag_result r = { 0 };

		FRAG_TRY(frag_policy_spec_parse(cures[i].policy, &spec, err));
		FRAG_TRY(frag_replay_sim(spec, &c->in.target.card, frag_events_dev(&c->in.events),
					 &opt, &r, err));
		if (r.m.ooms_count || r.m.peak_reserved_bytes >= *peak)
			continue;
		*peak = r.m.peak_reserved_bytes;
		*which = &cures[i];
	}
	return 0;
}

/* The step end with most non-releasable bytes. */
static size_t worst_step(const struct frag_checkup *c)
{
	size_t worst = 0;

	for (size_t i = 1; i < c->in.history.count; i++)
		worst = c->non_releasable[i] > c->non_releasable[worst] ? i : worst;
	return worst;
}

/* Non-releasable bytes by call site at an event. */
static int non_releasable_at(struct frag_checkup *c, uint64_t event, double *by_site, uint64_t *all,
			     struct frag_err *err)
{
	FRAG_AUTO(frag_heap_view_release) struct frag_heap_view view = { 0 };
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };

	FRAG_TRY(frag_case_replay(&c->in, &s, err));
	FRAG_TRY(frag_cursor_to(&s, event, err));
	FRAG_TRY(frag_heap_view_take(&s, &view, err));
	for (size_t i = 0; i < view.count; i++)
		by_site[frag_site_of(&c->in.sites, view.list[i].stack)] +=
			(double)view.list[i].non_releasable_bytes;
	*all = view.non_releasable;
	return 0;
}

static int tell_holders(struct frag_checkup *c, struct frag_finding *f, struct frag_err *err)
{
	const struct frag_history *h = &c->in.history;
	const struct frag_sites *sites = &c->in.sites;
	size_t worst = worst_step(c), best = 0;
	FRAG_AUTO_FREE double *by_site = NULL;
	uint64_t all;

	if (!h->count || !c->non_releasable[worst] || !frag_sites_known(sites))
		return 0;
	FRAG_TRY_CALLOC(by_site, sites->count + 1, "diagnosis", err);
	FRAG_TRY(non_releasable_at(c, h->steps[worst].end - 1, by_site, &all, err));
	for (size_t i = 1; i < sites->count; i++)
		best = by_site[i] > by_site[best] || !best ? i : best;
	if (!best || by_site[best] <= 0.2 * (double)all)
		return 0;
	frag_finding_line(f, frag_host_strdup(sites->names[best]));
	SAY("; at the end of %s %s is free in segments with live blocks, %.0f %% of "
	    "it pinned by %s",
	    FRAG_STEP(&c->in, worst), FRAG_BYTES(all), 100 * by_site[best] / (double)all,
	    sites->names[best]);
	return 0;
}

int frag_find_fragmentation(struct frag_checkup *c, struct frag_findings *out, struct frag_err *err)
{
	const struct frag_metrics *m = &c->result.m;
	uint64_t reserved = c->peak_reserved_bytes, live = c->peak_active_bytes, cure = UINT64_MAX;
	uint64_t loss = reserved > live ? reserved - live : 0;
	const char *conf = c->in.events.trace->settings.conf;
	const struct frag_own_allocator *which = NULL;
	struct frag_finding *f;
	bool own;

	if (10 * loss <= reserved || loss < LOSS_MIN)
		return 0;
	if (c->reproduced)
		FRAG_TRY(best_cure(c, &which, &cure, err));
	if (c->reproduced &&
	    (cure == UINT64_MAX || (double)cure > (1 - CURE_PART) * (double)reserved)) {
		c->lost_text = frag_answer_print(
			out->texts,
			"%s is reserved at the peak for at most %s live: %.0f %% is lost, but no "
			"common setting of its allocator needs clearly less (cufrag tune tries "
			"more)%s",
			FRAG_BYTES(reserved), FRAG_BYTES(live),
			100 * (double)loss / (double)reserved,
			frag_events_dev(&c->in.events)->pools_count > 1
				? "; private pools share nothing: graphs that take turns can use "
				  "one (pool=), which cufrag advise --changes graph_pool -- "
				  "python TRAIN.py tries"
				: "");
		return 0;
	}
	own = which == torch_cures && c->in.recorded && conf && *conf;
	f = frag_findings_add(out, FRAG_FOUND_FRAGMENTATION, c->about);
	SAY("%s is reserved at the peak for at most %s live: %.0f %% is lost; ",
	    FRAG_BYTES(reserved), FRAG_BYTES(live), 100 * (double)loss / (double)reserved);
	if (c->reproduced)
		SAY("%.0f %% could be saved: %s %s the same program needs %s",
		    100 - 100 * (double)cure / (double)reserved, own ? "without your" : "with",
		    own		  ? conf
		    : which->line ? which->line
				  : which->policy,
		    FRAG_BYTES(cure));
	else
		SAY("%s", frag_not_reproduced_text(out->texts, reserved, c->replayed_peak_bytes));
	frag_finding_number(f, "peak_reserved_bytes", (double)reserved);
	frag_finding_number(f, "peak_active_bytes", (double)live);
	frag_finding_number(f, "lost_ratio", (double)loss / (double)reserved);
	frag_finding_number(f, "at_peak_non_releasable_bytes", (double)m->non_releasable_bytes);
	frag_finding_number(f, "at_peak_releasable_bytes", (double)m->releasable_bytes);
	if (c->reproduced)
		frag_finding_number(f, "cured_peak_reserved_bytes", (double)cure);
	return tell_holders(c, f, err);
}
