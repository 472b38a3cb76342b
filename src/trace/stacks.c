/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two open-addressing tables of indices (0 = empty cell, so indices are stored
 * plus one), at most half full, over the arrays of the result.
 */
#include "stacks.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lib/grow.h"

#define STACKS_MAX (1u << 24) /* an event has 24 bits for its stack */

struct index_table {
	uint32_t *cells;
	size_t mask;
};

struct frag_stack_table {
	struct frag_stacks s;
	size_t frames_cap, index_cap, first_cap;
	struct index_table by_frame, by_stack;
};

int frag_stack_table_create(struct frag_stack_table **out, struct frag_err *err)
{
	FRAG_AUTO(frag_stack_table_destroy_at) struct frag_stack_table *t = NULL;

	FRAG_TRY_CALLOC(t, 1, "stacks", err);
	FRAG_TRY_CALLOC(t->s.first, 64, "stacks", err);
	t->first_cap = 64;
	FRAG_TRY_CALLOC(t->by_frame.cells, 128, "stacks", err);
	FRAG_TRY_CALLOC(t->by_stack.cells, 128, "stacks", err);
	t->by_frame.mask = t->by_stack.mask = 127;
	t->s.count = 1;
	*out = FRAG_GIVE(t);
	return 0;
}

void frag_stacks_release(struct frag_stacks *s)
{
	FRAG_FREE(s->frames, s->index, s->first);
	*s = (struct frag_stacks){ 0 };
}

void frag_stack_table_destroy(struct frag_stack_table *t)
{
	if (!t)
		return;
	frag_stacks_release(&t->s);
	FRAG_FREE(t->by_frame.cells, t->by_stack.cells, t);
}

static uint64_t frame_hash(const struct frag_stack_table *t, size_t i)
{
	return XXH3_64bits(&t->s.frames[i], sizeof(t->s.frames[i]));
}

static uint64_t stack_hash(const struct frag_stack_table *t, size_t i)
{
	const uint64_t *first = &t->s.first[i];

	return XXH3_64bits(t->s.index + first[0], (first[1] - first[0]) * sizeof(uint32_t));
}

static int grow_table(struct frag_stack_table *t, struct index_table *table, size_t count,
		      uint64_t (*hash)(const struct frag_stack_table *, size_t),
		      struct frag_err *err)
{
	size_t mask = table->mask * 2 + 1;
	uint32_t *cells;

	if (count * 2 <= table->mask)
		return 0;
	FRAG_TRY_CALLOC(cells, mask + 1, "stacks", err);
	for (size_t c = 0; c <= table->mask; c++) {
		size_t at;

		if (!table->cells[c])
			continue;
		for (at = hash(t, table->cells[c] - 1) & mask; cells[at]; at = (at + 1) & mask)
			;
		cells[at] = table->cells[c];
	}
	frag_host_free(table->cells);
	table->cells = cells;
	table->mask = mask;
	return 0;
}

int frag_stack_table_frame(struct frag_stack_table *t, struct frag_frame frame, uint32_t *number,
			   struct frag_err *err)
{
	size_t at = XXH3_64bits(&frame, sizeof(frame)) & t->by_frame.mask;
	uint32_t cell;

	for (; (cell = t->by_frame.cells[at]); at = (at + 1) & t->by_frame.mask) {
		if (memcmp(&t->s.frames[cell - 1], &frame, sizeof(frame)))
			continue;
		*number = cell - 1;
		return 0;
	}
	FRAG_TRY(FRAG_GROW(t->s.frames, t->s.frames_count, t->frames_cap, "frames", err));
	t->s.frames[t->s.frames_count++] = frame;
	*number = (uint32_t)(t->s.frames_count - 1);
	t->by_frame.cells[at] = *number + 1;
	return grow_table(t, &t->by_frame, t->s.frames_count, frame_hash, err);
}

int frag_stack_table_stack(struct frag_stack_table *t, const uint32_t *frames, size_t n,
			   uint32_t *stack, struct frag_err *err)
{
	struct frag_stacks *s = &t->s;
	size_t bytes = n * sizeof(*frames), at;
	uint32_t cell;

	*stack = 0;
	if (!n)
		return 0;
	at = XXH3_64bits(frames, bytes) & t->by_stack.mask;
	for (; (cell = t->by_stack.cells[at]); at = (at + 1) & t->by_stack.mask) {
		const uint64_t *first = &s->first[cell - 1];

		if (first[1] - first[0] != n || memcmp(s->index + first[0], frames, bytes))
			continue;
		*stack = cell - 1;
		return 0;
	}
	if (s->count == STACKS_MAX)
		return 0;
	while (s->index_count + n > t->index_cap)
		FRAG_TRY(FRAG_GROW(s->index, t->index_cap, t->index_cap, "stacks", err));
	FRAG_TRY(FRAG_GROW(s->first, s->count + 1, t->first_cap, "stacks", err));
	memcpy(s->index + s->index_count, frames, bytes);
	s->index_count += n;
	*stack = (uint32_t)s->count++;
	s->first[s->count] = s->index_count;
	t->by_stack.cells[at] = *stack + 1;
	return grow_table(t, &t->by_stack, s->count, stack_hash, err);
}

void frag_stack_table_take(struct frag_stack_table *t, struct frag_stacks *out)
{
	*out = t->s;
	t->s = (struct frag_stacks){ 0 };
}
