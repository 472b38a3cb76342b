/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines by tables: every way to write an option, and every way to get it wrong. */
#include "test.h"

#include "base/args.c"

struct values {
	bool loud, no_host;
	uint8_t level;
	uint64_t us, size;
	enum { RED, GREEN } colour;
	unsigned set;
	const char *file;
	uint64_t own;
	unsigned when;
};

static int set_own(void *field, const char *text, struct frag_err *err)
{
	if (strcmp(text, "good") != 0)
		return frag_fail(err, FRAG_EUSAGE, "'%.40s' is not good", text);
	++*(uint64_t *)field;
	return 0;
}

static const char *const colours[] = { "red", "green", NULL };
static const char *const bits[] = { "svg", "png", "pdf", NULL };
static const char *const whens[] = { "auto", "always", NULL };

#define AT(field) FRAG_ARG_AT(struct values, field)
static const struct frag_arg rows[] = {
	{ FRAG_ARG_FLAG, "loud", 'l', AT(loud), .help = "h" },
	{ FRAG_ARG_FLAG, "no-host", AT(no_host), .help = "h" },
	{ FRAG_ARG_UINT, "level", AT(level), .value = "N", .max = 9, .def = "3", .help = "h" },
	{ FRAG_ARG_UINT, "us", AT(us), .value = "US", .scale = 1000, .help = "h" },
	{ FRAG_ARG_BYTES, "size", 's', AT(size), .value = "SIZE", .min = 1, .help = "h" },
	{ FRAG_ARG_WORD, "colour", AT(colour), .words = colours, .help = "h" },
	{ FRAG_ARG_SET, "set", AT(set), .words = bits, .value = "LIST", .help = "h" },
	{ FRAG_ARG_TEXT, "file", 'f', AT(file), .value = "FILE", .def = "-", .help = "h" },
	{ FRAG_ARG_OWN, "own", AT(own), .set = set_own, .value = "WORD", .help = "h" },
	{ FRAG_ARG_WORD, "when", AT(when), .words = whens, .bare = "always", .help = "h" },
	{ 0 },
};

/* A command line: what differs from the defaults, operands, and where the rest begins. */
static void answer(char *call, FILE *out)
{
	struct values v = { 0 };
	struct frag_arg_table tables[] = { { rows, &v, "" }, { 0 } };
	char *argv[20] = { (char *)"cmd" }, *operands[20];
	int argc = 1, rest;
	bool stop = false;
	size_t count;

	while (argc < 20 && (argv[argc] = cases_word(&call)))
		argc++;
	SUCCEEDS(frag_args_check(tables, &test_err));
	SUCCEEDS(frag_args_defaults(tables, &test_err));
	if (frag_args_parse(tables, argc, argv, operands, &count, &rest, &stop, &test_err)) {
		assert_int_equal(test_err.code, FRAG_EUSAGE);
		fputs(test_err.msg, out);
		return;
	}
	fprintf(out, "%s%slevel %u, us %llu, size %llu, %s, set %u, file '%s', own %llu, %s;",
		v.loud ? "loud, " : "", v.no_host ? "no host, " : "", v.level, (ull)v.us,
		(ull)v.size, colours[v.colour], v.set, v.file, (ull)v.own, whens[v.when]);
	for (size_t i = 0; i < count; i++)
		fprintf(out, " %s", operands[i]);
	fprintf(out, "; %d of %d", rest, argc);
}

CASES_IN_LINES("tests/unit/base/args.cases", answer)

TEST(rows_that_stand_twice_or_have_no_help)
{
	const struct frag_arg letters[] = { rows[0],
					    { FRAG_ARG_FLAG, "other", 'l', AT(loud), .help = "h" },
					    { 0 } };
	const struct frag_arg helpless[] = { { FRAG_ARG_FLAG, "x", AT(loud) }, { 0 } };
	struct frag_arg_table twice[] = { { letters, NULL, "" }, { 0 } },
			      bare[] = { { helpless, NULL, "" }, { 0 } };

	FAILS(FRAG_ECHECK, "option '--other' occurs twice", frag_args_check(twice, &test_err));
	FAILS(FRAG_ECHECK, "option '--x' has no help", frag_args_check(bare, &test_err));
}
