/* SPDX-License-Identifier: Apache-2.0 */
/* A recording for others: without what tells whose program it was. */
#ifndef FRAG_RECORDING_ANONYMISE_H
#define FRAG_RECORDING_ANONYMISE_H

#include <frag/trace.h>

/*
 * Removes stacks with their names and paths, the trace's own name, the date, handles of streams and
 * the names of unknown cards; marks become f1, f2, … in their order. Requests, settings, addresses
 * and what the recorder saw stay, so every replay and verify gives the same. Then checks every text
 * that a file would hold. Errors: FRAG_EINPUT for an estimate and for settings that are none of
 * PyTorch's; FRAG_ECHECK if a text is left; FRAG_ENOMEM. After an error the trace can only be
 * destroyed.
 */
int frag_trace_anonymise(struct frag_trace *trace, struct frag_err *err);

#endif
