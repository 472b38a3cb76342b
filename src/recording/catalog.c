/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cards that advice may name: known cards of a vendor, or the user's list as CSV
 * (docs/choose.md, "A card: fit"). Control characters and broken UTF-8 are refused with their
 * line, so only printable text reaches a terminal.
 */
#include <frag/device.h>
#include <frag/opt.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/args.h"
#include "base/clean.h"
#include "target.h"
#include "trace/log/log.h"

#define LINE_MAX_BYTES 65536u
#define NAME_MAX_BYTES 64u
#define CONTEXT_DEFAULT (512 * FRAG_MIB)
#define PRICE_MAX 1e6

enum column { NAME, MEMORY, CONTEXT, PRICE, VENDOR, COLUMNS };
static const char *const columns[COLUMNS + 1] = { "name",	    "memory", "context",
						  "price_per_hour", "vendor", NULL };

struct list {
	struct frag_log_lines lines;
	unsigned order[COLUMNS]; /* column of the file -> field */
	unsigned width;
};

/* ---- head and rows -------------------------------------------------------------------- */

static int read_head(struct list *l, struct frag_err *err)
{
	bool seen[COLUMNS] = { false };
	char *at = l->lines.text, *field;

	while ((field = frag_log_next_field(&at))) {
		unsigned c = 0;

		while (c < COLUMNS && strcasecmp(columns[c], field))
			c++;
		if (c == COLUMNS) {
			frag_fail_unknown(err, "unknown column", field, columns,
					  "; known are name, memory, context, price_per_hour and "
					  "vendor");
			return FRAG_INPUT(err, "%s", err->msg);
		}
		if (seen[c])
			return FRAG_INPUT(err, "column '%s' occurs twice", columns[c]);
		seen[c] = true;
		l->order[l->width++] = c;
	}
	if (!seen[NAME] || !seen[MEMORY])
		return FRAG_INPUT(err, "column '%s' is missing",
				  columns[seen[NAME] ? MEMORY : NAME]);
	return 0;
}

/* "24G", "24 GB", "22528 MiB", bytes. */
static int read_size(unsigned column, char *field, uint64_t *out, struct frag_err *err)
{
	size_t n = strlen(field);

	if (n > 1 && strchr("KMGTkmgt", field[n - 2]) && (field[n - 1] | 0x20) == 'b')
		field[n - 1] = '\0';
	if (frag_parse_memory(field, out, NULL))
		return FRAG_INPUT(err, "%s '%.40s' is not a size; write it as 24G or 22528 MiB",
				  columns[column], field);
	if (*out > FRAG_GIB << 20)
		return FRAG_INPUT(err, "%s '%.40s' is larger than any card", columns[column],
				  field);
	return 0;
}

static int read_price(const char *field, double *out, struct frag_err *err)
{
	char *end;

	if (!*field)
		return 0;
	/* digits and a point: hex, nan and inf, which strtod also accepts, are not prices */
	*out = strspn(field, "0123456789.") == strlen(field) ? strtod(field, &end) : -1;
	if (!(*out >= 0 && *out <= PRICE_MAX) || *end)
		return FRAG_INPUT(err, "price_per_hour '%.40s' is not a number from 0 to 1000000",
				  field);
	return 0;
}

/* texts: room for the name and the vendor. */
static int put_field(struct frag_gpu *g, char *texts, unsigned column, char *field,
		     struct frag_err *err)
{
	char *text = column == VENDOR ? texts + NAME_MAX_BYTES + 1 : texts;

	switch (column) {
	case MEMORY:
		return read_size(column, field, &g->total_bytes, err);
	case CONTEXT:
		return *field ? read_size(column, field, &g->context_bytes, err) : 0;
	case PRICE:
		return read_price(field, &g->price_per_hour, err);
	}
	if ((column == NAME && !*field) || strlen(field) > NAME_MAX_BYTES)
		return FRAG_INPUT(err, "a %s must have 1 to %u bytes", columns[column],
				  NAME_MAX_BYTES);
	snprintf(text, NAME_MAX_BYTES + 1, "%s", field);
	if (column == VENDOR)
		g->vendor = text;
	else
		g->name = g->label = text;
	return 0;
}

static int add_row(const struct list *l, struct frag_catalog *c, size_t rows, struct frag_err *err)
{
	struct frag_gpu *g = &c->own[rows];
	char *at = l->lines.text, *field;
	unsigned n = 0;

	if (rows == FRAG_CARDS_MAX)
		return FRAG_INPUT(err, "more than %u cards", FRAG_CARDS_MAX);
	*g = (struct frag_gpu){ .vendor = "",
				.context_bytes = CONTEXT_DEFAULT,
				.source = "own list" };
	for (; (field = frag_log_next_field(&at)); n++)
		if (n < l->width)
			FRAG_TRY(put_field(g, c->texts + rows * 2 * (NAME_MAX_BYTES + 1),
					   l->order[n], field, err));
	if (n != l->width)
		return FRAG_INPUT(err, "%u fields, but the first line names %u", n, l->width);
	if (g->total_bytes <= g->context_bytes)
		return FRAG_INPUT(err, "'%s' has no memory besides its context of %llu bytes",
				  g->name, (unsigned long long)g->context_bytes);
	for (size_t i = 0; i < rows; i++)
		if (!strcasecmp(c->own[i].name, g->name))
			return FRAG_INPUT(err, "'%s' occurs twice", g->name);
	return 0;
}

/* The head is the first line that is no comment. */
static int add_line(struct list *l, struct frag_catalog *c, size_t *rows, struct frag_err *err)
{
	char *text = l->lines.text;

	/* byte order mark, written by spreadsheets */
	if (!strncmp(text, "\xef\xbb\xbf", 3))
		memset(text, ' ', 3);
	for (size_t n, at = 0; text[at]; at += n) {
		n = text[at] == '\t' ? 1 : frag_clean_length(text + at, strlen(text + at));
		if (!n)
			return FRAG_INPUT(err, "byte %zu is not printable text (UTF-8)", at + 1);
	}
	if (text[strspn(text, " \t")] == '#')
		return 0;
	return l->width ? add_row(l, c, (*rows)++, err) : read_head(l, err);
}

static int read_list(struct frag_catalog *c, const char *path, size_t *rows, struct frag_err *err)
{
	struct list l = { 0 };
	int rc;

	FRAG_TRY_CALLOC(c->own, FRAG_CARDS_MAX, "cards", err);
	FRAG_TRY_CALLOC(c->texts, FRAG_CARDS_MAX * 2 * (NAME_MAX_BYTES + 1), "cards", err);
	FRAG_TRY(frag_input_open(path, &l.lines.in, err));
	while ((rc = frag_log_next_line(&l.lines, LINE_MAX_BYTES, err)) > 0) {
		rc = add_line(&l, c, rows, err);
		if (rc == FRAG_EINPUT)
			frag_err_prefix(err, "line %llu", (unsigned long long)l.lines.line);
		if (rc)
			break;
	}
	if (!rc && !*rows)
		rc = FRAG_INPUT(err, "it names no card");
	if (rc == FRAG_EINPUT)
		frag_err_prefix(err, "cards '%s'", path);
	frag_log_lines_release(&l.lines);
	frag_input_close(l.lines.in);
	return rc;
}

int frag_gpu_named(const char *name, const struct frag_gpu **out, struct frag_err *err)
{
	const char *names[FRAG_CARDS_MAX + 1] = { NULL };
	char like[200] = "";
	size_t n, used = 0;
	const struct frag_gpu *list = frag_gpu_list(&n);

	*out = frag_gpu_find(name);
	for (size_t i = 0; !*out && i < FRAG_MIN(n, (size_t)FRAG_CARDS_MAX); i++) {
		names[i] = list[i].name;
		if (strlen(name) > 2 && used < sizeof(like) &&
		    (strcasestr(names[i], name) || strcasestr(list[i].label, name) ||
		     (!strncasecmp(names[i], name, strlen(names[i])) &&
		      !isalnum((unsigned char)name[strlen(names[i])]))))
			used += (size_t)snprintf(like + used, sizeof(like) - used, "%s%s",
						 used ? ", " : "", names[i]);
	}
	if (*out)
		return 0;
	if (!used)
		return frag_fail_unknown(err, "unknown gpu", name, names, " (cufrag list gpus)");
	return FRAG_USAGE(err, "unknown gpu '%.60s'; %s %s", name,
			  strchr(like, ',') ? "there are" : "write", like);
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
	return FRAG_USAGE(err, "no card of vendor '%.40s'; 'all' takes every vendor", vendor);
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
