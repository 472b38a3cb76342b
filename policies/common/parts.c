/* SPDX-License-Identifier: Apache-2.0 */
/* Walking and checking the chains of parts.h. */
#include "parts.h"

void frag_parts_visit(const struct frag_chunk *c, const struct frag_visitor *v, bool gives_back)
{
	for (const struct frag_part *p = c->head; p; p = p->next) {
		bool goes = gives_back && p->state == FRAG_STATE_FREE && frag_part_is_whole(p);

		v->block(v->ctx, p->addr, p->size, (enum frag_block_state)p->state,
			 goes ? p->size : 0);
	}
}

static void tally(const struct frag_part *p, struct frag_parts_tally *t)
{
	t->count++;
	if (p->state == FRAG_STATE_LIVE)
		t->live_bytes += p->size;
	else if (p->state == FRAG_STATE_WAITING)
		t->waiting_bytes += p->size;
	if (p->state != FRAG_STATE_FREE)
		return;
	t->free_count++;
	t->free_bytes += p->size;
	if (frag_part_is_whole(p)) {
		t->whole_count++;
		t->whole_bytes += p->size;
	}
}

static int check_chain(const struct frag_chunk *c, frag_parts_check_fn free_part, void *self,
		       struct frag_parts_tally *out, struct frag_err *err)
{
	const struct frag_part *prev = NULL;
	frag_addr_t at = c->addr;

	for (const struct frag_part *p = c->head; p; p = p->next) {
		if (p->addr != at || !p->size || p->prev != prev || p->chunk != c ||
		    p->state > FRAG_STATE_FREE)
			return frag_fail(err, FRAG_ECHECK,
					 "part 0x%llx does not join the one before",
					 (unsigned long long)p->addr);
		tally(p, out);
		if (p->state == FRAG_STATE_FREE && free_part)
			FRAG_TRY(free_part(self, p, err));
		at += p->size;
		prev = p;
	}
	if (at != c->addr + c->bytes)
		return frag_fail(err, FRAG_ECHECK, "chunk 0x%llx is not covered by its parts",
				 (unsigned long long)c->addr);
	return 0;
}

int frag_parts_check(const struct frag_upstream *up, const void *owner,
		     frag_parts_check_fn free_part, void *self, struct frag_parts_tally *out,
		     struct frag_err *err)
{
	*out = (struct frag_parts_tally){ 0 };
	for (struct frag_chunk *c = frag_upstream_first(up); c; c = frag_upstream_next(up, c))
		if (c->owner == owner)
			FRAG_TRY(check_chain(c, free_part, self, out, err));
	return 0;
}
