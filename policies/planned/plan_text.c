/* SPDX-License-Identifier: Apache-2.0 */
/* Plan files; see plan_text.h. */
#include "plan_text.h"
#include "lib/bisect.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define COUNT_MAX (1u << 28) /* requests of a plan: 4 GiB of host memory */

struct reader {
	const char *path;
	FILE *from;
	uint64_t line;
	char text[256];
};

static int bad_line(const struct reader *r, const char *what, struct frag_err *err)
{
	return frag_fail_at(err, FRAG_EINPUT, r->line, "plan '%.200s', line %" PRIu64 ": %s",
			    r->path, r->line, what);
}

/* Comments and blank lines are skipped. */
static int next_line(struct reader *r, struct frag_err *err)
{
	do {
		r->line++;
		if (!fgets(r->text, sizeof(r->text), r->from))
			return bad_line(r, "the file ends early", err);
	} while (r->text[0] == '#' || r->text[0] == '\n');
	return 0;
}

/* "1 -\n", "phase 0\n": before memory is taken for what a line of totals announces. */
static bool has_room_for(const struct reader *r, const struct plan *p)
{
	struct stat st;

	return fstat(fileno(r->from), &st) || !S_ISREG(st.st_mode) ||
	       4ull * p->entries_count + 8ull * p->phases_count <= (uint64_t)st.st_size;
}

static int read_head(struct reader *r, struct plan *p, struct frag_err *err)
{
	FRAG_TRY(next_line(r, err));
	if (strcmp(r->text, "cufrag-plan 1\n") != 0)
		return bad_line(r, "no plan of version 1 (cufrag plan TRACE -o FILE makes one)",
				err);
	FRAG_TRY(next_line(r, err));
	if (sscanf(r->text,
		   "reserve %" SCNu64 " prefix_marks %" SCNu32 " phase_marks %" SCNu32
		   " skip %" SCNu32 " phases %" SCNu32 " requests %" SCNu32,
		   &p->reserve_bytes, &p->prefix_marks, &p->phase_marks, &p->skip, &p->phases_count,
		   &p->entries_count) != 6)
		return bad_line(r, "the line of totals is incomplete", err);
	if (!p->phases_count || p->phases_count > COUNT_MAX || p->entries_count > COUNT_MAX ||
	    !p->reserve_bytes || p->reserve_bytes >> 48 || (p->phases_count > 1 && !p->phase_marks))
		return bad_line(r, "a total is out of range", err);
	if (!has_room_for(r, p))
		return bad_line(r, "more is announced than the file holds", err);
	p->entries = frag_host_calloc((size_t)p->entries_count + 1, sizeof(*p->entries));
	p->sizes = frag_host_calloc((size_t)p->entries_count + 1, sizeof(*p->sizes));
	p->phases = frag_host_calloc(p->phases_count, sizeof(*p->phases));
	return p->entries && p->sizes && p->phases ? 0 : frag_fail_nomem(err, "plan");
}

struct keyed {
	struct plan_entry entry;
	uint32_t order;
};

FRAG_COMPARE(by_size, struct keyed, FRAG_ORDER(x->entry.bytes, y->entry.bytes),
	     FRAG_ORDER(x->order, y->order))

/* Sorts a phase by size and notes where each size begins. */
static void close_phase(struct plan *p, struct plan_phase *phase, struct keyed *list)
{
	qsort(list, phase->count, sizeof(*list), by_size);
	phase->sizes_first = p->sizes_count;
	for (uint32_t i = 0; i < phase->count; i++) {
		p->entries[phase->first + i] = list[i].entry;
		if (!i || list[i].entry.bytes != list[i - 1].entry.bytes)
			p->sizes[p->sizes_count++] =
				(struct plan_size){ .bytes = list[i].entry.bytes,
						    .first = phase->first + i };
		p->sizes[p->sizes_count - 1].count++;
	}
	phase->sizes_count = p->sizes_count - phase->sizes_first;
}

/* "SIZE OFFSET", or "SIZE -" for a request that is left to the fallback. */
static bool read_entry(const char *text, uint64_t reserve_bytes, struct plan_entry *e)
{
	char rest[4];

	if (sscanf(text, "%" SCNu64 " %" SCNu64, &e->bytes, &e->offset) == 2)
		return e->bytes && e->bytes <= reserve_bytes &&
		       e->offset <= reserve_bytes - e->bytes;
	e->offset = UINT64_MAX;
	return sscanf(text, "%" SCNu64 " %3s", &e->bytes, rest) == 2 && !strcmp(rest, "-") &&
	       e->bytes;
}

static int read_phase(struct reader *r, struct plan *p, struct plan_phase *phase, uint32_t first,
		      struct frag_err *err)
{
	FRAG_AUTO_FREE struct keyed *list = NULL;
	int rc = 0;

	FRAG_TRY(next_line(r, err));
	phase->first = first;
	if (sscanf(r->text, "phase %" SCNu32, &phase->count) != 1 ||
	    phase->count > p->entries_count - first)
		return bad_line(r, "a phase with a number of requests is expected", err);
	FRAG_TRY_CALLOC(list, (size_t)phase->count + 1, "plan", err);
	for (uint32_t i = 0; !rc && i < phase->count; i++) {
		list[i].order = i;
		rc = next_line(r, err);
		if (!rc && !read_entry(r->text, p->reserve_bytes, &list[i].entry))
			rc = bad_line(r, "size and offset within the reserve are expected", err);
	}
	if (!rc)
		close_phase(p, phase, list);
	return rc;
}

int plan_read(const char *path, struct plan *out, struct frag_err *err)
{
	struct reader r = { .path = path, .from = fopen(path, "r") };
	uint32_t first = 0;
	int rc;

	*out = (struct plan){ 0 };
	if (!r.from)
		return FRAG_INPUT(err, "cannot open plan '%.200s': %s", path, strerror(errno));
	rc = read_head(&r, out, err);
	for (uint32_t i = 0; !rc && i < out->phases_count; i++) {
		rc = read_phase(&r, out, &out->phases[i], first, err);
		first += out->phases[i].count;
	}
	fclose(r.from);
	if (!rc && first != out->entries_count)
		rc = bad_line(&r, "fewer requests than announced", err);
	if (rc)
		plan_release(out);
	return rc;
}

void plan_release(struct plan *p)
{
	FRAG_FREE(p->entries, p->sizes, p->phases);
	*p = (struct plan){ 0 };
}

struct plan_size *plan_find(struct plan *p, uint32_t phase, uint64_t bytes)
{
	struct plan_size *s = p->sizes + p->phases[phase].sizes_first;
	uint32_t at;

	FRAG_BISECT(at, 0, p->phases[phase].sizes_count, s[at].bytes < bytes);
	return at < p->phases[phase].sizes_count && s[at].bytes == bytes ? &s[at] : NULL;
}
