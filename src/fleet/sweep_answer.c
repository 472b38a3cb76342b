/* SPDX-License-Identifier: Apache-2.0 */
/* What came of a sweep: counts, and the traces that failed; see sweep.h. */
#include "sweep.h"

FRAG_ROW_SHAPE(static, failure_shape, frag_sweep_failure, "failure", FRAG_SWEEP_FAILURE,
	       "a trace that failed");

#define SWEEP(F, P, S) \
	F(S, TEXT, output, s->output, NULL, "file of the results, SQLite (docs/fleet.md)") \
	F(S, COUNT, traces_count, n.traces, "traces", "in the file, also those of earlier sweeps") \
	F(S, COUNT, results_count, n.items, "results", "one device, policy, limit and card each") \
	F(S, COUNT, completed_count, n.completed, "completed", "without a refused request") \
	F(S, COUNT, unreproduced_count, n.unreproduced, "not reproduced", \
	  "the recorded settings reserve another peak than was recorded", .if_any = true) \
	F(S, COUNT, refused_count, n.refused, "with refused requests", "ran out of memory") \
	F(S, COUNT, failed_count, n.failed, "traces that failed", "could not be read or replayed") \
	F(S, COUNT, skipped_count, skipped, NULL, "traces that were there already") \
	F(S, COUNT, passed_count, passed, NULL, "files in folders that are not traces") \
	F(S, TEXT, missing_shards, *s->missing ? s->missing : NULL, "missing shards", \
	  "of an array job; null if all were merged") \
	F(S, LIST, failures, FRAG_ROWS(c.list, c.count), NULL, "why traces failed", \
	  .of = &failure_shape)
FRAG_VALUED_ROW_AS(, frag_sweep_shape, sweep, "sweep", SWEEP, "what came of a sweep");

struct collected {
	struct frag_answer *a;
	struct frag_sweep_failure *list;
	size_t count, cap;
};

static int collect(void *ctx, const char *path, const char *text)
{
	struct collected *c = ctx;

	if (c->list && c->count < c->cap)
		c->list[c->count++] =
			(struct frag_sweep_failure){ frag_answer_print(c->a, "%s", path),
						     frag_answer_print(c->a, "%s", text) };
	return 0;
}

static void say(const struct sweep *w, struct frag_answer *a)
{
	frag_answer_conclude(a, "%s, %s: %llu completed, %llu with refused requests",
			     frag_answer_count(a, w->traces_count, "trace", "traces"),
			     frag_answer_count(a, w->results_count, "result", "results"),
			     (unsigned long long)w->completed_count,
			     (unsigned long long)w->refused_count);
	if (w->unreproduced_count)
		frag_answer_say(a, "%s of recorded settings %s another peak than was recorded",
				frag_answer_count(a, w->unreproduced_count, "replay", "replays"),
				w->unreproduced_count == 1 ? "reserves" : "reserve");
	if (w->skipped_count)
		frag_answer_say(a, "%s already there",
				frag_answer_count(a, w->skipped_count, "trace was", "traces were"));
	if (w->passed_count)
		frag_answer_say(a, "%s",
				frag_answer_count(a, w->passed_count,
						  "file in folders is not a trace",
						  "files in folders are not traces"));
	if (w->failed_count)
		frag_answer_say(
			a, "%s, named above",
			frag_answer_count(a, w->failed_count, "trace failed", "traces failed"));
	frag_answer_last(a)->text_only = w->failed_count > 0;
	if (w->missing_shards)
		frag_answer_say(a, "results of shards are missing: %s", w->missing_shards);
	frag_answer_say(a, "wrote %s", w->output);
	frag_answer_facts(a, &frag_sweep_shape, w);
	frag_answer_last(a)->page_only = true;
	if (w->failed_count) {
		frag_answer_table(a, &failure_shape, w->failures.rows, w->failures.count);
		frag_answer_last(a)->page_only = true;
	}
}

int frag_sweep_answer(const struct frag_sweep *s, struct frag_store *store, size_t skipped,
		      size_t passed, struct frag_answer *a, struct frag_rows *failures,
		      struct frag_err *err)
{
	struct sweep *w = frag_answer_new(a, 1, sizeof(*w));
	struct collected c = { .a = a };
	struct frag_store_counts n;

	FRAG_TRY(frag_store_count(store, &n, err));
	c.cap = n.failed;
	c.list = frag_answer_new(a, c.cap, sizeof(*c.list));
	FRAG_TRY(frag_store_failures(store, collect, &c, err));
	FRAG_CHECK_ALLOC(w && c.list, "answer", err);
	*w = FRAG_ROW_VALUES(sweep, SWEEP);
	*failures = w->failures;
	a->title = "A sweep";
	a->question = "What was replayed, and what failed?";
	frag_answer_data(a, &frag_sweep_shape, w);
	say(w, a);
	return a->failed ? frag_fail_nomem(err, "answer") : 0;
}
