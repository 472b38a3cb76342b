/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded addresses as hints; see hints.h. */
#include "hints.h"

int frag_hints_place(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr)
{
	struct frag_hints *h = ctx;
	const struct frag_trace_dev *td = h->trace;

	if (kind != FRAG_CALL_MALLOC || h->lost || !td->has_evidence)
		return -1;
	while (h->cursor < td->seen_count && td->seen[h->cursor].kind != FRAG_SEEN_SEGMENT_ALLOC)
		h->cursor++;
	if (h->cursor == td->seen_count || td->seen[h->cursor].bytes != bytes) {
		h->lost = true;
		return -1;
	}
	*addr = td->seen[h->cursor++].addr;
	return FRAG_PLACE_WISH;
}
