/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of other tools, every reader whose probe likes the bytes. What reads well must be sound by the rules of .cft. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/trace.h>

#include "trace/cft/cft_write.h"
#include "fuzz.h"

#define LENGTH_MAX 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct frag_trace *t)
{
	char *bytes = NULL;
	size_t len;
	FILE *to = open_memstream(&bytes, &len);

	must(to && !frag_cft_write_stream(t, to, NULL));
	fclose(to);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct frag_reader_ops *const *readers;
	size_t count;

	if (!size || size > LENGTH_MAX)
		return 0;
	readers = frag_reader_list(&count);
	for (size_t i = 0; i < count; i++) {
		struct frag_trace *t = NULL;

		if (!strcmp(readers[i]->name, "torch-snapshot") ||
		    !strcmp(readers[i]->name, "cft") || !readers[i]->probe(data, size))
			continue;
		t = read_memory(readers[i], data, size);
		if (t)
			check(t);
		frag_trace_destroy(t);
	}
	return 0;
}
