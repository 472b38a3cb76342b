/* SPDX-License-Identifier: Apache-2.0 */
/* Frames and stacks are interned as the bytes they consist of: number 0 of strings.h is the empty
 * stack, and frame n has number n + 1. */
#include "stacks.h"

#include <string.h>

#include "strings.h"

#define STACKS_MAX (1u << 24) /* an event has 24 bits for its stack */

struct frag_stack_table {
	struct frag_strings *frames, *stacks;
};

int frag_stack_table_create(struct frag_stack_table **out, struct frag_err *err)
{
	FRAG_AUTO(frag_stack_table_destroy_at) struct frag_stack_table *t = NULL;

	FRAG_TRY_CALLOC(t, 1, "stacks", err);
	FRAG_TRY(frag_strings_create(&t->frames, err));
	FRAG_TRY(frag_strings_create(&t->stacks, err));
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
	frag_strings_destroy(t->frames);
	frag_strings_destroy(t->stacks);
	frag_host_free(t);
}

int frag_stack_table_frame(struct frag_stack_table *t, struct frag_frame frame, uint32_t *number,
			   struct frag_err *err)
{
	FRAG_TRY(frag_strings_intern(t->frames, (const char *)&frame, sizeof(frame), number, err));
	--*number;
	return 0;
}

int frag_stack_table_stack(struct frag_stack_table *t, const uint32_t *frames, size_t n,
			   uint32_t *stack, struct frag_err *err)
{
	FRAG_TRY(frag_strings_intern(t->stacks, (const char *)frames, n * sizeof(*frames), stack,
				     err));
	*stack = *stack < STACKS_MAX ? *stack : 0;
	return 0;
}

int frag_stack_table_take(const struct frag_stack_table *t, struct frag_stacks *out,
			  struct frag_err *err)
{
	uint32_t frames = frag_strings_count(t->frames) - 1;
	uint32_t stacks = FRAG_MIN(frag_strings_count(t->stacks), STACKS_MAX);
	size_t bytes = 0;

	for (uint32_t i = 0; i < stacks; i++)
		bytes += frag_strings_len(t->stacks, i);
	*out = (struct frag_stacks){ .frames_count = frames,
				     .index_count = bytes / sizeof(*out->index),
				     .count = stacks };
	out->frames = frag_host_alloc(frames * sizeof(*out->frames));
	out->index = frag_host_alloc(bytes);
	out->first = frag_host_calloc(stacks + 1u, sizeof(*out->first));
	FRAG_CHECK_ALLOC(out->frames && out->index && out->first, "stacks", err);
	for (uint32_t i = 0; i < frames; i++)
		memcpy(&out->frames[i], frag_strings_get(t->frames, i + 1), sizeof(*out->frames));
	for (uint32_t i = 0; i < stacks; i++) {
		size_t len = frag_strings_len(t->stacks, i);

		memcpy(out->index + out->first[i], frag_strings_get(t->stacks, i), len);
		out->first[i + 1] = out->first[i] + len / sizeof(*out->index);
	}
	return 0;
}
