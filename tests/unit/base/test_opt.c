/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/opt.c and opt_format.c: tables of options. Ranges and types as they are shown: tests/cli list_policies. */
#include "test.h"

#include <frag/opt.h>

struct params {
	uint64_t block, grow, order;
	double ratio;
	bool merge;
	char file[FRAG_OPT_STRING_MAX];
	uint64_t guard;
};

static const char *const orders[] = { "lifo", "address", "best-fit", NULL };
static const struct frag_opt opts[] = {
	FRAG_OPT_BYTES("min-block", struct params, block, 512, 256, 1 << 20, "power of two"),
	FRAG_OPT_UINT("grow", struct params, grow, 2, 1, UINT64_MAX, "segments at once"),
	FRAG_OPT_ENUM("order", struct params, order, 1, orders, "of free blocks"),
	FRAG_OPT_DOUBLE("ratio", struct params, ratio, 0.1, 0, 1, "of something"),
	FRAG_OPT_BOOL("merge", struct params, merge, true, "neighbours"),
	FRAG_OPT_STRING("file", struct params, file, "", "to write"),
	FRAG_OPT_END
};

static struct params defaults(void)
{
	struct params p;

	memset(&p, 0xa5, sizeof(p));
	frag_opt_defaults(opts, &p);
	assert_true(p.guard == 0xa5a5a5a5a5a5a5a5u);
	return p;
}

static void answer(char *call, FILE *out)
{
	struct params p = defaults();
	char text[200];

	if (frag_opt_parse(opts, &p, call, &test_err)) {
		assert_int_equal(test_err.code, FRAG_EUSAGE);
		assert_int_equal(frag_opt_parse(opts, &p, call, NULL), FRAG_EUSAGE);
		fputs(test_err.msg, out);
	} else {
		frag_opt_echo(opts, &p, '=', text, sizeof(text));
		fputs(*text ? text : "defaults", out);
	}
	assert_true(p.guard == 0xa5a5a5a5a5a5a5a5u);
}

CASES_IN_LINES("tests/unit/base/opt.cases", answer)

TEST(long_values)
{
	struct params p = defaults();
	char text[1200];

	memset(text, 'x', sizeof(text));
	memcpy(text, "file=", 5);
	text[5 + FRAG_OPT_STRING_MAX - 1] = '\0';
	assert_int_equal(frag_opt_parse(opts, &p, text, &test_err), 0);
	assert_int_equal(strlen(p.file), FRAG_OPT_STRING_MAX - 1);
	text[5 + FRAG_OPT_STRING_MAX - 1] = 'x';
	text[5 + FRAG_OPT_STRING_MAX] = '\0';
	assert_int_equal(frag_opt_parse(opts, &p, text, &test_err), FRAG_EUSAGE);
	assert_string_equal(test_err.msg, "value of option 'file' is longer than 255 bytes");
	text[5 + FRAG_OPT_STRING_MAX] = 'x';
	text[1199] = '\0';
	assert_int_equal(frag_opt_parse(opts, &p, text, &test_err), FRAG_EUSAGE);
	assert_true(p.guard == 0xa5a5a5a5a5a5a5a5u);
	FAILS(FRAG_EUSAGE, "unknown option 'a'; there are none",
	      frag_opt_parse(NULL, NULL, "a=1", &test_err));
}

/* What is echoed reads back as the same; short of room, it is cut, and the needed length is told. */
TEST(echo)
{
	struct params p = defaults(), q = defaults();
	char text[200], small[8];
	const char *want = "min-block=20KiB,grow=max,order=lifo,ratio=0.3,merge=false,file=(a,b)";

	SUCCEEDS(frag_opt_parse(opts, &p, want, NULL));
	p.ratio = 1.0 / 3;
	frag_opt_echo(opts, &p, '=', text, sizeof(text));
	SUCCEEDS(frag_opt_parse(opts, &q, text, NULL));
	assert_memory_equal(&p, &q, offsetof(struct params, merge));
	assert_string_equal(p.file, q.file);
	assert_true(p.merge == q.merge);
	assert_int_equal(frag_opt_echo(opts, &p, '=', small, sizeof(small)), strlen(text));
	assert_string_equal(small, "min-blo");
	assert_int_equal(frag_opt_echo(opts, &p, '=', NULL, 0), strlen(text));
	assert_null(frag_opt_find(opts, "nothing"));
}

TEST(unsound_tables)
{
	static const struct {
		struct frag_opt table[3];
		const char *message;
	} rows[] = {
		{ { FRAG_OPT_UINT("a", struct params, grow, 0, 1, 2, "h"), FRAG_OPT_END },
		  "default of option 'a' is outside its range" },
		{ { FRAG_OPT_DOUBLE("a", struct params, ratio, 2, 0, 1, "h"), FRAG_OPT_END },
		  "default of option 'a' is outside its range" },
		{ { FRAG_OPT_ENUM("a", struct params, order, 3, orders, "h"), FRAG_OPT_END },
		  "default of option 'a' is outside its range" },
		{ { FRAG_OPT_UINT("a", struct params, grow, 1, 1, 2, ""), FRAG_OPT_END },
		  "option 'a' has no help" },
		{ { FRAG_OPT_UINT("a=b", struct params, grow, 1, 1, 2, "h"), FRAG_OPT_END },
		  "option 0 has no valid key" },
		{ { FRAG_OPT_UINT("a", struct params, grow, 1, 1, 2, "h"),
		    FRAG_OPT_UINT("a", struct params, block, 1, 1, 2, "h"), FRAG_OPT_END },
		  "option 'a' occurs twice" },
	};

	assert_int_equal(frag_opt_check(opts, sizeof(struct params), &test_err), 0);
	assert_int_equal(frag_opt_check(NULL, 0, &test_err), 0);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		assert_int_equal(frag_opt_check(rows[i].table, sizeof(struct params), &test_err),
				 FRAG_ECHECK);
		assert_string_equal(test_err.msg, rows[i].message);
	}
	assert_int_equal(frag_opt_check(opts, offsetof(struct params, file) + 1, &test_err),
			 FRAG_ECHECK);
	assert_string_equal(test_err.msg, "option 'file' lies outside its params");
}
