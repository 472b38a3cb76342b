/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels for segments: those that are there at the end name their pool, the
 * others get theirs by the order of their release. A private pool is
 * reused for several runs only if no edge forbids it.
 */
#include "pools_internal.h"

#include <string.h>

#define DEFAULT_POOL 0
#define INVENTED_MAX 256u /* more are not believable; what is left over goes to the default pools */

struct run { /* releases [first, last): one kind, in release order, no edges among them */
	size_t first, last;
	uint32_t group;
	bool small;
};

struct dealer {
	struct frag_pool_inferrer *p;
	uint64_t *members; /* per label: bit set of its nodes */
	size_t members_cap;
	struct run *runs;
	size_t runs_count, runs_cap;
	/* labels that the group at hand has used already */
	bool *used;
	size_t used_cap;
};

static int add_label(struct dealer *d, uint16_t *label)
{
	struct frag_pool_inferrer *p = d->p;
	size_t old = d->members_cap;

	FRAG_TRY(frag_grow(&d->members, p->labels_count, &d->members_cap,
			   p->row_words * sizeof(*d->members), "pools", p->err));
	if (old < d->members_cap)
		memset(d->members + old * p->row_words, 0,
		       (d->members_cap - old) * p->row_words * sizeof(*d->members));
	FRAG_TRY(frag_grow(&d->used, p->labels_count, &d->used_cap, sizeof(*d->used), "pools",
			   p->err));
	d->used[p->labels_count] = false;
	*label = (uint16_t)p->labels_count++;
	return 0;
}

static void set_label(struct dealer *d, uint32_t node, uint16_t label)
{
	d->p->nodes[node].label = label;
	d->members[label * d->p->row_words + node / 64] |= 1ull << (node % 64);
}

static bool node_fits(const struct dealer *d, uint32_t node, uint16_t label)
{
	const uint64_t *row = d->p->edges + node * d->p->row_words;
	const uint64_t *with = d->members + label * d->p->row_words;

	for (size_t w = 0; w < d->p->row_words; w++)
		if (row[w] & with[w])
			return false;
	return true;
}

static bool run_fits(const struct dealer *d, const struct run *r, uint16_t label)
{
	for (size_t i = r->first; i < r->last; i++)
		if (!node_fits(d, d->p->releases[i].node, label))
			return false;
	return true;
}

static void label_run(struct dealer *d, const struct run *r, uint16_t label)
{
	for (size_t i = r->first; i < r->last; i++)
		set_label(d, d->p->releases[i].node, label);
	d->used[label] = true;
}

/* A private pool for one run, or for two that belong together (b may be NULL). */
static int choose_private(struct dealer *d, const struct run *a, const struct run *b)
{
	uint16_t known = (uint16_t)d->p->labels_count, label;

	for (label = 1; label < known; label++)
		if (!d->used[label] && run_fits(d, a, label) && (!b || run_fits(d, b, label)))
			break;
	if (label == known) {
		if (label >= d->p->raw->pools_count + INVENTED_MAX)
			label = DEFAULT_POOL;
		else
			FRAG_TRY(add_label(d, &label));
	}
	label_run(d, a, label);
	if (b)
		label_run(d, b, label);
	return 0;
}

static bool in_release_order(const struct frag_pool_inferrer *p, uint32_t x, uint32_t y)
{
	const struct frag_pool_node *a = &p->nodes[x], *b = &p->nodes[y];

	if (a->stream != b->stream)
		return a->stream < b->stream;
	if (a->end - a->addr != b->end - b->addr)
		return a->end - a->addr < b->end - b->addr;
	return a->addr < b->addr;
}

static int find_runs(struct dealer *d)
{
	struct frag_pool_inferrer *p = d->p;

	for (size_t i = 0; i < p->releases_count; i++) {
		struct run *r = d->runs_count ? &d->runs[d->runs_count - 1] : NULL;
		uint32_t node = p->releases[i].node;
		bool joins = r && r->group == p->releases[i].group &&
			     r->small == p->nodes[node].small &&
			     in_release_order(p, p->releases[i - 1].node, node);

		for (size_t k = joins ? r->first : i; k < i && joins; k++)
			joins = !frag_pool_is_edge(p, p->releases[k].node, node);
		if (joins) {
			r->last = i + 1;
			continue;
		}
		FRAG_TRY(frag_grow(&d->runs, d->runs_count, &d->runs_cap, sizeof(*r), "pools",
				   p->err));
		d->runs[d->runs_count++] =
			(struct run){ i, i + 1, p->releases[i].group, p->nodes[node].small };
	}
	return 0;
}

static uint16_t run_stream(const struct dealer *d, const struct run *r)
{
	return d->p->nodes[d->p->releases[r->first].node].stream;
}

/*
 * Runs of one group: default large, default small, then per private pool small,
 * large. Small runs between two large ones could end the default pools or
 * begin a private one: the stream decides.
 */
static int deal_group(struct dealer *d, size_t first, size_t last)
{
	bool default_done = false;

	memset(d->used, 0, d->p->labels_count * sizeof(*d->used));
	for (size_t i = first; i < last; i++) {
		const struct run *r = &d->runs[i], *next = i + 1 < last ? &d->runs[i + 1] : NULL;
		const struct run *after = i + 2 < last ? &d->runs[i + 2] : NULL;
		bool may_default = !default_done && run_fits(d, r, DEFAULT_POOL);

		if (r->small && next && !next->small) {
			FRAG_TRY(choose_private(d, r, next));
			i++;
		} else if (!may_default) {
			FRAG_TRY(choose_private(d, r, NULL));
		} else {
			label_run(d, r, DEFAULT_POOL);
			default_done = true;
			if (r->small || !next || !next->small || !run_fits(d, next, DEFAULT_POOL))
				continue;
			if (after && !after->small && run_stream(d, after) == run_stream(d, next) &&
			    run_stream(d, after) != run_stream(d, r))
				continue;
			label_run(d, next, DEFAULT_POOL);
			i++;
		}
	}
	return 0;
}

/* Segments that are there at the end name their pool. */
static void label_finals(struct dealer *d)
{
	const struct frag_raw_dev *raw = d->p->raw;

	for (size_t i = 0; i < raw->segments_count; i++) {
		uint32_t node = frag_pool_node_at(d->p, raw->segments[i].addr);

		if (node != UINT32_MAX && d->p->nodes[node].label == FRAG_POOL_UNKNOWN)
			set_label(d, node, raw->segments[i].pool);
	}
}

static int deal_all(struct dealer *d)
{
	struct frag_pool_inferrer *p = d->p;
	uint16_t label;

	for (uint32_t i = 0; i < FRAG_MAX(p->raw->pools_count, 1u); i++)
		FRAG_TRY(add_label(d, &label));
	label_finals(d);
	FRAG_TRY(find_runs(d));
	for (size_t i = 0, k; i < d->runs_count; i = k) {
		for (k = i + 1; k < d->runs_count && d->runs[k].group == d->runs[i].group;)
			k++;
		FRAG_TRY(deal_group(d, i, k));
	}
	return 0;
}

int frag_pools_deal(struct frag_pool_inferrer *p)
{
	struct dealer d = { .p = p };
	int rc = deal_all(&d);

	frag_host_free(d.members);
	frag_host_free(d.runs);
	frag_host_free(d.used);
	return rc;
}
