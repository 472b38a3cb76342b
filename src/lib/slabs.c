/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks for slab.h. A chunk is a header with a link to the previous chunk, then objects.
 * Invariant: spare_count = length of the free chain + fresh ones.
 */
#include "slabs.h"

#include <frag/error.h>

#define FIRST_OBJECTS 64u
#define CHUNK_BYTES_MAX (1024u * 1024u)
#define HEAD_BYTES 16u /* the link, padded so that objects stay aligned */

void frag_slab_init(struct frag_slab *s, size_t object_bytes)
{
	*s = (struct frag_slab){
		.object_bytes = (size_t)frag_round_up(FRAG_MAX(object_bytes, (size_t)1), 16),
		.chunk_objects = FIRST_OBJECTS,
	};
}

void frag_slab_release(struct frag_slab *s)
{
	void *c = s->chunks;

	while (c) {
		void *older = *(void **)c;

		frag_host_free(c);
		c = older;
	}
	frag_slab_init(s, s->object_bytes);
}

int frag_slab_reserve(struct frag_slab *s, size_t n)
{
	size_t count, bytes;
	char *chunk;

	if (n <= s->spare_count)
		return 0;
	count = FRAG_MAX(n - s->spare_count, s->chunk_objects);
	if (__builtin_mul_overflow(count, s->object_bytes, &bytes) ||
	    __builtin_add_overflow(bytes, (size_t)HEAD_BYTES, &bytes))
		return FRAG_ENOMEM;
	chunk = frag_host_alloc(bytes);
	if (!chunk)
		return FRAG_ENOMEM;
	/* the unused rest of the old chunk moves to the free chain */
	while (s->fresh != s->fresh_end) {
		*(void **)s->fresh = s->free_head;
		s->free_head = s->fresh;
		s->fresh += s->object_bytes;
	}
	*(void **)chunk = s->chunks;
	s->chunks = chunk;
	s->fresh = chunk + HEAD_BYTES;
	s->fresh_end = chunk + bytes;
	s->spare_count += count;
	if (s->chunk_objects * s->object_bytes * 2 <= CHUNK_BYTES_MAX)
		s->chunk_objects *= 2;
	return 0;
}
