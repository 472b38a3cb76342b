/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of files, and how much may be written; see held.h. */
#include "held.h"

#include <ftw.h>

static __thread uint64_t sum;

static int add(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	sum += (uint64_t)st->st_blocks * 512;
	return 0;
}

/* Is there disk space for so many bytes more? */
static bool has_room(uint64_t bytes)
{
	char up[2200];

	sum = 0;
	sprintf(up, "%s/up", frag_held_root);
	nftw(up, add, 16, FTW_PHYS);
	if (sum + bytes <= frag_held->most_bytes)
		return true;
	frag_held->full = FRAG_HELD_FULL | FRAG_HELD_WAS_FULL;
	errno = ENOSPC;
	return false;
}

static bool is_held(int fd)
{
	char link[40], path[PATH_MAX];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return frag_held_read_link(link, path) >= 0 &&
	       !strncmp(path, frag_held_root, strlen(frag_held_root));
}

/* Checks free space each time that a process has written a small part of its limit. */
bool frag_held_count(int fd, size_t bytes)
{
	static uint64_t written, measured;
	uint64_t now = __atomic_add_fetch(&written, bytes, __ATOMIC_RELAXED);
	bool refused;
	int before = errno;

	if (now - measured > frag_held->most_bytes / 64 + 1) {
		measured = now;
		frag_held->full &= FRAG_HELD_WAS_FULL;
		has_room(is_held(fd) ? bytes : 0);
	}
	refused = frag_held->full & FRAG_HELD_FULL && is_held(fd);
	errno = refused ? ENOSPC : before;
	return !refused;
}

static int copy_bytes(int from, int to, uint64_t bytes)
{
	ssize_t n = 1;

	while (bytes && n > 0) {
		n = FRAG_SYS(copy_file_range, from, NULL, to, NULL, bytes, 0);
		if (n < 0)
			n = FRAG_SYS(sendfile, to, from, NULL, bytes < 1 << 30 ? bytes : 1 << 30);
		bytes -= n > 0 ? (uint64_t)n : 0;
	}
	return n < 0 ? -1 : 0;
}

/* Makes the folder in up, with its parents, and the modes on disk. */
int frag_held_copy_folder(char *user)
{
	char up[2 * PATH_MAX];
	struct stat st;

	frag_held_up(user, up);
	if (!frag_held_look(up, &st))
		return S_ISDIR(st.st_mode) ? 0 : (errno = ENOTDIR, -1);
	for (char *at = user + 1;; at++) {
		char *end = strchr(at, '/');

		if (end)
			*end = '\0';
		frag_held_up(user, up);
		if (frag_held_look(user, &st))
			st.st_mode = 0755;
		if (!FRAG_SYS(mkdirat, AT_FDCWD, up, 0700)) {
			FRAG_SYS(fchmodat, AT_FDCWD, up, (st.st_mode & 07777) | 0700);
			frag_held_changed();
		} else if (errno != EEXIST) {
			if (end)
				*end = '/';
			return -1;
		}
		if (!end)
			return 0;
		*end = '/';
		at = end;
	}
}

static int copy_file(const struct place *p, const char *to, bool empty)
{
	int from = (int)FRAG_SYS(openat, AT_FDCWD, p->user, O_RDONLY | O_CLOEXEC);
	int fd = from < 0 ? -1
			  : (int)FRAG_SYS(openat, AT_FDCWD, to, O_WRONLY | O_CREAT | O_CLOEXEC,
					  0600);
	int rc = fd < 0 ? -1 : 0, reason;

	if (!rc && !empty)
		rc = has_room((uint64_t)p->disk.st_blocks * 512)
			     ? copy_bytes(from, fd, (uint64_t)p->disk.st_size)
			     : -1;
	if (!rc)
		rc = (int)FRAG_SYS(fchmod, fd, p->disk.st_mode & 07777);
	if (!rc)
		FRAG_SYS(utimensat, fd, NULL,
			 (struct timespec[2]){ p->disk.st_atim, p->disk.st_mtim }, 0);
	if (rc && errno == ENOSPC)
		frag_held->full = FRAG_HELD_FULL | FRAG_HELD_WAS_FULL;
	reason = errno;
	if (from >= 0)
		FRAG_SYS(close, from);
	if (fd >= 0)
		FRAG_SYS(close, fd);
	errno = reason;
	return rc;
}

/* Gives a copy its name; the first process wins. */
static int put(const char *made, const char *name)
{
	return FRAG_SYS(linkat, AT_FDCWD, made, AT_FDCWD, name, 0) && errno != EEXIST ? -1 : 0;
}

int frag_held_copy_folder_of(char *user)
{
	char *slash = strrchr(user, '/');
	int rc;

	*slash = '\0';
	rc = frag_held_copy_folder(user);
	*slash = '/';
	return rc;
}

int frag_held_copy(struct place *p, bool empty)
{
	char made[2200], shared[2200], link[PATH_MAX];
	bool several = S_ISREG(p->mode) && p->disk.st_nlink > 1;
	int rc = 0;

	if (S_ISDIR(p->mode))
		return frag_held_copy_folder(p->user);
	if (frag_held_copy_folder_of(p->user))
		return -1;
	frag_held_up(p->user, p->up);
	frag_held_make_name(made, "copy");
	if (!S_ISREG(p->mode) && !S_ISLNK(p->mode))
		rc = (int)FRAG_SYS(mknodat, AT_FDCWD, made, p->mode, p->disk.st_rdev);
	if (S_ISLNK(p->mode))
		rc = frag_held_read_link(p->user, link) < 0 ||
		     FRAG_SYS(symlinkat, link, AT_FDCWD, made);
	sprintf(shared, "%s/links/%llx-%llx", frag_held_root, (long long)p->disk.st_dev,
		(long long)p->disk.st_ino);
	if (S_ISREG(p->mode) && !(several && put(shared, p->up) == 0))
		rc = copy_file(p, made, empty && !several) || (several && put(made, shared));
	if (!rc)
		rc = put(several ? shared : made, p->up);
	FRAG_SYS(unlinkat, AT_FDCWD, made, 0);
	frag_held->links += several;
	if (!frag_held->changes)
		frag_held_changed();
	p->in_up = !rc;
	p->on_disk = false;
	return rc ? -1 : 0;
}

/* Would the kernel allow writing to the file on disk? Nothing is written. */
int frag_held_may_change(const struct place *p)
{
	return p->on_disk ? (int)FRAG_SYS(faccessat, AT_FDCWD, *p->user ? p->user : "/", W_OK) : 0;
}
