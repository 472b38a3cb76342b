/* SPDX-License-Identifier: Apache-2.0 */
/* A file of rules, cut into sections and lines. */
#include "rules.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool wrong(const char *path, unsigned line, const char *what, char *message)
{
	snprintf(message, RULES_MESSAGE, "%s:%u: %s", path, line, what);
	return false;
}

/* All of a file with a '\0' behind it; NULL if it cannot be read. */
static char *read_all(const char *path, size_t *length)
{
	FILE *f = fopen(path, "r");
	char *bytes = NULL;
	size_t n = 0;

	if (!f)
		return NULL;
	for (size_t got = 1; got;) {
		char *more = realloc(bytes, n + 4097);

		if (!more)
			abort();
		bytes = more;
		got = fread(bytes + n, 1, 4096, f);
		n += got;
	}
	fclose(f);
	bytes[n] = '\0';
	*length = n;
	return bytes;
}

/* Cuts the comment and the space behind a line off. A '#' inside of quotes is none. */
static void trim_line(char *line)
{
	bool quoted = false;
	char *end = line;

	for (; *end; end++) {
		quoted ^= *end == '"';
		if (*end == '#' && !quoted && (end == line || isspace((unsigned char)end[-1])))
			break;
	}
	while (end > line && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
}

static struct rules_section *add_section(struct rules_file *f)
{
	size_t n = f->sections_count++;

	f->sections = realloc(f->sections, f->sections_count * sizeof(*f->sections));
	if (!f->sections)
		abort();
	f->sections[n] = (struct rules_section){ .path = f->path };
	return &f->sections[n];
}

/* A line of a section, or, where it goes on, more of the last one. */
static void add_line(struct rules_section *s, const char *text, unsigned number, bool goes_on)
{
	size_t n = s->lines_count;
	char *joined;

	if (goes_on) {
		if (asprintf(&joined, "%s %s", s->lines[n - 1].text, text) < 0)
			abort();
		free((char *)(uintptr_t)s->lines[n - 1].text);
		s->lines[n - 1].text = joined;
		return;
	}
	s->lines = realloc(s->lines, ++s->lines_count * sizeof(*s->lines));
	joined = strdup(text);
	if (!s->lines || !joined)
		abort();
	s->lines[n] = (struct rules_line){ .number = number, .text = joined };
}

static bool take_line(struct rules_file *f, char *line, unsigned number, char *message)
{
	struct rules_section *s = f->sections_count ? &f->sections[f->sections_count - 1] : NULL;
	size_t indent;

	trim_line(line);
	indent = strspn(line, "\t");
	if (!*line)
		return true;
	if (line[indent] == ' ')
		return wrong(f->path, number, "steps are indented by tabs", message);
	if (!indent) {
		if (s && !s->lines_count)
			return wrong(f->path, s->number, "a title without steps", message);
		s = add_section(f);
		s->title = line;
		s->number = number;
		return true;
	}
	if (!s || (indent > 1 && !s->lines_count))
		return wrong(f->path, number, "this is indented, but there is nothing above it",
			     message);
	add_line(s, line + indent, number, indent > 1);
	return true;
}

bool rules_read(const char *path, struct rules_file *out, char *message)
{
	unsigned number = 0;
	size_t length;
	char *line, *next;

	*out = (struct rules_file){ .path = strdup(path), .bytes = read_all(path, &length) };
	if (!out->bytes)
		return wrong(path, 0, "cannot be read", message);
	if (strlen(out->bytes) != length)
		return wrong(path, 0, "is no text: it has a zero byte", message);
	for (line = out->bytes; *line; line = next) {
		next = line + strcspn(line, "\n");
		next += *next ? (*next = '\0', 1) : 0;
		if (!take_line(out, line, ++number, message))
			return false;
	}
	if (!out->sections_count)
		return wrong(path, number, "has no rules", message);
	if (!out->sections[out->sections_count - 1].lines_count)
		return wrong(path, number, "a title without steps", message);
	return true;
}

void rules_release(struct rules_file *file)
{
	for (size_t i = 0; i < file->sections_count; i++) {
		for (size_t k = 0; k < file->sections[i].lines_count; k++)
			free((char *)(uintptr_t)file->sections[i].lines[k].text);
		free(file->sections[i].lines);
	}
	free(file->sections);
	free(file->bytes);
	free(file->path);
}
