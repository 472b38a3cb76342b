/* SPDX-License-Identifier: Apache-2.0 */
/* In which order the tasks of a pool begin. Results do not depend on it. */
#ifndef FRAG_SESSION_ORDER_H
#define FRAG_SESSION_ORDER_H

#include "session.h"

/* order[count]: the longest first, else, and with one thread, as they are listed. Errors: FRAG_ENOMEM. */
int frag_session_order(const struct frag_session *s, struct frag_session_task *tasks, size_t count,
		       unsigned threads, struct frag_session_task **order, struct frag_err *err);

#endif
