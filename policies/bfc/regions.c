/* SPDX-License-Identifier: Apache-2.0 */
/* The sets of free chunks and the regions of the bfc policy, see regions.h. */
#include "regions.h"

#define ORT_GIVE_UP (8 * FRAG_KIB)

/* ---- search ------------------------------------------------------------------------------ */

/* The earlier of two in the order of the sets; NULL comes last. */
static struct frag_piece *first_of(struct frag_piece *a, struct frag_piece *b)
{
	if (!a || !b)
		return a ? a : b;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? a : b;
	return a->addr < b->addr ? a : b;
}

struct frag_piece *frag_bfc_find(struct frag_bfc *s, uint64_t bytes, uint32_t stream, bool *whole)
{
	struct frag_piece *p = frag_best_find(s, bytes);

	*whole = false;
	if (!s->ort)
		return p;
	p = first_of(p, frag_best_find_in(&s->best, stream + 1, bytes));
	if (p || !s->params->cross_stream)
		return p;
	*whole = true;
	for (uint32_t i = 1; i < s->best.sets_count; i++)
		p = first_of(p, frag_best_find_in(&s->best, i, bytes));
	return p;
}

/* ---- regions ---------------------------------------------------------------------------- */

/* Size of the next region for a request; `left`: of the limit. Changes the step. */
static uint64_t next_region(struct frag_bfc *s, uint64_t bytes, uint64_t left, bool *doubled)
{
	*doubled = false;
	if (s->ort && s->params->extend == FRAG_BFC_EXACT) {
		*doubled = true;
		return bytes;
	}
	while (bytes > s->step) {
		s->step *= 2;
		*doubled = true;
	}
	return FRAG_MIN(s->step, left);
}

static void double_step(struct frag_bfc *s)
{
	if (s->ort && s->step >= (s->params->max_extend + 1) / 2)
		s->step = frag_bfc_round(
			s->params->max_extend); /* less, where a request has taken it higher */
	else if (s->step <= 1ull << 60)
		s->step *= 2;
}

/* The next smaller size to ask for. */
static uint64_t back_off(uint64_t bytes)
{
	uint64_t less = frag_bfc_round((uint64_t)((float)bytes * 0.9f));

	return less < bytes ? less : bytes - FRAG_BFC_UNIT;
}

/* A region that holds the request: 0, FRAG_OOM or an error. */
static int extend(struct frag_bfc *s, uint64_t bytes, uint32_t stream, struct frag_err *err)
{
	uint64_t left = (s->limit - s->region_bytes) / FRAG_BFC_UNIT * FRAG_BFC_UNIT, size;
	struct frag_piece *p;
	bool doubled;
	int rc;

	if (bytes > left)
		return FRAG_OOM;
	FRAG_CHECK_ALLOC(!frag_bfc_reserve(s, stream), "policy bfc", err);
	size = next_region(s, bytes, left, &doubled);
	if (s->ort && !doubled)
		double_step(s);
	rc = frag_best_grow(&s->best, size, stream, &p, err);
	while (rc == FRAG_OOM) {
		size = back_off(size);
		if (size < bytes || (s->ort && size < ORT_GIVE_UP))
			return FRAG_OOM;
		rc = frag_best_grow(&s->best, size, stream, &p, err);
	}
	if (rc)
		return rc;
	if (!s->ort && !doubled)
		double_step(s);
	if (s->ort && s->params->extend == FRAG_BFC_POW2 && !s->region_bytes)
		frag_heap_keep(&s->best.heap, p->seg);
	s->region_bytes += size;
	return 0;
}

int frag_bfc_give_back(struct frag_bfc *s, struct frag_err *err)
{
	uint64_t held = s->best.heap.free_bytes;
	int rc = frag_heap_drop_idle(&s->best.heap, err);

	s->region_bytes -= held - s->best.heap.free_bytes;
	return rc;
}

/* Idle regions go, if that can help, and a new one comes. */
static int collect(struct frag_bfc *s, uint64_t bytes, uint32_t stream, struct frag_err *err)
{
	uint64_t idle = s->best.heap.idle_bytes;

	if (!s->params->gc || !idle || bytes > s->limit - s->region_bytes + idle)
		return FRAG_OOM;
	FRAG_TRY(frag_bfc_give_back(s, err));
	return extend(s, bytes, stream, err);
}

int frag_bfc_make_room(struct frag_bfc *s, uint64_t bytes, uint32_t stream, struct frag_piece **p,
		       uint8_t *cls, struct frag_err *err)
{
	bool whole, again = s->params->retry && !s->ort && s->best.heap.env.sync;
	int rc;

	*cls = FRAG_CLASS_GROW;
	for (;;) {
		rc = extend(s, bytes, stream, err);
		if (rc == FRAG_OOM) {
			*cls = FRAG_CLASS_RELEASE;
			rc = collect(s, bytes, stream, err);
		}
		if (rc != FRAG_OOM)
			break;
		if (!again)
			return FRAG_OOM;
		again = false;
		s->best.heap.env.sync(s->best.heap.env.sync_ctx);
		*p = frag_bfc_find(s, bytes, stream, &whole);
		if (*p)
			return 0;
	}
	if (!rc)
		*p = frag_bfc_find(s, bytes, stream, &whole);
	return rc;
}
