/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a serving engine in files that lie, what engines print. Over time: tests/cli kvcache_*. */
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

static void answer_log(char *call, FILE *out)
{
	struct frag_engine_log x;
	size_t n;
	FRAG_AUTO(free_at) char *text = cases_unescape(call, &n);

	put(text, n);
	SUCCEEDS(frag_engine_log_read(path, &x, &test_err));
	fputs(x.too_small ? "too small" : x.listens ? "listens" : "said", out);
#define SAY(name, value) ((value) ? fprintf(out, " %s %llu", name, (ull)(value)) : 0)
	SAY("tokens", x.tokens), SAY("longest", x.request_tokens), SAY("x", x.hundredths);
	SAY("block", x.block), SAY("step", x.batched_tokens), SAY("slots", x.slots);
	SAY("weights", x.weights_bytes), SAY("profile", x.profile_bytes);
	SAY("graphs", x.graphs_bytes), SAY("cache", x.cache_bytes);
}

CASES_IN_LINES("tests/unit/plan/engine_log.cases", answer_log)
