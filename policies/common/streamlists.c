/* SPDX-License-Identifier: Apache-2.0 */
/* The table of streamlists.h and its two ways of stealing. */
#include "streamlists.h"

#include <string.h>

/* More than any recording has; keeps a wrong index from taking all host memory. */
#define STREAMS_MAX (1u << 20)

void frag_streams_init(struct frag_streams *s, const struct frag_streams_ops *ops, void *self,
		       struct frag_device *dev)
{
	*s = (struct frag_streams){ .ops = ops, .self = self, .dev = dev };
}

void frag_streams_release(struct frag_streams *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		if (s->list[i] && s->ops->release)
			s->ops->release(s->list[i]);
		frag_host_free(s->list[i]);
	}
	FRAG_FREE(s->list, s->order);
	*s = (struct frag_streams){ 0 };
}

int frag_streams_make(struct frag_streams *s, uint32_t stream, struct frag_err *err)
{
	if (stream >= STREAMS_MAX)
		return frag_fail(err, FRAG_EPOLICY,
				 "stream %u is above %u, the last a pool can have", stream,
				 STREAMS_MAX - 1);
	if (stream >= s->count) {
		uint32_t count = FRAG_MAX(stream + 1, FRAG_MAX(2 * s->count, 8u));
		uint32_t *order = frag_host_realloc(s->order, count, sizeof(*order));
		void **list;

		s->order = order ? order : s->order;
		list = order ? frag_host_realloc(s->list, count, sizeof(*list)) : NULL;
		FRAG_CHECK_ALLOC(list, "streams of a pool", err);
		memset(list + s->count, 0, (count - s->count) * sizeof(*list));
		s->list = list;
		s->count = count;
	}
	s->list[stream] = frag_host_calloc(1, s->ops->bytes);
	if (s->list[stream] && s->ops->init && s->ops->init(s->self, s->list[stream])) {
		frag_host_free(s->list[stream]);
		s->list[stream] = NULL;
	}
	FRAG_CHECK_ALLOC(s->list[stream], "free list of a stream", err);
	s->order[s->order_count++] = stream;
	return 0;
}

/* The stream waits for what is queued on `other`. */
static int wait_for(struct frag_streams *s, uint32_t other, struct frag_err *err)
{
	uint64_t fence;

	return frag_dev_fence_record(s->dev, other, &fence, err);
}

int frag_streams_steal(struct frag_streams *s, uint32_t stream, uint64_t bytes, void **from,
		       struct frag_err *err)
{
	const struct frag_streams_ops *ops = s->ops;
	void **own = &s->list[stream];

	*from = NULL;
	for (uint32_t k = 0; k < s->order_count; k++) {
		uint32_t i = s->order[k];

		if (i == stream || !ops->fits(s->list[i], bytes))
			continue;
		FRAG_TRY(wait_for(s, i, err));
		*from = s->list[i];
		return 0;
	}
	for (uint32_t k = 0; k < s->order_count; k++) {
		uint32_t i = s->order[k];

		if (i == stream || !ops->fits(s->list[i], 0))
			continue;
		FRAG_TRY(wait_for(s, i, err));
		ops->merge(s->self, own, &s->list[i]);
		if (ops->fits(*own, bytes)) {
			*from = *own;
			return 0;
		}
	}
	return 0;
}
