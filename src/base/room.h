/* SPDX-License-Identifier: Apache-2.0 */
/* For files in a user's process on a full disk: the file ends early, the program goes on. */
#ifndef FRAG_BASE_ROOM_H
#define FRAG_BASE_ROOM_H

#include <errno.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* May a file have so many bytes (`ulimit -f`: SIGXFSZ would end the program)? False: see errno. */
static inline bool frag_room_for(off_t bytes)
{
	struct rlimit most;

	errno = EFBIG;
	return getrlimit(RLIMIT_FSIZE, &most) || (rlim_t)bytes <= most.rlim_cur;
}

/* A recording that ends early stays so: a full disk has room for that mark. fd < 0: no file. */
static inline void frag_room_mark_cut(int fd)
{
	if (fd >= 0)
		(void)!fchmod(fd, S_IRUSR);
}

static inline bool frag_room_is_cut(const char *path)
{
	struct stat st;

	return !stat(path, &st) && (st.st_mode & 07777) == S_IRUSR;
}

#endif
