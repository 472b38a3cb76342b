/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch snapshots, plain or compressed. What reads well must be sound by the
 * rules of .cft (the writer checks every event), and come back from there.
 */
#include <frag/trace.h>

#include "fuzz.h"

extern const struct frag_reader_ops frag_reader_torch;
extern const struct frag_reader_ops frag_reader_cft;

static void check_dev(const struct frag_trace_dev *d)
{
	uint64_t before = 0, time = 0;

	for (size_t i = 0; i < d->events_count; i++) {
		must(d->events[i].time_us >= time);
		must((d->addrs[i] != FRAG_NO_ADDR) <= (d->events[i].kind == FRAG_EV_ALLOC));
		time = d->events[i].time_us;
	}
	for (size_t i = 0; i < d->seen_count; i++) {
		must(d->seen[i].before >= before && d->seen[i].before <= d->events_count);
		before = d->seen[i].before;
	}
	for (size_t i = 0; i < d->initial.segments_count; i++) {
		const struct frag_initial_segment *s = &d->initial.segments[i];

		must((uint64_t)s->first_block + s->blocks_count <= d->initial.blocks_count);
		for (size_t k = s->first_block; k < s->first_block + s->blocks_count; k++)
			must(d->initial.blocks[k].addr >= s->addr &&
			     d->initial.blocks[k].addr + d->initial.blocks[k].bytes <=
				     s->addr + s->bytes);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frag_trace *t, *back;
	char *bytes;
	size_t len;

	if (size > LENGTH_MAX)
		return 0;
	t = read_memory(&frag_reader_torch, data, size);
	if (!t)
		return 0;
	for (uint32_t i = 0; i < t->devs_count; i++)
		check_dev(&t->devs[i]);
	bytes = write_memory(t, &len);
	back = read_memory(&frag_reader_cft, bytes, len);
	must(back && back->devs_count == t->devs_count);
	frag_trace_destroy(back);
	frag_trace_destroy(t);
	free(bytes);
	return 0;
}
