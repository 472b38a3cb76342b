/* SPDX-License-Identifier: Apache-2.0 */
/* Lines, fields and JSON objects of logs, see log.h. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "lib/grow.h"
#include "log.h"

#define JSON_LINE_MAX (1u << 20)

int frag_log_fail(struct frag_err *err, const char *place, uint64_t at, const char *fmt, ...)
{
	char what[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return frag_fail_at(err, FRAG_EINPUT, at, "%s %llu: %s", place, (unsigned long long)at,
			    what);
}

static int read_line(struct frag_log_lines *l, size_t max_bytes, bool *end, struct frag_err *err)
{
	int c;

	l->line++;
	l->len = 0;
	while ((c = frag_input_get(l->in, err)) >= 0 && c != '\n') {
		if (l->len >= max_bytes)
			return frag_log_fail(err, "line", l->line, "longer than %zu bytes",
					     max_bytes);
		FRAG_TRY(FRAG_GROW(l->text, l->len + 1, l->cap, "line", err));
		l->text[l->len++] = (char)c;
	}
	if (c < 0 && c != FRAG_INPUT_EOF)
		return c;
	*end = l->ends = c == FRAG_INPUT_EOF;
	return FRAG_GROW(l->text, l->len + 1, l->cap, "line", err);
}

int frag_log_next_line(struct frag_log_lines *l, size_t max_bytes, struct frag_err *err)
{
	for (;;) {
		bool end;

		FRAG_TRY(read_line(l, max_bytes, &end, err));
		if (memchr(l->text, 0, l->len))
			return frag_log_fail(err, "line", l->line, "contains a zero byte");
		while (l->len && isspace((unsigned char)l->text[l->len - 1]))
			l->len--;
		l->text[l->len] = '\0';
		if (l->len)
			return 1;
		if (end)
			return 0;
	}
}

int frag_log_line_read(struct frag_log_lines *l, int rc)
{
	l->cut = rc == FRAG_EINPUT && l->ends && l->line > 1;
	return l->cut ? 0 : rc;
}

void frag_log_lines_release(struct frag_log_lines *l)
{
	frag_host_free(l->text);
	l->text = NULL;
}

/* Removes quotes of a field that begins with one (two mean one). Returns the text behind it. */
static char *unquote(char *begin)
{
	char *to = begin;

	for (begin++; *begin && (*begin != '"' || begin[1] == '"'); begin++) {
		begin += *begin == '"';
		*to++ = *begin;
	}
	if (*begin)
		begin++;
	*to = '\0';
	return begin;
}

char *frag_log_cut(char **at, const char *part)
{
	const bool blanks = part[0] == ' ';
	char *field = *at, *end;

	while (field && isspace((unsigned char)*field) && (blanks || !strchr(part, *field)))
		field++;
	if (!field || (blanks && !*field))
		return NULL;
	end = *field == '"' ? unquote(field) : field;
	end += strcspn(end, part);
	*at = *end ? end + 1 : NULL;
	*end = '\0';
	for (end = field + strlen(field); end > field && isspace((unsigned char)end[-1]);)
		*--end = '\0';
	return field;
}

char *frag_log_next_field(char **at)
{
	return frag_log_cut(at, ",");
}

unsigned frag_log_header(struct frag_log_columns *cs, char *text)
{
	unsigned seen = 0;
	char *field;

	for (cs->count = 0; cs->count < FRAG_LOG_COLUMNS && (field = frag_log_next_field(&text));) {
		unsigned c, k = FRAG_LOG_NAMES;

		for (c = 0; c < cs->names_count; c++) {
			for (k = 0; k < FRAG_LOG_NAMES && cs->names[c][k]; k++)
				if (!strcasecmp(field, cs->names[c][k]))
					break;
			if (k < FRAG_LOG_NAMES && cs->names[c][k])
				break;
		}
		if (seen >> c & 1)
			c = cs->names_count;
		seen |= 1u << c;
		cs->by_first |= k ? 0 : 1u << c;
		cs->list[cs->count++] = (uint8_t)c;
	}
	return seen;
}

bool frag_log_number(const char *text, uint64_t *out)
{
	char *end;

	*out = FRAG_LOG_UNKNOWN;
	if (!text || !*text)
		return true;
	if (!strcmp(text, "(nil)")) {
		*out = 0;
		return true;
	}
	if (!isdigit((unsigned char)*text))
		return false;
	*out = strtoull(text, &end, text[0] == '0' && (text[1] | 32) == 'x' ? 16 : 10);
	return !*end && *out != FRAG_LOG_UNKNOWN;
}

bool frag_log_first_line(const unsigned char *bytes, size_t len, char *buf, size_t cap)
{
	const unsigned char *end;
	size_t n;

	while (len && isspace(*bytes)) {
		bytes++;
		len--;
	}
	end = len ? memchr(bytes, '\n', len) : NULL;
	n = end ? (size_t)(end - bytes) : len;
	if (!n || n >= cap || memchr(bytes, 0, n))
		return false;
	memcpy(buf, bytes, n);
	while (n && isspace((unsigned char)buf[n - 1]))
		n--;
	buf[n] = '\0';
	return n > 0;
}

bool frag_log_word(const char *word, enum frag_log_action *out)
{
	static const char *const words[] = {
		[FRAG_LOG_ALLOC] = "|alloc|malloc|allocate|AllocateRaw|",
		[FRAG_LOG_FREE] = "|free|deallocate|DeallocateRaw|",
		[FRAG_LOG_REFUSED] = "|refused|oom|allocate failure|",
		[FRAG_LOG_TRIM] = "|empty_cache|trim|",
		[FRAG_LOG_FREE_REQUESTED] = "|free_requested|",
		[FRAG_LOG_FREE_COMPLETED] = "|free_completed|",
	};
	char text[32];

	snprintf(text, sizeof(text), "|%.29s|", word);
	*out = FRAG_LOG_ALLOC;
	while (*out < FRAG_ARRAY_LEN(words) && !strcasestr(words[*out], text))
		++*out;
	return *word && !strchr(word, '|') && *out < FRAG_ARRAY_LEN(words);
}

/* ---- JSON ---------------------------------------------------------------------------- */

bool frag_log_json_number(const struct json_t *object, const char *key, uint64_t *out)
{
	const json_t *v = json_object_get(object, key);

	*out = FRAG_LOG_UNKNOWN;
	if (!v || json_is_null(v))
		return true;
	if (json_is_string(v))
		return frag_log_number(json_string_value(v), out);
	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return false;
	*out = (uint64_t)json_integer_value(v);
	return true;
}

int frag_log_json_lines(struct frag_log *log, frag_log_object_fn fn, struct frag_err *err)
{
	struct frag_log_lines *l = &log->lines;
	int rc;

	while ((rc = frag_log_next_line(l, JSON_LINE_MAX, err)) > 0) {
		json_error_t fault;
		json_auto_t *object = json_loadb(l->text, l->len, JSON_REJECT_DUPLICATES, &fault);

		if (!json_is_object(object))
			rc = frag_log_fail(err, "line", l->line, "%.120s",
					   object ? "not an object" : fault.text);
		else
			rc = fn(log, object, l->line, err);
		FRAG_TRY(frag_log_line_read(l, rc));
	}
	return rc;
}

struct json_t *frag_log_first_object(const unsigned char *bytes, size_t len)
{
	static const size_t cap = FRAG_INPUT_PEEK_MAX + 1;
	FRAG_AUTO_FREE char *line = frag_host_alloc(cap);

	return line && frag_log_first_line(bytes, len, line, cap) && *line == '{'
		       ? json_loads(line, 0, NULL)
		       : NULL;
}
