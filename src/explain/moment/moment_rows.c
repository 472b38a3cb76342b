/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of a moment by call site: how much, how old, how many free bytes they pin, and what a trim
 * would return without them, which is replayed.
 */
#include "explain.h"
#include "explain/life_edit.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <frag/opt.h>

/* Removals are replayed as long as they take no more events than this, all together. */
#define REMOVAL_EVENTS 40000000u
#define REMOVALS_MAX 10u

/* ---- rows ------------------------------------------------------------------------------- */

static struct frag_row_key key_of(const struct frag_explained *x, const struct frag_heap_block *h)
{
	if (frag_sites_known(&x->in.sites))
		return (struct frag_row_key){ frag_site_of(&x->in.sites, h->stack), 0 };
	return (struct frag_row_key){ h->requested,
				      frag_steps_known(&x->in.history)
					      ? frag_history_step(&x->in.history, h->born)
					      : 0 };
}

static bool same_key(struct frag_row_key a, struct frag_row_key b)
{
	return a.a == b.a && a.b == b.b;
}

/* Without stacks: "3.65 GiB each, from step 77". */
static const char *size_name(const struct frag_explained *x, struct frag_row_key key)
{
	const struct frag_history *h = &x->in.history;

	if (!frag_steps_known(h))
		return frag_answer_print(x->texts, "%s each", FRAG_BYTES(key.a));
	if (key.b >= h->count)
		return frag_answer_print(x->texts, "%s each, from after the last step",
					 FRAG_BYTES(key.a));
	return frag_answer_print(x->texts, "%s each, from step %" PRIu64, FRAG_BYTES(key.a),
				 frag_case_step_number(&x->in, key.b));
}

struct ref { /* a block and the row it belongs to */
	struct frag_row_key key;
	size_t item;
};

FRAG_COMPARE(by_key, struct ref, FRAG_ORDER(x->key.a, y->key.a), FRAG_ORDER(x->key.b, y->key.b),
	     FRAG_ORDER(x->item, y->item))

static int by_bytes(const void *a, const void *b)
{
	const struct frag_row *x = a, *y = b;
	uint64_t p = x->allocated_bytes + x->waiting_bytes,
		 q = y->allocated_bytes + y->waiting_bytes;

	return FRAG_ORDER(q, p) ?: strcmp(x->site, y->site);
}

static void add_block(struct frag_row *row, const struct frag_heap_block *h,
		      const struct frag_kind_of *k, uint32_t *last_segment)
{
	*(h->waiting ? &row->waiting_bytes : &row->allocated_bytes) += h->granted;
	row->requested_bytes += h->waiting ? 0 : h->requested;
	row->blocks_count++;
	if (row->blocks_count == 1 || h->born < row->oldest_event) {
		row->oldest_event = h->born;
		row->oldest_us = h->born_us;
	}
	if (h->born >= row->newest_event) {
		row->newest_event = h->born;
		row->newest_us = h->born_us;
	}
	row->non_releasable_bytes += h->non_releasable_bytes;
	/* blocks of a row come by address, so those of one segment together */
	if (h->segment_non_releasable_bytes && *last_segment != h->segment + 1) {
		row->segments_count++;
		*last_segment = h->segment + 1;
	}
	if (h->segment_non_releasable_bytes)
		row->largest_hole_bytes = FRAG_MAX(row->largest_hole_bytes, h->largest_hole);
	row->alone_bytes += h->alone ? h->non_releasable_bytes : 0;
	row->kind_bytes[k->kind] += h->granted;
	row->kind_confidence_ratio += (double)k->confidence * (double)h->granted;
}

static double part_of(uint64_t part, uint64_t all)
{
	return all ? (double)part / (double)all : 0;
}

static void end_row(const struct frag_explained *x, struct frag_row *row)
{
	uint64_t all = row->allocated_bytes + row->waiting_bytes;
	const struct frag_case *c = &x->in;
	int kind = 0;

	for (int k = 1; k < FRAG_KINDS; k++)
		if (row->kind_bytes[k] > row->kind_bytes[kind])
			kind = k;
	/* of the bytes: those of the row's kind, as sure as their stacks are */
	row->kind_confidence_ratio = !frag_steps_known(&c->history) ? NAN
				     : all ? row->kind_confidence_ratio / (double)all *
						     part_of(row->kind_bytes[kind], all)
					   : 0;
	row->kind =
		row->kind_confidence_ratio >= (double)FRAG_KIND_SURE ? frag_kind_name(kind) : NULL;
	row->share_ratio = part_of(row->allocated_bytes, x->m.allocated_bytes);
	row->non_releasable_share_ratio =
		part_of(row->non_releasable_bytes, x->m.non_releasable_bytes);
	row->oldest_step =
		frag_case_step_number(c, frag_history_step(&c->history, row->oldest_event));
	row->newest_step =
		frag_case_step_number(c, frag_history_step(&c->history, row->newest_event));
	row->oldest_age_us = x->m.time_us - FRAG_MIN(row->oldest_us, x->m.time_us);
}

static void fill_rows(struct frag_explained *x, const struct ref *refs, size_t n)
{
	uint32_t last_segment = 0;

	for (size_t i = 0; i < n; i++) {
		const struct frag_heap_block *h = &x->view.list[refs[i].item];

		if (!i || !same_key(refs[i].key, refs[i - 1].key)) {
			x->rows[x->rows_count++] = (struct frag_row){
				.key = refs[i].key,
				.regained_bytes = UINT64_MAX,
				.site = frag_sites_known(&x->in.sites)
						? x->in.sites.names[refs[i].key.a]
						: size_name(x, refs[i].key),
			};
			last_segment = 0;
		}
		add_block(&x->rows[x->rows_count - 1], h, &x->kinds[refs[i].item], &last_segment);
	}
	for (size_t i = 0; i < x->rows_count; i++)
		end_row(x, &x->rows[i]);
}

/* Rows with non-releasable bytes, the most first. */
static int by_non_releasable(const void *a, const void *b, void *rows)
{
	const struct frag_row *x = (const struct frag_row *)rows + *(const size_t *)a;
	const struct frag_row *y = (const struct frag_row *)rows + *(const size_t *)b;

	return FRAG_ORDER(y->non_releasable_bytes, x->non_releasable_bytes)
		       ?: strcmp(x->site, y->site);
}

int frag_explain_rows(struct frag_explained *x, struct frag_err *err)
{
	size_t n = x->view.count;
	FRAG_AUTO_FREE struct ref *refs = NULL;

	FRAG_TRY_CALLOC(refs, n + 1, "explanation", err);
	FRAG_TRY_CALLOC(x->rows, n + 1, "explanation", err);
	FRAG_TRY_CALLOC(x->pinning, n + 1, "explanation", err);
	FRAG_TRY_CALLOC(x->fixed, n + 1, "explanation", err);
	for (size_t i = 0; i < n; i++) {
		uint8_t k = x->kinds[i].kind;

		refs[i] = (struct ref){ key_of(x, &x->view.list[i]), i };
		if (k == FRAG_KIND_PERMANENT || k == FRAG_KIND_OPTIMIZER || k == FRAG_KIND_KEPT)
			x->fixed[x->fixed_count++] = x->view.list[i].requested;
	}
	qsort(x->fixed, x->fixed_count, sizeof(*x->fixed), frag_compare_u64);
	qsort(refs, n, sizeof(*refs), by_key);
	fill_rows(x, refs, n);
	qsort(x->rows, x->rows_count, sizeof(*x->rows), by_bytes);
	for (size_t i = 0; i < x->rows_count; i++)
		if (x->rows[i].non_releasable_bytes)
			x->pinning[x->pinning_count++] = i;
	qsort_r(x->pinning, x->pinning_count, sizeof(*x->pinning), by_non_releasable, x->rows);
	return 0;
}

/* ---- replays with an edit ------------------------------------------------------------------- */

/* Sizes of permanent blocks do not follow the batch: weights, and gradients of the same size. */
uint64_t frag_explain_scaled(const struct frag_explained *x, uint64_t bytes, double by)
{
	if (!(by > 0) || bytes < 64 * FRAG_KIB)
		return bytes;
	if (bsearch(&bytes, x->fixed, x->fixed_count, sizeof(bytes), frag_compare_u64))
		return bytes;
	return FRAG_MAX((uint64_t)((double)bytes * by), (uint64_t)1);
}

static int add_edits(const struct frag_explained *x, const struct frag_explain_edit *edit,
		     const struct frag_cursor *s, uint64_t event, struct frag_edit *e,
		     struct frag_err *err)
{
	for (size_t i = 0; i < e->count; i++)
		if (e->events[i].kind == FRAG_EV_ALLOC)
			FRAG_TRY(frag_edit_resize(
				e, e->first + i,
				frag_explain_scaled(x, e->events[i].bytes, edit->smaller), err));
	for (size_t i = 0; edit->row && i < x->view.count; i++) {
		const struct frag_heap_block *h = &x->view.list[i];
		uint8_t kind = x->kinds[i].kind;

		if (s->run->slots[h->slot].state == SLOT_LIVE &&
		    same_key(key_of(x, h), edit->row->key) &&
		    (!edit->activations || kind == FRAG_KIND_ACTIVATION ||
		     kind == FRAG_KIND_WITHIN))
			FRAG_TRY(frag_edit_insert(e, event, FRAG_NEVER,
						  (struct frag_event){ .kind = FRAG_EV_FREE,
								       .slot = h->slot,
								       .time_us = s->now_us },
						  err));
	}
	return 0;
}

int frag_explain_edited(const struct frag_explained *x, const struct frag_explain_edit *edit,
			uint64_t event, struct frag_cursor *s, struct frag_err *err)
{
	const struct frag_trace_dev *dev = frag_events_dev(&x->in.events);
	FRAG_AUTO(frag_edit_release) struct frag_edit e = { .first = event };
	FRAG_AUTO_FREE struct frag_event *events = NULL;
	size_t n;

	e.slots = dev->slots_count;
	if (edit->smaller > 0) {
		e.first = x->in.history.steps[x->step].first;
		e.events = dev->events + e.first;
		e.count = (size_t)(event - e.first);
	}
	if (e.first)
		FRAG_TRY(frag_cursor_to(s, e.first - 1, err));
	FRAG_TRY(add_edits(x, edit, s, event, &e, err));
	FRAG_TRY(frag_edit_apply(&e, &events, &n, err));
	return frag_run_feed(s->run, events, n, err);
}

/* ---- what would be regained ----------------------------------------------------------------- */

/* Bytes reserved after a trim; row NULL: with all blocks, else without its own. */
static int reserved_without(const struct frag_explained *x, const struct frag_row *row,
			    uint64_t *reserved, struct frag_err *err)
{
	FRAG_AUTO(frag_cursor_close) struct frag_cursor s = { 0 };

	FRAG_TRY(frag_case_replay(&x->in, &s, err));
	FRAG_TRY(frag_explain_edited(x, &(struct frag_explain_edit){ .row = row }, x->m.event + 1,
				     &s, err));
	FRAG_TRY(frag_cursor_trim(&s, err));
	*reserved = frag_cursor_reserved(&s);
	return 0;
}

int frag_explain_regained(struct frag_explained *x, struct frag_err *err)
{
	const struct frag_policy_ops *ops = frag_policy_spec_ops(x->in.spec);
	size_t n = FRAG_MIN(FRAG_MIN(x->pinning_count, x->opt.top), (size_t)REMOVALS_MAX);
	uint64_t all, without;

	n = FRAG_MIN(n, (size_t)(REMOVAL_EVENTS / (x->m.event + 1)));
	/* a policy that cannot be told to trim, or frees in reverse order only, cannot be asked */
	if (!n || !ops->trim || ops->flags & FRAG_POLICY_STACK)
		return 0;
	FRAG_TRY(reserved_without(x, NULL, &all, err));
	for (size_t i = 0; i < n; i++) {
		struct frag_row *row = &x->rows[x->pinning[i]];

		FRAG_TRY(reserved_without(x, row, &without, err));
		row->regained_bytes = all > without ? all - without : 0;
	}
	return 0;
}
