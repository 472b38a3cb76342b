/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cards that advice may name: known cards of a vendor, or the user's list as CSV
 * (docs/choose.md, "A card: fit").
 *
 * A list is small (BYTES_MAX, FRAG_CARDS_MAX rows) and read whole. Its fields are cut in place, so
 * names and vendors point into the text. Control characters and broken UTF-8 are refused with their
 * line, so only printable text reaches a terminal.
 */
#include <frag/device.h>
#include <frag/opt.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clean.h"

#define BYTES_MAX 65536u
#define NAME_MAX_BYTES 64u
#define CONTEXT_DEFAULT (512 * FRAG_MIB)
#define PRICE_MAX 1e6

enum column { NAME, MEMORY, CONTEXT, PRICE, VENDOR, COLUMNS };
static const char *const columns[COLUMNS + 1] = { "name",	    "memory", "context",
						  "price_per_hour", "vendor", NULL };

struct list {
	const char *path;
	unsigned line;
	char *next;		 /* unread text */
	unsigned order[COLUMNS]; /* column of the file -> field */
	unsigned width;
};

__attribute__((format(printf, 3, 4))) static int bad(const struct list *l, struct frag_err *err,
						     const char *fmt, ...)
{
	char what[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return frag_fail_at(err, FRAG_EINPUT, l->line, "cards '%s', line %u: %s", l->path, l->line,
			    what);
}

/* ---- text ---------------------------------------------------------------------------- */

/* The next line without its end; 0 after the last, 1 = got one. */
static int next_line(struct list *l, char **out, struct frag_err *err)
{
	char *end;

	if (!*l->next)
		return 0;
	*out = l->next;
	l->line++;
	end = l->next + strcspn(l->next, "\n");
	l->next = *end ? end + 1 : end;
	*end = '\0';
	if (end > *out && end[-1] == '\r')
		end[-1] = '\0';
	for (const char *p = *out; *p;) {
		size_t n = *p == '\t' ? 1 : frag_clean_length(p, strlen(p));

		if (!n)
			return bad(l, err, "byte %zu is not printable text (UTF-8)",
				   (size_t)(p - *out) + 1);
		p += n;
	}
	return 1;
}

static char *trim(char *s)
{
	size_t n;

	s += strspn(s, " \t");
	n = strlen(s);
	while (n && (s[n - 1] == ' ' || s[n - 1] == '\t'))
		s[--n] = '\0';
	return s;
}

/* Cuts off one field; *at is NULL after the last. Quoted fields may hold commas ("" = a quote). */
static int next_field(const struct list *l, char **at, char **out, struct frag_err *err)
{
	char *p = *at + strspn(*at, " \t"), *to;

	if (*p != '"') {
		char *comma = strchr(p, ',');

		if (comma)
			*comma = '\0';
		*at = comma ? comma + 1 : NULL;
		*out = trim(p);
		return 0;
	}
	*out = to = ++p;
	while (*p && (*p != '"' || p[1] == '"')) {
		p += *p == '"';
		*to++ = *p++;
	}
	if (!*p)
		return bad(l, err, "a quote is not closed");
	*to = '\0';
	p++;
	p += strspn(p, " \t");
	if (*p && *p != ',')
		return bad(l, err, "text after a closing quote: '%.40s'", p);
	*at = *p ? p + 1 : NULL;
	return 0;
}

/* ---- head and rows -------------------------------------------------------------------- */

static int read_head(struct list *l, char *line, struct frag_err *err)
{
	bool seen[COLUMNS] = { false };
	char *at = line, *field;

	while (at) {
		unsigned c = 0;

		FRAG_TRY(next_field(l, &at, &field, err));
		while (c < COLUMNS && strcasecmp(columns[c], field))
			c++;
		if (c == COLUMNS) {
			const char *near = frag_nearest(field, columns);

			return bad(l, err,
				   near ? "unknown column '%.40s'; did you mean '%s'?"
					: "unknown column '%.40s'; known are name, memory, "
					  "context, price_per_hour and vendor",
				   field, near);
		}
		if (seen[c])
			return bad(l, err, "column '%s' occurs twice", columns[c]);
		seen[c] = true;
		l->order[l->width++] = c;
	}
	if (!seen[NAME] || !seen[MEMORY])
		return bad(l, err, "column '%s' is missing", columns[seen[NAME] ? MEMORY : NAME]);
	return 0;
}

/* "24G", "24 GB", "22528 MiB", bytes. */
static int read_size(const struct list *l, unsigned column, char *field, uint64_t *out,
		     struct frag_err *err)
{
	size_t n = strlen(field);

	if (n > 1 && strchr("KMGTkmgt", field[n - 2]) && (field[n - 1] | 0x20) == 'b')
		field[n - 1] = '\0';
	if (frag_parse_bytes(field, out, NULL))
		return bad(l, err, "%s '%.40s' is not a size; write it as 24G or 22528 MiB",
			   columns[column], field);
	if (*out > FRAG_GIB << 20)
		return bad(l, err, "%s '%.40s' is larger than any card", columns[column], field);
	return 0;
}

static int read_price(const struct list *l, const char *field, double *out, struct frag_err *err)
{
	char *end;

	if (!*field)
		return 0;
	/* digits and a point: hex, nan and inf, which strtod also accepts, are not prices */
	*out = strspn(field, "0123456789.") == strlen(field) ? strtod(field, &end) : -1;
	if (!(*out >= 0 && *out <= PRICE_MAX) || *end)
		return bad(l, err, "price_per_hour '%.40s' is not a number from 0 to 1000000",
			   field);
	return 0;
}

static int put_field(const struct list *l, struct frag_gpu *g, unsigned column, char *field,
		     struct frag_err *err)
{
	switch (column) {
	case NAME:
		if (!*field || strlen(field) > NAME_MAX_BYTES)
			return bad(l, err, "a name must have 1 to %u bytes", NAME_MAX_BYTES);
		g->name = g->label = field;
		return 0;
	case MEMORY:
		return read_size(l, column, field, &g->total_bytes, err);
	case CONTEXT:
		return *field ? read_size(l, column, field, &g->context_bytes, err) : 0;
	case PRICE:
		return read_price(l, field, &g->price_per_hour, err);
	}
	if (strlen(field) > NAME_MAX_BYTES)
		return bad(l, err, "a vendor may have at most %u bytes", NAME_MAX_BYTES);
	g->vendor = field;
	return 0;
}

static int read_row(const struct list *l, char *line, struct frag_gpu *g, struct frag_err *err)
{
	char *at = line, *field;
	unsigned n = 0;

	*g = (struct frag_gpu){ .vendor = "",
				.context_bytes = CONTEXT_DEFAULT,
				.source = "own list" };
	while (at) {
		FRAG_TRY(next_field(l, &at, &field, err));
		if (n < l->width)
			FRAG_TRY(put_field(l, g, l->order[n], field, err));
		n++;
	}
	if (n != l->width)
		return bad(l, err, "%u fields, but the first line names %u", n, l->width);
	if (g->total_bytes <= g->context_bytes)
		return bad(l, err, "'%s' has no memory besides its context of %llu bytes", g->name,
			   (unsigned long long)g->context_bytes);
	return 0;
}

static int add_row(const struct list *l, struct frag_catalog *c, size_t *rows, char *line,
		   struct frag_err *err)
{
	if (*rows == FRAG_CARDS_MAX)
		return bad(l, err, "more than %u cards", FRAG_CARDS_MAX);
	FRAG_TRY(read_row(l, line, &c->own[*rows], err));
	for (size_t i = 0; i < *rows; i++)
		if (!strcasecmp(c->own[i].name, c->own[*rows].name))
			return bad(l, err, "'%s' occurs twice", c->own[i].name);
	++*rows;
	return 0;
}

static int read_rows(struct list *l, struct frag_catalog *c, size_t *rows, struct frag_err *err)
{
	bool head = false;
	char *line;
	int rc;

	while ((rc = next_line(l, &line, err)) > 0) {
		if (!*trim(line) || *trim(line) == '#')
			continue;
		rc = head ? add_row(l, c, rows, line, err) : read_head(l, line, err);
		if (rc)
			return rc;
		head = true;
	}
	if (!rc && !*rows)
		return frag_fail(err, FRAG_EINPUT, "cards '%s' names no card", l->path);
	return rc;
}

/* The whole file in c->texts. */
static int read_file(struct frag_catalog *c, const char *path, struct frag_err *err)
{
	FILE *f = fopen(path, "rb");
	size_t n = 0;
	int rc = 0;

	if (!f)
		return frag_fail(err, FRAG_EINPUT, "cannot open cards '%s': %s", path,
				 strerror(errno));
	c->texts = frag_host_calloc(BYTES_MAX + 2, 1);
	if (!c->texts)
		rc = frag_fail_nomem(err, "cards");
	else
		n = fread(c->texts, 1, BYTES_MAX + 1, f);
	if (!rc && ferror(f))
		rc = frag_fail(err, FRAG_EINPUT, "cannot read cards '%s': %s", path,
			       strerror(errno));
	else if (!rc && n > BYTES_MAX)
		rc = frag_fail(err, FRAG_EINPUT, "cards '%s' has more than %u bytes", path,
			       BYTES_MAX);
	else if (!rc && strlen(c->texts) != n)
		rc = frag_fail_at(err, FRAG_EINPUT, strlen(c->texts),
				  "cards '%s' has a zero byte at offset %zu", path,
				  strlen(c->texts));
	fclose(f);
	return rc;
}

static int read_list(struct frag_catalog *c, const char *path, size_t *rows, struct frag_err *err)
{
	struct list l = { .path = path };

	FRAG_TRY(read_file(c, path, err));
	FRAG_TRY_CALLOC(c->own, FRAG_CARDS_MAX, "cards", err);
	/* byte order mark, written by spreadsheets */
	l.next = c->texts + (strncmp(c->texts, "\xef\xbb\xbf", 3) ? 0 : 3);
	return read_rows(&l, c, rows, err);
}

/* ---- the catalogue ------------------------------------------------------------------- */

uint64_t frag_gpu_room(const struct frag_gpu *gpu, const struct frag_headroom *h)
{
	uint64_t taken = gpu->context_bytes;

	if (h)
		taken += h->bytes + h->outside_bytes +
			 (uint64_t)(h->ratio * (double)gpu->total_bytes);
	return gpu->total_bytes > taken ? gpu->total_bytes - taken : 0;
}

static bool before(const struct frag_gpu *a, const struct frag_gpu *b)
{
	uint64_t x = frag_gpu_room(a, NULL), y = frag_gpu_room(b, NULL);

	return x != y ? x < y : a->price_per_hour < b->price_per_hour;
}

static void insert(struct frag_catalog *c, const struct frag_gpu *gpu)
{
	size_t at = c->count++;

	for (; at && before(gpu, c->cards[at - 1]); at--)
		c->cards[at] = c->cards[at - 1];
	c->cards[at] = gpu;
}

int frag_catalog_init(struct frag_catalog *c, const char *path, const char *vendor,
		      struct frag_err *err)
{
	const struct frag_gpu *list;
	bool all = path || vendor;
	size_t n = 0;

	*c = (struct frag_catalog){ .path = path };
	if (path) {
		int rc = read_list(c, path, &n, err);

		if (rc) {
			frag_catalog_release(c);
			return rc;
		}
		list = c->own;
	} else {
		list = frag_gpu_list(&n);
		vendor = vendor ? vendor : "NVIDIA";
	}
	for (size_t i = 0; i < n && c->count < FRAG_CARDS_MAX; i++)
		if ((all || !list[i].asked_only) &&
		    (!vendor || !strcasecmp(vendor, "all") || !strcasecmp(vendor, list[i].vendor)))
			insert(c, &list[i]);
	if (c->count)
		return 0;
	frag_catalog_release(c);
	return frag_fail(err, FRAG_EUSAGE, "no card of vendor '%.40s'; 'all' takes every vendor",
			 vendor);
}

void frag_catalog_release(struct frag_catalog *c)
{
	FRAG_FREE(c->own, c->texts);
	*c = (struct frag_catalog){ 0 };
}

const struct frag_gpu *frag_catalog_pick(const struct frag_catalog *c, uint64_t reserved_bytes,
					 const struct frag_headroom *headroom)
{
	const struct frag_gpu *best = NULL;
	bool priced = true;

	for (size_t i = 0; i < c->count; i++)
		priced &= c->cards[i]->price_per_hour > 0;
	for (size_t i = 0; i < c->count; i++) {
		const struct frag_gpu *g = c->cards[i];

		if (frag_gpu_room(g, headroom) < reserved_bytes)
			continue;
		if (!best || (priced && g->price_per_hour < best->price_per_hour))
			best = g;
	}
	return best;
}
