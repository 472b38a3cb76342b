/* SPDX-License-Identifier: Apache-2.0 */
/* For files written in a user's process when the disk is full: the file ends early, the program goes on. */
#ifndef FRAG_BASE_ROOM_H
#define FRAG_BASE_ROOM_H

#include <errno.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* May a file have this many bytes? Checks `ulimit -f`, because SIGXFSZ would end the program. False: errno is set. */
static inline bool frag_room_for(off_t bytes)
{
	struct rlimit most;

	errno = EFBIG;
	return getrlimit(RLIMIT_FSIZE, &most) || (rlim_t)bytes <= most.rlim_cur;
}

/* A recording that ends early may be written no longer: a full disk has room for that mark. fd < 0: there is no file. */
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
