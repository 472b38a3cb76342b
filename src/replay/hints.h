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
	/* Where `trace` has its evidence in a file: the next piece of it, 1, or 0 = no more. The
	 * piece must stay until the next call. NULL: it is all in memory. */
	int (*more)(void *ctx, const struct frag_evidence **seen, size_t *count);
	void *ctx;
	bool restore; /* the initial segments come first, and have to be where they were */
	/* inside */
	const struct frag_evidence *seen;
	size_t count, cursor; /* next evidence */
	size_t restored;      /* initial segments looked at */
	bool begun, lost;
};

/* A frag_place_fn; ctx is a struct frag_hints. */
int frag_hints_place(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr);

#endif
