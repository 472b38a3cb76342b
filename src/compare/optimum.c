/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is possible with all knowledge, as rows of compare.
 *
 * How much work that may be is counted, not timed, so that the same input gives the same
 * rows on any machine: a placement looks at the pairs of requests that live at the same time
 * (about 40 ns each, measured on the bundled traces), and their number is found in one pass.
 */
#include "optimum.h"

#include <inttypes.h>
#include <string.h>

#include <frag/plan.h>

#include "base/interrupt.h"
#include "base/outfile.h"
#include "base/scratch.h"
#include "report/charts/layout.h"

#define PLAN "plan" /* its file in the folder */

#define UNIT 512u
/* Pairs that a placement may look at: at most two seconds of one processor. */
#define PAIRS_MAX 45000000u
/* Improving it costs up to twice as much for a pair; it goes on up to so many in all, where
 * the placement was asked for up to these. With and without --out the same. */
#define PAIRS_IMPROVE 20000000u
#define PAIRS_ASKED_FOR 200000000u
/* That the plan of one `planned` may look at, beside the placement. */
#define PAIRS_PLAN 10000000u
/* The order of the greedy placement is improved as long as that is less work than this. */
#define ROUNDS_MAX 64u
/* Nearer to the bound than this is near enough. */
#define GOOD_RATIO 0.005

/* ---- how much work ----------------------------------------------------------------- */

/* Pairs of requests of which the later one begins while the other lives. */
static uint64_t pairs_of(const struct frag_trace_dev *dev)
{
	uint64_t live = dev->initial.blocks_count, pairs = 0;

	for (size_t i = 0; i < dev->events_count; i++) {
		switch (dev->events[i].kind) {
		case FRAG_EV_ALLOC:
			pairs += live++;
			break;
		case FRAG_EV_FREE:
		case FRAG_EV_FREE_COMPLETED:
			live -= live > 0;
			break;
		default:
			break;
		}
	}
	return pairs;
}

static uint64_t pairs_max(const struct frag_session *s)
{
	/* two processors do what two traces may take; more traces share it */
	size_t traces = FRAG_MAX(s->paths_count, (size_t)2);

	return s->optimum == FRAG_OPTIMUM_PLACE ? UINT64_MAX : 2ull * PAIRS_MAX / traces;
}

/* Why it is not done, into out; true if it is too much. */
static bool too_much(uint64_t pairs, uint64_t most, const char *what, char *out, size_t room)
{
	if (pairs <= most)
		return false;
	snprintf(out, room,
		 "%s: %.0f million pairs of requests live at the same time; --optimum place makes "
		 "it anyway",
		 what, (double)pairs / 1e6);
	return true;
}

/* ---- the offline placement ---------------------------------------------------------- */

/* Greedy, then better orders as long as they cost less than may be spent. */
static int place(const struct frag_session *s, struct frag_session_task *t,
		 const struct frag_buffers *b, uint64_t pairs, uint64_t *offsets)
{
	struct frag_optimum *o = &t->optimum;
	uint64_t most = s->optimum == FRAG_OPTIMUM_PLACE ? PAIRS_ASKED_FOR
							 : FRAG_MIN(pairs_max(s), PAIRS_IMPROVE);
	uint64_t bound, height;
	const struct frag_watch watch = { .stop = s->run.stop };
	struct frag_improve_options improve = { .budget_ns = UINT64_MAX / 2, .watch = &watch };

	FRAG_TRY(frag_load_bound(b, &bound, NULL, &t->err));
	FRAG_TRY(frag_place_greedy(b, FRAG_ORDER_SIZE, FRAG_GAP_BEST, &watch, offsets, &height,
				   &t->err));
	FRAG_TRY(frag_place_check(b, offsets, UNIT, height, &t->err));
	o->placed = true;
	o->bound_bytes = bound;
	o->place_bytes = height;
	o->rule = "largest first, into the smallest gap";
	/* the search begins with the greedy orders, which count as four rounds */
	if (height > bound + (uint64_t)(GOOD_RATIO * (double)bound) && pairs && most / pairs > 8) {
		improve.rounds_max = (unsigned)FRAG_MIN(most / pairs - 4, (uint64_t)ROUNDS_MAX);
		FRAG_TRY(frag_place_improve(b, &improve, offsets, &height, &t->err));
		FRAG_TRY(frag_place_check(b, offsets, UNIT, height, &t->err));
		if (height < o->place_bytes) {
			o->place_bytes = height;
			o->rule = "largest first, then the order improved";
		}
	}
	return 0;
}

int frag_session_place(const struct frag_session *s, struct frag_session_task *t)
{
	FRAG_AUTO_FREE uint64_t *offsets = NULL;
	uint64_t pairs = pairs_of(t->dev);
	FRAG_AUTO(frag_buffers_release) struct frag_buffers b = { 0 };

	if (too_much(pairs, pairs_max(s), "the trace is too large", t->optimum.note,
		     sizeof(t->optimum.note)))
		return 0;
	FRAG_TRY(frag_buffers_init(&b, t->dev, UNIT, s->run.free_at_request, &t->err));
	offsets = frag_host_calloc(b.count + 1, sizeof(*offsets));
	return offsets ? place(s, t, &b, pairs, offsets) : frag_fail_nomem(&t->err, "placement");
}

/* ---- a plan for `planned` ------------------------------------------------------------ */

bool frag_lacks_plan(const struct frag_policy_spec *spec)
{
	const struct frag_policy_ops *ops = frag_policy_spec_ops(spec);
	const char *params = frag_policy_spec_params(spec);

	return (ops->flags & FRAG_POLICY_PLANNED) &&
	       !params[frag_opt_find(ops->opts, "plan")->offset];
}

bool frag_session_wants_plan(const struct frag_session *s, const struct frag_policy_spec *spec)
{
	return s->plan_ahead && frag_lacks_plan(spec);
}

static int put_plan(const struct frag_step_plan *plan, char **folder, struct frag_err *err)
{
	int rc = frag_scratch_folder(NULL, folder);
	char *path = rc ? NULL : frag_path_join(*folder, PLAN);

	if (rc)
		return FRAG_OUTPUT(
			err, "cannot write a plan: %s; set TMPDIR to a folder that can be written",
			strerror(rc));
	rc = path ? frag_step_plan_write(plan, "by compare", path, err)
		  : frag_fail_nomem(err, "plan");
	frag_host_free(path);
	return rc;
}

int frag_plan_ahead(const struct frag_trace_dev *dev, const struct frag_policy_spec *from,
		    bool any_size, struct frag_planned *out, struct frag_err *err)
{
	FRAG_AUTO(frag_step_plan_release) struct frag_step_plan plan = { 0 };
	const struct frag_watch watch = { .stop = frag_interrupt_flag };
	const struct frag_step_options opt = { .slack = -1,
					       .budget_ns = UINT64_MAX / 2,
					       .watch = &watch };
	const char *options = strchr(frag_policy_spec_text(from), ':');
	FRAG_AUTO(frag_text_release) struct frag_text text = { 0 };
	struct frag_text about = { 0 };
	char note[200];
	int rc;

	*out = (struct frag_planned){ 0 };
	if (too_much(pairs_of(dev), any_size ? UINT64_MAX : PAIRS_PLAN,
		     "the trace is too large for its plan", note, sizeof(note)))
		return frag_fail(err, FRAG_ENOTSUP, "%s", note);
	rc = frag_step_plan_make(dev, &opt, &plan, err);
	if (rc)
		return rc == FRAG_EINPUT || rc == FRAG_EUSAGE ? FRAG_ENOTSUP : rc;
	frag_text_addf(&about, "first %" PRIu32 " of %" PRIu32 " %s", plan.trained_count,
		       plan.steps_count, plan.windows ? "windows" : "steps");
	FRAG_TRY(frag_text_check(&about, err));
	out->about = about.s;
	FRAG_TRY(put_plan(&plan, &out->folder, err));
	/* the options of the policy, with a plan */
	frag_text_addf(&text, "%s:plan=%s/" PLAN, frag_policy_spec_ops(from)->name, out->folder);
	if (options && options[1])
		frag_text_addf(&text, ",%s", options + 1);
	FRAG_TRY(frag_text_check(&text, err));
	return frag_policy_spec_parse(frag_text_str(&text), &out->spec, err);
}

void frag_planned_release(struct frag_planned *p)
{
	frag_policy_spec_destroy(p->spec);
	frag_scratch_remove(p->folder);
	frag_host_free(p->about);
	*p = (struct frag_planned){ 0 };
}

/* ---- address-space maps --------------------------------------------------------------- */

static int add_layout(const struct frag_session *s, struct frag_section *sec, size_t k,
		      struct frag_err *err)
{
	struct frag_run_options opt = s->run;
	struct frag_policy_spec *spec;
	int rc;

	/* as its row was replayed */
	opt.limit_bytes = sec->limit_bytes;
	opt.restore = sec->results[k].restored;
	FRAG_TRY(frag_policy_spec_parse(sec->results[k].policy, &spec, err));
	rc = frag_layout_make(spec, &s->target.card, sec->events, sec->results[k].peak.event, &opt,
			      &sec->layouts[sec->layouts_count], err);
	frag_policy_spec_destroy(spec);
	if (!rc)
		sec->layouts_count++;
	return rc == FRAG_EINTR ? 0 : rc;
}

int frag_session_layouts(const struct frag_session *s, struct frag_section *sec,
			 struct frag_err *err)
{
	struct frag_text missing = { 0 };
	struct frag_advice a;

	/* a trace that is streamed is not there any more */
	if (!s->out || !s->host.simulated || !sec->events || !sec->events->events)
		return 0;
	if (!frag_interrupted()) {
		FRAG_TRY_CALLOC(sec->layouts, 2, "address-space map", err);
		frag_section_advice(sec, &a);
		/* a plan is gone when its replay is over */
		if (!(sec->results[sec->baseline].policy_flags & FRAG_POLICY_PLANNED))
			FRAG_TRY(add_layout(s, sec, sec->baseline, err));
		if (a.pick != SIZE_MAX && a.pick != sec->baseline &&
		    !(sec->results[a.pick].policy_flags & FRAG_POLICY_PLANNED))
			FRAG_TRY(add_layout(s, sec, a.pick, err));
	}
	if (!frag_interrupted())
		return 0;
	frag_text_addf(&missing, "%s%saddress map", sec->missing ? sec->missing : "",
		       sec->missing ? ", " : "");
	FRAG_TRY(frag_text_check(&missing, err));
	frag_host_free(sec->missing);
	sec->missing = missing.s;
	return 0;
}
