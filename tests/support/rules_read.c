/* SPDX-License-Identifier: Apache-2.0 */
/* A file of rules, cut into sections and lines where it lies. */
#include "rules.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool wrong(const char *path, unsigned line, const char *what, char *message)
{
	snprintf(message, RULES_MESSAGE, "%s:%u: %s", path, line, what);
	return false;
}

/* Puts '\0' over comment and space at the end of a line. A '#' in quotes begins no comment. */
static void trim_line(char *line, size_t length)
{
	bool quoted = false;
	size_t end = 0;

	for (; end < length; end++) {
		quoted ^= line[end] == '"';
		if (line[end] == '#' && !quoted && (!end || isspace((unsigned char)line[end - 1])))
			break;
	}
	while (end && isspace((unsigned char)line[end - 1]))
		end--;
	memset(line + end, '\0', length + 1 - end);
}

/* The line goes on where the last one ended: the bytes between become spaces. */
static void join(const struct rules_line *last, char *line)
{
	char *end = line;

	while (end > last->text && !end[-1])
		*--end = ' ';
}

static bool take_line(struct rules_file *f, const char *path, char *line, unsigned number,
		      char *message)
{
	struct rules_section *s = f->sections_count ? &f->sections[f->sections_count - 1] : NULL;
	size_t indent = strspn(line, "\t");

	if (line[indent] == ' ')
		return wrong(path, number, "steps are indented by tabs", message);
	if (indent && (!s || (indent > 1 && !s->lines_count)))
		return wrong(path, number, "this is indented, but there is nothing above it",
			     message);
	if (f->sections_count == RULES_SECTIONS || f->lines_count == RULES_LINES)
		return wrong(path, number, "too long a file", message);
	if (indent > 1) {
		join(&f->lines[f->lines_count - 1], line);
	} else if (indent) {
		f->lines[f->lines_count++] = (struct rules_line){ number, line + 1 };
		s->lines_count++;
	} else if (s && !s->lines_count) {
		return wrong(path, number, "the title above it has no steps", message);
	} else {
		f->sections[f->sections_count++] = (struct rules_section){
			.path = path, .title = line, .lines = &f->lines[f->lines_count]
		};
	}
	return true;
}

bool rules_read(const char *path, struct rules_file *f, char *message)
{
	FILE *file = fopen(path, "r");
	unsigned number = 0;
	size_t length, n;

	f->lines_count = f->sections_count = 0;
	if (!file)
		return wrong(path, 0, "cannot be read", message);
	length = fread(f->bytes, 1, RULES_BYTES - 1, file);
	fclose(file);
	f->bytes[length] = '\0';
	if (length == RULES_BYTES - 1 || strlen(f->bytes) != length)
		return wrong(path, 0, "too long a file, or no text", message);
	for (char *line = f->bytes; line < f->bytes + length; line += n + 1) {
		n = strcspn(line, "\n");
		trim_line(line, n);
		number++;
		if (*line && !take_line(f, path, line, number, message))
			return false;
	}
	if (!f->sections_count || !f->sections[f->sections_count - 1].lines_count)
		return wrong(path, number, "no rules, or a title without steps", message);
	return true;
}
