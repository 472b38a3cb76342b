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

/* One command line, words separated by blanks. Returns what the parse does. */
static int parse(const char *text, struct values *v, char **operands, size_t *count, int *rest,
		 struct frag_err *err)
{
	static char line[200], *argv[20];
	struct frag_arg_table tables[] = { { rows, v, "" }, { 0 } };
	bool stop = false;
	int argc = 0;

	snprintf(line, sizeof(line), "cmd %s", text);
	for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	*v = (struct values){ 0 };
	assert_int_equal(frag_args_check(tables, err), 0);
	assert_int_equal(frag_args_defaults(tables, err), 0);
	return frag_args_parse(tables, argc, argv, operands, count, rest, &stop, err);
}

TEST(test_ways)
{
	char *operands[20];
	struct values v;
	size_t count;
	int rest;

	assert_int_equal(parse("a --loud b -s 2K --us=5 --colour green --set png,pdf --wh -f x c",
			       &v, operands, &count, &rest, &test_err),
			 0);
	assert_int_equal(count, 3);
	assert_string_equal(operands[2], "c");
	assert_true(v.loud);
	assert_int_equal(v.level, 3);
	assert_int_equal(v.us, 5000);
	assert_int_equal(v.size, 2048);
	assert_int_equal(v.colour, GREEN);
	assert_int_equal(v.set, 6);
	assert_int_equal(v.when, 1);
	assert_string_equal(v.file, "x");
	assert_int_equal(parse("-ls4 --le 9 --own good --own=good --when=auto - --file= --no-loud",
			       &v, operands, &count, &rest, &test_err),
			 0);
	assert_false(v.loud);
	assert_int_equal(v.size, 4);
	assert_int_equal(v.level, 9);
	assert_int_equal(v.own, 2);
	assert_int_equal(v.when, 0);
	assert_int_equal(count, 1);
	assert_string_equal(operands[0], "-");
	assert_string_equal(v.file, "");
	/* the opposite of a flag named no-… */
	assert_int_equal(parse("--no-host --host", &v, operands, &count, &rest, &test_err), 0);
	assert_false(v.no_host);
}

TEST(test_rest)
{
	char *operands[20];
	struct values v;
	size_t count;
	int rest;

	assert_int_equal(parse("a -l -- b --bad -l", &v, operands, &count, &rest, &test_err), 0);
	assert_int_equal(count, 1);
	assert_int_equal(rest, 4);
	assert_int_equal(parse("a --", &v, operands, &count, &rest, &test_err), 0);
	assert_int_equal(rest, 3);
	assert_int_equal(parse("a", &v, operands, &count, &rest, &test_err), 0);
	assert_int_equal(rest, 2);
}

TEST(test_wrong)
{
	static const struct {
		const char *line, *message;
	} cases[] = {
		{ "--lout", "unknown option '--lout'; did you mean '--loud'?" },
		{ "--zzzzzzzzzz", "unknown option '--zzzzzzzzzz'" },
		{ "--l", "option '--l' is ambiguous: '--loud' or '--level'" },
		{ "-x", "unknown option '-x'" },
		{ "--file", "option '--file' needs a value" },
		{ "-f", "option '-f' needs a value" },
		{ "--loud=1", "option '--loud' takes no value" },
		{ "--level 10", "value '10' of option '--level' is out of range: 0 to 9" },
		{ "--level -1", "value '-1' of option '--level' is not a whole number" },
		{ "--size 0", "value '0' of option '--size' is out of range: 1 or more" },
		{ "--colour bluish", "unknown value 'bluish' of option '--colour'; known are red, "
				     "green" },
		{ "--set svg,gif9", "unknown value 'gif9' of option '--set'; known are svg, png, "
				    "pdf" },
		{ "--own bad", "option '--own': 'bad' is not good" },
	};
	char *operands[20];
	struct values v;
	size_t count;
	int rest;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(cases); i++) {
		assert_int_equal(parse(cases[i].line, &v, operands, &count, &rest, &test_err),
				 FRAG_EUSAGE);
		assert_string_equal(test_err.msg, cases[i].message);
	}
}

static void check_refused(const struct frag_arg *bad, const char *message)
{
	struct values v;
	struct frag_arg_table tables[] = { { bad, &v, "" }, { 0 } };

	assert_int_equal(frag_args_check(tables, &test_err), FRAG_ECHECK);
	assert_string_equal(test_err.msg, message);
}

TEST(test_unsound)
{
	const struct frag_arg twice[] = { rows[0], rows[0], { 0 } };
	const struct frag_arg letters[] = { rows[0],
					    { FRAG_ARG_FLAG, "other", 'l', AT(loud), .help = "h" },
					    { 0 } };
	const struct frag_arg helpless[] = { { FRAG_ARG_FLAG, "x", AT(loud) }, { 0 } };
	const struct frag_arg wordless[] = { { FRAG_ARG_WORD, "x", AT(when), .help = "h" }, { 0 } };
	const struct frag_arg nameless[] = { { FRAG_ARG_UINT, "x", AT(us), .help = "h" }, { 0 } };

	check_refused(twice, "option '--loud' occurs twice");
	check_refused(letters, "option '--other' occurs twice");
	check_refused(helpless, "option '--x' has no help");
	check_refused(wordless, "option '--x' does not match its type");
	check_refused(nameless, "option '--x' has no name for its value");
}
