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

/* What a log says: sizes in bytes. */
static void answer_log(char *input, FILE *out)
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
