/* SPDX-License-Identifier: Apache-2.0 */
/* What fuzz targets share: a broken promise ends the run, files are in memory. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/cft/cft.h"

extern const struct frag_reader_ops frag_reader_cft, frag_reader_torch;

#define FUZZ_TARGETS(X) \
	X(cft) X(logs) X(recording) X(sidecar) X(spec) X(store) X(tables) X(torch) X(whole) X(words)
#define FUZZ_DECLARE(name) void fuzz_##name(const uint8_t *data, size_t size);
FUZZ_TARGETS(FUZZ_DECLARE)

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Makes the checksums of a .cft good, which would stop a fuzzer at the first changed byte. */
void fuzz_sign(uint8_t *file, size_t size);
/* Not more than 1 PiB is live: frag_trace_read and a source look at that, the reader does not. */
bool fuzz_is_possible(const struct frag_trace *t);

static inline void must(int is_good)
{
	if (!is_good)
		abort();
}

/* The trace, or NULL where the reader refuses it, which has to say why. */
static inline struct frag_trace *read_memory(const struct frag_reader_ops *reader,
					     const void *bytes, size_t size)
{
	struct frag_trace *t = NULL;
	struct frag_input *in;
	struct frag_err err = { 0 };

	if (frag_input_open_memory("fuzz", bytes, size, &in, &err)) {
		must(err.code == FRAG_EINPUT && err.msg[0]);
		return NULL;
	}
	if (reader->read(in, NULL, &t, &err))
		must(err.code == FRAG_EINPUT && err.msg[0] && !t);
	frag_input_close(in);
	return t;
}

/* The trace as a .cft, whose writer checks every event. The caller frees it. */
static inline char *write_memory(const struct frag_trace *t, size_t *len)
{
	char *bytes = NULL;
	FILE *to = open_memstream(&bytes, len);

	must(to && !frag_cft_write_stream(t, to, NULL));
	fclose(to);
	return bytes;
}

/* The bytes as a string; the caller frees it. */
static inline char *text_of(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	must(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

/* A file with these bytes; the caller closes it. */
static inline int file_of(const uint8_t *data, size_t size, char path[32])
{
	int fd = memfd_create("fuzz", 0);

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return fd;
}

#endif
