/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of the shape of MiniMalloc's hard instances: a full rectangle, cut up at random. */
#ifndef TESTS_SUPPORT_GEN_BUFFERS_H
#define TESTS_SUPPORT_GEN_BUFFERS_H

#include <frag/plan.h>

/*
 * About `count` buffers that fill a rectangle of `height` bytes without a hole, so that the
 * optimum is known: the height. Sizes are multiples of `unit`. Release with frag_buffers_release.
 */
void gen_buffers_full(struct frag_buffers *b, uint64_t seed, size_t count, uint64_t height,
		      uint64_t unit);
/* The same with a twelfth of them taken out: most moments are full, some are not, as in
 * MiniMalloc's files. It fits into the height. */
void gen_buffers_contended(struct frag_buffers *b, uint64_t seed, size_t count, uint64_t height,
			   uint64_t unit);
/* Few small ones: at each moment some end, and others of the same sum begin. Often the load cannot
 * be reached. At most `count`. */
void gen_buffers_exchanged(struct frag_buffers *b, uint64_t seed, size_t count, uint64_t height);
/* Random sizes and lives, many at a time. */
void gen_buffers_random(struct frag_buffers *b, uint64_t seed, size_t count);

#endif
