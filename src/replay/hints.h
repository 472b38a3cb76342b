/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded addresses as hints for a what-if: as long as a policy asks for the
 * segments of the recording in their order, the simulated card puts them where
 * the real one did, because equal free blocks are told apart by address alone.
 * From the first other request on, the card's own rule goes on.
 */
#ifndef FRAG_REPLAY_HINTS_H
#define FRAG_REPLAY_HINTS_H

#include <frag/device.h>
#include <frag/trace.h>

struct frag_hints {
	const struct frag_trace_dev *trace;
	size_t cursor; /* next evidence */
	bool lost;
};

/* A frag_place_fn; ctx is a struct frag_hints. */
int frag_hints_place(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr);

#endif
