/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Temporary files and folders; see scratch.h. Each has an entry in a table, which either its owner
 * or a signal handler takes, never both.
 *
 * A folder is emptied through the descriptor that is held since it was made, then its name is
 * removed as that of an empty folder: what others put in place of the name is never looked into.
 */
#include "scratch.h"

#include <frag/base.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interrupt.h"

#define PLACES 64
#define DEPTH 500 /* depth of nested folders */

static struct place {
	char *path;
	int fd; /* of a folder; -1: a file */
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

/* 0 or an errno. path: in new memory, the table's; NULL: there was none. rc: of making it. */
static int note(char *path, int fd, int rc)
{
	owner = getpid();
	frag_interrupt_clean(sweep);
	for (size_t i = 0; !rc && i < PLACES; i++) {
		if (!__atomic_load_n(&places[i].path, __ATOMIC_ACQUIRE)) {
			places[i].fd = fd;
			__atomic_store_n(&places[i].path, path, __ATOMIC_RELEASE);
			return 0;
		}
	}
	if (!rc)
		remove_own(path, fd);
	if (!rc && fd >= 0)
		close(fd);
	frag_host_free(path);
	return rc ? rc : EMFILE;
}

/* ---- making ----------------------------------------------------------------------------- */

static char *new_name(const char *dir)
{
	const char *temp = getenv("TMPDIR");
	char *name;

	dir = dir ? dir : temp && *temp ? temp : "/tmp";
	name = frag_host_alloc(strlen(dir) + sizeof("/.cufrag-XXXXXX"));
	if (name)
		sprintf(name, "%s/.cufrag-XXXXXX", dir);
	return name;
}

/* name: a template in new memory. */
static int make_folder(char *name, char **path)
{
	int fd = -1, rc = ENOMEM;

	begin();
	if (name)
		rc = mkdtemp(name) ? 0 : errno;
	if (!rc && (fd = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0) {
		rc = errno;
		rmdir(name);
	}
	rc = note(name, fd, rc);
	*path = rc ? NULL : name;
	end();
	return rc;
}

int frag_scratch_folder(const char *dir, char **path)
{
	return make_folder(new_name(dir), path);
}

int frag_scratch_adopt(char *folder)
{
	char *path;
	int rc = make_folder(frag_host_strdup(folder), &path);

	if (!rc)
		memcpy(folder, path, strlen(path)); /* as long as the template */
	return rc;
}

int frag_scratch_file(const char *dir, char **path, int *fd)
{
	char *name = new_name(dir);
	int rc = ENOMEM;

	begin();
	*fd = name ? mkostemp(name, O_CLOEXEC) : -1;
	if (name)
		rc = note(name, -1, *fd < 0 ? errno : 0);
	if (rc && *fd >= 0)
		close(*fd);
	*path = rc ? NULL : name;
	end();
	return rc;
}

void frag_scratch_remove_folder(const char *path)
{
	take_away(AT_FDCWD, path, DEPTH);
}
