/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This machine's cards, from NVIDIA's management library. The library (libnvidia-ml.so.1, part of
 * the driver) is opened at run time and needs no header.
 *
 * Ownership: open/close; a card is a value.
 */
#ifndef FRAG_DEVICE_NVML_H
#define FRAG_DEVICE_NVML_H

#include <frag/base.h>
#include <frag/error.h>

#define FRAG_NVML_PROCESSES 128u
#define FRAG_NVML_INSTANCES 7u /* most MIG instances of a card */

struct frag_nvml_process {
	unsigned pid;
	uint64_t bytes; /* UINT64_MAX = unknown */
};

struct frag_nvml_card {
	bool known;    /* if false, `fault` says why, and the rest is 0 */
	bool is_split; /* split into MIG instances, which are cards of their own; no processes
		        * here */
	char fault[80];
	char name[64];
	uint64_t total_bytes, used_bytes, free_bytes;
	int utilization_percent; /* -1 = unknown */
	bool processes_known;
	unsigned processes_count; /* length of the list, at most FRAG_NVML_PROCESSES */
	struct frag_nvml_process processes[FRAG_NVML_PROCESSES];
};

struct frag_nvml;
/* Errors: FRAG_EDEVICE if the library is missing or cannot start; FRAG_ENOMEM. */
int frag_nvml_open(struct frag_nvml **out, struct frag_err *err);
unsigned frag_nvml_count(const struct frag_nvml *n);
/* Reads card i, from 0. Never fails as a whole: a card may be lost and come back. */
void frag_nvml_read(struct frag_nvml *n, unsigned i, struct frag_nvml_card *out);
/* Reads instance k of card i, from 0 to FRAG_NVML_INSTANCES - 1. False: there is none now. */
bool frag_nvml_read_instance(struct frag_nvml *n, unsigned i, unsigned k,
			     struct frag_nvml_card *out);
/* How fast card i runs now. throttled: it has a reason to run slower (power, heat) than it could. */
struct frag_nvml_pace {
	uint64_t clock_mhz; /* of its processors; UINT64_MAX = unknown */
	bool throttled;
};
struct frag_nvml_pace frag_nvml_pace(struct frag_nvml *n, unsigned i);
void frag_nvml_close(struct frag_nvml *n); /* NULL is allowed */

/* Opened once and kept until the process ends, because NVML takes tens of milliseconds to start and
 * cards are opened often. NULL if there is no NVML, which is not an error. */
struct frag_nvml *frag_nvml_shared(void);
/* The driver's version as text, "" if unknown. */
const char *frag_nvml_driver(const struct frag_nvml *n);

#endif
