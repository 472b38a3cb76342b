/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of libcufrag_torch.so. */
#ifndef FRAG_LIVE_THREAD_H
#define FRAG_LIVE_THREAD_H

#include <frag/error.h>

/* Once for the process. by: who writes the page, the policy. Errors: FRAG_EDEVICE. */
int frag_live_thread_start(const char *by, struct frag_err *err);
/* The process ends: its page goes. pre: frag_live.opening is held. */
void frag_live_thread_end(void);

#endif
