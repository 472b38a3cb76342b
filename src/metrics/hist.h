/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets of a latency histogram, for drawing the whole distribution. */
#ifndef FRAG_METRICS_HIST_H
#define FRAG_METRICS_HIST_H

#include <stdint.h>

/* Largest value of bucket i. pre: i < FRAG_HIST_BUCKETS. */
uint64_t frag_hist_upper_edge(unsigned i);

#endif
