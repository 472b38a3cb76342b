/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs many independent tasks over threads. Workers take the next free number, so the tasks begun
 * are always the first ones.
 */
#ifndef FRAG_BASE_PARALLEL_H
#define FRAG_BASE_PARALLEL_H

#include <stdatomic.h>

#include <frag/base.h>
#include <frag/error.h>
#include <frag/watch.h>

/* Work done so far, in steps of the caller's choice; only for progress. */
struct frag_ticks {
	_Atomic uint64_t done;
	uint64_t total; /* expected total; `done` does not exceed it */
};

/*
 * Calls task(ctx, i) for every i < count, unless the watch (may be NULL) says stop. ticks NULL: one
 * tick per task. *begun (may be NULL): number of tasks begun; all of them have ended. Errors:
 * FRAG_ENOMEM.
 */
int frag_parallel(size_t count, unsigned threads, void (*task)(void *ctx, size_t i), void *ctx,
		  const struct frag_watch *watch, struct frag_ticks *ticks, size_t *begun,
		  struct frag_err *err);

#endif
