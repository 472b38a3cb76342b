/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cost profiles: built in (from each results/CARD/profile.csv), or read from a CSV file (format:
 * docs/measuring.md). A loaded profile starts as the H200's; every call in the file gets the file's
 * points instead of the built-in ones.
 *
 * Invariant: the points of a curve ascend strictly in bytes, ns is finite and not negative, and
 * every slope leads to the next point (that of the last point is the slope of the segment before
 * it, or zero for a single point).
 */
#include "cost.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/opt.h>

/* One day. A larger figure is an error in the file, and sums might overflow. */
#define NS_MAX 86400e9

static const char *const names[] = {
#define FRAG_X_(name, text) text,
	FRAG_CALL_LIST(FRAG_X_)
#undef FRAG_X_
#define FRAG_X_(name, text, help) text,
		FRAG_COST_PART_LIST(FRAG_X_)
#undef FRAG_X_
			NULL /* ends the list for frag_nearest */
};
_Static_assert(FRAG_ARRAY_LEN(names) == FRAG_COST_COUNT + 1, "one name per item");

const char *frag_cost_name(unsigned item)
{
	return item < FRAG_COST_COUNT ? names[item] : "?";
}

uint64_t frag_cost_ns_slow(const struct frag_cost_curve *curve, uint64_t bytes)
{
	const struct frag_cost_point *p = curve->points, *last = p + curve->count - 1;
	double ns;

	while (p < last && bytes >= p[1].bytes)
		p++;
	ns = p->ns + p->slope * (double)(bytes - p->bytes);
	return ns <= 0 ? 0 : ns >= 1e18 ? 1000000000000000000u : (uint64_t)ns;
}

/* ---- the built-in profiles -------------------------------------------------- */

#include "cost_list.inc"

const struct frag_cost *frag_cost_of(const char *card)
{
	for (size_t i = 0; card && i < FRAG_ARRAY_LEN(built_in); i++)
		if (!strcmp(built_in[i].card, card))
			return &built_in[i].cost;
	return NULL;
}

const struct frag_cost *frag_cost_builtin(void)
{
	return frag_cost_of("h200");
}

/* ---- reading a profile ------------------------------------------------------ */

/* A profile that owns its points. */
struct loaded {
	struct frag_cost cost; /* must be first: the public pointer points to it */
	struct frag_cost_point points[FRAG_COST_COUNT][FRAG_COST_POINTS_MAX];
};

struct place {
	const char *path;
	uint64_t line;
};

static int bad(const struct place *at, struct frag_err *err, const char *what, const char *word)
{
	return frag_fail_at(err, FRAG_EINPUT, at->line, "%s:%" PRIu64 ": %s '%.60s'", at->path,
			    at->line, what, word);
}

/* Inserts a point in order. */
static int add_point(struct loaded *l, const struct place *at, unsigned item,
		     const struct frag_cost_point *p, struct frag_err *err)
{
	struct frag_cost_curve *curve = &l->cost.curves[item];
	struct frag_cost_point *points = l->points[item];
	uint32_t i;

	if (curve->points != points) /* the file's first point replaces the built-in ones */
		*curve = (struct frag_cost_curve){ .points = points };
	if (curve->count == FRAG_COST_POINTS_MAX)
		return bad(at, err, "more than 64 sizes for", names[item]);
	for (i = curve->count++; i && points[i - 1].bytes > p->bytes; i--)
		points[i] = points[i - 1];
	points[i] = *p;
	if (i && points[i - 1].bytes == p->bytes)
		return bad(at, err, "the same size twice for", names[item]);
	return 0;
}

/* "call,bytes,ns" */
static int read_row(struct loaded *l, const struct place *at, const char *row, struct frag_err *err)
{
	char name[40], bytes[20], ns[16];
	struct frag_cost_point p;
	const char *near;
	int end = 0;

	if (sscanf(row, "%39[^,],%19[0-9],%15[0-9]%n", name, bytes, ns, &end) != 3 || row[end])
		return bad(at, err, "a row is call,bytes,ns, whole numbers; found", row);
	p = (struct frag_cost_point){ .bytes = strtoull(bytes, NULL, 10), .ns = strtod(ns, NULL) };
	if (p.bytes > 1ull << 60 || p.ns > NS_MAX)
		return bad(at, err, "number too big:", row);
	for (unsigned i = 0; i < FRAG_COST_COUNT; i++)
		if (!strcmp(names[i], name))
			return add_point(l, at, i, &p, err);
	near = frag_nearest(name, names);
	return bad(at, err, near ? "unknown call; did you mean" : "unknown call", near ?: name);
}

static void set_slopes(struct loaded *l)
{
	for (unsigned i = 0; i < FRAG_COST_COUNT; i++) {
		struct frag_cost_point *p = l->points[i];
		uint32_t n = l->cost.curves[i].points == p ? l->cost.curves[i].count : 0;

		for (uint32_t k = 0; k + 1 < n; k++)
			p[k].slope =
				(p[k + 1].ns - p[k].ns) / (double)(p[k + 1].bytes - p[k].bytes);
		if (n > 1)
			p[n - 1].slope = p[n - 2].slope;
	}
}

static int read_profile(FILE *f, struct loaded *l, const char *path, struct frag_err *err)
{
	static const char header[] = "call,bytes,ns";
	struct place at = { .path = path };
	char line[256];
	bool begun = false;

	while (fgets(line, sizeof(line), f)) {
		bool whole = strchr(line, '\n') || feof(f);

		at.line++;
		line[strcspn(line, "\r\n")] = '\0';
		if (!whole)
			return bad(&at, err, "line too long, or with a zero byte:", line);
		if (!*line || *line == '#')
			continue;
		if (begun)
			FRAG_TRY(read_row(l, &at, line, err));
		else if (strcmp(line, header))
			return bad(&at, err, "the header must be call,bytes,ns; found", line);
		begun = true;
	}
	if (ferror(f))
		return FRAG_INPUT(err, "cannot read %s: %s", path, strerror(errno));
	at.line++;
	return begun ? 0 : bad(&at, err, "empty profile; the header must be", header);
}

int frag_cost_load(const char *path, struct frag_cost **out, struct frag_err *err)
{
	FRAG_AUTO_FREE struct loaded *l = NULL;
	FILE *f = fopen(path, "r");
	int rc;

	if (!f)
		return FRAG_INPUT(err, "cannot open cost profile %s: %s", path, strerror(errno));
	l = frag_host_calloc(1, sizeof(*l));
	if (l)
		l->cost = *frag_cost_builtin();
	rc = l ? read_profile(f, l, path, err) : frag_fail_nomem(err, "cost profile");
	fclose(f);
	FRAG_TRY(rc);
	/* the host's speed belongs to the replaced prices, not to these */
	if (l->cost.curves[FRAG_COST_HOST_PAIR].points != l->points[FRAG_COST_HOST_PAIR])
		l->cost.curves[FRAG_COST_HOST_PAIR].count = 0;
	set_slopes(l);
	*out = &FRAG_GIVE(l)->cost;
	return 0;
}

double frag_cost_host_ratio(const struct frag_cost *cost, uint64_t pair_ns)
{
	uint64_t own = frag_cost_ns(cost ? cost : frag_cost_builtin(), FRAG_COST_HOST_PAIR, 0);

	return own && pair_ns ? (double)pair_ns / (double)own : 1.0;
}

/*
 * The ratio is measured with a cudaMalloc and a cudaFree of 4 MiB, which are partly the host's work
 * and partly the card's. Calls that never leave the driver follow the host more closely, calls that
 * wait for page tables less, and other driver threads serve managed memory. Measured on two
 * machines with an H200 and host ratios of 1.2 to 1.8 (docs/measuring.md).
 */
static double host_exponent(unsigned item, uint64_t bytes)
{
	switch (item) {
	case FRAG_CALL_RESERVE:
	case FRAG_CALL_UNRESERVE:
	case FRAG_CALL_MAP:
	case FRAG_COST_RELEASE_MAPPED:
	case FRAG_CALL_ASYNC_MALLOC:
	case FRAG_CALL_ASYNC_FREE:
	case FRAG_CALL_MANAGED:
	case FRAG_CALL_FENCE:
	case FRAG_CALL_QUERY:
	case FRAG_CALL_SYNC:
	case FRAG_CALL_DEVICE_SYNC:
		return 1.5;
	case FRAG_CALL_FREE:
		return bytes >= FRAG_COST_BIG ? 1.8 : 1;
	case FRAG_CALL_CREATE:
	case FRAG_CALL_SET_ACCESS:
	case FRAG_COST_SET_ACCESS_NEXT:
	case FRAG_CALL_UNMAP:
	case FRAG_COST_UNMAP_NEXT:
	case FRAG_COST_MALLOC_PAGE:
	case FRAG_COST_FREE_PAGE:
		return 0.8;
	case FRAG_COST_CLEAR:
	case FRAG_CALL_PREFETCH:
	case FRAG_COST_MANAGED_ZERO:
	case FRAG_COST_MANAGED_IN:
	case FRAG_COST_MANAGED_OUT:
	case FRAG_COST_MANAGED_TOUCH:
	case FRAG_COST_MANAGED_FAULT:
	case FRAG_COST_MANAGED_FAULT_IN:
		return 0;
	default:
		return 1;
	}
}

double frag_cost_host_times(unsigned item, uint64_t bytes, double ratio)
{
	return pow(ratio, host_exponent(item, bytes));
}

void frag_cost_destroy(struct frag_cost *cost)
{
	frag_host_free(cost); /* the first member of the allocated struct */
}
