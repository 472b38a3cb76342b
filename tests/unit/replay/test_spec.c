/* SPDX-License-Identifier: Apache-2.0 */
/* src/replay/spec.c and instance.c: texts of policies, their echo, what a policy needs. */
#include "replay/spec.h"

#include "must.h"
#include "test.h"

static void answer(char *call, FILE *out)
{
	AUTO_SPEC spec = NULL;

	if (!strcmp(call, "(nothing)"))
		*call = 0;
	if (frag_policy_spec_parse(call, &spec, &test_err)) {
		assert_int_equal(test_err.code, FRAG_EUSAGE);
		assert_null(spec);
		if (!strncmp(test_err.msg, "cannot load", 11)) /* why is the C library's word */
			strstr(test_err.msg, "': ")[2] = 0;
		fputs(test_err.msg, out);
		return;
	}
	assert_string_equal(frag_policy_spec_text(spec), call);
	assert_non_null(frag_policy_spec_params(spec));
	fprintf(out, "%s, %s", frag_policy_spec_ops(spec)->name, frag_policy_spec_echo(spec));
}

CASES_IN_LINES("tests/unit/replay/spec.cases", answer)

TEST(long_text_refused)
{
	static char text[100000];
	struct frag_policy_spec *spec = NULL;

	memset(text, 'x', sizeof(text) - 1);
	assert_int_equal(frag_policy_spec_parse(text, &spec, NULL), FRAG_EUSAGE);
	memcpy(text, "log:", 4);
	assert_int_equal(frag_policy_spec_parse(text, &spec, NULL), FRAG_EUSAGE);
	memcpy(text, "planned:plan=", 13);
	text[13 + FRAG_OPT_STRING_MAX] = 0;
	FAILS(FRAG_EUSAGE, "value of option 'plan' is longer than 255 bytes",
	      frag_policy_spec_parse(text, &spec, &test_err));
	text[13 + FRAG_OPT_STRING_MAX - 1] = 0;
	SUCCEEDS(frag_policy_spec_parse(text, &spec, &test_err));
	frag_policy_spec_destroy(spec);
}

TEST(short_of_memory)
{
	static const char *const rows[] = { "limit:bytes=2/"
					    "expandable:max_split_size_mb:32,version=2.9",
					    "buddy" };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		AUTO_SPEC spec = NULL;

		FAIL_ALLOCATIONS(frag_policy_spec_parse(rows[i], &spec, NULL))
		assert_null(spec);
	}
}

/* ---- a device without virtual memory ------------------------------------------------- */

static void dev_info(void *priv, struct frag_device_info *out)
{
	*out = (struct frag_device_info){ .name = "made up", .can = FRAG_CAN_MALLOC };
}

TEST(needs)
{
	static const struct frag_device_ops ops = { .name = "fake", .info = dev_info };
	struct frag_device device = { .ops = &ops };
	const struct frag_policy_env env = { .dev = &device, .limit_bytes = UINT64_MAX };
	AUTO_SPEC spec = must_parse_policy("vmm");
	struct frag_policy p;
	struct frag_inner inner;
	char text[100];

	FAILS(FRAG_ENOTSUP,
	      "'vmm' needs virtual memory management, which device 'fake' does not have",
	      frag_policy_create(spec, &env, &p, &test_err));
	assert_int_equal(frag_inner_open("check/vmm", &env, &inner, &test_err), FRAG_ENOTSUP);
	assert_int_equal(frag_inner_open("nothing", &env, &inner, &test_err), FRAG_EUSAGE);
	assert_int_equal(frag_policy_needs_text(FRAG_CAN_MALLOC | FRAG_CAN_ASYNC, text, 100), 24);
	assert_string_equal(text, "cudaMalloc, memory pools");
	assert_int_equal(frag_policy_needs_text(FRAG_CAN_MALLOC, NULL, 0), 10);
}
