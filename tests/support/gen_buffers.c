/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up buffers; see gen_buffers.h. */
#include "gen_buffers.h"

#include "lib/random.h"

#define SPAN (1u << 20) /* moments */

/* Cuts a random large piece in two, along time or size, until there are enough. */
void gen_buffers_full(struct frag_buffers *b, uint64_t seed, size_t count, uint64_t height,
		      uint64_t unit)
{
	*b = (struct frag_buffers){ .list = frag_host_calloc(count + 1, sizeof(*b->list)) };
	FRAG_ASSERT(b->list);
	b->list[b->count++] = (struct frag_buffer){ 0, SPAN, height };
	for (size_t tries = 0; b->count < count && tries < 100 * count; tries++) {
		struct frag_buffer *x = &b->list[frag_random(&seed) % b->count];
		struct frag_buffer *y = &b->list[b->count];
		uint64_t life = x->upper - x->lower, units = x->bytes / unit;

		*y = *x;
		if (frag_random(&seed) % 2 && life > 64) {
			y->lower = x->upper = x->lower + life / 4 + frag_random(&seed) % (life / 2);
		} else if (units > 3) {
			y->bytes = unit * (units / 4 + frag_random(&seed) % (units / 2));
			if (!y->bytes)
				continue;
			x->bytes -= y->bytes;
		} else {
			continue;
		}
		b->count++;
	}
	/* the order must not tell where they lay */
	for (size_t i = b->count; i > 1; i--) {
		size_t k = frag_random(&seed) % i;
		struct frag_buffer t = b->list[i - 1];

		b->list[i - 1] = b->list[k];
		b->list[k] = t;
	}
}

void gen_buffers_contended(struct frag_buffers *b, uint64_t seed, size_t count, uint64_t height,
			   uint64_t unit)
{
	uint64_t state = seed ^ 0x5bf03635;
	size_t kept = 0;

	gen_buffers_full(b, seed, count + count / 12, height, unit);
	for (size_t i = 0; i < b->count; i++)
		if (frag_random(&state) % 12)
			b->list[kept++] = b->list[i];
	b->count = kept;
}

/* A moment: who lives on, ends, begins. */
static void exchange(struct frag_buffers *b, uint64_t moment, uint64_t last, uint64_t *state,
		     size_t most)
{
	uint64_t sum = 0;

	for (unsigned k = 0; k < 2; k++) {
		struct frag_buffer *x = &b->list[frag_random(state) % b->count];

		if (x->upper != last || x->lower == moment)
			continue;
		x->upper = moment;
		sum += x->bytes;
	}
	while (sum && b->count < most) {
		uint64_t bytes = 1 + frag_random(state) % FRAG_MIN(sum, (uint64_t)6);

		b->list[b->count++] = (struct frag_buffer){ moment, last, bytes };
		sum -= bytes;
	}
}

void gen_buffers_exchanged(struct frag_buffers *b, uint64_t seed, size_t count, uint64_t height)
{
	uint64_t last = 4 + frag_random(&seed) % 4;

	*b = (struct frag_buffers){ .list = frag_host_calloc(count + 1, sizeof(*b->list)) };
	FRAG_ASSERT(b->list);
	for (uint64_t left = height; left && b->count < count;) {
		uint64_t bytes = 1 + frag_random(&seed) % FRAG_MIN(left, (uint64_t)5);

		b->list[b->count++] = (struct frag_buffer){ 0, last, bytes };
		left -= bytes;
	}
	for (uint64_t moment = 1; moment < last; moment++)
		exchange(b, moment, last, &seed, count);
}

void gen_buffers_random(struct frag_buffers *b, uint64_t seed, size_t count)
{
	*b = (struct frag_buffers){ .list = frag_host_calloc(count + 1, sizeof(*b->list)) };
	FRAG_ASSERT(b->list);
	for (; b->count < count; b->count++) {
		uint64_t life = 1 + (frag_random(&seed) % SPAN >> (frag_random(&seed) % 16));
		uint64_t lower = frag_random(&seed) % SPAN;

		b->list[b->count] = (struct frag_buffer){ lower, lower + life,
							  512 * (1 + (frag_random(&seed) % 4096 >>
								      (frag_random(&seed) % 12))) };
	}
}
