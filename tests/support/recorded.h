/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings of PyTorch's own allocator, with what stands beside each in NAME.json: its settings,
 * its limit, and the statistics that PyTorch printed at the end. Most are too big for the
 * repository; tests skip those that are absent.
 */
#ifndef TESTS_SUPPORT_RECORDED_H
#define TESTS_SUPPORT_RECORDED_H

#include <jansson.h>

#include <frag/replay.h>

#include "must.h"
#include "test.h"

#define TORCH FRAG_SHARED_TRACES "/torch/"

/* The card of the recordings. */
extern const struct frag_sim_config recorded_card;

/* Skips the test where the file is absent, and in the quick suite. */
void recorded_or_skip(const char *path);

/* NULL if there are none. */
json_t *recorded_notes(const char *pickle);
uint64_t recorded_peak(const json_t *notes);
/* A part of the card in the notes, or 7.5 GiB in the program itself; UINT64_MAX: none. */
uint64_t recorded_limit(const json_t *notes);
/* "pytorch:" and the settings, valid until the next call; release: "" or of PyTorch, as "2.13" */
const char *recorded_policy(const json_t *notes, const char *release);

/* Replays a device: it must be followed event by event. The caller releases the result. */
struct frag_verify_result recorded_follow(struct frag_trace *t, uint32_t dev, uint64_t limit_bytes);
void must_be_peak(uint64_t got, uint64_t recorded, const char *what, const char *under);

#endif
