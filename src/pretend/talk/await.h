/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for other ranks, and the scalar clock of a job. A message carries the time at which its
 * sender began; a transfer ends a while after the last sender has begun.
 *
 * The ranks run in lockstep: await_begin blocks until all senders have begun, then delivers the data
 * and advances the stream's clock. So all times are known, and do not depend on the speed of
 * processes. Only where a sender waits for this process (NCCL's calls do not block, so a program may
 * receive first and send later) or makes no progress is the transfer late: await_begin returns, and
 * the host waits when it needs the data or the time (settle_until in nogpu.h).
 *
 * Invariant: transfers from one rank in one communicator complete in the order in which they began.
 */
#ifndef FRAG_NOGPU_AWAIT_H
#define FRAG_NOGPU_AWAIT_H

#include <frag/base.h>

#include "transfer.h"

/* Takes ownership of the transfer. */
void await_begin(struct awaited *a, void *stream);
/* The communicator ends, and its transfers with it. */
void await_drop(struct talk *t);

/* Waits for the data of [p, p + bytes). NOGPU_TIMEOUT: deadlock. */
__attribute__((visibility("default"))) int frag_nogpu_settle(const void *p, uint64_t bytes);
/* Late transfers no longer write to [p, p + bytes), which is used anew. */
__attribute__((visibility("default"))) void frag_nogpu_abandon(const void *p, uint64_t bytes);
/* Number of pending transfers: while it is 0, callers can skip the other calls. */
__attribute__((visibility("default"))) const _Atomic unsigned *frag_nogpu_awaited(void);

#endif
