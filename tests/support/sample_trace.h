/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Made-up traces, for tests of what stores or walks traces (trace_text.h compares them).
 * Everything is freed by frag_trace_destroy. Running out of memory aborts.
 */
#ifndef TESTS_SUPPORT_SAMPLE_TRACE_H
#define TESTS_SUPPORT_SAMPLE_TRACE_H

#include <frag/trace.h>

/* An event, and a list in the initializer of a struct, with its count. */
#define SAMPLE(what, size, at, ...) \
	{ \
		.kind = FRAG_EV_##what, .bytes = (size), .slot = (at), ##__VA_ARGS__ \
	}
#define SAMPLE_LIST(list, from) \
	.list = (void *)(uintptr_t)(from), .list##_count = FRAG_ARRAY_LEN(from)

/* Copies of these devices: their events, streams and so on are copied, too. */
struct frag_trace *sample_trace_of(const struct frag_trace_dev *devs, uint32_t count);
/* Small, by hand: two devices, every kind of event and evidence, seed, stacks, marks, settings. */
struct frag_trace *sample_trace_small(void);
/* No devices at all, nothing set. */
struct frag_trace *sample_trace_empty(void);
/* One device, `count` random events that obey the rules; evidence too if wanted.
 * disorder: now and then a slot that is not the one freed last. */
struct frag_trace *sample_trace_random(uint64_t seed, size_t count, bool evidence, bool disorder);

#endif
