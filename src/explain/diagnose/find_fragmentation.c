/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fragmentation: at its peak far more is reserved than was ever live, and a setting would need
 * less, which is checked by replay. Whoever holds the segments is asked at the step end where
 * most bytes are non-releasable.
 */
#include "diagnose.h"

#include <string.h>

#define LOSS_PART 0.25 /* of peak reserved, that was never live */
#define LOSS_MIN (128 * FRAG_MIB)
#define CURE_PART 0.10 /* less reserved under another setting */

static const char *const cures[] = {
	"pytorch:expandable_segments:True",
	"pytorch:roundup_power2_divisions:8",
	"pytorch:max_split_size_mb:512",
};

/* Peak reserved under another setting, UINT64_MAX = it does not complete. */
static int peak_under(const struct frag_case *c, const char *text, uint64_t *peak,
		      struct frag_err *err)
{
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
	struct frag_run_options opt;
	struct frag_result r = { 0 };
	struct frag_cursor s;
	int rc;

	*peak = UINT64_MAX;
	FRAG_TRY(frag_policy_spec_parse(text, &spec, err));
	frag_run_options_defaults(&opt);
	opt.limit_bytes = c->limit_guessed ? UINT64_MAX : c->limit_bytes;
	rc = frag_cursor_open(&s, &c->ev, spec, &c->card, &opt, err);
	if (!rc) {
		rc = frag_cursor_to(&s, UINT64_MAX - 1, err) ?: frag_run_finish(s.run, &r, err);
		if (!rc && !r.m.ooms_count)
			*peak = r.m.peak_reserved_bytes;
		frag_result_release(&r);
		frag_cursor_close(&s);
	}
	return rc;
}

static int best_cure(const struct frag_case *c, size_t *which, uint64_t *peak, struct frag_err *err)
{
	*peak = UINT64_MAX;
	*which = 0;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(cures); i++) {
		uint64_t one;

		FRAG_TRY(peak_under(c, cures[i], &one, err));
		if (one < *peak) {
			*peak = one;
			*which = i;
		}
	}
	return 0;
}

/* The step end with most non-releasable bytes. */
static size_t worst_step(const struct frag_case *c)
{
	size_t worst = 0;

	for (size_t i = 1; i < c->history.count; i++)
		worst = c->held[i] > c->held[worst] ? i : worst;
	return worst;
}

static int holders_at(struct frag_case *c, uint64_t event, double *strands, uint64_t *all,
		      struct frag_err *err)
{
	struct frag_run_options opt;
	FRAG_AUTO(frag_heap_view_release) struct frag_heap_view scene = { 0 };
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };
	int rc;

	frag_run_options_defaults(&opt);
	opt.limit_bytes = c->limit_bytes;
	opt.seed = c->seed;
	opt.restore = frag_settled_restores(frag_events_dev(&c->ev), &c->card, c->limit_bytes);
	FRAG_TRY(frag_cursor_open(&s, &c->ev, c->spec, &c->card, &opt, err));
	rc = frag_cursor_to(&s, event, err) ?: frag_heap_view_take(&s, &scene, err);
	for (size_t i = 0; !rc && i < scene.count; i++)
		strands[frag_site_of(&c->sites, scene.list[i].stack)] +=
			(double)scene.list[i].strands;
	*all = scene.non_releasable;
	return rc;
}

static int tell_holders(struct frag_case *c, struct frag_finding *f, struct frag_err *err)
{
	const struct frag_history *h = &c->history;
	size_t worst = worst_step(c), best = 0;
	FRAG_AUTO_FREE double *strands = NULL;
	uint64_t all;
	int rc;

	if (!h->count || !c->held[worst] || !frag_sites_known(&c->sites))
		return 0;
	FRAG_TRY_CALLOC(strands, c->sites.count + 1, "diagnosis", err);
	rc = holders_at(c, h->steps[worst].end - 1, strands, &all, err);
	for (size_t i = 1; i < c->sites.count; i++)
		best = strands[i] > strands[best] || !best ? i : best;
	if (!rc && best && strands[best] > 0.2 * (double)all) {
		frag_finding_line(f, frag_host_strdup(c->sites.names[best]));
		frag_text_add(&f->text, "; at the end of ");
		frag_step_words(h, worst, &f->text);
		frag_text_add(&f->text, " ");
		frag_text_add_bytes(&f->text, all);
		frag_text_addf(&f->text,
			       " are free in segments with live blocks, %.0f %% of them "
			       "held by %s",
			       100 * strands[best] / (double)all, c->sites.names[best]);
	}
	return rc;
}

int frag_find_fragmentation(struct frag_case *c, struct frag_findings *out, struct frag_err *err)
{
	const struct frag_metrics *m = &c->result.m;
	uint64_t reserved = m->peak_reserved_bytes, live = m->peak_active_bytes, cure;
	uint64_t loss = reserved > live ? reserved - live : 0;
	struct frag_finding *f;
	size_t which;

	if ((double)loss < LOSS_PART * (double)reserved || loss < LOSS_MIN)
		return 0;
	FRAG_TRY(best_cure(c, &which, &cure, err));
	if (cure == UINT64_MAX || (double)cure > (1 - CURE_PART) * (double)reserved) {
		frag_text_addf(&out->notes, "%s: ", c->about);
		frag_text_add_bytes(&out->notes, reserved);
		frag_text_add(&out->notes, " are reserved for ");
		frag_text_add_bytes(&out->notes, live);
		frag_text_add(&out->notes, " live at most; no common setting of PyTorch needs "
					   "clearly less (cufrag tune looks further)\n");
		return 0;
	}
	f = frag_findings_add(out, FRAG_FOUND_FRAGMENTATION, c->about, err);
	if (!f)
		return FRAG_ENOMEM;
	frag_text_add_bytes(&f->text, reserved);
	frag_text_add(&f->text, " are reserved at the peak, though never more than ");
	frag_text_add_bytes(&f->text, live);
	frag_text_addf(&f->text, " were live: %.0f %% lost; with %s the same program needs ",
		       100 * (double)loss / (double)reserved, strchr(cures[which], ':') + 1);
	frag_text_add_bytes(&f->text, cure);
	frag_finding_number(f, "peak_reserved_bytes", (double)reserved);
	frag_finding_number(f, "peak_active_bytes", (double)live);
	frag_finding_number(f, "lost_ratio", (double)loss / (double)reserved);
	frag_finding_number(f, "at_peak_non_releasable_bytes", (double)m->non_releasable_bytes);
	frag_finding_number(f, "at_peak_releasable_bytes", (double)m->releasable_bytes);
	frag_finding_number(f, "cured_peak_reserved_bytes", (double)cure);
	return tell_holders(c, f, err);
}
