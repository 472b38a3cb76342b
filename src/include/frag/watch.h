/* SPDX-License-Identifier: Apache-2.0 */
/* How to watch long work, and end it early. */
#ifndef FRAG_WATCH_H
#define FRAG_WATCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * progress: called now and then on the calling thread; done <= total, total 0 = unknown. stop:
 * non-zero ends the work early; finished results are kept, with `complete` false. A NULL watch is
 * allowed everywhere.
 */
struct frag_watch {
	void (*progress)(void *ctx, uint64_t done, uint64_t total);
	void *ctx;
	const volatile sig_atomic_t *stop;
};

static inline bool frag_watch_stopped(const struct frag_watch *w)
{
	return w && w->stop && *w->stop;
}

#endif
