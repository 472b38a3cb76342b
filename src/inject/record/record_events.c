/* SPDX-License-Identifier: Apache-2.0 */
/* From calls to lines: what is live, which frees end it. See recorder.h for the rules. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <frag/base.h>

#include "base/live_page.h"
#include "device/driver_memory.h"
#include "lib/addr_map.h"
#include "recorder.h"

#define HANDLE_BIT (1ull << 63)

struct live {
	uint64_t id, bytes;
	void *context;
	uint32_t device, refs;
	bool apart; /* a library's own: not in the file */
};

/* Under the lock. */
static struct {
	struct frag_addr_map blocks; /* address, or handle and HANDLE_BIT -> struct live */
	struct frag_addr_map maps;   /* address of a mapping -> its handle */
	/* by ordinal, from the last one on together: */
	struct frag_live_device totals[FRAG_LIVE_DEVICES];
	struct frag_drvmem held[FRAG_LIVE_DEVICES];
	struct frag_live_page *page;
} state;

/* Of this thread: by the call that has not returned. */
static _Thread_local struct {
	uint64_t freed, freed_bytes;
	bool apart;
	void *context; /* the last one, and its device */
	uint32_t device;
} mine;

static struct live *find(uint64_t id)
{
	return frag_addr_map_get(&state.blocks, id);
}

static uint32_t slot_of(uint32_t device)
{
	return FRAG_MIN(device, FRAG_LIVE_DEVICES - 1);
}

static void enter_block(const struct live *block)
{
	struct frag_live_device *t = &state.totals[slot_of(block->device)];
	struct frag_drvmem *m = &state.held[slot_of(block->device)];
	struct live *l = malloc(sizeof(*l));

	if (!l || frag_addr_map_reserve(&state.blocks) || frag_drvmem_segment_room(m, NULL)) {
		free(l);
		return;
	}
	*l = *block;
	frag_addr_map_put(&state.blocks, l->id, l);
	if (l->id & HANDLE_BIT) /* whole pages without an address here */
		m->bytes += l->bytes;
	else if (l->bytes)
		frag_drvmem_segment_add(m, l->id, l->bytes);
	t->allocs_count++;
	t->requested_bytes += l->bytes;
}

static void drop_block(struct live *l)
{
	struct frag_drvmem *m = &state.held[slot_of(l->device)];

	if (l->id & HANDLE_BIT)
		m->bytes -= l->bytes;
	else if (l->bytes)
		frag_drvmem_segment_remove(m, frag_addr_map_find(&m->segments, l->id));
	state.totals[slot_of(l->device)].requested_bytes -= l->bytes;
	free(frag_addr_map_take(&state.blocks, l->id));
}

static void on_free(uint64_t id, uint64_t stream, uint32_t device, const char *call)
{
	struct live *l = find(id);

	mine.freed = id;
	mine.freed_bytes = l ? l->bytes : UINT64_MAX;
	mine.apart = l && l->apart;
	if (!mine.apart)
		frag_rec_line("free", id, mine.freed_bytes, stream, l ? l->device : device, call,
			      0);
	if (l)
		drop_block(l);
}

/* What a library took for itself; `record` adds these up. */
static void remark_apart(uint64_t bytes, const char *library)
{
	const char *slash = strrchr(library, '/');

	frag_rec_remark("#apart %llu %.200s\n", (unsigned long long)bytes,
			slash ? slash + 1 : library);
}

/* stack: NULL: a block that was there before the call, and stays. */
static void on_alloc(const struct frag_rec_call *c, uint64_t id, uint64_t bytes, uint64_t stream,
		     uint32_t device, const struct frag_rec_stack *stack)
{
	struct live block = { id, bytes, c->context, device, 1, mine.apart };

	if (!id)
		return;
	if (stack)
		block.apart = stack->library != NULL;
	if (find(id)) /* its free was not seen */
		on_free(id, UINT64_MAX, device, "unseen");
	if (!block.apart)
		frag_rec_line("alloc", id, bytes, stream, device, c->name,
			      stack ? frag_rec_stack_number(stack) : 0);
	else if (stack)
		remark_apart(bytes, stack->library);
	enter_block(&block);
}

static void drop_ref(uint64_t id, const char *call)
{
	struct live *l = find(id);

	if (l && !--l->refs)
		on_free(id, UINT64_MAX, l->device, call);
}

static void on_unmap(uint64_t address, uint64_t bytes, const char *call)
{
	/* a range may hold several mappings; their places are multiples of the granularity */
	for (uint64_t at = address; at < address + bytes; at += 65536) {
		struct frag_addr_cell *map = frag_addr_map_find(&state.maps, at);
		uint64_t handle;

		if (!map)
			continue;
		handle = map->value;
		frag_addr_map_remove(&state.maps, map);
		drop_ref(handle, call);
	}
}

static bool ends(const struct frag_rec_call *c, const struct live *l)
{
	int device;

	if (l->id & HANDLE_BIT)
		return false;
	if (c->shape == REC_CONTEXT_END)
		return l->context == c->context;
	memcpy(&device, c->params, sizeof(device));
	return l->device == (uint32_t)device;
}

static void on_context_end(const struct frag_rec_call *c)
{
	for (size_t i = 0; i <= state.blocks.mask && state.blocks.mask; i++) {
		struct frag_addr_cell *cell = &state.blocks.cells[i];
		struct live *l;

		while (cell->value && ends(c, l = (void *)(uintptr_t)cell->value)) {
			if (!l->apart)
				frag_rec_line("free", l->id, l->bytes, UINT64_MAX, l->device,
					      c->name, 0);
			drop_block(l); /* another may come into its cell */
		}
	}
}

static uint64_t param(const struct frag_rec_call *c, size_t i)
{
	uint64_t v;

	memcpy(&v, (const char *)c->params + 8 * i, 8);
	return v;
}

static uint64_t param_at(const struct frag_rec_call *c, size_t i)
{
	uint64_t v = 0, at = param(c, i);

	if (at)
		memcpy(&v, (const void *)(uintptr_t)at, 8);
	return v;
}

/* CUmemAllocationProp: type, handle types, then location: type (1 = device) and number. */
static bool on_device(const struct frag_rec_call *c, uint32_t *device)
{
	int prop[4] = { 0 };
	uint64_t at = param(c, 2);

	if (at)
		memcpy(prop, (const void *)(uintptr_t)at, sizeof(prop));
	*device = (uint32_t)prop[3];
	return prop[2] == 1;
}

static uint32_t device_of(const struct frag_rec_call *c)
{
	uint32_t device;

	if (c->context && c->context != mine.context && !c->device(c->context, &device)) {
		mine.context = c->context;
		mine.device = device;
	}
	return mine.device;
}

/* What a request asks for, read from its parameters. */
static void request(const struct frag_rec_call *c, uint64_t *bytes, uint64_t *stream)
{
	*bytes = c->shape == REC_ALLOC_PITCH ? param_at(c, 1) * param(c, 3) : param(c, 1);
	*stream = c->shape == REC_ALLOC_ASYNC  ? param(c, 2)
		  : c->shape == REC_ALLOC_POOL ? param(c, 3)
					       : 0;
}

static void entered(const struct frag_rec_call *c)
{
	mine.freed = 0;
	if (c->shape == REC_FREE && param(c, 0))
		on_free(param(c, 0), UINT64_MAX, device_of(c), c->name);
	else if (c->shape == REC_FREE_ASYNC && param(c, 0))
		on_free(param(c, 0), param(c, 1), device_of(c), c->name);
	else if (c->shape == REC_RELEASE)
		drop_ref(param(c, 0) | HANDLE_BIT, c->name);
	else if (c->shape == REC_UNMAP)
		on_unmap(param(c, 0), param(c, 1), c->name);
	else if (c->shape == REC_CONTEXT_END || c->shape == REC_DEVICE_END)
		on_context_end(c);
}

static void failed(const struct frag_rec_call *c, int result, const struct frag_rec_stack *stack)
{
	uint32_t device = device_of(c);
	uint64_t bytes, stream;

	if (mine.freed && mine.freed_bytes != UINT64_MAX) { /* it is still there */
		on_alloc(c, mine.freed, mine.freed_bytes, UINT64_MAX, device, NULL);
		return;
	}
	if (result != REC_OUT_OF_MEMORY || (c->shape > REC_ALLOC_PITCH && c->shape != REC_CREATE))
		return;
	if (c->shape == REC_CREATE && !on_device(c, &device))
		return;
	request(c, &bytes, &stream);
	state.totals[slot_of(device)].refused_count++;
	if (stack->library)
		return;
	frag_rec_line("refused", 0, c->shape == REC_ALLOC_PITCH ? param(c, 2) * param(c, 3) : bytes,
		      stream, device, c->name, 0);
}

static void on_map(const struct frag_rec_call *c)
{
	uint64_t handle = param(c, 3) | HANDLE_BIT, address = param(c, 0);
	struct live *block = find(handle);

	if (block && !frag_addr_map_reserve(&state.maps) &&
	    frag_addr_map_add(&state.maps, address, handle))
		block->refs++;
}

static void succeeded(const struct frag_rec_call *c, const struct frag_rec_stack *stack)
{
	uint32_t device = device_of(c);
	uint64_t bytes, stream;

	if (c->shape <= REC_ALLOC_PITCH) {
		request(c, &bytes, &stream);
		on_alloc(c, param_at(c, 0), bytes, stream, device, stack);
	} else if (c->shape == REC_CREATE && on_device(c, &device)) {
		on_alloc(c, param_at(c, 0) | HANDLE_BIT, param(c, 1), UINT64_MAX, device, stack);
	} else if (c->shape == REC_RETAIN) {
		struct live *block = find(param_at(c, 0) | HANDLE_BIT);

		if (block)
			block->refs++;
	} else if (c->shape == REC_MAP) {
		on_map(c);
	}
}

void frag_rec_enter(const struct frag_rec_call *c)
{
	FRAG_REC_LOCKED;

	entered(c);
}

void frag_rec_leave(const struct frag_rec_call *c, int result, bool also_enter)
{
	struct frag_rec_stack stack = { .count = 0 };

	if ((!result || result == REC_OUT_OF_MEMORY) &&
	    (c->shape <= REC_ALLOC_PITCH || c->shape == REC_CREATE))
		frag_rec_stack_take(&stack);
	FRAG_REC_LOCKED;
	if (also_enter)
		entered(c);
	if (result)
		failed(c, result, &stack);
	else
		succeeded(c, &stack);
}

/* ---- the shared page --------------------------------------------------------------------- */

/* Returns how many devices there are. */
static uint32_t take_totals(struct frag_live_device *out)
{
	uint32_t count = 0;
	FRAG_REC_LOCKED;

	for (uint32_t d = 0; d < FRAG_LIVE_DEVICES; d++) {
		struct frag_live_device *o = &out[d];

		*o = state.totals[d];
		o->device = d;
		o->allocated_bytes = o->requested_bytes;
		o->reserved_bytes = state.held[d].bytes;
		o->nonreleasable_bytes = o->reserved_bytes - o->requested_bytes;
		o->largest_hole_bytes = UINT64_MAX;
		if (o->allocs_count)
			count = d + 1;
	}
	return count;
}

void frag_rec_publish(void)
{
	struct frag_live_device out[FRAG_LIVE_DEVICES];

	if (!state.page)
		state.page = frag_live_page_create("record");
	if (state.page)
		frag_live_page_write(state.page, out, take_totals(out));
}

__attribute__((destructor)) static void remove_page(void)
{
	if (state.page && state.page->pid == (uint64_t)getpid())
		frag_live_page_remove(state.page);
}
