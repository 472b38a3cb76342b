/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings made without a GPU: how they were made, and where values that no kernel computed
 * reached the program. Read from the note in frag_trace.estimate; its lines: src/pretend/README.md.
 */
#ifndef FRAG_RECORDING_ESTIMATE_H
#define FRAG_RECORDING_ESTIMATE_H

#include <frag/device.h>
#include <frag/trace.h>

#include "answer/answer.h"
#include "answer/row.h"

/* A second run with other values. */
#define FRAG_AGAIN_ROW(F, P, S) \
	F(S, TEXT, values, NULL, "how the other values were invented") \
	F(S, BYTES, peak_live_bytes, NULL, "largest peak of live bytes of the recording") \
	F(S, BYTES, other_peak_live_bytes, NULL, "the same with other values") \
	F(S, COUNT, requests, NULL, "requests of the recording") \
	F(S, COUNT, other_requests, NULL, "requests with other values")
FRAG_ROW_STRUCT(frag_again, FRAG_AGAIN_ROW);

/* A place of the program that got a value from the card. */
#define FRAG_PLACE_ROW(F, P, S) \
	F(S, TEXT, place, NULL, "file and line") \
	F(S, TEXT, what, NULL, "the operator that handed it out") \
	F(S, TEXT, values, NULL, "computed, invented or given") \
	F(S, COUNT, count, NULL, "how often")
FRAG_ROW_STRUCT(frag_place, FRAG_PLACE_ROW);

/* A rank that ran and stands for all that are alike (--ranks roles). */
#define FRAG_ROLE_ROW(F, P, S) \
	F(S, COUNT, rank, NULL, "the rank that ran") \
	F(S, TEXT, stands_for, NULL, "ranks that do the same, as 0-7,64-71") \
	F(S, TEXT, alike, NULL, "of these, ran as a check and asked for the same memory") \
	F(S, TEXT, unlike, NULL, \
	  "of these, ran as a check and did not; they are in the recording, too")
FRAG_ROW_STRUCT(frag_role_row, FRAG_ROLE_ROW);

#define FRAG_ESTIMATE_ROW(F, P, S) \
	F(S, TEXT, card, NULL, "the pretended card") \
	F(S, TEXT, torch, NULL, "release of PyTorch") \
	F(S, TEXT, values, NULL, "how values were invented") \
	F(S, TEXT, clock, NULL, "modelled, or host") \
	F(S, TEXT, convolutions, NULL, \
	  "the cuDNN that planned them, where a card's workspaces are known for another") \
	F(S, TEXT, scaled, NULL, "scaled from recordings at these values") \
	F(S, COUNT, shared_count, NULL, "processes on one card when they held most together") \
	F(S, BYTES, shared_bytes, NULL, "that they held, with a context each; null: none did") \
	F(S, OBJECT, again, NULL, "a second run with other values", .of = &frag_again_shape) \
	F(S, LIST, roles, NULL, "ranks that stand for others", .of = &frag_role_shape) \
	F(S, LIST, places, NULL, "places that values reached", .of = &frag_place_shape)
FRAG_ROW_STRUCT(frag_estimate, FRAG_ESTIMATE_ROW);
extern const struct frag_shape frag_estimate_shape;

/* What the note says; NULL for a recording of a card, or where memory is short (a->failed). */
const struct frag_estimate *frag_estimate_read(struct frag_answer *a,
					       const struct frag_trace *trace);
/* Sets the card's memory to that of the pretended one. False: unknown, or there is none. */
bool frag_estimate_card(const struct frag_trace *trace, struct frag_sim_config *card);
/* Did the program end with status 0? False for a recording of a card, which does not say. */
bool frag_estimate_to_end(const struct frag_trace *trace);
/* Processes on one card: what they hold, with a context each, and the device in the recording of
 * the one that holds most, UINT32_MAX = not recorded. */
struct frag_neighbours {
	uint64_t bytes, contexts_bytes;
	unsigned count; /* 0: none */
	uint32_t most_dev;
};
/* The most that processes held on one card together. */
struct frag_neighbours frag_estimate_shared(const struct frag_trace *trace);
/* The others on the card of device dev when it was refused memory last. */
struct frag_neighbours frag_estimate_neighbours(const struct frag_trace *trace, uint32_t dev);
/* "device 0, another process on the card, held 6 GiB and its context"; pre: there are some. */
const char *frag_neighbours_text(struct frag_answer *a, const struct frag_trace *trace,
				 const struct frag_neighbours *n);
/* Places with this kind of values. */
unsigned frag_estimate_places(const struct frag_estimate *e, const char *values);
/* "; with other values it asked for as much", or what differed; "" without a second run. */
const char *frag_estimate_again(struct frag_answer *a, const struct frag_estimate *e);
/* Several lines for people: card, values, places. */
const char *frag_estimate_text(struct frag_answer *a, const struct frag_estimate *e);

#endif
