/* SPDX-License-Identifier: Apache-2.0 */
/* All changes that are estimated from a recording; see edit.h. */
#include "edit.h"
#include "trial.h"

#include <stdlib.h>
#include <string.h>

#include "base/term.h"
#include "lib/grow.h"
#include "plan/probe.h"

#define AMPLE_BYTES (1ull << 40) /* more than any card has */
#define LEAST_PART 0.01		 /* of a peak; smaller savings are dropped */

static const struct frag_proposal *const lists[] = {
#define FRAG_ENTRY(name) frag_edit_##name,
#include "edit_list.inc"
#undef FRAG_ENTRY
};

/* ---- figures ----------------------------------------------------------------------------- */

/* Replays under a setting. The curve is of what is compared, so `expandable` comes last. */
static int measure(const struct frag_advice_plan *p, const struct frag_policy_spec *spec,
		   const struct frag_trace_dev *dev, uint64_t *reserved, struct frag_advice *a,
		   struct frag_err *err)
{
	FRAG_AUTO(frag_result_release) struct frag_result result = { 0 };
	struct frag_run_options options = p->env.run;

	options.windows_max = FRAG_CURVE_POINTS;
	options.stop = p->env.watch.stop;
	FRAG_TRY(frag_replay_sim(spec, &p->env.card, dev, &options, &result, err));
	*reserved = result.m.peak_reserved_bytes;
	if (spec != p->expandable || frag_advice_need(&a->after) < a->after.reserved)
		frag_curve_take(&a->curve, &result.series);
	return 0;
}

static int measure_both(const struct frag_advice_plan *p, const struct frag_trace_dev *dev,
			struct frag_advice *a, struct frag_err *err)
{
	a->after = (struct frag_advice_peaks){ .requested = frag_probe_peak_live(dev, 1),
					       .expandable = UINT64_MAX,
					       .recorded = p->before.recorded };
	FRAG_TRY(measure(p, p->plain, dev, &a->after.reserved, a, err));
	return p->expandable ? measure(p, p->expandable, dev, &a->after.expandable, a, err) : 0;
}

static bool falls(uint64_t before, uint64_t after)
{
	return before && (double)after <= (1 - LEAST_PART) * (double)before;
}

/* ---- proposals ------------------------------------------------------------------------- */

/* Adds the advice, if it saves enough or says why it is left out. */
static int take(struct frag_advice_plan *p, struct frag_advice a, struct frag_err *err)
{
	const uint64_t need = frag_advice_need(&a.after);
	const struct frag_gpu *card = frag_catalog_pick(&p->catalog, need, &p->headroom);

	if (!a.left_out && !falls(frag_advice_need(&p->before), need))
		return 0;
	a.card = card && !a.left_out ? card->name : NULL;
	a.before = p->before;
	frag_advice_keep(&a, p->texts);
	FRAG_TRY(FRAG_GROW(p->list, p->count, p->cap, "advice", err));
	p->list[p->count++] = a;
	return 0;
}

/* Replays the edit, and adds it to the list if it saves enough. */
static int replay(struct frag_advice_plan *p, struct frag_edit *e, const struct frag_proposal *o,
		  struct frag_err *err)
{
	struct frag_trace_dev dev = *p->story->dev;
	FRAG_AUTO_FREE struct frag_event *events = NULL;
	FRAG_AUTO_FREE char *line = frag_sites_line(&p->story->sites, o->stack);
	bool assumed = o->trains && p->story->may_train;
	struct frag_advice a = { .change = o->change,
				 .what = frag_answer_print(p->texts, "%s%s", o->what,
							   assumed ? " (it ended before any; that "
								     "it trains is assumed)"
								   : ""),
				 .where = o->line ? o->line : line,
				 .numerics = o->numerics,
				 .cost = o->cost };

	FRAG_TRY(frag_edit_apply(e, &events, &dev.events_count, err));
	dev.events = events;
	dev.slots_count = e->slots;
	dev.has_evidence = false;
	dev.addrs = NULL;
	dev.seen = NULL;
	dev.seen_count = dev.final_segments_count = dev.final_blocks_count = 0;
	dev.initial = (struct frag_initial_state){ 0 };
	if (!falls(p->before.requested, frag_probe_peak_live(&dev, 1)))
		return 0;
	return measure_both(p, &dev, &a, err) ?: take(p, a, err);
}

static int propose(struct frag_advice_plan *p, struct frag_proposal o, struct frag_err *err)
{
	const struct frag_trace_dev *dev = p->story->dev;
	FRAG_AUTO(frag_edit_release)
	struct frag_edit e = { .events = dev->events,
			       .count = dev->events_count,
			       .slots = dev->slots_count };
	unsigned number;
	int rc = frag_offer_asked(p->only, o.change, &number) ? o.edit(p, &e, &o, err) : 0;

	if (!rc && o.left_out)
		rc = take(p,
			  (struct frag_advice){
				  .change = o.change, .left_out = o.left_out, .after = p->before },
			  err);
	else if (!rc && e.edited)
		rc = replay(p, &e, &o, err);
	frag_host_free(o.line);
	return rc;
}

/* Replays the unchanged recording under another policy or setting. */
static int try_policy(struct frag_advice_plan *p, const char *policy, const char *change,
		      const char *what, struct frag_err *err)
{
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
	struct frag_advice a = {
		.change = change, .what = what, .after = p->before, .replayed = true
	};
	unsigned number;

	if (!frag_offer_asked(p->only, change, &number))
		return 0;
	FRAG_TRY(frag_policy_spec_parse(policy, &spec, err));
	FRAG_TRY(measure(p, spec, p->story->dev, &a.after.reserved, &a, err));
	return take(p, a, err);
}

/* Settings of the allocator, and another allocator: of a log, those that its library has. */
static int try_settings(struct frag_advice_plan *p, struct frag_err *err)
{
	FRAG_AUTO(frag_tune_release) struct frag_tune tune = { 0 };
	const struct frag_tune_options options = { .baseline = frag_policy_spec_text(p->plain) };
	size_t n;
	const struct frag_own_allocator *own = frag_own_allocators(p->story->trace->format, &n);
	const struct frag_tune_try *best;
	unsigned number;

	for (size_t i = 1; i < n; i++)
		FRAG_TRY(try_policy(p, own[i].policy, own[i].policy, own[i].line, err));
	if (own)
		return 0;
	if (frag_offer_asked(p->only, "settings", &number))
		FRAG_TRY(frag_tune_settings(&p->env, p->story->dev, options, &tune, err));
	best = tune.tries_count ? &tune.tries[frag_tune_pick(&tune)] : NULL;
	if (best && best->conf && best->completed)
		FRAG_TRY(try_policy(p, best->text, "settings",
				    frag_answer_print(p->texts, "PYTORCH_CUDA_ALLOC_CONF%s%s",
						      *best->conf ? "=" : " unset", best->conf),
				    err));
	return try_policy(p, "vmm", "vmm",
			  "cufrag's own allocator vmm in place of PyTorch's (cufrag run --policy "
			  "vmm)",
			  err);
}

/* ---- all of them ------------------------------------------------------------------------- */

FRAG_COMPARE(by_need, struct frag_advice,
	     FRAG_ORDER(frag_advice_need(&x->after), frag_advice_need(&y->after)),
	     strcmp(x->what, y->what))

static int open_plan(struct frag_advice_plan *p, const struct frag_story *s,
		     struct frag_advice *now, struct frag_err *err)
{
	p->story = s;
	p->env.threads = 1;
	p->env.card.total_bytes = AMPLE_BYTES;
	frag_run_options_defaults(&p->env.run);
	p->headroom.ratio = FRAG_HEADROOM_RATIO;
	p->headroom.outside_bytes = frag_recorded_outside_bytes(s->dev);
	FRAG_TRY(frag_catalog_init(&p->catalog, NULL, NULL, err));
	if (p->before.recorded)
		FRAG_TRY(frag_recorded_spec(s->trace, &p->plain, err));
	if (!p->plain)
		FRAG_TRY(frag_policy_spec_parse("pytorch", &p->plain, err));
	if (!frag_own_allocators(s->trace->format, NULL))
		FRAG_TRY(frag_policy_spec_parse("pytorch:expandable_segments:True", &p->expandable,
						err));
	FRAG_TRY(frag_loops_find(s, &p->loops, err));
	FRAG_TRY(measure_both(p, s->dev, now, err));
	p->before = now->after;
	now->change = frag_advice_text(p->texts, frag_policy_spec_text(p->plain));
	now->before.reserved = frag_recorded_peak(s->dev);
	return 0;
}

static void close_plan(struct frag_advice_plan *p)
{
	frag_policy_spec_destroy(p->plain);
	frag_policy_spec_destroy(p->expandable);
	frag_loops_release(&p->loops);
	frag_catalog_release(&p->catalog);
	frag_host_free(p->list);
}

/* The device with the highest peak. */
static const struct frag_unit *fullest(const struct frag_recording *rec)
{
	const struct frag_unit *best = NULL;
	uint64_t most = 0;

	for (uint32_t i = 0; i < rec->trace->devs_count; i++) {
		uint64_t peak = frag_probe_peak_live(rec->units[i].dev, 1);

		best = !best || peak > most ? &rec->units[i] : best;
		most = FRAG_MAX(most, peak);
	}
	return best;
}

int frag_advise_edits(const struct frag_recording *rec, bool settings, const char *only,
		      struct frag_answer *texts, struct frag_advice *unchanged,
		      struct frag_advice **out, size_t *n, struct frag_err *err)
{
	FRAG_AUTO(frag_story_release) struct frag_story story = { 0 };
	FRAG_AUTO(close_plan)
	struct frag_advice_plan p = { .texts = texts, .only = only, .before.recorded = !settings };
	FRAG_AUTO(frag_progress_end) struct frag_progress progress = { 0 };
	const struct frag_unit *unit;

	*unchanged = (struct frag_advice){ .change = "pytorch" };
	*out = NULL;
	*n = 0;
	if (rec->source)
		return frag_fail(err, FRAG_EUSAGE, "advice needs all events in memory");
	unit = fullest(rec);
	if (!unit || !unit->dev->events_count)
		return 0;
	frag_progress_begin(&progress, "editing the recording");
	p.env.watch = progress.watch;
	FRAG_TRY(frag_story_make(&story, unit, err));
	FRAG_TRY(open_plan(&p, &story, unchanged, err));
	for (size_t i = 0; !settings && p.expandable && i < FRAG_ARRAY_LEN(lists); i++)
		for (const struct frag_proposal *o = lists[i]; o->edit; o++)
			FRAG_TRY(propose(&p, *o, err));
	if (settings || !unchanged->before.reserved ||
	    unchanged->before.reserved == unchanged->after.reserved)
		FRAG_TRY(try_settings(&p, err));
	if (p.count)
		qsort(p.list, p.count, sizeof(*p.list), by_need);
	*out = FRAG_GIVE(p.list);
	*n = p.count;
	return texts->failed ? frag_fail_nomem(err, "advice") : 0;
}
