/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of a serving engine as an answer: what it holds, how full it gets, preemption. */
#include "kvcache.h"

#include <math.h>

#include "answer/row.h"

#define SAMPLE_ROW(F, P, S) \
	F(S, US, begin_us, i * k->span_us, NULL, "of a span of time, since the first request") \
	F(S, RATIO, used_ratio, (double)k->samples[i].blocks / (double)blocks, NULL, \
	  "of the blocks, the most within it") \
	F(S, COUNT, running_count, k->samples[i].running, NULL, "requests, the most within it") \
	F(S, COUNT, waiting_count, k->samples[i].waiting, NULL, "requests, the most within it") \
	F(S, COUNT, preemptions_count, k->samples[i].preemptions, NULL, "within it")
FRAG_VALUED_ROW(sample_row, "sample", SAMPLE_ROW, "how full the cache is in a span of time");

#define KVCACHE_ROW(F, P, S) \
	F(S, COUNT, cache_tokens_count, k->tokens, NULL, \
	  "that the cache holds, each in one group of layers") \
	F(S, COUNT, block_tokens_count, k->block, NULL, "of a block") \
	F(S, COUNT, blocks_count, blocks, NULL, "of the cache, whole ones") \
	F(S, COUNT, asked_requests_count, k->requests ? k->requests : UINT64_MAX, NULL, \
	  "of --requests; null: not asked") \
	F(S, COUNT, request_tokens_count, k->request_tokens ? k->request_tokens : UINT64_MAX, \
	  NULL, "of --tokens; null: not asked") \
	F(S, COUNT, held_requests_count, k->request_tokens ? k->held : UINT64_MAX, NULL, \
	  "of that length at a time; null: not asked") \
	F(S, REAL, engine_requests, said(k) ? said(k) : NAN, NULL, \
	  "of its longest length at a time, as the engine printed; null: not printed") \
	F(S, COUNT, prefix_tokens_count, k->prefix, NULL, "of --prefix") \
	F(S, COUNT, requests_count, of_replay(k, k->count), NULL, \
	  "of --arrivals or --lengths; null: none were given") \
	F(S, COUNT, too_long_count, k->too_long, NULL, \
	  "of these, longer than the whole cache: left out") \
	F(S, COUNT, max_running_count, of_replay(k, k->max_running), NULL, "of --max-seqs") \
	F(S, COUNT, batched_tokens_count, k->batched_tokens ? k->batched_tokens : UINT64_MAX, \
	  NULL, "of --batched-tokens; null: any number") \
	F(S, US, step_us, of_replay(k, k->step_us), NULL, \
	  "of --step, each a token for every running request") \
	F(S, US, end_us, of_replay(k, k->end_us), NULL, \
	  "when the last request ends, since the first") \
	F(S, RATIO, peak_ratio, k->count ? (double)k->peak.blocks / (double)blocks : 0, NULL, \
	  "of the blocks") \
	F(S, US, peak_us, of_replay(k, k->peak_us), NULL, "when it was first so full") \
	F(S, COUNT, peak_running_count, k->peak.running, NULL, \
	  "requests that run at a time, at most") \
	F(S, COUNT, peak_waiting_count, k->peak.waiting, NULL, \
	  "requests that wait at a time, at most") \
	F(S, US, first_preemption_us, of_replay(k, k->first_preemption_us), NULL, \
	  "null: there is none") \
	F(S, COUNT, preemptions_count, k->peak.preemptions, NULL, \
	  "one request may be preempted more than once") \
	F(S, COUNT, preempted_requests_count, k->preempted_requests, NULL, "each once") \
	F(S, COUNT, recomputed_tokens_count, k->recomputed_tokens, NULL, \
	  "processed again after a preemption") \
	F(S, LIST, samples, FRAG_ROWS(rows, k->samples_count), NULL, \
	  "equal spans of time; of each the most", .of = &sample_row_shape)
FRAG_VALUED_ROW_AS(, frag_kvcache_shape, kvcache, "kvcache", KVCACHE_ROW,
		   "how full the paged cache of a serving engine gets");

static uint64_t of_replay(const struct frag_kvcache *k, uint64_t n)
{
	return k->count ? n : UINT64_MAX;
}

static double said(const struct frag_kvcache *k)
{
	return (double)k->engine.hundredths / 100;
}

static const char *seconds(struct frag_answer *a, uint64_t us)
{
	return frag_answer_print(a, "%.3f s", (double)us / 1e6);
}

static void conclude_held(const struct frag_kvcache *k, const struct kvcache *x,
			  struct frag_answer *a)
{
	const char *held = frag_answer_print(
		a, "%s%s of %s at a time", k->at_least ? "at least " : "",
		frag_answer_count(a, x->held_requests_count, "request", "requests"),
		frag_answer_count(a, x->request_tokens_count, "token", "tokens"));

	if (said(k) && k->request_tokens == k->engine.request_tokens && !k->prefix)
		held = frag_answer_print(a, "%s (%.2f as the engine counts)", held, said(k));
	if (k->slid > k->held && !k->engine.slots && !k->engine.full_tokens)
		held = frag_answer_print(a,
					 "%s if all prompts are computed at once, and about %llu "
					 "run together once their windows have slid",
					 held, (unsigned long long)k->slid);
	if (x->asked_requests_count == UINT64_MAX)
		frag_answer_conclude(a, "the cache holds %s", held);
	else
		frag_answer_conclude(
			a, "the cache %s %s: it has room for %s",
			x->held_requests_count >= x->asked_requests_count ? "holds"
									  : "does not hold",
			frag_answer_count(a, x->asked_requests_count, "request", "requests"), held);
	if (k->at_least)
		frag_answer_warn(
			a,
			"the engine counts %.2f requests of %s, so its layers differ in what "
			"they keep: name their groups after --block",
			said(k), frag_answer_count(a, k->engine.request_tokens, "token", "tokens"));
}

static void remark_size(const struct frag_kvcache *k, const struct kvcache *x,
			struct frag_answer *a)
{
	frag_answer_remark(a, "cache: %s in %s of %s",
			   frag_answer_count(a, k->tokens, "token", "tokens"),
			   frag_answer_count(a, x->blocks_count, "block", "blocks"),
			   frag_answer_count(a, k->block, "token", "tokens"));
	for (size_t i = 0, n; i < k->groups_count && k->token_bytes; i += n) {
		const struct frag_kvcache_group *g = &k->groups[i];

		for (n = 1; i + n < k->groups_count && g[n].window == g->window;)
			n++;
		frag_answer_remark(a, "%zu x %s%s, blocks of %s", n,
				   g->window == UINT64_MAX ? "full attention"
				   : g->window		   ? "window of "
							   : "state",
				   g->window && g->window != UINT64_MAX
					   ? frag_answer_count(a, g->window, "token", "tokens")
					   : "",
				   FRAG_BYTES(k->token_bytes * k->block));
	}
	if (k->otherwise)
		frag_answer_warn(a,
				 "these layers do not fit the log: by its requests and tokens the "
				 "cache has %s, by its size %s: another model, tp=, fp8, drafts?",
				 frag_answer_count(a, x->blocks_count, "block", "blocks"),
				 frag_answer_count(a, k->otherwise, "block", "blocks"));
}

static void conclude_replay(const struct kvcache *x, struct frag_answer *a)
{
	frag_answer_conclude(
		a, "the cache is %.1f %% full at most, first at %s, with up to %s at a time",
		100 * x->peak_ratio, seconds(a, x->peak_us),
		frag_answer_count(a, x->peak_running_count, "running request", "running requests"));
	if (x->first_preemption_us == UINT64_MAX)
		frag_answer_conclude(a, "no request is preempted");
	else
		frag_answer_conclude(a, "preemption begins at %s: %s, %s in all",
				     seconds(a, x->first_preemption_us),
				     frag_answer_count(a, x->preempted_requests_count,
						       "request is preempted",
						       "requests are preempted"),
				     frag_answer_count(a, x->preemptions_count, "time", "times"));
	if (x->too_long_count)
		frag_answer_warn(
			a, "%s left out: the whole cache does not hold %s",
			frag_answer_count(a, x->too_long_count, "request is", "requests are"),
			x->too_long_count == 1 ? "it" : "one of them");
}

static void draw(const struct kvcache *x, struct frag_answer *a)
{
	struct frag_title title = { 0 };
	struct frag_answer_chart chart = {
		.script = "kvcache",
		.caption = "Blocks in use, requests that run and that wait, and preemptions, over "
			   "time; of each span of time the most.",
		.shape = &sample_row_shape,
		.rows = x->samples,
	};

	frag_text_addf(&title.text, "The cache is %s full at most",
		       frag_title_percent(&title, "peak_ratio", x->peak_ratio, 1));
	frag_answer_take_title(a, &title, &chart);
	frag_answer_chart(a, &chart);
}

int frag_kvcache_answer(const struct frag_kvcache *k, struct frag_answer *a, struct frag_err *err)
{
	struct kvcache *x = frag_answer_new(a, 1, sizeof(*x));
	struct sample_row *rows = frag_answer_new(a, FRAG_KVCACHE_SAMPLES, sizeof(*rows));
	uint64_t blocks = k->tokens / k->block;

	FRAG_CHECK_ALLOC(x && rows, "answer", err);
	for (size_t i = 0; i < k->samples_count; i++)
		rows[i] = FRAG_ROW_VALUES(sample_row, SAMPLE_ROW);
	*x = FRAG_ROW_VALUES(kvcache, KVCACHE_ROW);
	frag_answer_data(a, &frag_kvcache_shape, x);
	frag_answer_csv(a, &sample_row_shape, rows, x->samples.count);
	a->title = "How full the cache gets";
	a->question =
		"Does the cache of the engine hold the requests, and when are they preempted?";
	remark_size(k, x, a);
	if (k->count)
		frag_answer_remark(a,
				   "%s over %s, steps of %s; modelled: a token for each running "
				   "request and step, preemption of the last with recomputation, "
				   "%s",
				   frag_answer_count(a, k->count, "request", "requests"),
				   seconds(a, k->end_us), seconds(a, k->step_us),
				   k->prefix ? "one shared prefix" : "no shared prefixes");
	if (k->request_tokens)
		conclude_held(k, x, a);
	if (k->count) {
		conclude_replay(x, a);
		draw(x, a);
	}
	return a->failed ? frag_fail_nomem(err, "answer") : 0;
}
