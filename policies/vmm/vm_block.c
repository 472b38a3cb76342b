/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas and their blocks: best fit, split, merge. */
#include "vm.h"

#include <string.h>

#include "lib/links.h"

/* Address space of all arenas: half of a process's; and the part of the rest for one arena. */
#define SPACE (1ull << 46)
#define SPACE_PART 64u

int vm_room(struct vm *v, size_t more, struct frag_err *err)
{
	size_t blocks;

	FRAG_CHECK_ALLOC(!frag_slab_reserve(&v->blocks, more), "vmm: blocks", err);
	blocks = frag_slab_live(&v->blocks) + v->blocks.spare_count;
	FRAG_CHECK_ALLOC(!frag_bset_nodes_reserve(&v->nodes, 2 * blocks), "vmm: free sets", err);
	return 0;
}

static struct vm_block *block_new(struct vm *v, struct vm_arena *a, frag_addr_t addr, uint64_t size)
{
	struct vm_block *b = frag_slab_alloc(&v->blocks);

	FRAG_ASSERT(b);
	*b = (struct vm_block){ .addr = addr, .size = size, .arena = a };
	return b;
}

static int quick_room(struct vm *v, uint32_t streams, struct frag_err *err)
{
	struct vm_arena **quick;

	if (streams <= v->quick_streams)
		return 0;
	quick = frag_host_realloc(v->quick, (size_t)streams * VM_CLASSES,
				  sizeof(struct vm_arena *));
	FRAG_CHECK_ALLOC(quick, "vmm: streams", err);
	memset(quick + v->quick_streams * VM_CLASSES, 0,
	       (size_t)(streams - v->quick_streams) * VM_CLASSES * sizeof(struct vm_arena *));
	v->quick = quick;
	v->quick_streams = streams;
	return 0;
}

/* Address space for many times the card: holes are used again, so the tail moves slowly. A part of
 * what is left at most, since a process has 2^47 bytes for all arenas, and a program with many
 * streams and pools has hundreds. */
static uint64_t arena_bytes(const struct vm *v, unsigned cls)
{
	uint64_t total = v->env.device_total_bytes, left = SPACE - FRAG_MIN(v->space, SPACE);
	uint64_t bytes = FRAG_MIN(cls ? 16 * total : 2 * total, left / SPACE_PART);

	return frag_round_up(FRAG_MAX(bytes, FRAG_GIB), FRAG_GIB);
}

static int arena_new(struct vm *v, unsigned cls, uint32_t stream, uint16_t pool,
		     struct vm_arena **out, struct frag_err *err)
{
	struct vm_arena *a;
	struct vm_block *tail;
	int rc;

	if (v->space >= SPACE) /* some 500 arenas */
		return FRAG_OOM;
	a = frag_host_calloc(1, sizeof(*a));
	FRAG_CHECK_ALLOC(a, "vmm: arena", err);
	a->cls = cls;
	a->shift = frag_log2(v->classes[cls].page);
	a->stream = stream;
	a->pool = pool;
	a->bytes = arena_bytes(v, cls);
	a->epoch = a->done_epoch = 1; /* pages that were never freed have epoch 0: done */
	frag_bset_init_shared(&a->full, &v->nodes);
	frag_bset_init_shared(&a->part, &v->nodes);
	frag_bset_init_shared(&a->whole, &v->nodes);
	rc = vm_room(v, 4, err) ?: frag_dev_reserve(v->dev, a->bytes, 0, &a->base, err);
	if (rc) {
		frag_host_free(a);
		return rc;
	}
	v->space += a->bytes;
	a->next = v->arenas;
	v->arenas = a;
	tail = block_new(v, a, a->base, a->bytes);
	tail->unmapped = a->bytes >> a->shift;
	a->first = tail;
	vm_free_insert(v, tail);
	*out = a;
	return 0;
}

int vm_arena_get(struct vm *v, unsigned cls, uint32_t stream, uint16_t pool, struct vm_arena **out,
		 struct frag_err *err)
{
	if (!pool) {
		FRAG_TRY(quick_room(v, stream + 1, err));
		*out = v->quick[stream * VM_CLASSES + cls];
		if (*out)
			return 0;
		FRAG_TRY(arena_new(v, cls, stream, pool, out, err));
		v->quick[stream * VM_CLASSES + cls] = *out;
		return 0;
	}
	for (struct vm_arena *a = v->arenas; a; a = a->next) {
		if (a->cls == cls && a->stream == stream && a->pool == pool) {
			*out = a;
			return 0;
		}
	}
	return arena_new(v, cls, stream, pool, out, err);
}

void vm_arena_drop(struct vm *v, struct vm_arena *a)
{
	frag_dev_unreserve(v->dev, a->base, a->bytes, NULL);
	v->space -= a->bytes;
	FRAG_FREE(a->pages, a);
}

void vm_free_insert(struct vm *v, struct vm_block *b)
{
	struct vm_arena *a = b->arena;

	b->state = VM_FREE;
	b->whole = vm_whole(a, b->addr, b->size, b->unmapped);
	if (b->unmapped)
		frag_bset_insert(&a->part, 0, b->addr, b);
	else
		frag_bset_insert(&a->full, b->size, b->addr, b);
	if (!b->whole)
		return;
	frag_bset_insert(&a->whole, 0, b->addr, b);
	v->whole_bytes += b->whole << a->shift;
}

void vm_free_erase(struct vm *v, struct vm_block *b)
{
	struct vm_arena *a = b->arena;

	if (b->unmapped)
		frag_bset_erase(&a->part, 0, b->addr);
	else
		frag_bset_erase(&a->full, b->size, b->addr);
	if (!b->whole)
		return;
	frag_bset_erase(&a->whole, 0, b->addr);
	v->whole_bytes -= b->whole << a->shift;
}

/* A new block in front of b takes its first `size` bytes. In no set, counts nothing. */
static struct vm_block *split(struct vm *v, struct vm_block *b, uint64_t size)
{
	struct vm_block *low = block_new(v, b->arena, b->addr, size);

	FRAG_LINK_BEFORE(b->arena->first, b, low);
	b->addr += size;
	b->size -= size;
	return low;
}

struct vm_block *vm_cut(struct vm *v, struct vm_block *b, uint64_t skip, uint64_t size)
{
	struct vm_block *piece;

	if (skip) {
		struct vm_block *front = split(v, b, skip);

		if (b->unmapped) {
			front->unmapped = vm_missing(b->arena, front->addr, front->size);
			b->unmapped -= front->unmapped;
		}
		vm_free_insert(v, front);
	}
	if (b->size == size)
		return b;
	piece = split(v, b, size);
	if (b->unmapped) {
		piece->unmapped = vm_missing(b->arena, piece->addr, piece->size);
		b->unmapped -= piece->unmapped;
	}
	vm_free_insert(v, b);
	return piece;
}

static void merge(struct vm *v, struct vm_block *b, struct vm_block *n)
{
	if (!n || n->state != VM_FREE)
		return;
	vm_free_erase(v, n);
	if (n == b->prev) {
		b->addr = n->addr;
		FRAG_UNLINK(b->arena->first, n);
	} else {
		FRAG_UNLINK_NEXT(b);
	}
	b->size += n->size;
	/* a page without memory is counted in one block only: the counts add up */
	b->unmapped += n->unmapped;
	frag_slab_free(&v->blocks, n);
}

void vm_give(struct vm *v, struct vm_block *b)
{
	merge(v, b, b->prev);
	merge(v, b, b->next);
	vm_free_insert(v, b);
}
