/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .cft files. Checksums would stop a fuzzer at the first changed byte, so they
 * are made good before the file is read: what is tested is everything behind them.
 * What reads well must write, read again as the same bytes, and come in order as
 * it comes whole.
 */
#include <frag/trace.h>

#include "fuzz.h"

#define FILE_MAX 32768u /* a block unpacks to hundreds of times its size */

extern const struct frag_reader_ops frag_reader_cft;

static void sign(uint8_t *file, size_t size)
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
	must(!whole || !rc); /* evidence is not looked at in order, so it may end well alone */
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *file = malloc(size + 1);
	struct frag_trace *t;

	if (size > FILE_MAX) {
		free(file);
		return 0;
	}
	must(file != NULL);
	memcpy(file, data, size);
	sign(file, size);
	t = read_memory(&frag_reader_cft, file, size);
	if (t)
		check_again(t);
	/* the other formats' readers have targets of their own */
	if (size >= FRAG_CFT_MAGIC_BYTES && !memcmp(file, FRAG_CFT_MAGIC, FRAG_CFT_MAGIC_BYTES))
		check_in_order(file, size, t);
	frag_trace_destroy(t);
	free(file);
	return 0;
}
