/* SPDX-License-Identifier: Apache-2.0 */
/* The file beside a snapshot: what it says is taken, and nothing that it may not say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <frag/torch.h>

#include "trace/sidecar.h"

#define HEAD "{\"cufrag_meta\": 1, \"devices\": "
#define DEV(more) HEAD "[{\"ordinal\": 0, " more "}]}"

static int parse(const char *text, struct frag_trace *trace, struct frag_trace_dev *devs,
		 struct frag_err *err)
{
	memset(devs, 0, 2 * sizeof(*devs));
	devs[1].ordinal = 1;
	*trace = (struct frag_trace){ .devs = devs, .devs_count = 2 };
	trace->settings.limit_bytes = UINT64_MAX;
	trace->settings.torch_first = FRAG_TORCH(2, 9);
	trace->settings.torch_last = FRAG_TORCH(2, 11);
	return frag_sidecar_parse("x.meta.json", text, strlen(text), trace, err);
}

static void what_it_says_is_taken(void **state)
{
	struct frag_trace_dev devs[2];
	struct frag_trace t;
	struct frag_err err = { 0 };

	(void)state;
	assert_int_equal(parse(DEV("\"name\": \"NVIDIA\\u001b[31m H200\", \"total_bytes\": "
				   "1000003, "
				   "\"limit_fraction\": 0.5, \"beside_bytes\": 77, \"later\": [1]"),
			       &t, devs, &err),
			 0);
	assert_int_equal(devs[0].card.total_bytes, 1000003);
	assert_int_equal(devs[0].card.beside_bytes, 77);
	assert_null(strchr(devs[0].card.name, '\033'));
	assert_true(t.settings.limit_known);
	assert_int_equal(t.settings.limit_bytes, 500001); /* the integer part */
	assert_int_equal(devs[1].card.total_bytes, 0);
	/* 1 is no limit; devices that differ leave none for the trace; null is unknown */
	assert_int_equal(parse(DEV("\"total_bytes\": 1000, \"limit_fraction\": 1"), &t, devs, &err),
			 0);
	assert_false(t.settings.limit_known);
	assert_int_equal(parse(HEAD "[{\"ordinal\": 0, \"limit_bytes\": 5}, {\"ordinal\": 1, "
				    "\"limit_bytes\": 6}, {\"ordinal\": 7, \"name\": null}]}",
			       &t, devs, &err),
			 0);
	assert_false(t.settings.limit_known);
}

static void a_release_is_taken_where_it_can_be(void **state)
{
	struct frag_trace_dev devs[2];
	struct frag_trace t;
	struct frag_err err = { 0 };

	(void)state;
	assert_int_equal(parse("{\"torch\": \"2.10.1+cu130\", \"cufrag_meta\": 1, \"devices\": []}",
			       &t, devs, &err),
			 0);
	assert_int_equal(t.settings.torch_first, FRAG_TORCH(2, 10));
	assert_int_equal(t.settings.torch_last, FRAG_TORCH(2, 10));
	assert_int_equal(
		parse("{\"torch\": \"2.4\", \"cufrag_meta\": 1, \"devices\": []}", &t, devs, &err),
		0);
	assert_int_equal(t.settings.torch_first, FRAG_TORCH(2, 9));
}

static void anything_else_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"7",
		"\x80\x02}",
		"{\"devices\": []}",
		"{\"cufrag_meta\": 2, \"devices\": []}",
		HEAD "{}}",
		HEAD "[7]}",
		HEAD "[{}]}",
		HEAD "[{\"ordinal\": -1}]}",
		HEAD "[{\"ordinal\": 70000}]}",
		HEAD "[{\"ordinal\": 0, \"ordinal\": 1}]}",
		DEV("\"total_bytes\": -5"),
		DEV("\"total_bytes\": 1e9"),
		DEV("\"total_bytes\": 9223372036854775807"),
		DEV("\"total_bytes\": 99999999999999999999999"),
		DEV("\"total_bytes\": \"5\""),
		DEV("\"total_bytes\": 10, \"context_bytes\": 11"),
		DEV("\"total_bytes\": 10, \"beside_bytes\": 11"),
		DEV("\"limit_fraction\": 1.5"),
		DEV("\"limit_fraction\": -0.1"),
		DEV("\"limit_fraction\": NaN"),
		DEV("\"limit_fraction\": \"half\""),
		DEV("\"name\": 7"),
		DEV("\"name\": \"\xff\xfe\""),
		DEV("\"name\": \"a\\u0000b\""),
	};
	struct frag_trace_dev devs[2];
	struct frag_trace t;

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(texts); i++) {
		struct frag_err err = { 0 };

		assert_int_equal(parse(texts[i], &t, devs, &err), FRAG_EINPUT);
		assert_non_null(strstr(err.msg, "x.meta.json"));
		assert_false(t.settings.limit_known);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_it_says_is_taken),
		cmocka_unit_test(a_release_is_taken_where_it_can_be),
		cmocka_unit_test(anything_else_is_refused),
	};

	return cmocka_run_group_tests_name("sidecar", tests, NULL, NULL);
}
