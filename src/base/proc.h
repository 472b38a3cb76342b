/* SPDX-License-Identifier: Apache-2.0 */
/* What Linux says of a process. */
#ifndef FRAG_BASE_PROC_H
#define FRAG_BASE_PROC_H

#include <stddef.h>

/* Up to cap - 1 bytes of /proc/PID/NAME and a zero behind them, as they are: words may be ended by
 * zeros. Returns how many; 0: it is empty, or cannot be read. */
size_t frag_proc_read(long pid, const char *name, char *text, size_t cap);

#endif
