/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histories that began late: what their choices show of the state that they began with is found; a
 * difference that no such state explains is one; what is left open is undetermined.
 */
#include "test.h"

#include <frag/replay.h>
#include <frag/torch.h>

#include "verify/follow.h"
#include "raw_text.h"

/* A replay of what was recorded that begins as it began reserves as much as it did. */
static void replays(const struct frag_trace *trace, const struct frag_sim_config *card)
{
	const struct frag_trace_dev *dev = &trace->devs[0];
	struct frag_run_options opt;
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
	FRAG_AUTO(frag_result_release) struct frag_result r = { 0 };

	frag_run_options_defaults(&opt);
	opt.limit_bytes = dev->settled.limit_bytes;
	opt.restore = true;
	SUCCEEDS(follow_spec(trace, NULL, &spec, NULL));
	SUCCEEDS(frag_replay_sim(spec, card, dev, &opt, &r, NULL));
	assert_int_equal(r.m.peak_reserved_bytes, dev->settled.peak_bytes);
}

/* "RELEASE conf=… limit=… gc=…" in front of the bar. */
static void take_options(char *at, struct frag_trace_settings *s, unsigned *release,
			 uint64_t *limit)
{
	const char *word = cases_word(&at);

	*limit = UINT64_MAX;
	SUCCEEDS(frag_torch_parse(word, release, NULL));
	while ((word = cases_word(&at))) {
		if (!strncmp(word, "conf=", 5))
			s->conf = (char *)(uintptr_t)(word + 5);
		else if (!strncmp(word, "limit=", 6))
			*limit = cases_must_number(word + 6, NULL, 0);
		else
			assert_int_equal(sscanf(word, "gc=%lf", &s->gc_threshold), 1);
	}
}

/* Settles the history: "identical", or "undetermined" or "different" and the event. */
static void answer(char *call, FILE *out)
{
	struct frag_trace_settings settings = { .present = true,
						.conf = (char *)(uintptr_t) "",
						.max_split_bytes = UINT64_MAX,
						.limit_bytes = UINT64_MAX };
	struct frag_sim_config card = { .context_bytes = UINT64_MAX };
	FRAG_AUTO(frag_verify_result_release) struct frag_verify_result r = { 0 };
	FRAG_AUTO(frag_trace_dev_release) struct frag_trace_dev dev = { 0 };
	struct frag_trace trace = { .name = (char *)"made", .devs = &dev, .devs_count = 1 };
	struct raw_text text;
	char *bar = strstr(call, " | "), said[600];
	unsigned release;
	uint64_t limit;

	raw_text_parse(&text, bar + 3);
	*bar = 0;
	take_options(call, &settings, &release, &limit);
	text.raw.settings = &settings;
	trace.settings = settings;
	SUCCEEDS(frag_build_dev(&text.raw, &dev, &test_err));
	frag_trace_set_torch(&trace, release, release);
	SUCCEEDS(frag_settle(&trace, &card, limit, limit != UINT64_MAX, &test_err) ||
		 frag_verify(&trace, 0, &card, limit, NULL, &r, &test_err));
	assert_int_equal(r.identical, dev.settled.identical);
	assert_int_equal(r.undetermined, dev.settled.undetermined);
	frag_settled_text(&dev.settled, said, sizeof(said));
	assert_int_equal(strncmp(said, "undetermined from event", 23) == 0, r.undetermined);
	if (r.identical && dev.initial.segments_count)
		replays(&trace, &card);
	if (r.identical)
		fputs("identical", out);
	else
		fprintf(out, "%s from event %llu", r.undetermined ? "undetermined" : "different",
			(ull)dev.settled.event);
}

CASES_IN_LINES("tests/unit/verify/late.cases", answer)
