/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conditions of a replay: card, memory limit, release of PyTorch, seed; the settings to use for
 * recordings that do not hold them; and who follows the progress of opening.
 *
 * Ownership: a plain value. Its texts and the card's cost profile are borrowed.
 */
#ifndef FRAG_RECORDING_TARGET_H
#define FRAG_RECORDING_TARGET_H

#include <frag/device.h>
#include <frag/error.h>
#include <frag/replay.h>

#include "answer/textbuf.h"

/* The most that a process may reserve: a size, or a fraction of the card. All zero: no limit. */
struct frag_limit {
	const char *text; /* as given, NULL = not given */
	bool is_fraction;
	double fraction; /* of the card's total; 1.0 = no limit, as in PyTorch */
	uint64_t bytes;	 /* if it is a size */
};

/* "8G", or a fraction, which has a decimal point: "0.9". Borrows the text. Errors: FRAG_EUSAGE. */
int frag_limit_parse(const char *text, struct frag_limit *out, struct frag_err *err);
/* In bytes on a card of total_bytes, a fraction rounded down; UINT64_MAX = none. */
uint64_t frag_limit_bytes(const struct frag_limit *limit, uint64_t total_bytes);

/* As frag_gpu_find. Errors: FRAG_EUSAGE, with the nearest name. */
int frag_gpu_named(const char *name, const struct frag_gpu **out, struct frag_err *err);

struct frag_trace;

/* Progress of opening a recording. A stage lasts until the next begins. */
enum frag_recording_stage {
	FRAG_RECORDING_READING,
	FRAG_RECORDING_READ, /* all events, or the head */
	FRAG_RECORDING_SETTLING,
	FRAG_RECORDING_SETTLED,
	FRAG_RECORDING_FAILED,
};

struct frag_target {
	struct frag_sim_config card;
	bool card_given; /* else it is the default, and a recording without a GPU knows its own */
	struct frag_limit limit;
	unsigned torch;	  /* release, see frag/torch.h; 0 = the recording's */
	const char *conf; /* overrides the settings that recordings hold; NULL = it does not */
	uint64_t seed;
	/* Called at each stage; may be NULL. trace: NULL until it is read. */
	void (*tell)(void *ctx, enum frag_recording_stage stage, const char *path,
		     const struct frag_trace *trace);
	void *tell_ctx;
};

/* The limit on the target's card, in bytes; UINT64_MAX = none. */
uint64_t frag_target_limit(const struct frag_target *t);
/* Default options of a replay, with the target's limit, seed and release. */
void frag_target_run_options(const struct frag_target *t, struct frag_run_options *out);

/* "10 % of the card for libraries and longer inputs, 1.2 GiB outside …": what stays free. */
void frag_headroom_text(const struct frag_headroom *h, struct frag_text *out);

#endif
