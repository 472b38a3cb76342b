/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of one size from chunks, for the records of blocks and segments. Alloc and free take a
 * few instructions; the object freed last is reused first, because it is still in the cache.
 *
 * Ownership: the slab owns all objects; frag_slab_release frees them together, live or not. Objects
 * keep their address until freed and are not initialised. The struct may be moved in memory.
 */
#ifndef FRAG_LIB_SLAB_H
#define FRAG_LIB_SLAB_H

#include <frag/base.h>

struct frag_slab {
	void *free_head;	 /* chain through the first word of each free object */
	char *fresh, *fresh_end; /* unused part of the newest chunk */
	size_t object_bytes;	 /* multiple of 16 */
	size_t live_count;
	size_t spare_count;   /* free objects plus fresh ones */
	void *chunks;	      /* chain of all chunks */
	size_t chunk_objects; /* size of the next chunk; doubles up to a limit */
};

void frag_slab_init(struct frag_slab *s, size_t object_bytes);
/* Frees every object. The slab is as after init. */
void frag_slab_release(struct frag_slab *s);
/* The next `n` allocs cannot fail. 0 or FRAG_ENOMEM. */
int frag_slab_reserve(struct frag_slab *s, size_t n);

/* An object, aligned to 16 bytes, or NULL if host memory is short. */
static inline void *frag_slab_alloc(struct frag_slab *s)
{
	void *o;

	if (FRAG_UNLIKELY(!s->spare_count) && frag_slab_reserve(s, 1))
		return NULL;
	s->spare_count--;
	s->live_count++;
	o = s->free_head;
	if (FRAG_LIKELY(o != NULL)) {
		s->free_head = *(void **)o;
		return o;
	}
	o = s->fresh;
	s->fresh += s->object_bytes;
	return o;
}

/* Takes back an object of this slab. */
static inline void frag_slab_free(struct frag_slab *s, void *object)
{
	*(void **)object = s->free_head;
	s->free_head = object;
	s->live_count--;
	s->spare_count++;
}

static inline size_t frag_slab_live(const struct frag_slab *s)
{
	return s->live_count;
}

#endif
