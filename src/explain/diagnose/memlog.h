/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs of memory in use, for people without a recording:
 *	nvidia-smi --query-gpu=timestamp,index,memory.used,memory.total --format=csv[,nounits] -l 1
 *	nvidia-smi --query-compute-apps=timestamp,pid,used_gpu_memory --format=csv -l 1
 *	nvidia-smi dmon -s m [-o DT]
 *	any CSV whose header names a time and a column of bytes (time_s,used_bytes; t,mem_mib)
 * Fields that say "[N/A]" or "-" are skipped. Memory is bounded: a series beyond FRAG_MEMLOG_SAMPLES keeps
 * every second sample, then every fourth, and so on; the maximum is never lost.
 *
 * Ownership: a log owns its series.
 */
#ifndef FRAG_EXPLAIN_MEMLOG_H
#define FRAG_EXPLAIN_MEMLOG_H

#include <frag/base.h>
#include <frag/error.h>

#define FRAG_MEMLOG_SAMPLES 65536u
#define FRAG_MEMLOG_SERIES 1024u

struct frag_memlog_series {
	char name[64];	       /* "GPU 0", "process 4711", the name of the column */
	double *bytes, *times; /* seconds since the first sample; [count] */
	size_t count, bytes_cap, times_cap;
	uint64_t stride, seen; /* every stride-th sample is kept */
	double most;	       /* bytes, of all samples */
	double total;	       /* of the card, 0 = not in the log */
};

struct frag_memlog {
	const char *format; /* constant text */
	struct frag_memlog_series *list;
	size_t count, cap;
	double first_time;
	bool timed;
};

/* Does the file begin like one of these? 1, 0, or an error of opening it. */
int frag_memlog_probe(const char *path, struct frag_err *err);
/* Errors: FRAG_EINPUT with the line. */
int frag_memlog_read(const char *path, struct frag_memlog *out, struct frag_err *err);
void frag_memlog_release(struct frag_memlog *log);

#endif
