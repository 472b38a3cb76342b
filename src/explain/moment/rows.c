/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of a moment by call site: how much, how old, what they keep from being given back, and what
 * would be regained without them, which is replayed.
 */
#include "explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/opt.h>

/* Removals are replayed as long as they take no more events than this, all together. */
#define REMOVAL_EVENTS 40000000u
#define REMOVALS_MAX 10u

/* ---- rows ------------------------------------------------------------------------------- */

struct frag_row_key frag_row_key_of(const struct frag_explained *x, const struct frag_held *h)
{
	if (frag_sites_known(&x->sites))
		return (struct frag_row_key){ frag_site_of(&x->sites, h->stack), 0 };
	return (struct frag_row_key){ h->requested, frag_history_step(&x->history, h->born) };
}

static char *name_of(const struct frag_explained *x, const struct frag_held *h)
{
	struct frag_row_key key = frag_row_key_of(x, h);
	const struct frag_history *hist = &x->history;
	char size[32], name[96];

	if (frag_sites_known(&x->sites))
		return frag_host_strdup(x->sites.names[key.a]);
	frag_format_bytes(key.a, size, sizeof(size));
	if (hist->from == FRAG_STEPS_NONE)
		snprintf(name, sizeof(name), "%s each", size);
	else if (key.b >= hist->count)
		snprintf(name, sizeof(name), "%s each, from after the last step", size);
	else
		snprintf(name, sizeof(name), "%s each, from %s %" PRIu64, size,
			 hist->from == FRAG_STEPS_WINDOWS ? "part" : "step",
			 key.b * hist->stride + 1);
	return frag_host_strdup(name);
}

struct ref { /* a block and the row it belongs to */
	struct frag_row_key key;
	size_t item;
};

static int by_key(const void *a, const void *b)
{
	const struct ref *x = a, *y = b;
	int order = FRAG_ORDER(x->key.a, y->key.a) ?: FRAG_ORDER(x->key.b, y->key.b);

	return order ?: FRAG_ORDER(x->item, y->item);
}

static int by_bytes(const void *a, const void *b)
{
	const struct frag_row *x = a, *y = b;
	uint64_t p = x->allocated_bytes + x->waiting_bytes,
		 q = y->allocated_bytes + y->waiting_bytes;

	return FRAG_ORDER(q, p) ?: strcmp(x->name, y->name);
}

static void add_block(struct frag_row *row, const struct frag_held *h, const struct frag_kind_of *k,
		      uint32_t *last_segment)
{
	*(h->waiting ? &row->waiting_bytes : &row->allocated_bytes) += h->granted;
	row->requested_bytes += h->waiting ? 0 : h->requested;
	row->blocks_count++;
	if (row->blocks_count == 1 || h->born < row->oldest) {
		row->oldest = h->born;
		row->oldest_us = h->born_us;
	}
	if (h->born >= row->newest) {
		row->newest = h->born;
		row->newest_us = h->born_us;
	}
	row->non_releasable_bytes += h->strands;
	/* blocks of a row come by address, so those of one segment together */
	if (h->segment_strands && *last_segment != h->segment + 1) {
		row->segments_count++;
		*last_segment = h->segment + 1;
	}
	if (h->segment_strands)
		row->largest_hole_bytes = FRAG_MAX(row->largest_hole_bytes, h->largest_hole);
	row->alone_bytes += h->alone ? h->strands : 0;
	row->kind_bytes[k->kind] += h->granted;
	row->confidence += (double)k->confidence * (double)h->granted;
}

static void end_row(struct frag_row *row)
{
	uint64_t all = row->allocated_bytes + row->waiting_bytes;

	for (int k = 1; k < FRAG_KINDS; k++)
		if (row->kind_bytes[k] > row->kind_bytes[row->kind])
			row->kind = (uint8_t)k;
	/* of the bytes: those of the row's kind, as sure as their stacks are */
	row->confidence = all ? row->confidence / (double)all * (double)row->kind_bytes[row->kind] /
					  (double)all
			      : 0;
}

static int fill_rows(struct frag_explained *x, const struct ref *refs, size_t n,
		     struct frag_err *err)
{
	uint32_t last_segment = 0;

	for (size_t i = 0; i < n; i++) {
		const struct frag_held *h = &x->scene.list[refs[i].item];

		if (!i || refs[i].key.a != refs[i - 1].key.a ||
		    refs[i].key.b != refs[i - 1].key.b) {
			x->rows[x->rows_count].name = name_of(x, h);
			FRAG_CHECK_ALLOC(x->rows[x->rows_count].name, "explanation", err);
			x->rows[x->rows_count++].key = refs[i].key;
			last_segment = 0;
		}
		add_block(&x->rows[x->rows_count - 1], h, &x->kinds[refs[i].item], &last_segment);
	}
	for (size_t i = 0; i < x->rows_count; i++)
		end_row(&x->rows[i]);
	return 0;
}

/* Rows with non-releasable bytes, the most first. */
static int by_held(const void *a, const void *b, void *rows)
{
	const struct frag_row *x = (const struct frag_row *)rows + *(const size_t *)a;
	const struct frag_row *y = (const struct frag_row *)rows + *(const size_t *)b;

	return FRAG_ORDER(y->non_releasable_bytes, x->non_releasable_bytes)
		       ?: strcmp(x->name, y->name);
}

int frag_explain_rows(const struct frag_explain_options *opt, struct frag_explained *x,
		      struct frag_err *err)
{
	size_t n = x->scene.count;
	struct ref *refs = frag_host_calloc(n + 1, sizeof(*refs));
	int rc = 0;

	(void)opt;
	x->rows = frag_host_calloc(n + 1, sizeof(*x->rows));
	x->held = frag_host_calloc(n + 1, sizeof(*x->held));
	if (!refs || !x->rows || !x->held)
		rc = frag_fail_nomem(err, "explanation");
	for (size_t i = 0; !rc && i < n; i++)
		refs[i] = (struct ref){ frag_row_key_of(x, &x->scene.list[i]), i };
	if (!rc) {
		qsort(refs, n, sizeof(*refs), by_key);
		rc = fill_rows(x, refs, n, err);
	}
	frag_host_free(refs);
	FRAG_TRY(rc);
	qsort(x->rows, x->rows_count, sizeof(*x->rows), by_bytes);
	for (size_t i = 0; i < x->rows_count; i++)
		if (x->rows[i].non_releasable_bytes)
			x->held[x->held_count++] = i;
	qsort_r(x->held, x->held_count, sizeof(*x->held), by_held, x->rows);
	return 0;
}

/* ---- what would be regained ----------------------------------------------------------------- */

int frag_cursor_trim(struct frag_cursor *s, struct frag_err *err)
{
	const struct frag_policy_ops *ops = s->run->policy.ops;
	uint32_t pools = FRAG_MAX(frag_events_dev(&s->ev)->pools_count, 1u);

	s->run->err = err;
	for (uint32_t p = 0; ops->trim && p < pools; p++)
		FRAG_TRY(ops->trim(s->run->policy.self, (uint16_t)p, err));
	return 0;
}

int frag_cursor_without(struct frag_cursor *s, const struct frag_heap_view *scene,
			bool (*gone)(const void *ctx, const struct frag_held *h), const void *ctx,
			struct frag_err *err)
{
	struct frag_run *run = s->run;

	run->err = err;
	for (size_t i = 0; i < scene->count; i++) {
		struct frag_run_slot *slot = &run->slots[scene->list[i].slot];

		if (slot->state != SLOT_LIVE || !gone(ctx, &scene->list[i]))
			continue;
		slot->state = SLOT_EMPTY;
		FRAG_TRY(run->policy.ops->free(run->policy.self, &slot->b, err));
	}
	return 0;
}

struct whose {
	const struct frag_explained *x;
	struct frag_row_key key;
};

static bool is_theirs(const void *ctx, const struct frag_held *h)
{
	const struct whose *w = ctx;
	struct frag_row_key key = frag_row_key_of(w->x, h);

	return key.a == w->key.a && key.b == w->key.b;
}

/* Bytes reserved after a trim; row NULL: with all blocks, else without its own. */
static int reserved_without(const struct frag_events *ev, const struct frag_explain_options *opt,
			    const struct frag_explained *x, const struct frag_row *row,
			    uint64_t *reserved, struct frag_err *err)
{
	struct whose whose = { .x = x };
	struct frag_run_options run;
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };
	int rc;

	frag_explain_run_options(opt, x, &run);
	FRAG_TRY(frag_cursor_open(&s, ev, opt->spec, &opt->target.card, &run, err));
	rc = frag_cursor_to(&s, x->event, err);
	if (row)
		whose.key = row->key;
	if (!rc && row)
		rc = frag_cursor_without(&s, &x->scene, is_theirs, &whose, err);
	if (!rc)
		rc = frag_cursor_trim(&s, err);
	*reserved = frag_cursor_reserved(&s);
	return rc;
}

int frag_explain_regained(const struct frag_events *ev, const struct frag_explain_options *opt,
			  struct frag_explained *x, struct frag_err *err)
{
	size_t n = FRAG_MIN(FRAG_MIN(x->held_count, opt->top), (size_t)REMOVALS_MAX);
	uint64_t all, without;

	n = FRAG_MIN(n, (size_t)(REMOVAL_EVENTS / (x->event + 1)));
	/* a policy that cannot be told to trim, or frees in reverse order only, cannot be asked */
	if (!n || !frag_policy_spec_ops(opt->spec)->trim ||
	    frag_policy_spec_ops(opt->spec)->flags & FRAG_POLICY_STACK)
		return 0;
	FRAG_TRY(reserved_without(ev, opt, x, NULL, &all, err));
	for (size_t i = 0; i < n; i++) {
		struct frag_row *row = &x->rows[x->held[i]];

		FRAG_TRY(reserved_without(ev, opt, x, row, &without, err));
		row->regained_known = true;
		row->regained_bytes = all > without ? all - without : 0;
	}
	return 0;
}
