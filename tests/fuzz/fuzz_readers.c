/* SPDX-License-Identifier: Apache-2.0 */
/* What reads recordings: .cft, PyTorch's snapshots and the file beside them, logs of others. */
#include <frag/trace.h>

#include "fuzz.h"
#include "trace/cft/cft.h"
#include "trace/whole.h"

/* ---- .cft: what reads well writes as the same bytes again, and comes in order as it is ---- */

void fuzz_sign(uint8_t *file, size_t size)
{
	struct frag_cft_block b;
	uint64_t n = 0;

	for (size_t at = FRAG_CFT_PREAMBLE; size >= at && size - at >= sizeof(b);
	     at += sizeof(b) + b.payload) {
		memcpy(&b, file + at, sizeof(b));
		if (b.payload > size - at - sizeof(b))
			return;
		b.checksum = frag_cft_checksum(&b, file + at + sizeof(b), n++);
		memcpy(file + at, &b, sizeof(b));
	}
}

static void check_again(const struct frag_trace *t)
{
	size_t len, again_len;
	char *bytes = write_memory(t, &len), *again;
	struct frag_trace *back = read_memory(&frag_reader_cft, bytes, len);

	must(back != NULL);
	again = write_memory(back, &again_len);
	must(again_len == len && !memcmp(again, bytes, len));
	free(bytes);
	free(again);
	frag_trace_destroy(back);
}

bool fuzz_is_possible(const struct frag_trace *t)
{
	int rc = 0;

	for (uint32_t d = 0; !rc && d < t->devs_count; d++) {
		struct frag_sums sums = { 0 };

		rc = frag_sums_add(&sums, t->devs[d].events, t->devs[d].events_count, 0, NULL);
	}
	return !rc;
}

/* In order from a file, good or bad: the same events, and an end iff the whole was read. */
static void check_in_order(const uint8_t *file, size_t size, const struct frag_trace *whole)
{
	struct frag_source *src = NULL;
	struct frag_batch batch;
	char path[32];
	int fd = file_of(file, size, path), rc = -1;

	if (!frag_source_open(path, &src, NULL)) {
		while ((rc = frag_source_next(src, &batch, NULL)) == 1)
			must(!whole ||
			     !memcmp(batch.events, whole->devs[batch.dev].events + batch.first,
				     batch.count * sizeof(*batch.events)));
		frag_source_close(src);
	}
	/* evidence is not looked at in order, so it may end well alone */
	must(!whole || !rc || !fuzz_is_possible(whole));
	close(fd);
}

void fuzz_cft(const uint8_t *data, size_t size)
{
	FRAG_AUTO_FREE uint8_t *file = memcpy(malloc(size + 1), data, size);
	struct frag_trace *t;

	if (size > 32768) /* a block unpacks to hundreds of times its size */
		return;
	fuzz_sign(file, size);
	t = read_memory(&frag_reader_cft, file, size);
	if (t)
		check_again(t);
	/* the other formats' readers have targets of their own */
	if (size >= FRAG_CFT_MAGIC_BYTES && !memcmp(file, FRAG_CFT_MAGIC, FRAG_CFT_MAGIC_BYTES))
		check_in_order(file, size, t);
	frag_trace_destroy(t);
}

/* ---- snapshots: what reads well is sound by the rules of .cft, whose writer checks it ---- */

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

void fuzz_torch(const uint8_t *data, size_t size)
{
	struct frag_trace *t, *back;
	char *bytes;
	size_t len;

	t = read_memory(&frag_reader_torch, data, size);
	if (!t)
		return;
	for (uint32_t i = 0; i < t->devs_count; i++)
		check_dev(&t->devs[i]);
	bytes = write_memory(t, &len);
	back = read_memory(&frag_reader_cft, bytes, len);
	must(back && back->devs_count == t->devs_count);
	frag_trace_destroy(back);
	frag_trace_destroy(t);
	free(bytes);
}

/* ---- logs: every reader whose probe likes the bytes ---- */

void fuzz_logs(const uint8_t *data, size_t size)
{
	const struct frag_reader_ops *const *readers;
	size_t count, len;

	if (!size)
		return;
	readers = frag_reader_list(&count);
	for (size_t i = 0; i < count; i++) {
		FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *t = NULL;

		if (!strcmp(readers[i]->name, "torch-snapshot") ||
		    !strcmp(readers[i]->name, "cft") || !readers[i]->probe(data, size))
			continue;
		t = read_memory(readers[i], data, size);
		if (t)
			free(write_memory(t, &len));
	}
}

/* The file beside a snapshot: refused with a message, or all of it is in its range. */
void fuzz_sidecar(const uint8_t *data, size_t size)
{
	struct frag_trace_dev devs[2] = { { .ordinal = 0 }, { .ordinal = 1 } };
	struct frag_trace t = { .devs = devs, .devs_count = 2 };
	struct frag_err err = { 0 };
	int rc = frag_sidecar_parse("fuzz", (const char *)data, size, &t, &err);

	if (rc)
		must(rc == FRAG_EINPUT && err.msg[0]);
	for (size_t i = 0; i < 2; i++) {
		const struct frag_recorded_card *c = &devs[i].card;

		must(c->context_bytes <= c->total_bytes && c->beside_bytes <= c->total_bytes);
		must(c->total_bytes <= 1ull << 50 && c->limit_fraction >= 0 &&
		     c->limit_fraction <= 1);
		must(memchr(c->name, 0, sizeof(c->name)) && !strchr(c->name, '\033'));
	}
}
