/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One list of free blocks per stream, and how a stream gets at those of the
 * others: the part that RMM's pool and fixed-size resources share
 * (rapidsai/rmm cpp/include/rmm/mr/detail/stream_ordered_memory_resource.hpp).
 *
 *	1. a fit in the stream's own list (the policy's own fast path);
 *	2. else the first other list, in their order, that has a fit: the stream
 *	   waits for that list's event; what a split leaves goes back to THAT list;
 *	3. else the other lists are merged into the own one, in their order, each
 *	   with a wait, until the own list has a fit;
 *	4. else the pool grows.
 *
 * RMM orders the lists by the addresses of their events, which the runtime makes as streams come;
 * here lists are in the order in which streams came, which is the same where addresses rise. Waits
 * happen on the card: a fence is recorded, nothing on the host is synchronised. Empty lists need no
 * fence.
 *
 * Ownership: a list's content is the policy's, its memory the table's. A steal: O(streams + merges).
 */
#ifndef FRAG_COMMON_STREAMLISTS_H
#define FRAG_COMMON_STREAMLISTS_H

#include <frag/device.h>

struct frag_streams_ops {
	size_t bytes; /* of a list, zeroed at first; the other hooks may be NULL */
	int (*init)(void *self, void *list); /* 0 or FRAG_ENOMEM, with nothing left behind */
	void (*release)(void *list);
	/* With 0 bytes: does it have any block? */
	bool (*fits)(const void *list, uint64_t bytes);
	/* Moves all of *other into *own; may swap the two lists. Cannot fail. */
	void (*merge)(void *self, void **own, void **other);
};

struct frag_streams {
	const struct frag_streams_ops *ops;
	void *self;  /* for ops */
	void **list; /* by stream; NULL = never used */
	uint32_t count;
	uint32_t *order; /* streams that have a list, as they came */
	uint32_t order_count;
	struct frag_device *dev;
};

void frag_streams_init(struct frag_streams *s, const struct frag_streams_ops *ops, void *self,
		       struct frag_device *dev);
void frag_streams_release(struct frag_streams *s);
/* Makes the list of a stream that has none. 0 or FRAG_ENOMEM. */
int frag_streams_make(struct frag_streams *s, uint32_t stream, struct frag_err *err);
/*
 * Steps 2 and 3. *from: the list to take the fit from, NULL = there is none.
 * pre: the stream has a list. Errors: of the fence; lists are sound, the merges done stay.
 */
int frag_streams_steal(struct frag_streams *s, uint32_t stream, uint64_t bytes, void **from,
		       struct frag_err *err);

/* The list of a stream, made on first use; NULL with err filled. */
static inline void *frag_streams_get(struct frag_streams *s, uint32_t stream, struct frag_err *err)
{
	if (FRAG_LIKELY(stream < s->count && s->list[stream]))
		return s->list[stream];
	return frag_streams_make(s, stream, err) ? NULL : s->list[stream];
}

#endif
