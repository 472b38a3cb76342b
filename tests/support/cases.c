/* SPDX-License-Identifier: Apache-2.0 */
#include "cases.h"

#include "test.h"

#define MOST (1u << 20) /* bytes of a file */

struct one_case {
	char *name, *body, *answer;
	cases_fn run;
	FILE *out; /* while it runs, and where it was skipped */
};

/* ---- the file ------------------------------------------------------------------- */

static char *read_file(const char *file)
{
	FILE *f = fopen(file, "rb");
	char *text = calloc(1, MOST + 1);

	if (!f || !text || fread(text, 1, MOST, f) == MOST) {
		print_error("cannot read '%s' (run it from the top of the tree)\n", file);
		abort();
	}
	fclose(f);
	return text;
}

/* Empty lines at the end only keep cases apart. */
static void trim(char *text)
{
	size_t n = strlen(text);

	while (n && text[n - 1] == '\n')
		text[--n] = 0;
}

/* Cuts the text in place; what is before the first case is *head. */
static struct one_case *split(char *text, cases_fn run, size_t *count)
{
	struct one_case *list = NULL;
	char *at = strstr(text, "\n== "); /* notes come first */

	*count = 0;
	while (at) {
		char *name = at + 4, *body = strchr(name, '\n');

		*at = 0;
		*body++ = 0;
		at = strstr(body, "\n== ");
		list = realloc(list, (*count + 1) * sizeof(*list));
		if (!list)
			abort();
		list[(*count)++] = (struct one_case){ name, body, NULL, run, NULL };
	}
	for (size_t i = 0; i < *count; i++)
		trim(list[i].body);
	return list;
}

static void rewrite(const char *file, const char *head, const struct one_case *list, size_t count)
{
	FRAG_AUTO(fclose_at) FILE *f = fopen(file, "wb");

	if (!f)
		abort();
	fprintf(f, "%s\n", head);
	for (size_t i = 0; i < count; i++)
		fprintf(f, "%s== %s\n%s\n", i ? "\n" : "", list[i].name,
			list[i].answer ? list[i].answer : list[i].body);
}

/* ---- one case --------------------------------------------------------------------- */

static size_t line_length(const char *text)
{
	return strcspn(text, "\n");
}

static void say_difference(const char *expected, const char *got)
{
	unsigned line = 1;

	while (*expected && *got && line_length(expected) == line_length(got) &&
	       !memcmp(expected, got, line_length(got))) {
		expected += line_length(expected) + (expected[line_length(expected)] != 0);
		got += line_length(got) + (got[line_length(got)] != 0);
		line++;
	}
	fail_msg("line %u of the case:\n  expected: %.*s\n  got:      %.*s", line,
		 (int)line_length(expected), expected, (int)line_length(got), got);
}

static void run_case(void **state)
{
	struct one_case *c = *state;
	size_t len;

	c->out = open_memstream(&c->answer, &len);
	assert_non_null(c->out);
	c->run(c->body, c->out);
	fclose(c->out);
	c->out = NULL;
	trim(c->answer);
	if (!getenv("CASES_REWRITE") && strcmp(c->body, c->answer))
		say_difference(c->body, c->answer);
}

int cases_run(const char *file, cases_fn run)
{
	FRAG_AUTO(free_at) char *text = read_file(file);
	size_t count;
	FRAG_AUTO(free_at) struct one_case *list = split(text, run, &count);
	FRAG_AUTO(free_at) struct CMUnitTest *tests = calloc(count + 1, sizeof(*tests));
	int failed;

	if (!tests || !count)
		abort();
	for (size_t i = 0; i < count; i++)
		tests[i] = (struct CMUnitTest){ .name = list[i].name,
						.test_func = run_case,
						.initial_state = &list[i] };
	failed = _cmocka_run_group_tests(file, tests, count, NULL, NULL);
	if (getenv("CASES_REWRITE"))
		rewrite(file, text, list, count);
	for (size_t i = 0; i < count; i++) {
		if (list[i].out) /* it was skipped */
			fclose(list[i].out);
		free(list[i].answer);
	}
	return failed;
}

/* ---- bodies ----------------------------------------------------------------------- */

/* Where its last lines that begin with '>' begin. */
static const char *answer_of(const char *body)
{
	const char *at = body;

	for (const char *line = body, *next; *line; line = next) {
		next = line + line_length(line);
		next += *next != 0;
		if (*line != '>')
			at = next;
	}
	return at;
}

void cases_two_parts(const char *body, FILE *out, void (*answer)(const char *input, FILE *out))
{
	const char *end = answer_of(body);
	FRAG_AUTO(free_at) char *input = NULL, *got = NULL;
	FILE *to = open_memstream(&got, &(size_t){ 0 });

	assert_true(to &&
		    asprintf(&input, "%.*s%s", (int)(end - body), body, *end ? "" : "\n") >= 0);
	answer(input, to);
	fclose(to);
	trim(got);
	fputs(input, out);
	for (char *left = *got ? got : NULL, *line; (line = strsep(&left, "\n"));)
		fprintf(out, *line ? "> %s\n" : ">\n", line);
}

void cases_plain_lines(const char *body, FILE *out, void (*answer)(char *call, FILE *out))
{
	for (const char *next; *body; body = next) {
		size_t n = line_length(body);
		FRAG_AUTO(free_at) char *line = strndup(body, n), *said = NULL;
		char *arrow;
		FILE *to = open_memstream(&said, &(size_t){ 0 });

		assert_true(line && to);
		next = body + n + (body[n] != 0);
		arrow = strstr(line, " -> ");
		if (arrow)
			*arrow = 0;
		fputs(line, out);
		if (*line && *line != '#')
			answer(line, to);
		fclose(to);
		fprintf(out, "%s%s\n", *said ? " -> " : "", said);
	}
}

void cases_error(FILE *out, const struct frag_err *err)
{
	int status = frag_code_exit(err->code);

	if (status != 3)
		fprintf(out, "exit %d, ", status);
	fprintf(out, "at %llu: %s", (ull)err->offset, err->msg);
}

static char escaped(const char **at)
{
	static const char from[] = "nrt0\\\"'", to[] = "\n\r\t\0\\\"'";
	const char *which;

	if (**at == 'x') {
		char digits[] = { (*at)[1], (*at)[2], 0 };

		*at += 3;
		return (char)strtoul(digits, NULL, 16);
	}
	which = strchr(from, **at);
	assert_true(which && *which);
	(*at)++;
	return to[which - from];
}

char *cases_unescape(const char *text, size_t *length)
{
	char *out = malloc(strlen(text) + 1), *to = out;

	assert_non_null(out);
	while (*text) {
		if (*text == '\\') {
			text++;
			*to++ = escaped(&text);
		} else {
			*to++ = *text++;
		}
	}
	*to = 0;
	*length = (size_t)(to - out);
	return out;
}

char *cases_word(char **at)
{
	char *word = *at + strspn(*at, " \t");
	bool quoted = *word == '"';

	if (!*word)
		return NULL;
	word += quoted;
	*at = word + strcspn(word, quoted ? "\"" : " \t");
	if (**at)
		*(*at)++ = 0;
	return word;
}

static const struct {
	const char *text;
	uint64_t times;
} units[] = {
	{ "", 1 },	    { "K", KIB },   { "M", MIB },      { "G", GIB },
	{ "T", GIB << 10 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 },
};

struct name_list {
	const struct cases_name *at;
	size_t count;
};

static bool name_value(const char *word, size_t length, const struct name_list *l, uint64_t *value)
{
	for (size_t i = 0; i < l->count; i++)
		if (strlen(l->at[i].name) == length && !memcmp(l->at[i].name, word, length)) {
			*value = l->at[i].value;
			return true;
		}
	return false;
}

/* A number, a name, or a product of several. */
static bool term(const char *text, size_t n, const struct name_list *names, uint64_t *out)
{
	const char *times = memchr(text, '*', n);
	uint64_t other;
	size_t left;
	char *end;

	if (times) {
		if (!term(text, (size_t)(times - text), names, out) ||
		    !term(times + 1, n - 1 - (size_t)(times - text), names, &other))
			return false;
		*out *= other;
		return true;
	}
	if (!n || *text < '0' || *text > '9')
		return n && name_value(text, n, names, out);
	*out = strtoull(text, &end, 0);
	left = n - (size_t)(end - text);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(units); i++)
		if (strlen(units[i].text) == left && !memcmp(units[i].text, end, left)) {
			*out *= units[i].times;
			return true;
		}
	return false;
}

bool cases_number(const char *text, const struct cases_name *names, size_t names_count,
		  uint64_t *out)
{
	const struct name_list list = { names, names_count };
	bool minus = *text == '-';

	*out = 0;
	for (text += minus;; text++) {
		size_t n = strcspn(text, "+-");
		uint64_t value;

		if (!term(text, n, &list, &value))
			return false;
		*out += minus ? -value : value;
		text += n;
		if (!*text)
			return true;
		minus = *text == '-';
	}
}

uint64_t cases_must_number(const char *text, const struct cases_name *names, size_t names_count)
{
	uint64_t value = 0;

	if (!text || !cases_number(text, names, names_count, &value))
		fail_msg("'%s' is not a number", text ? text : "");
	return value;
}
