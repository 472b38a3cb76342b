/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents of blocks during a replay on a device with real memory, for the options fill
 * and paced of frag_run_options. Only for src/replay.
 *
 * A block's id on the card is its slot, and its generation is the number of its allocation (from
 * 1), so a foreign pattern identifies a block and one of its uses.
 *
 * Ownership: created and freed by the run; NULL if these options are off, so the loop tests
 * only for NULL.
 */
#ifndef FRAG_REPLAY_CONTENTS_H
#define FRAG_REPLAY_CONTENTS_H

#include <frag/replay.h>

struct frag_contents;

/* *out NULL: nothing to do. Errors: FRAG_ENOMEM, FRAG_ENOTSUP. */
int frag_contents_create(const struct frag_run_options *opt, struct frag_device *dev,
			 struct frag_contents **out, struct frag_err *err);
void frag_contents_destroy(struct frag_contents *c);
FRAG_AUTO_AT(struct frag_contents *, frag_contents_destroy)

/* Before an event: waits until the event is due. */
void frag_contents_pace(struct frag_contents *c, uint64_t time_us);
/* After an alloc, and before the policy's free gets the block of that slot. Errors: FRAG_ECHECK
 * with both blocks, their ranges and events; those of the device. */
int frag_contents_alloc(struct frag_contents *c, uint32_t slot, const struct frag_block *b,
			uint64_t event, struct frag_err *err);
int frag_contents_free(struct frag_contents *c, uint32_t slot, const struct frag_block *b,
		       uint64_t event, struct frag_err *err);
/* Waits for all work and checks its findings. */
int frag_contents_finish(struct frag_contents *c, struct frag_err *err);

#endif
