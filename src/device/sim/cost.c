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
#include <string.h>

#include <frag/opt.h>

#define LINE_MAX_BYTES 256
/* One day. A larger figure is an error in the file, and sums might overflow. */
#define NS_MAX 86400000000000ull

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
	uint64_t lines[FRAG_COST_COUNT]; /* place of the last item name, for messages */
};

struct reader {
	FILE *file;
	const char *path;
	uint64_t line;
	struct loaded *profile;
};

static int bad(const struct reader *r, struct frag_err *err, const char *what, const char *word)
{
	return frag_fail_at(err, FRAG_EINPUT, r->line, "%s:%" PRIu64 ": %s '%.60s'", r->path,
			    r->line, what, word);
}

/* One line without its end. 1 = read, 0 = end of file. */
static int read_line(struct reader *r, char *line, struct frag_err *err)
{
	size_t n = 0;
	int c;

	r->line++;
	while ((c = getc(r->file)) != EOF && c != '\n') {
		if (!c || n + 1 >= LINE_MAX_BYTES) {
			line[n] = 0;
			return bad(r, err, c ? "line too long:" : "zero byte after", line);
		}
		line[n++] = (char)c;
	}
	if (ferror(r->file))
		return frag_fail_at(err, FRAG_EINPUT, r->line, "cannot read %s: %s", r->path,
				    strerror(errno));
	if (n && line[n - 1] == '\r')
		n--;
	line[n] = 0;
	return n || c != EOF;
}

/* A whole number up to `max`, digits only. */
static int parse_number(const struct reader *r, const char *text, uint64_t max, uint64_t *out,
			struct frag_err *err)
{
	uint64_t n = 0;

	if (!*text)
		return bad(r, err, "a number is missing in", "call,bytes,ns");
	for (const char *s = text; *s; s++) {
		uint64_t digit = (uint64_t)(*s - '0');

		if (*s < '0' || *s > '9')
			return bad(r, err, "not a whole number:", text);
		if (n > (max - digit) / 10)
			return bad(r, err, "number too big:", text);
		n = n * 10 + digit;
	}
	*out = n;
	return 0;
}

static int find_item(const struct reader *r, const char *name, unsigned *item, struct frag_err *err)
{
	const char *near;

	for (unsigned i = 0; i < FRAG_COST_COUNT; i++) {
		if (!strcmp(names[i], name)) {
			*item = i;
			return 0;
		}
	}
	near = frag_nearest(name, names);
	if (near)
		return frag_fail_at(err, FRAG_EINPUT, r->line,
				    "%s:%" PRIu64 ": unknown call '%.60s'; did you mean '%s'?",
				    r->path, r->line, name, near);
	return bad(r, err, "unknown call", name);
}

/* Inserts a point in order. */
static int add_point(const struct reader *r, unsigned item, uint64_t bytes, uint64_t ns,
		     struct frag_err *err)
{
	struct frag_cost_curve *curve = &r->profile->cost.curves[item];
	struct frag_cost_point *points = r->profile->points[item];
	uint32_t at;

	if (curve->points != points) /* the file's first point replaces the built-in ones */
		*curve = (struct frag_cost_curve){ .points = points };
	if (curve->count == FRAG_COST_POINTS_MAX)
		return bad(r, err, "more than 64 sizes for", names[item]);
	for (at = curve->count; at && points[at - 1].bytes >= bytes; at--) {
		if (points[at - 1].bytes == bytes)
			return bad(r, err, "the same size twice for", names[item]);
	}
	memmove(points + at + 1, points + at, (curve->count - at) * sizeof(*points));
	points[at] = (struct frag_cost_point){ .bytes = bytes, .ns = (double)ns };
	curve->count++;
	return 0;
}

/* "call,bytes,ns" */
static int parse_row(struct reader *r, char *line, struct frag_err *err)
{
	char *bytes_text = strchr(line, ','), *ns_text = NULL;
	uint64_t bytes = 0, ns = 0;
	unsigned item = 0;

	if (bytes_text) {
		*bytes_text++ = 0;
		ns_text = strchr(bytes_text, ',');
	}
	if (!ns_text)
		return bad(r, err, "a row is call,bytes,ns; found", line);
	*ns_text++ = 0;
	FRAG_TRY(find_item(r, line, &item, err));
	FRAG_TRY(parse_number(r, bytes_text, 1ull << 60, &bytes, err));
	FRAG_TRY(parse_number(r, ns_text, NS_MAX, &ns, err));
	return add_point(r, item, bytes, ns, err);
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

static int read_profile(struct reader *r, struct frag_err *err)
{
	char line[LINE_MAX_BYTES];
	bool header = false;
	int rc;

	while ((rc = read_line(r, line, err)) > 0) {
		if (!*line || *line == '#')
			continue;
		if (header) {
			FRAG_TRY(parse_row(r, line, err));
		} else if (strcmp(line, "call,bytes,ns")) {
			return bad(r, err, "the header must be call,bytes,ns; found", line);
		}
		header = true;
	}
	if (!rc && !header)
		return bad(r, err, "empty profile; the header must be", "call,bytes,ns");
	return rc;
}

int frag_cost_load(const char *path, struct frag_cost **out, struct frag_err *err)
{
	struct reader r = { .path = path };
	FRAG_AUTO_FREE struct loaded *profile = NULL;
	int rc;

	r.file = fopen(path, "r");
	if (!r.file)
		return frag_fail(err, FRAG_EINPUT, "cannot open cost profile %s: %s", path,
				 strerror(errno));
	profile = r.profile = frag_host_calloc(1, sizeof(*profile));
	if (profile)
		profile->cost = *frag_cost_builtin();
	rc = profile ? read_profile(&r, err) : frag_fail_nomem(err, "cost profile");
	fclose(r.file);
	FRAG_TRY(rc);
	/* the host's speed belongs to the replaced prices, not to these */
	if (r.profile->cost.curves[FRAG_COST_HOST_PAIR].points !=
	    r.profile->points[FRAG_COST_HOST_PAIR])
		r.profile->cost.curves[FRAG_COST_HOST_PAIR].count = 0;
	set_slopes(r.profile);
	*out = &FRAG_GIVE(profile)->cost;
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
