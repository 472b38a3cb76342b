/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of other tools, every reader whose probe likes the bytes. What reads well must be sound by the rules of .cft. */
#include <frag/trace.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct frag_reader_ops *const *readers;
	size_t count, len;

	if (!size || size > LENGTH_MAX)
		return 0;
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
	return 0;
}
