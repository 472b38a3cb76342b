/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of a serving engine over time, against tables computed by hand; files that lie. */
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plan/kvcache/engine_log.h"
#include "plan/kvcache/kvcache.h"

static void put(const char *path, const char *text)
{
	FRAG_AUTO(fclose_at) FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
}

/*
 * Blocks of 4, three of them; steps of 1 s. Two requests, both at 0 s: A of 3 + 6 tokens, B of 4 + 2.
 *
 *	s   A       B       blocks
 *	0   3: 1    4: 1    2        both begin, one token each
 *	1   4: 1    5: 2    3        B is done: two tokens
 *	2   5: 2            2
 *	…   8: 2            2        A is done after the step at 5 s: six tokens
 */
TEST(without_preemption)
{
	struct frag_kvcache k = { .tokens = 12, .block = 4, .max_running = 9, .step_us = 1000000 };

	put("a.csv", "seconds,prompt,output\n0,3,6\n0,4,2\n");
	assert_int_equal(frag_kvcache_read(&k, "a.csv", &test_err), 0);
	assert_int_equal(frag_kvcache_replay(&k, &test_err), 0);
	assert_int_equal(k.peak_blocks, 3);
	assert_int_equal(k.peak_us, 1000000);
	assert_int_equal(k.peak_running, 2);
	assert_int_equal(k.preemptions, 0);
	assert_true(k.first_preemption_us == UINT64_MAX);
	assert_int_equal(k.end_us, 6000000);
	frag_kvcache_release(&k);
	unlink("a.csv");
}

/*
 * The same cache; A of 4 + 6, B of 4 + 4 at 0 s, C of 2 + 1 at 1 s.
 *
 *	s   A       B             C       free
 *	0   4: 1    4: 1                  1
 *	1   5: 2    preempted             1   B had one token; no request begins in this step
 *	2   6: 2    needs 2       waits   1   B is in front of C, and has no room
 *	3   7: 2                          1
 *	4   8: 2                          1
 *	5   9: 3                          0   A has six tokens
 *	6           5: 2          2: 1    0   five tokens are processed again; C is done
 *	7           6: 2                  1
 *	8           7: 2                  1   B has four tokens
 */
TEST(the_last_is_preempted)
{
	struct frag_kvcache k = { .tokens = 15, .block = 4, .max_running = 9, .step_us = 1000000 };

	put("b.csv", "0, 4, 6\n1,2,1\r\n0,4,4\n");
	assert_int_equal(frag_kvcache_read(&k, "b.csv", &test_err), 0);
	assert_int_equal(frag_kvcache_replay(&k, &test_err), 0);
	assert_int_equal(k.preemptions, 1);
	assert_int_equal(k.preempted_requests, 1);
	assert_int_equal(k.first_preemption_us, 1000000);
	assert_int_equal(k.recomputed_tokens, 5);
	assert_int_equal(k.peak_blocks, 3);
	assert_int_equal(k.peak_us, 1000000); /* A has its second block, B none left */
	assert_int_equal(k.peak_running, 2);
	assert_int_equal(k.peak_waiting, 2);
	assert_int_equal(k.end_us, 9000000);
	assert_int_equal(k.samples_count, 9);
	assert_int_equal(k.samples[1].preemptions, 1);
	assert_int_equal(k.samples[1].blocks, 3);
	assert_int_equal(k.samples[2].blocks, 2);
	assert_int_equal(k.samples[6].blocks, 3);
	frag_kvcache_release(&k);
	unlink("b.csv");
}

/* One at a time; a pause between them; one is longer than the cache. Spans grow, and nothing is lost. */
TEST(pauses_limits_and_spans)
{
	struct frag_kvcache k = { .tokens = 64, .block = 16, .max_running = 1, .step_us = 1000 };
	uint64_t most = 0;

	put("c.csv", "1700000000.5,16,3\n1700000000.5,1,1\n1700001000.5,48,17\n1700001000.5,48,"
		     "18\n");
	assert_int_equal(frag_kvcache_read(&k, "c.csv", &test_err), 0);
	assert_int_equal(frag_kvcache_replay(&k, &test_err), 0);
	assert_int_equal(k.too_long, 1);
	assert_int_equal(k.peak_running, 1);
	assert_int_equal(k.peak_waiting, 1);
	assert_int_equal(k.peak_blocks, 4);
	assert_int_equal(k.peak_us, 1000001000); /* 48 + 1 tokens in the second step */
	assert_int_equal(k.end_us, 1000017000);
	assert_true(k.samples_count <= FRAG_KVCACHE_SAMPLES);
	for (size_t i = 0; i < k.samples_count; i++)
		most = k.samples[i].blocks > most ? k.samples[i].blocks : most;
	assert_int_equal(most, 4);
	assert_int_equal(k.samples[1].blocks, 0); /* the pause */
	frag_kvcache_release(&k);
	unlink("c.csv");
}

TEST(blocks_are_whole)
{
	struct frag_kvcache k = { .tokens = 444864, .block = 16 };

	assert_int_equal(frag_kvcache_holds(&k, 8192), 54);
	assert_int_equal(frag_kvcache_holds(&k, 8193), 54); /* 513 blocks each: 54.2 */
	k.tokens = 31;					    /* half a block is none */
	assert_int_equal(frag_kvcache_holds(&k, 1), 1);
	assert_int_equal(frag_kvcache_holds(&k, 17), 0);
}

TEST(bad_requests_are_located)
{
	static const struct {
		const char *text, *said;
	} cases[] = {
		{ "", "empty" },
		{ "seconds,prompt,output\n", "no requests" },
		{ "0,1,1\nseconds,prompt,output\n", "line 2: column 1: " },
		{ "0,1,1\n0,0,1\n", "line 2: column 3: " },
		{ "0,1\n", "line 1: column 4: " },
		{ "0,1,1,1\n", "line 1: column 6: " },
		{ "0,1,-1\n", "line 1: column 5: " },
		{ "-1,1,1\n", "line 1: column 1: " },
		{ "nan,1,1\n1,1,1\n", NULL }, /* a line of names, as far as one can tell */
		{ "1,1,1\nnan,1,1\n", "line 2: column 1: " },
		{ "1e99,1,1\n", "line 1: column 1: " },
		{ "0x1p3,1,1\n", "line 1: column 1: " },
		{ "0,67108865,1\n", "line 1: column 3: " },
		{ "0,99999999999999999999999,1\n", "line 1: column 3: " },
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(cases); i++) {
		FRAG_AUTO(frag_kvcache_release)
		struct frag_kvcache k = { .tokens = 64, .block = 16 };
		int rc;

		put("d.csv", cases[i].text);
		rc = frag_kvcache_read(&k, "d.csv", &test_err);
		assert_int_equal(rc, cases[i].said ? FRAG_EINPUT : 0);
		if (cases[i].said && !strstr(test_err.msg, cases[i].said))
			fail_msg("'%s': %s", cases[i].text, test_err.msg);
	}
	unlink("d.csv");
}

TEST(engines_say_the_size)
{
	static const struct {
		const char *text;
		uint64_t tokens;
	} cases[] = {
		{ "INFO [kv_cache_utils.py:716] GPU KV cache size: 444,864 tokens\nINFO Maximum "
		  "concurrency for 8,192 tokens per request: 54.30x\n",
		  444864 },
		{ "GPU KV cache size: 1,012,096 tokens\nGPU KV cache size: 1,012,080 tokens\n",
		  1012080 },
		{ "[2026-01-01] max_total_num_tokens=433210, chunked_prefill_size=8192, x\n",
		  433210 },
		{ "GPU KV cache size: none\nmax_total_num_tokens=\n", 0 },
		{ "GPU KV cache size: 99999999999999999999999999 tokens\n", 0 },
	};
	struct frag_engine_log said;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(cases); i++) {
		put("e.log", cases[i].text);
		assert_int_equal(frag_engine_log_read("e.log", 16, &said, &test_err), 0);
		assert_int_equal(said.tokens, cases[i].tokens);
	}
	unlink("e.log");
	assert_int_equal(frag_engine_log_read("e.log", 16, &said, &test_err), FRAG_EINPUT);
}

TEST(engines_say_where_memory_goes)
{
	static const struct {
		const char *text;
		double gib[4]; /* weights, profile run, graphs, cache */
		uint64_t tokens;
		bool listens, too_small;
	} cases[] = {
		{ "Loading model weights took 14.9595 GB\nmodel weights take 14.96GiB; "
		  "non_torch_memory takes 0.10GiB; PyTorch activation peak memory takes 1.25GiB; "
		  "the rest of the memory reserved for KV Cache is 11.50GiB.\n# GPU blocks: 5691, "
		  "# CPU blocks: 2048\n"
		  "Graph capturing finished in 12 secs, took 0.25 GiB\n",
		  { 14.9595, 1.25, 0.25, 11.5 },
		  91056,
		  false,
		  false },
		{ "Model loading took 7.5 GiB memory and 1 seconds\nAvailable KV cache memory: "
		  "58.5 GiB\n"
		  "Available KV cache memory: 58.25 GiB\nINFO:     Application startup complete.\n",
		  { 7.5, 0, 0, 58.25 },
		  0,
		  true,
		  false },
		{ "Load weight end. type=X, avail mem=60.1 GB, mem usage=15.5 GB.\nKV Cache is "
		  "allocated. #tokens: 9, K size: 8.25 GB, V size: 8.25 GB\n",
		  { 15.5, 0, 0, 16.5 },
		  0,
		  false,
		  false },
		{ "Available KV cache memory: -2.14 GiB\nValueError: No available memory for the "
		  "cache blocks. Try\n",
		  { 0, 0, 0, 0 },
		  0,
		  false,
		  true },
	};
	struct frag_engine_log said;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(cases); i++) {
		put("g.log", cases[i].text);
		assert_int_equal(frag_engine_log_read("g.log", 16, &said, &test_err), 0);
		assert_int_equal(said.weights_bytes, (uint64_t)(cases[i].gib[0] * FRAG_GIB));
		assert_int_equal(said.profile_bytes, (uint64_t)(cases[i].gib[1] * FRAG_GIB));
		assert_int_equal(said.graphs_bytes, (uint64_t)(cases[i].gib[2] * FRAG_GIB));
		assert_int_equal(said.cache_bytes, (uint64_t)(cases[i].gib[3] * FRAG_GIB));
		assert_int_equal(said.tokens, cases[i].tokens);
		assert_int_equal(said.listens, cases[i].listens);
		assert_int_equal(said.too_small, cases[i].too_small);
	}
	unlink("g.log");
}
