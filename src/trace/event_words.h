/* SPDX-License-Identifier: Apache-2.0 */
/* An event as its three words in memory. Stored field by field, each event is assembled on the stack and then copied by
 * wider loads that wait for the narrow stores: half of the time of building a trace. */
#ifndef FRAG_TRACE_EVENT_WORDS_H
#define FRAG_TRACE_EVENT_WORDS_H

#include <string.h>

#include <frag/trace.h>

_Static_assert(sizeof(struct frag_event) == 24, "three words");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bit fields begin at the low end");

struct frag_event_words {
	uint64_t request; /* bytes | pool << 48 */
	uint64_t when;	  /* time_us | stack << 40 */
	uint64_t what;	  /* slot | stream << 32 | kind << 48 | flags << 56 */
};

#define FRAG_EVENT_POOL_SHIFT 48
#define FRAG_EVENT_STACK_SHIFT 40
#define FRAG_EVENT_STREAM_SHIFT 32
#define FRAG_EVENT_KIND_SHIFT 48
#define FRAG_EVENT_FLAGS_SHIFT 56

static inline uint64_t frag_event_what(uint32_t slot, uint16_t stream, unsigned kind,
				       unsigned flags)
{
	return slot | (uint64_t)stream << FRAG_EVENT_STREAM_SHIFT |
	       (uint64_t)kind << FRAG_EVENT_KIND_SHIFT | (uint64_t)flags << FRAG_EVENT_FLAGS_SHIFT;
}

static inline void frag_event_put(struct frag_event *out, struct frag_event_words w)
{
	memcpy((char *)out, &w.request, 8);
	memcpy((char *)out + 8, &w.when, 8);
	memcpy((char *)out + 16, &w.what, 8);
}

#endif
