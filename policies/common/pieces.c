/* SPDX-License-Identifier: Apache-2.0 */
/* Walking and checking the chains of pieces.h. */
#include "pieces.h"

const char *frag_pieces_check(const struct frag_piece *first, const void *whole, frag_addr_t addr,
			      uint64_t bytes, struct frag_pieces_sums *sums)
{
	const struct frag_piece *prev = NULL;
	frag_addr_t at = addr;

	for (const struct frag_piece *p = first; p; prev = p, p = p->next) {
		if ((const void *)p->seg != whole || p->prev != prev)
			return "chain of pieces broken";
		if (p->addr != at)
			return "gap or overlap before a piece";
		if (!p->bytes || p->state > FRAG_STATE_FREE)
			return "piece without size or state";
		at += p->bytes;
		sums->bytes[p->state] += p->bytes;
		sums->count++;
		sums->free_count += frag_piece_is_free(p);
	}
	return at == addr + bytes ? NULL : "pieces do not cover the whole";
}

void frag_pieces_visit(const struct frag_piece *first, const struct frag_visitor *v, bool idle)
{
	for (const struct frag_piece *p = first; p; p = p->next)
		v->block(v->ctx, p->addr, p->bytes, (enum frag_block_state)p->state,
			 idle ? p->bytes : 0);
}
