/* SPDX-License-Identifier: Apache-2.0 */
/* Changes that are tried; see trial.h. */
#include "trial.h"

#include <stdlib.h>
#include <string.h>

#include <frag/clock.h>

#include "pretend/advise/edit.h"
#include "pretend/start/child.h"

#define DAY 86400u

/* ---- the program as it is ------------------------------------------------------------------ */

static bool is_late(void *until_ns)
{
	return frag_clock_ns() > *(uint64_t *)until_ns;
}

static int run_unchanged(struct frag_advising *a, struct frag_err *err)
{
	struct frag_trials *t = &a->trials;
	const uint64_t begun = frag_clock_ns();
	uint64_t until = begun + (a->seconds ? a->seconds : DAY) * 1000000000ull;
	char folder[4096];
	unsigned n;
	int rc;

	*t = (struct frag_trials){ .launch = frag_program_launch(&a->program) };
	t->launch.stdout_to_stderr = true;
	FRAG_TRY(frag_launch_folder(t->folder, sizeof(t->folder), err));
	FRAG_TRY(frag_trials_folder(a, &n, folder, err));
	setenv(CUFRAG_TRIALS, "1", 1);
	frag_launch_put_path(CUFRAG_PRETEND_MODULES, t->folder, "modules");
	frag_launch_end_when(is_late, &until);
	rc = frag_pretend_run_into(&t->launch, a->pretend, a->program.words, folder, &t->status,
				   err);
	frag_launch_end_when(NULL, NULL);
	unsetenv(CUFRAG_TRIALS);
	unsetenv(CUFRAG_PRETEND_MODULES);
	t->took_ns = frag_clock_ns() - begun;
	if (frag_launch_interrupted())
		return frag_fail(err, FRAG_EINTR, "interrupted");
	FRAG_TRY(rc);
	if (frag_launch_was_done())
		return frag_fail(err, FRAG_EINPUT, "the program ran longer than %u s (--time)",
				 a->seconds);
	t->server = frag_forks_begin(t->folder);
	return 0;
}

static void end_runs(struct frag_advising *a)
{
	if (!*a->trials.folder)
		return;
	frag_forks_end(a->trials.server);
	frag_launch_folder_remove(a->trials.folder);
	a->trials.folder[0] = '\0';
}
/* ---- settings -------------------------------------------------------------------------------- */

/* Settings and another allocator: replays the recording of the unchanged program. */
static int add_replayed(struct frag_advising *a, struct frag_err *err)
{
	FRAG_AUTO(frag_recording_release) struct frag_recording r = { 0 };
	FRAG_AUTO_FREE struct frag_advice *list = NULL;
	struct frag_advice unchanged;
	unsigned number;
	bool settings = frag_offer_asked(a->only, "settings", &number);
	size_t n = 0;
	int rc;

	if (!settings && !frag_offer_asked(a->only, "vmm", &number))
		return 0;
	rc = frag_recording_take(&r, FRAG_GIVE(a->base), &a->program.target, 0, err)
		     ?: frag_advise_edits(&r, true, a->only, a->texts, &unchanged, &list, &n, err);
	if (rc == FRAG_EINTR || rc == FRAG_ENOMEM)
		return rc;
	if (rc) {
		a->list[a->count] = (struct frag_advice){ .change = settings ? "settings" : "vmm",
							  .left_out = err->msg,
							  .group = "allocator",
							  .before = a->first.peaks };
		frag_advice_keep(&a->list[a->count++], a->texts);
	}
	for (size_t i = 0; !rc && i < n && i < FRAG_TRIAL_REPLAYED; i++) {
		list[i].group = "allocator";
		a->list[a->count++] = list[i];
	}
	return 0;
}

/* ---- the best together ---------------------------------------------------------------------- */

#define TOGETHER_MAX 6u /* runs that look for the best combination */

static uint64_t saving(const struct frag_advice *x)
{
	return x->tried || x->replayed ? frag_advice_above(frag_advice_need(&x->before),
							   frag_advice_need(&x->after))
				       : 0;
}

FRAG_COMPARE(by_saving, struct frag_advice,
	     FRAG_ORDER(y->tried || y->replayed, x->tried || x->replayed),
	     FRAG_ORDER(saving(y), saving(x)), strcmp(x->change, y->change))

static void sort(struct frag_advising *a)
{
	if (a->count)
		qsort(a->list, a->count, sizeof(*a->list), by_saving);
}

static bool excluded(const struct frag_advising *a, const struct frag_advice *x)
{
	for (size_t i = 0; i < a->members_count; i++)
		if (*x->group && !strcmp(x->group, a->members[i]->group))
			return true;
	return false;
}

/* Runs the members and x together; x may be NULL. */
static int run_together(struct frag_advising *a, const struct frag_advice *x, struct frag_trial *t,
			struct frag_err *err)
{
	char names[600];
	size_t len = 0;

	for (size_t i = 0; i < a->members_count; i++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", i ? "+" : "",
					a->members[i]->change);
	if (x)
		snprintf(names + len, sizeof(names) - len, "+%s", x->change);
	return frag_trial_alone(a, names, t, err);
}

/* The single change that is enough: without numerical differences first, then the fastest. */
static const struct frag_advice *enough_alone(const struct frag_advising *a)
{
	const struct frag_advice *best = NULL;

	for (const struct frag_advice *x = a->list; x < a->list + a->count; x++) {
		if (!x->tried || !frag_trial_fits(a, &x->after))
			continue;
		if (!best || !*x->numerics > !*best->numerics ||
		    (!*x->numerics == !*best->numerics && x->cost.seconds < best->cost.seconds))
			best = x;
	}
	return best;
}

static struct frag_trial as_tried(const struct frag_advice *x)
{
	return (struct frag_trial){ .done = true, .peaks = x->after, .curve = x->curve };
}

/* Does it at most double the modelled time, as far as that is known? */
static bool is_cheap(const struct frag_advising *a, const struct frag_advice *x)
{
	return !a->first.span_ns || x->cost.seconds * 1e9 <= (double)a->first.span_ns;
}

/* May x be a member? Kinds: 0 no numerical change at little cost, 1 at more; 2 and 3 the others. */
static bool is_candidate(const struct frag_advising *a, const struct frag_advice *x, size_t kind)
{
	return x->tried && saving(x) * 100 >= frag_advice_need(&x->before) &&
	       (*x->numerics != '\0') == (kind > 1) && is_cheap(a, x) == (kind % 2 == 0) &&
	       !excluded(a, x) && a->members_count < FRAG_ARRAY_LEN(a->members);
}

static void add_member(struct frag_advising *a, const struct frag_advice *x,
		       const struct frag_trial *t)
{
	a->members[a->members_count++] = x;
	a->best = *t;
	a->fits = a->named && frag_trial_fits(a, &t->peaks);
}

/* The largest saving first, until it fits; each must save another 1 %. With a card, of all kinds;
 * without one, only of the first kind that has a change. */
static int combine(struct frag_advising *a, struct frag_err *err)
{
	const struct frag_advice *alone = a->named ? enough_alone(a) : NULL;
	unsigned runs = 0;
	struct frag_trial t;

	a->fits = a->named && frag_trial_fits(a, &a->first.peaks);
	if (!a->fits && alone && !*alone->numerics) {
		t = as_tried(alone);
		add_member(a, alone, &t);
	}
	for (size_t i = 0; i < 4 * a->count && runs < TOGETHER_MAX && !a->fits; i++) {
		const struct frag_advice *x = &a->list[i % a->count];
		uint64_t before =
			frag_advice_need(a->members_count ? &a->best.peaks : &a->first.peaks);

		if (i % a->count == 0 && !a->named && a->members_count)
			return 0;
		if (!is_candidate(a, x, i / a->count))
			continue;
		t = as_tried(x);
		if (a->members_count) {
			FRAG_TRY(run_together(a, x, &t, err));
			runs++;
		}
		if (a->interrupted)
			return 0;
		if (t.done && frag_advice_need(&t.peaks) + before / 100 <= before)
			add_member(a, x, &t);
	}
	return 0;
}

static int complete(struct frag_advising *a, struct frag_err *err)
{
	const size_t untried = strlen(FRAG_TRIAL_UNTRIED);
	struct frag_trial t = { 0 };
	int rc;

	if (!a->enlarged || !a->fits || !a->members_count || a->interrupted) {
		a->completed = a->fits && !a->enlarged;
		return 0;
	}
	a->trials.launch = frag_program_launch(&a->real);
	if (a->best.peaks.expandable < a->best.peaks.reserved)
		setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", 1);
	rc = run_together(a, NULL, &t, err);
	a->completed = !rc && t.done;
	if (!rc && !t.done && !a->interrupted) {
		snprintf(a->why, sizeof(a->why), "%.250s",
			 t.why + (strncmp(t.why, FRAG_TRIAL_UNTRIED, untried) ? 0 : untried));
		a->fits = false;
	}
	return rc;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static int begin(struct frag_advising *a, struct frag_err *err)
{
	struct frag_program *p = &a->program;
	char folder[4096];
	bool oom = false;
	int rc;

	FRAG_TRY(run_unchanged(a, err));
	frag_trials_path(a, 0, "", folder, sizeof(folder));
	frag_pretend_note_hooks(&a->trials.launch, folder);
	rc = frag_trial_collect(a, 0, a->trials.status, &a->first, &oom, err);
	if (rc == FRAG_EINPUT && a->trials.status)
		frag_err_prefix(err, "the program ended with status %d", a->trials.status);
	FRAG_TRY(rc);
	if (!oom || !a->first.status || a->enlarged)
		return a->first.status ? frag_fail(err, FRAG_EINPUT,
						   "the program ended with status %d, and not for "
						   "want of memory",
						   a->first.status)
				       : 0;
	frag_launch_note(&a->trials.launch, "the unchanged program runs out of memory on this "
					    "card; recorded with enough memory");
	end_runs(a);
	a->enlarged = true;
	p->target.card.total_bytes = FRAG_TRIAL_LARGE;
	p->target.limit = (struct frag_limit){ 0 };
	return begin(a, err);
}

int frag_advise_try(struct frag_advising *a, struct frag_err *err)
{
	const uint64_t begun = frag_clock_ns();

	a->real = a->program;
	FRAG_TRY(begin(a, err));
	if (!a->seconds)
		a->seconds = (unsigned)(60 + 10 * a->trials.took_ns / 1000000000);
	FRAG_TRY(frag_trial_offers(a, err));
	FRAG_TRY(frag_trial_each(a, err));
	FRAG_TRY(frag_trial_numbers(a, err));
	if (!a->interrupted)
		FRAG_TRY(add_replayed(a, err));
	sort(a);
	if (!a->interrupted)
		FRAG_TRY(combine(a, err));
	FRAG_TRY(complete(a, err));
	a->took_ns = frag_clock_ns() - begun;
	return 0;
}

int frag_advise_recording(struct frag_advising *a, const struct frag_recording *r,
			  struct frag_err *err)
{
	const uint64_t begun = frag_clock_ns();

	a->edited = true;
	snprintf(a->name, sizeof(a->name), "%s", r->trace->name);
	FRAG_TRY(frag_advise_edits(r, false, a->only, a->texts, &a->unchanged, &a->list, &a->count,
				   err));
	a->first = (struct frag_trial){ .peaks = a->unchanged.after, .curve = a->unchanged.curve };
	a->took_ns = frag_clock_ns() - begun;
	return 0;
}

const char *frag_advising_unknown(const struct frag_advising *v, size_t *untried)
{
	const size_t len = strlen(FRAG_TRIAL_UNTRIED);
	const char *why = NULL;

	*untried = 0;
	for (size_t i = 0; i < v->count; i++)
		if (!strncmp(v->list[i].left_out, FRAG_TRIAL_UNTRIED, len)) {
			why = v->list[i].left_out + len;
			++*untried;
		}
	return v->edited || v->members_count || v->fits || v->interrupted ? NULL : why;
}

void frag_advising_release(struct frag_advising *a)
{
	end_runs(a);
	frag_trace_destroy(a->base);
	frag_host_free(a->list);
	frag_catalog_release(&a->catalog);
}
