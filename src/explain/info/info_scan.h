/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `cufrag info` says about one device, gathered event by event.
 *
 * Ownership: init/release; borrows the header of the device.
 */
#ifndef FRAG_EXPLAIN_INFO_SCAN_H
#define FRAG_EXPLAIN_INFO_SCAN_H

#include <frag/metrics.h>
#include <frag/trace.h>

#include "recording/ending.h"

#define FRAG_INFO_CLASSES 10

/* Largest request of a size class, in bytes; UINT64_MAX for the last. */
extern const uint64_t frag_info_class_bytes[FRAG_INFO_CLASSES];

struct frag_info_peak {
	uint64_t bytes; /* live requests, each rounded up to 512 B */
	uint64_t requested_bytes, blocks_count;
	uint64_t event, time_us, step; /* of the alloc that reached it; steps done before */
};

struct frag_info_slot {
	uint64_t event, time_us; /* of the alloc */
	bool let_go;		 /* still waiting for a stream */
};

struct frag_info {
	const struct frag_trace_dev *dev;
	struct frag_ending_scan ending;
	uint64_t events, first_us, duration_us;
	uint64_t kinds[FRAG_EV_COUNT];
	uint64_t initial_blocks_count, initial_bytes; /* live before the history */
	uint64_t unsure_count;			      /* trims that may have been retries */
	uint64_t steps_count;
	uint64_t class_count[FRAG_INFO_CLASSES], class_bytes[FRAG_INFO_CLASSES];
	uint64_t requests_bytes;
	struct frag_hist life_events, life_us; /* until the program let go */
	uint64_t kept_count;		       /* never let go */
	struct frag_info_peak live, peak;      /* live: now, event and time unused */
	struct frag_info_slot *slots;
	size_t slots_cap;
	uint32_t *marks; /* [marks_cap]: how often each name began */
	size_t marks_cap;
};

void frag_info_init(struct frag_info *info, const struct frag_trace_dev *dev);
int frag_info_add(struct frag_info *info, const struct frag_event *events, size_t count,
		  struct frag_err *err);
void frag_info_release(struct frag_info *info);

/* The n most frequent marks: string indices into names[n], counts into counts[n]. Returns how
 * many there are, at most n. */
size_t frag_info_marks(const struct frag_info *info, size_t n, uint32_t *names, uint32_t *counts);

#endif
