/* SPDX-License-Identifier: Apache-2.0 */
/* Segments and blocks of a replay; see heap_list.h. */
#include "heap_list.h"

#include <stdlib.h>

#include "lib/bisect.h"
#include "lib/grow.h"

struct visit {
	struct frag_heap_list *list;
	const struct frag_run *run;
	uint32_t *by_addr; /* slots, by address */
	size_t by_addr_count;
	uint32_t stream;
	bool begins; /* the next block is the first of a segment */
	bool short_of_memory;
};

static int by_address(const void *a, const void *b, void *run)
{
	const struct frag_run_slot *slots = ((const struct frag_run *)run)->slots;
	frag_addr_t x = slots[*(const uint32_t *)a].b.addr, y = slots[*(const uint32_t *)b].b.addr;

	return FRAG_ORDER(x, y);
}

static uint32_t slot_at(const struct visit *v, frag_addr_t addr)
{
	size_t at;

	FRAG_BISECT(at, 0, v->by_addr_count, v->run->slots[v->by_addr[at]].b.addr < addr);
	return at < v->by_addr_count && v->run->slots[v->by_addr[at]].b.addr == addr
		       ? v->by_addr[at]
		       : FRAG_NO_SLOT;
}

static void on_segment(void *ctx, frag_addr_t addr, uint64_t bytes, uint32_t stream)
{
	struct visit *v = ctx;

	(void)addr;
	(void)bytes;
	v->stream = stream;
	v->begins = true;
}

static int room(struct frag_heap_list *l)
{
	FRAG_TRY(FRAG_GROW(l->segments, l->segments_count, l->segments_cap, "segments", NULL));
	return FRAG_GROW(l->blocks, l->blocks_count, l->blocks_cap, "blocks", NULL);
}

static void on_block(void *ctx, frag_addr_t addr, uint64_t bytes, enum frag_block_state state,
		     uint64_t releasable)
{
	struct visit *v = ctx;
	struct frag_heap_list *l = v->list;
	struct frag_listed_segment *s; /* after room(), which may move the list */
	uint32_t slot = state == FRAG_STATE_FREE ? FRAG_NO_SLOT : slot_at(v, addr);

	(void)releasable;
	v->short_of_memory |= room(l) != 0;
	if (v->short_of_memory)
		return;
	s = l->segments_count ? &l->segments[l->segments_count - 1] : NULL;
	if (v->begins || !s || s->addr + s->bytes != addr) {
		s = &l->segments[l->segments_count++];
		*s = (struct frag_listed_segment){ .addr = addr,
						   .stream = v->stream,
						   .first_block = l->blocks_count };
		v->begins = false;
	}
	s->bytes += bytes;
	s->blocks_count++;
	l->blocks[l->blocks_count++] = (struct frag_listed_block){
		addr, bytes, slot == FRAG_NO_SLOT ? bytes : v->run->slots[slot].b.requested, slot,
		(uint8_t)state
	};
}

int frag_heap_list_take(struct frag_heap_list *list, struct frag_run *run, struct frag_err *err)
{
	struct visit v = { .list = list, .run = run };
	const struct frag_visitor visitor = { &v, on_segment, on_block };

	FRAG_TRY_CALLOC(v.by_addr, (size_t)run->slots_count + 1, "segments", err);
	for (uint32_t i = 0; i < run->slots_count; i++)
		if (run->slots[i].state != SLOT_EMPTY && run->slots[i].state != SLOT_DROPPED)
			v.by_addr[v.by_addr_count++] = i;
	qsort_r(v.by_addr, v.by_addr_count, sizeof(*v.by_addr), by_address, run);
	if (run->policy.ops->visit)
		run->policy.ops->visit(run->policy.self, &visitor);
	frag_host_free(v.by_addr);
	return v.short_of_memory ? frag_fail_nomem(err, "segments") : 0;
}

void frag_heap_list_release(struct frag_heap_list *list)
{
	FRAG_FREE(list->segments, list->blocks);
	*list = (struct frag_heap_list){ 0 };
}
