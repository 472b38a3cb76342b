/* SPDX-License-Identifier: Apache-2.0 */
/* From calls to lines: what is live, which frees end it. See recorder.h for the rules. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <frag/base.h>

#include "base/live_page.h"
#include "recorder.h"

#define BUCKETS 65536u
#define HANDLE_BIT (1ull << 63)
#define PAGE_BYTES (2ull << 20) /* in which the driver gives memory */

struct live {
	struct live *next;
	uint64_t id, bytes; /* of a mapping: the address, and its handle */
	void *context;
	uint32_t device, refs;
	bool apart; /* a library's own: not in the file */
};

/* Under the lock. */
static struct {
	struct live *blocks[BUCKETS], *maps[BUCKETS];
	size_t blocks_count;
	struct frag_live_device totals[FRAG_LIVE_DEVICES]; /* by ordinal */
	struct frag_live_page *page;
	bool changed;
} state;

/* Of this thread: by the call that has not returned. */
static _Thread_local struct {
	uint64_t freed, freed_bytes;
	bool apart;
	void *context; /* the last one, and its device */
	uint32_t device;
} mine;

static struct live **find(struct live **table, uint64_t id)
{
	struct live **at = &table[((id >> 9 ^ id) * 0x9e3779b97f4a7c15ull) >> 48 & (BUCKETS - 1)];

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

/* at: as found, where none is. */
static struct live *enter(struct live **at, uint64_t id, uint64_t bytes)
{
	struct live *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	*l = (struct live){ .next = *at, .id = id, .bytes = bytes, .refs = 1 };
	*at = l;
	return l;
}

static void leave(struct live **at)
{
	struct live *l = *at;

	*at = l->next;
	free(l);
}

static struct frag_live_device *totals_of(uint32_t device)
{
	state.changed = true;
	return &state.totals[device < FRAG_LIVE_DEVICES ? device : FRAG_LIVE_DEVICES - 1];
}

static void drop_block(struct live **at)
{
	struct frag_live_device *t = totals_of((*at)->device);

	t->requested_bytes -= (*at)->bytes;
	t->allocated_bytes = t->requested_bytes;
	state.blocks_count--;
	leave(at);
}

static void on_free(uint64_t id, uint64_t stream, uint32_t device, const char *call)
{
	struct live **at = find(state.blocks, id);

	mine.freed = id;
	mine.freed_bytes = *at ? (*at)->bytes : UINT64_MAX;
	mine.apart = *at && (*at)->apart;
	if (*at)
		device = (*at)->device;
	if (!mine.apart)
		frag_rec_line("free", id, mine.freed_bytes, stream, device, call, 0);
	if (*at)
		drop_block(at);
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
	bool apart = stack ? stack->library != NULL : mine.apart;
	struct frag_live_device *t = totals_of(device);
	struct live *l;

	if (!id)
		return;
	if (*find(state.blocks, id)) /* its free was not seen */
		on_free(id, UINT64_MAX, device, "unseen");
	if (!apart)
		frag_rec_line("alloc", id, bytes, stream, device, c->name,
			      stack ? frag_rec_stack_number(stack) : 0);
	else if (stack)
		remark_apart(bytes, stack->library);
	l = enter(find(state.blocks, id), id, bytes);
	if (!l)
		return;
	l->context = c->context;
	l->device = device;
	l->apart = apart;
	state.blocks_count++;
	t->allocs_count++;
	t->requested_bytes += bytes;
	t->allocated_bytes = t->requested_bytes;
}

static void drop_ref(uint64_t id, const char *call)
{
	struct live **at = find(state.blocks, id);

	if (*at && !--(*at)->refs)
		on_free(id, UINT64_MAX, (*at)->device, call);
}

static void on_unmap(uint64_t address, uint64_t bytes, const char *call)
{
	/* a range may hold several mappings; their places are multiples of the granularity */
	for (uint64_t at = address; at < address + bytes; at += 65536) {
		struct live **map = find(state.maps, at);
		uint64_t handle;

		if (!*map)
			continue;
		handle = (*map)->bytes;
		leave(map);
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
	for (size_t i = 0; i < BUCKETS; i++) {
		struct live **at = &state.blocks[i];

		while (*at) {
			if (!ends(c, *at)) {
				at = &(*at)->next;
				continue;
			}
			if (!(*at)->apart)
				frag_rec_line("free", (*at)->id, (*at)->bytes, UINT64_MAX,
					      (*at)->device, c->name, 0);
			drop_block(at);
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
	totals_of(device)->refused_count++;
	if (stack->library)
		return;
	frag_rec_line("refused", 0, c->shape == REC_ALLOC_PITCH ? param(c, 2) * param(c, 3) : bytes,
		      stream, device, c->name, 0);
}

static void on_map(const struct frag_rec_call *c)
{
	uint64_t handle = param(c, 3) | HANDLE_BIT, address = param(c, 0);
	struct live *block = *find(state.blocks, handle);

	if (block && enter(find(state.maps, address), address, handle))
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
		struct live *block = *find(state.blocks, param_at(c, 0) | HANDLE_BIT);

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

struct range {
	uint64_t from, to;
	uint32_t device;
};

FRAG_COMPARE(by_address, struct range, FRAG_ORDER(x->device, y->device),
	     FRAG_ORDER(x->from, y->from))

static size_t copy_blocks(struct range *list, struct frag_live_device *out)
{
	size_t n = 0;

	for (size_t i = 0; i < BUCKETS; i++) {
		for (const struct live *l = state.blocks[i]; l; l = l->next) {
			if (l->device >= FRAG_LIVE_DEVICES)
				continue;
			if (l->id & HANDLE_BIT) /* whole pages without an address here */
				out[l->device].reserved_bytes += l->bytes;
			else
				list[n++] = (struct range){ l->id, l->id + l->bytes, l->device };
		}
	}
	return n;
}

static void take_hole(struct frag_live_device *d, uint64_t from, uint64_t to)
{
	if (to <= from)
		return;
	d->nonreleasable_bytes += to - from;
	if (to - from > d->largest_hole_bytes)
		d->largest_hole_bytes = to - from;
}

/* The pages that blocks touch, and what of them no block has. list: by address. */
static void add_pages(const struct range *list, size_t n, struct frag_live_device *out)
{
	uint64_t begin, end = 0, used = 0; /* of the pages so far; of the blocks in them */

	for (size_t i = 0; i < n; i++) {
		const struct range *r = &list[i];
		struct frag_live_device *d = &out[r->device];
		bool next = !i || list[i - 1].device != r->device;

		begin = r->from & ~(PAGE_BYTES - 1);
		if (next || begin > end) { /* a run of pages begins */
			if (i)
				take_hole(&out[list[i - 1].device], used, end);
			take_hole(d, begin, r->from);
			end = begin;
		} else {
			take_hole(d, used, r->from);
		}
		used = r->to;
		while (end < r->to) {
			uint64_t to = (r->to + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);

			d->reserved_bytes += to - end;
			end = to;
		}
	}
	if (n)
		take_hole(&out[list[n - 1].device], used, end);
}

/* The blocks; NULL: nothing changed since the last time, or host memory is out. */
static struct range *take_blocks(struct frag_live_device *out, size_t *n)
{
	struct range *list;
	FRAG_REC_LOCKED;

	if (!state.changed)
		return NULL;
	state.changed = false;
	memcpy(out, state.totals, sizeof(state.totals));
	list = malloc((state.blocks_count + 1) * sizeof(*list));
	*n = list ? copy_blocks(list, out) : 0;
	return list;
}

void frag_rec_publish(void)
{
	static struct frag_live_device out[FRAG_LIVE_DEVICES];
	static uint32_t count;
	struct range *list;
	size_t n;

	if (!state.page) {
		state.page = frag_live_page_create("record");
		if (!state.page)
			return;
	}
	list = take_blocks(out, &n);
	if (list) {
		qsort(list, n, sizeof(*list), by_address);
		add_pages(list, n, out);
		free(list);
		for (uint32_t d = 0; d < FRAG_LIVE_DEVICES; d++) {
			out[d].device = d;
			if (out[d].allocs_count)
				count = d + 1;
		}
	}
	frag_live_page_write(state.page, out, count);
}

__attribute__((destructor)) static void remove_page(void)
{
	if (state.page && state.page->pid == (uint64_t)getpid())
		frag_live_page_remove(state.page);
}
