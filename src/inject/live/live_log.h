/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recording of a running program: lines of a CSV (src/trace/readers/read_csv.c), in the order
 * in which the policies saw them. live_thread.c puts them into the file twice a second.
 */
#ifndef FRAG_LIVE_LOG_H
#define FRAG_LIVE_LOG_H

#include <stdatomic.h>

#include <frag/base.h>
#include <frag/error.h>

/* A .csv has the lines, another file is a growing .cft. Replaces the file. Errors: FRAG_EOUTPUT. */
int frag_live_log_open(const char *path, struct frag_err *err);
/* Is anything recorded? Asked by every thread of the program; who writes finds the disk full. */
extern atomic_bool frag_live_log_on;
static inline bool frag_live_logging(void)
{
	return atomic_load_explicit(&frag_live_log_on, memory_order_acquire);
}

struct frag_live_line {
	const char *action; /* as read_csv.c knows it */
	frag_addr_t addr;
	uint64_t bytes, time_ns;
	const void *stream;
	int device;
	uint32_t pool;
};
void frag_live_log_line(const struct frag_live_line *l);

#endif
