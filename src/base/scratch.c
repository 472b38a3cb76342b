/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Temporary files and folders; see scratch.h. Each has an entry in a table, which either its owner
 * or a signal handler takes, never both. Each is locked while in use, including files: a name
 * without a lock was left by a killed program.
 *
 * A folder is emptied through the descriptor that is held since it was made, then its name is
 * removed as that of an empty folder: what others put in place of the name is never looked into.
 */
#include "scratch.h"

#include <frag/base.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interrupt.h"

#define PREFIX ".cufrag-"
#define PLACES 64
#define DEPTH 500 /* depth of nested folders */
#define TRIES 100

static struct place {
	char *path;
	int fd; /* of a folder, and holds its lock; -1: a file */
} places[PLACES];
static pid_t owner; /* a forked child before exec leaves them alone */

/* Threads take turns. A signal handler cannot: it takes the table as it is and ends the program. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void begin(void)
{
	frag_interrupt_defer(true);
	pthread_mutex_lock(&turn);
}

static void end(void)
{
	pthread_mutex_unlock(&turn);
	frag_interrupt_defer(false);
}

/* ---- removing: also in a signal handler, so without malloc and stdio ------------------------ */

struct entry { /* of getdents64(2) */
	uint64_t inode;
	int64_t next;
	unsigned short bytes;
	unsigned char kind;
	char name[];
};

static void empty(int folder, int depth);

static void take_away(int dir, const char *name, int depth)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == EACCES && !fchmodat(dir, name, 0700, 0)) /* a program made it so */
		fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0) {
		empty(fd, depth);
		close(fd);
	}
	unlinkat(dir, name, fd >= 0 ? AT_REMOVEDIR : 0);
}

static void empty(int folder, int depth)
{
	char buf[2048] __attribute__((aligned(8)));
	long n;

	while (depth && (n = syscall(SYS_getdents64, folder, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n;) {
			const struct entry *e = (const struct entry *)(buf + at);

			if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0)
				take_away(folder, e->name, depth - 1);
			at += e->bytes;
		}
	}
}

static char *take(struct place *p)
{
	return __atomic_exchange_n(&p->path, NULL, __ATOMIC_ACQ_REL);
}

static void remove_own(const char *path, int fd)
{
	if (fd >= 0)
		empty(fd, DEPTH);
	unlinkat(AT_FDCWD, path, fd >= 0 ? AT_REMOVEDIR : 0);
}

/* For a signal handler: removes all of them. */
static void sweep(void)
{
	int saved = errno;

	for (size_t i = 0; owner == getpid() && i < PLACES; i++) {
		const char *path = take(&places[i]);

		if (path)
			remove_own(path, places[i].fd);
	}
	errno = saved;
}

/* ---- the table ----------------------------------------------------------------------------- */

static void forget(const char *path, bool remove)
{
	begin();
	for (size_t i = 0; path && i < PLACES; i++) {
		const char *here = __atomic_load_n(&places[i].path, __ATOMIC_ACQUIRE);
		char *mine;

		if (!here || strcmp(here, path) != 0)
			continue;
		mine = take(&places[i]);
		if (mine && remove)
			remove_own(mine, places[i].fd);
		if (mine && places[i].fd >= 0)
			close(places[i].fd);
		frag_host_free(mine);
		break;
	}
	end();
}

void frag_scratch_remove(const char *path)
{
	forget(path, true);
}

void frag_scratch_done(const char *path)
{
	forget(path, false);
}

/* 0 or an errno; on failure, `path` is removed and freed. */
static int note(char *path, int fd)
{
	owner = getpid();
	frag_interrupt_clean(sweep);
	for (size_t i = 0; i < PLACES; i++) {
		if (!__atomic_load_n(&places[i].path, __ATOMIC_ACQUIRE)) {
			places[i].fd = fd;
			__atomic_store_n(&places[i].path, path, __ATOMIC_RELEASE);
			return 0;
		}
	}
	remove_own(path, fd);
	frag_host_free(path);
	if (fd >= 0)
		close(fd);
	return EMFILE;
}

/* ---- what a killed program left ------------------------------------------------- */

/* Is it unlocked? Follows no links. */
static void remove_abandoned(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)) &&
	    st.st_uid == geteuid() && !flock(fd, LOCK_EX | LOCK_NB))
		take_away(dir, name, DEPTH);
	close(fd);
}

static void look_for_abandoned(const char *dir)
{
	const size_t prefix = sizeof(PREFIX) - 1;
	DIR *d = opendir(dir);
	const struct dirent *e;

	while (d && (e = readdir(d)))
		if (!strncmp(e->d_name, PREFIX, prefix) && strlen(e->d_name) == prefix + 6)
			remove_abandoned(dirfd(d), e->d_name);
	if (d)
		closedir(d);
}

/* ---- making ----------------------------------------------------------------------------- */

static const char *place_of(const char *dir)
{
	const char *temp = getenv("TMPDIR");

	return dir ? dir : temp && *temp ? temp : "/tmp";
}

static char *new_name(const char *dir)
{
	size_t len = strlen(dir);
	char *name = frag_host_alloc(len + sizeof("/" PREFIX "XXXXXX"));

	if (name)
		sprintf(name, "%s/" PREFIX "XXXXXX", dir);
	return name;
}

/* Others remove entries without a lock, so one may be gone before it has its own: make another. */
static bool is_gone(int fd, const char *path)
{
	struct stat here, there;

	return fstat(fd, &here) || stat(path, &there) || here.st_ino != there.st_ino;
}

/* Another program may have removed it as abandoned before it was locked. */
static bool hold(int fd, const char *path)
{
	return !flock(fd, LOCK_EX | LOCK_NB) && !is_gone(fd, path);
}

static int make_folder(char *path, int *fd)
{
	if (!mkdtemp(path))
		return errno;
	*fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*fd >= 0 || errno == ENOENT) /* already removed as abandoned */
		return *fd >= 0 ? 0 : ENOENT;
	rmdir(path);
	return EMFILE;
}

static int make_file(char *path, int *fd)
{
	*fd = mkostemp(path, O_CLOEXEC);
	return *fd >= 0 ? 0 : errno;
}

/* A name for the file that `make` opens. */
static int make(const char *dir, int (*make_it)(char *, int *), char **path, int *fd)
{
	int rc;

	*path = NULL;
	dir = place_of(dir);
	look_for_abandoned(dir);
	for (unsigned tries = 0;; tries++) {
		char *name = new_name(dir);

		rc = name ? make_it(name, fd) : ENOMEM;
		if (rc && (rc != ENOENT || access(dir, W_OK) || tries == TRIES)) {
			frag_host_free(name);
			return rc;
		}
		/* if the file system has no locks, goes on without one */
		if (!rc &&
		    (hold(*fd, name) || (tries >= 3 && !is_gone(*fd, name)) || tries == TRIES)) {
			*path = name;
			return 0;
		}
		if (!rc)
			close(*fd);
		frag_host_free(name);
	}
}

int frag_scratch_folder(const char *dir, char **path)
{
	int fd = -1, rc;

	begin();
	rc = make(dir, make_folder, path, &fd) ?: note(*path, fd);
	end();
	return rc;
}

int frag_scratch_file(const char *dir, char **path, int *fd)
{
	int rc;

	begin();
	rc = make(dir, make_file, path, fd);
	if (!rc && (rc = note(*path, -1)))
		close(*fd);
	end();
	return rc;
}

int frag_scratch_adopt(char *folder)
{
	char *copy;
	int fd = -1, rc;

	begin();
	rc = make_folder(folder, &fd);
	copy = rc ? NULL : frag_host_strdup(folder);
	if (!rc && !copy) {
		rmdir(folder);
		close(fd);
		rc = ENOMEM;
	}
	if (!rc)
		rc = note(copy, fd);
	end();
	return rc;
}

void frag_scratch_remove_folder(const char *path)
{
	take_away(AT_FDCWD, path, DEPTH);
}

int frag_scratch_name(int fd, const char *name)
{
	char from[64];

	snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, from, AT_FDCWD, name, AT_SYMLINK_FOLLOW) ? errno : 0;
}

int frag_scratch_link(const char *dir, int fd, char **path)
{
	char *name = new_name(dir);
	int rc = name ? EEXIST : ENOMEM;

	begin();
	look_for_abandoned(dir);
	flock(fd, LOCK_EX | LOCK_NB);
	for (unsigned i = 0; rc == EEXIST && i < 1000; i++) {
		sprintf(name + strlen(name) - 6, "%06x",
			((unsigned)getpid() * 1000u + i) & 0xffffffu);
		rc = frag_scratch_name(fd, name);
	}
	if (rc)
		frag_host_free(name);
	else
		rc = note(name, -1);
	end();
	*path = name;
	return rc;
}
