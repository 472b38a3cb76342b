/* SPDX-License-Identifier: Apache-2.0 */
/* The line that says why a program failed; see last_words.h. Tracebacks are known by their frames,
 * which also show what a logger or launcher puts before each line. */
#include "last_words.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <frag/base.h>

#include "clean.h"

#define LOG_END ((size_t)1 << 18)

struct reading {
	const char *prefix; /* of each line of this traceback */
	size_t prefix_len;
	bool frames, aside; /* in its frames; it is of what ends nothing */
	const char *found, *found_prefix, *plain;
};

static bool has_any(const char *line, const char *const *list)
{
	for (; *list; list++)
		if (strstr(line, *list))
			return true;
	return false;
}

/* Where "  File "…", line N" or its like stands in a line; NULL: nowhere. */
static const char *frame_in(const char *line)
{
	const char *at = strstr(line, "  File \""), *number = at ? strstr(at, "\", line ") : NULL;

	if (!number)
		return NULL;
	number += strlen("\", line ");
	number += strspn(number, "0123456789");
	return *number == ',' || !*number ? at : NULL; /* else of a dump of the C side */
}

/* "package.Type: message", "Type" */
static bool is_exception(const char *line)
{
	size_t n = 0;

	while (isalnum((unsigned char)line[n]) || line[n] == '_' || line[n] == '.')
		n++;
	if (!n || isdigit((unsigned char)*line))
		return false;
	if (line[n] == '(') /* ray's RayTaskError(RuntimeError) */
		n += strcspn(line + n, ")"), n += line[n] == ')';
	return !line[n] || (line[n] == ':' && (line[n + 1] == ' ' || !line[n + 1]));
}

/* Rules that launchers put below what matters, warnings of PyTorch's C side, our own lines. */
static bool says_nothing(const char *line)
{
	line += strspn(line, "=-*# \t[");
	return !*line || !strncmp(line, "cufrag", 6) ||
	       (*line == 'W' && strspn(line + 1, "0123456789") == 4);
}

static void take(struct reading *r, const char *line)
{
	static const char *const launchers[] = { "ChildFailedError", "CalledProcessError",
						 "See root cause above", NULL };
	static const char rank[] = "[rank";
	const bool other = r->found && !strncmp(r->prefix, rank, sizeof(rank) - 1) &&
			   !strncmp(r->found_prefix, rank, sizeof(rank) - 1) &&
			   strncmp(r->prefix, r->found_prefix, r->prefix_len) != 0;

	r->frames = false;
	if (r->aside) {
		r->plain = line;
	} else if (!other && !(r->found && has_any(line, launchers))) {
		r->found = line;
		r->found_prefix = r->prefix;
	}
	r->aside = false;
}

static void read_line(struct reading *r, char *line)
{
	static const char *const asides[] = { "Exception ignored", "Exception in thread",
					      "Stack (most recent call last)", NULL };
	const char *frame = frame_in(line);
	bool mine;

	for (size_t n = strlen(line); n && isspace((unsigned char)line[n - 1]);)
		line[--n] = '\0';
	if (frame) {
		r->prefix = line;
		r->prefix_len = (size_t)(frame - line);
		r->frames = true;
		return;
	}
	mine = r->prefix && !strncmp(line, r->prefix, r->prefix_len);
	if (r->frames && mine && is_exception(line + r->prefix_len)) {
		take(r, line + r->prefix_len);
		return;
	}
	if (r->aside && mine && *line && !isspace((unsigned char)line[r->prefix_len]))
		r->frames = false; /* a stack that somebody logged, without an exception */
	if (r->frames || says_nothing(line))
		return;
	if (!strncmp(line, "Fatal Python error: ", 20))
		r->found = line;
	r->plain = line + strspn(line, " \t");
	if (!strstr(line, "Traceback (most recent call last):"))
		r->aside = has_any(line, asides);
}

void frag_last_words_of(char *text, char *out, size_t cap)
{
	struct reading r = { 0 };

	for (char *next; text; text = next) {
		next = strpbrk(text, "\r\n");
		if (next)
			*next++ = '\0';
		read_line(&r, text);
	}
	snprintf(out, cap, "%s", r.found ? r.found : r.plain ? r.plain : "");
	frag_clean_text(out, strlen(out));
}

void frag_last_words(const char *path, char *out, size_t cap)
{
	FILE *f = fopen(path, "re");
	FRAG_AUTO_FREE char *text = f ? frag_host_alloc(LOG_END + 1) : NULL;
	size_t n;

	*out = '\0';
	if (text) {
		if (fseek(f, -(long)LOG_END, SEEK_END)) /* it is shorter */
			rewind(f);
		n = fread(text, 1, LOG_END, f);
		for (char *at = text; (at = memchr(at, '\0', n - (size_t)(at - text)));)
			*at = ' ';
		text[n] = '\0';
		frag_last_words_of(text, out, cap);
	}
	if (f)
		fclose(f);
}
