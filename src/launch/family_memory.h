/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the host that a process and all its descendants have for themselves. */
#ifndef FRAG_LAUNCH_FAMILY_MEMORY_H
#define FRAG_LAUNCH_FAMILY_MEMORY_H

#include <stdint.h>
#include <sys/types.h>

/* Resident bytes that lie in no file, of `pid` and its descendants; 0: nothing could be read. */
uint64_t frag_launch_family_bytes(pid_t pid);

#endif
