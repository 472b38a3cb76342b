/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of a serving engine over time, files that lie, what engines print. */
#include "test.h"

#include "plan/kvcache/kvcache.h"

static const char *path; /* of the file that is read */

static void put(const char *text, size_t n)
{
	path = test_make_file("input", text, n);
}

static void say_error(FILE *out)
{
	const char *at = strstr(test_err.msg, path);

	assert_non_null(at);
	fprintf(out, "%.*sFILE%s", (int)(at - test_err.msg), test_err.msg, at + strlen(path));
}

/* "TOKENS of BLOCK, at most RUNNING, steps of US" and requests: how full it gets. */
static void answer_replay(const char *input, FILE *out)
{
	FRAG_AUTO(frag_kvcache_release) struct frag_kvcache k = { 0 };
	ull asked[4];
	int n;

	while (*input == '#')
		input = strchr(input, '\n') + 1;
	assert_int_equal(sscanf(input, "%llu of %llu, at most %llu, steps of %llu us\n%n",
				&asked[0], &asked[1], &asked[2], &asked[3], &n),
			 4);
	k.tokens = asked[0];
	k.block = asked[1];
	k.max_running = asked[2];
	k.step_us = asked[3];
	put(input + n, strlen(input + n));
	SUCCEEDS(frag_kvcache_read(&k, path, &test_err));
	SUCCEEDS(frag_kvcache_replay(&k, &test_err));
	fprintf(out,
		"%llu blocks at %llu us, %llu running, %llu waiting; too long %llu; end %llu us, "
		"%zu spans\n",
		(ull)k.peak_blocks, (ull)k.peak_us, (ull)k.peak_running, (ull)k.peak_waiting,
		(ull)k.too_long, (ull)k.end_us, k.samples_count);
	if (k.preemptions)
		fprintf(out,
			"preempted %llu times, first at %llu us: %llu requests, %llu tokens "
			"again\n",
			(ull)k.preemptions, (ull)k.first_preemption_us, (ull)k.preempted_requests,
			(ull)k.recomputed_tokens);
	assert_true(k.preemptions || k.first_preemption_us == UINT64_MAX);
	assert_true(k.samples_count <= FRAG_KVCACHE_SAMPLES);
	for (size_t i = 0; i < k.samples_count; i++)
		if (!i || memcmp(&k.samples[i], &k.samples[i - 1], sizeof(k.samples[i])))
			fprintf(out,
				"%zu: %llu blocks, %llu running, %llu waiting, %llu preempted\n", i,
				(ull)k.samples[i].blocks, (ull)k.samples[i].running,
				(ull)k.samples[i].waiting, (ull)k.samples[i].preemptions);
}

CASES_IN_PARTS("tests/unit/plan/kvcache.cases", answer_replay)

static void answer_file(char *call, FILE *out)
{
	FRAG_AUTO(frag_kvcache_release) struct frag_kvcache k = { .tokens = 64, .block = 16 };
	size_t n;
	FRAG_AUTO(free_at) char *text = cases_unescape(strcmp(call, "(nothing)") ? call : "", &n);

	put(text, n);
	if (!frag_kvcache_read(&k, path, &test_err)) {
		fprintf(out, "%zu requests", k.count);
		return;
	}
	assert_int_equal(test_err.code, FRAG_EINPUT);
	say_error(out);
}

CASES_IN_LINES("tests/unit/plan/kvcache_files.cases", answer_file)

TEST(blocks_are_whole)
{
	struct frag_kvcache k = { .tokens = 444864, .block = 16 };

	assert_int_equal(frag_kvcache_holds(&k, 8192), 54);
	assert_int_equal(frag_kvcache_holds(&k, 8193), 54); /* 513 blocks each: 54.2 */
	k.tokens = 31;					    /* half a block is none */
	assert_int_equal(frag_kvcache_holds(&k, 1), 1);
	assert_int_equal(frag_kvcache_holds(&k, 17), 0);
}

/* What a log says: sizes in bytes. */
static void answer_log(const char *input, FILE *out)
{
	struct frag_engine_log said;

	put(input, strlen(input));
	SUCCEEDS(frag_engine_log_read(path, 16, &said, &test_err));
	fprintf(out, "%llu tokens, weights %llu, profile run %llu, graphs %llu, cache %llu%s%s\n",
		(ull)said.tokens, (ull)said.weights_bytes, (ull)said.profile_bytes,
		(ull)said.graphs_bytes, (ull)said.cache_bytes, said.listens ? ", listens" : "",
		said.too_small ? ", too small" : "");
}

CASES_IN_PARTS("tests/unit/plan/engine_log.cases", answer_log)

TEST(a_log_that_is_not_there)
{
	struct frag_engine_log said;

	path = test_path("none");
	FAILS(FRAG_EINPUT, path, frag_engine_log_read(path, 16, &said, &test_err));
}
