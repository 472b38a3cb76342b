/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents of blocks during a replay on a device with real memory: what
 * frag_run_options asks for (fill, work_ns, paced). For src/replay only.
 *
 * A block's id on the card is its slot, its generation is the number of its
 * allocation (from 1), so a foreign pattern names a block and one of its lives.
 *
 * Ownership: made and given back by the run; NULL where nothing is asked for, which
 * is all that the loop tests.
 */
#ifndef FRAG_REPLAY_CONTENTS_H
#define FRAG_REPLAY_CONTENTS_H

#include <frag/replay.h>

struct frag_contents;

/* *out NULL: nothing to do. Errors: FRAG_ENOMEM, FRAG_ENOTSUP. */
int frag_contents_create(const struct frag_run_options *opt, struct frag_device *dev,
			 struct frag_contents **out, struct frag_err *err);
void frag_contents_destroy(struct frag_contents *c);

/* Before an event: waits until it is due. */
void frag_contents_pace(struct frag_contents *c, uint64_t time_us);
/* Behind an alloc, and before the block of that slot is given to the policy's free. Errors: FRAG_ECHECK
 * with both blocks, their ranges and events; those of the device. */
int frag_contents_alloc(struct frag_contents *c, uint32_t slot, const struct frag_block *b,
			uint64_t event, struct frag_err *err);
int frag_contents_free(struct frag_contents *c, uint32_t slot, const struct frag_block *b,
		       uint64_t event, struct frag_err *err);
/* Waits for all work and looks at what it found. */
int frag_contents_finish(struct frag_contents *c, struct frag_err *err);

#endif
