/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See config.h. Only the bytes of the value change: comments, order and what is not understood stay. A key that is missing is
 * added. JSON may have comments, as DeepSpeed allows them. Of YAML, mappings by indentation are read, as programs write their
 * own configuration; what is written in another way is refused.
 */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <frag/base.h>

#include "answer/textbuf.h"

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

/* What replaces `cut` bytes at `at`: before, a value, after. */
struct edit {
	const char *at;
	size_t cut;
	struct frag_text before, after;
};

static const char *behind_mark(const char *text)
{
	return text + (strncmp(text, BYTE_ORDER_MARK, 3) ? 0 : 3);
}

/* In double quotes, as JSON and YAML read it. */
static void put_quoted(struct frag_text *t, const char *value)
{
	frag_text_add(t, "\"");
	for (; *value; value++)
		if ((unsigned char)*value < ' ')
			frag_text_addf(t, "\\u%04x", (unsigned)*value);
		else
			frag_text_addf(t, "%s%c", strchr("\"\\", *value) ? "\\" : "", *value);
	frag_text_add(t, "\"");
}

/* ---- JSON ------------------------------------------------------------------------------ */

static int fail_json(const char *text, const char *at, struct frag_err *err)
{
	return frag_fail(err, FRAG_EINPUT, "cannot be read as JSON at byte %zu",
			 (size_t)(at - text));
}

/* Behind blanks and comments. */
static const char *blanks(const char *at)
{
	for (;;) {
		at += strspn(at, " \t\r\n");
		if (*at == '#' || !strncmp(at, "//", 2)) {
			at += strcspn(at, "\n");
		} else if (!strncmp(at, "/*", 2)) {
			const char *end = strstr(at + 2, "*/");

			at = end ? end + 2 : at + strlen(at);
		} else {
			return at;
		}
	}
}

/* Behind a text, which begins here. */
static const char *text_end(const char *at)
{
	for (at++; *at && *at != '"'; at++)
		at += *at == '\\' && at[1];
	return at + (*at == '"');
}

static const char *value_end(const char *at)
{
	size_t depth = 0;

	while (*at && (depth || !strchr(",}] \t\r\n/#", *at))) {
		depth += *at == '{' || *at == '[';
		depth -= *at == '}' || *at == ']';
		at = *at == '"' ? text_end(at) : at + 1;
		at = depth ? blanks(at) : at;
	}
	return at;
}

/* The value of the last member of this name, which counts for parsers, of the object that begins here; NULL: it has none. */
static int find_member(const char *text, const char *at, const char *key, size_t len,
		       const char **value, struct frag_err *err)
{
	*value = NULL;
	do {
		const char *name = blanks(at + 1), *end;

		if (*name == '}')
			return 0;
		end = *name == '"' ? text_end(name) : name;
		at = blanks(end);
		if (end == name || *at != ':' || memchr(name, '\\', (size_t)(end - name)))
			return fail_json(text, name, err);
		at = blanks(at + 1);
		if ((size_t)(end - name) == len + 2 && !memcmp(name + 1, key, len))
			*value = at;
		end = value_end(at);
		if (end == at)
			return fail_json(text, at, err);
		at = blanks(end);
	} while (*at == ',');
	return *at == '}' ? 0 : fail_json(text, at, err);
}

/* "a": {"b": VALUE}, as the first member of an object. */
static void add_member(struct edit *e, const char *key)
{
	for (;; key++) {
		size_t len = strcspn(key, ".");

		frag_text_addf(&e->before, "\"%.*s\": %s", (int)len, key, key[len] ? "{" : "");
		frag_text_add(&e->after, key[len] ? "}" : "");
		key += len;
		if (!*key)
			break;
	}
	frag_text_add(&e->after, *blanks(e->at) == '}' ? "" : ", ");
}

static int find_json(const char *text, const char *key, struct edit *e, struct frag_err *err)
{
	const char *at = blanks(behind_mark(text));

	for (;;) {
		size_t len = strcspn(key, ".");
		const char *value;

		if (*at != '{')
			return frag_fail(err, FRAG_EINPUT, "no object holds '%.80s'", key);
		FRAG_TRY(find_member(text, at, key, len, &value, err));
		if (value && !key[len]) {
			e->at = value;
			e->cut = (size_t)(value_end(value) - value);
			return 0;
		}
		if (!value)
			break;
		key += len + 1;
		at = value;
	}
	e->at = at + 1;
	add_member(e, key);
	return 0;
}

static size_t digits(const char *at)
{
	return strspn(at, "0123456789");
}

/* -1, 0.5, 1e-4; not 01, 1. or 0x10, which JSON does not have. */
static bool is_json_number(const char *at)
{
	at += *at == '-';
	if (!digits(at) || (*at == '0' && digits(at) > 1))
		return false;
	at += digits(at);
	if (*at == '.' && !digits(at + 1))
		return false;
	at += *at == '.' ? 1 + digits(at + 1) : 0;
	if (*at == 'e' || *at == 'E') {
		at += 1 + (at[1] == '-' || at[1] == '+');
		if (!digits(at))
			return false;
		at += digits(at);
	}
	return !*at;
}

/* As it is where JSON has such a value, else a text. */
static void put_json(struct frag_text *t, const char *value)
{
	if (!strcmp(value, "true") || !strcmp(value, "false") || !strcmp(value, "null") ||
	    is_json_number(value))
		frag_text_add(t, value);
	else
		put_quoted(t, value);
}

/* ---- YAML ------------------------------------------------------------------------------ */

static int fail_yaml(const char *key, const char *why, struct frag_err *err)
{
	return frag_fail(err, FRAG_EINPUT, "'%.80s' %s", key, why);
}

static const char *next_line(const char *at)
{
	at += strcspn(at, "\n");
	return at + (*at == '\n');
}

static bool ends_document(const char *line)
{
	return !strncmp(line, "---", 3) || !strncmp(line, "...", 3);
}

/* SIZE_MAX: nothing is there. */
static size_t indent_of(const char *line)
{
	size_t n = strspn(line, " ");

	return strchr("#\r\n", line[n]) || ends_document(line) ? SIZE_MAX : n;
}

static const char *next_content(const char *line)
{
	while (*line && (indent_of(line) == SIZE_MAX))
		line = next_line(line);
	return line;
}

/* Where the only document begins: behind directives and its mark. */
static int first_line(const char **text, const char *key, struct frag_err *err)
{
	const char *at = behind_mark(*text);

	while (*at && (*at == '%' || indent_of(at) == SIZE_MAX))
		at = next_line(at);
	*text = at;
	for (; *at; at = next_line(at))
		if (ends_document(at))
			return fail_yaml(key, "may be in one of several documents", err);
	return 0;
}

/* Is it an entry of a mapping, "key: value"? Not of a list, nor a mapping in braces. */
static bool is_entry(const char *line)
{
	const char *end = line + strcspn(line, "\r\n");

	line += strspn(line, " ");
	if (strchr("{[?&*!|>", *line) || (*line == '-' && line[1] == ' '))
		return false;
	for (; (line = memchr(line, ':', (size_t)(end - line))); line++)
		if (line + 1 == end || line[1] == ' ' || line[1] == '\t')
			return true;
	return false;
}

/* Behind the colon of this key, also in quotes; NULL: the line has another one. */
static const char *behind_key(const char *at, const char *key, size_t len)
{
	char quote = *at == '"' || *at == '\'' ? *at : '\0';

	at += quote != '\0';
	if (strncmp(at, key, len) != 0 || (quote && at[len] != quote))
		return NULL;
	at += len + (quote != '\0');
	at += strspn(at, " \t");
	return *at == ':' && strchr(" \t\r\n", at[1]) ? at + 1 : NULL;
}

/* Behind the colon of the last such key among the lines of one indentation, the first of which begins here; *end: behind them.
 * NULL: not found. */
static const char *find_key(const char *at, size_t indent, const char *key, size_t len,
			    const char **end)
{
	const char *found = NULL;

	for (; *at && indent_of(at) >= indent; at = next_line(at)) {
		const char *behind =
			indent_of(at) == indent ? behind_key(at + indent, key, len) : NULL;

		found = behind ? behind : found;
	}
	*end = at;
	return found;
}

static size_t plain_length(const char *value)
{
	size_t n = 0;

	while (!strchr("\r\n", value[n]) && (value[n] != '#' || (n && !isblank(value[n - 1]))))
		n++;
	while (n && isblank(value[n - 1]))
		n--;
	return n;
}

/* Of a value, without the comment behind it; SIZE_MAX: it goes on in the next line, or others refer to it. */
static size_t value_length(const char *value)
{
	size_t n = plain_length(value), line = strcspn(value, "\r\n");
	const char *at = value;

	if (*at == '&' || (*at == '[' && value[n - 1] != ']') ||
	    (*at == '{' && value[n - 1] != '}'))
		return SIZE_MAX;
	if (*at == '"')
		n = (size_t)(text_end(at) - at);
	if (*at == '\'') {
		do
			at += 1 + strcspn(at + 1, "'");
		while (*at && *++at == '\'');
		n = (size_t)(at - value);
	}
	return n > line ? SIZE_MAX : n;
}

/* Is it within what belongs to a key of this indentation? Entries of a list need not be indented. */
static bool is_below(const char *line, size_t indent)
{
	size_t n = *line ? indent_of(line) : 0;

	return *line &&
	       (n > indent || (n == indent && line[n] == '-' && strchr(" \r\n", line[n + 1])));
}

/* key: VALUE, behind a mapping, with the mappings that are missing. */
static void add_lines(struct edit *e, const char *text, const char *key, size_t indent)
{
	const char *line_end = strstr(text, "\r\n") ? "\r\n" : "\n";

	frag_text_add(&e->before, e->at > text && e->at[-1] != '\n' ? line_end : "");
	for (;; indent += 2) {
		size_t len = strcspn(key, ".");

		frag_text_addf(&e->before, "%*s%.*s:%s", (int)indent, "", (int)len, key,
			       key[len] ? line_end : " ");
		key += len + 1;
		if (!key[-1])
			break;
	}
	frag_text_add(&e->after, line_end);
}

static int find_yaml(const char *text, const char *key, struct edit *e, struct frag_err *err)
{
	const char *at = text, *end;
	size_t indent;

	FRAG_TRY(first_line(&at, key, err));
	indent = *at ? indent_of(at) : 0;
	for (;;) {
		size_t len = strcspn(key, "."), length;
		const char *behind, *below;

		if (*at && !is_entry(at))
			return fail_yaml(key, "is not in a mapping of lines", err);
		behind = find_key(at, indent, key, len, &end);
		if (!behind)
			break;
		below = next_content(next_line(behind));
		e->at = behind + strspn(behind, " \t");
		length = value_length(e->at);
		if (!key[len] == is_below(below, indent) || length == SIZE_MAX ||
		    (key[len] && length))
			return fail_yaml(key, "is not a single value", err);
		if (!key[len]) {
			e->cut = length ? length : *e->at == '#' ? 0 : (size_t)(e->at - behind);
			e->at = length ? e->at : behind;
			frag_text_add(&e->before, length ? "" : " ");
			return 0;
		}
		key += len + 1;
		at = below;
		indent = indent_of(below);
	}
	e->at = end;
	add_lines(e, text, key, indent);
	return 0;
}

static bool is_within(const char *text, const char *pair)
{
	size_t n = strlen(text);

	return n > 1 && text[0] == pair[0] && text[n - 1] == pair[1];
}

/* Would YAML read it as another text than it is? */
static bool needs_quotes(const char *value)
{
	size_t n = strlen(value);

	if (is_within(value, "[]") || is_within(value, "{}") || is_within(value, "\"\"") ||
	    is_within(value, "''"))
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)value[i] < ' ' ||
		    (value[i] == ':' && strchr(" ", value[i + 1])) ||
		    (value[i] == ' ' && value[i + 1] == '#'))
			return true;
	return n && (strchr(" ,[]{}#&*!|>'\"%@`", value[0]) || value[n - 1] == ' ' ||
		     (strchr("-?", value[0]) && strchr(" ", value[1])));
}

static void put_yaml(struct frag_text *t, const char *value)
{
	if (needs_quotes(value))
		put_quoted(t, value);
	else
		frag_text_add(t, value);
}

/* ---- files ----------------------------------------------------------------------------- */

bool frag_config_known(const char *path, bool *yaml)
{
	const char *dot = strrchr(path, '.');

	*yaml = dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml"));
	return *yaml || (dot && !strcmp(dot, ".json"));
}

static void release_edit(struct edit *e)
{
	frag_text_release(&e->before);
	frag_text_release(&e->after);
}

int frag_config_set(const char *text, bool yaml, const char *key, const char *value, char **out,
		    struct frag_err *err)
{
	FRAG_AUTO(release_edit) struct edit e = { 0 };
	FRAG_AUTO(frag_text_release) struct frag_text all = { 0 };

	FRAG_TRY(yaml ? find_yaml(text, key, &e, err) : find_json(text, key, &e, err));
	frag_text_addn(&all, text, (size_t)(e.at - text));
	frag_text_add(&all, frag_text_str(&e.before));
	(yaml ? put_yaml : put_json)(&all, value);
	frag_text_add(&all, frag_text_str(&e.after));
	frag_text_add(&all, e.at + e.cut);
	FRAG_TRY(frag_text_check(&e.before, err));
	FRAG_TRY(frag_text_check(&e.after, err));
	FRAG_TRY(frag_text_check(&all, err));
	*out = all.s;
	all = (struct frag_text){ 0 };
	return 0;
}

int frag_config_add(char **settings, const char *text, struct frag_err *err)
{
	size_t n = 0;

	while (settings[n])
		n++;
	if (n == FRAG_CONFIG_MAX)
		return frag_fail(err, FRAG_EUSAGE, "more than %u values in files", FRAG_CONFIG_MAX);
	settings[n] = frag_host_strdup(text);
	FRAG_CHECK_ALLOC(settings[n], "command", err);
	return 0;
}
