/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listing folders; see held.h. A folder on disk and in up is read from disk first, without removed
 * and copied entries, then from up. (The C library's own glob, ftw, fts and scandir only see the disk.)
 */
#include "held.h"

#include <dirent.h>

#define STREAMS 256u

static struct stream {
	DIR *disk; /* the program's handle */
	DIR *up;   /* NULL: only hidden entries */
	bool second;
	char user[PATH_MAX];
} * streams[STREAMS]; /* NULL: a free entry */

static struct stream *stream_of(DIR *dir)
{
	for (unsigned i = 0; i < STREAMS; i++) {
		struct stream *s = __atomic_load_n(&streams[i], __ATOMIC_ACQUIRE);

		if (s && s->disk == dir)
			return s;
	}
	return NULL;
}

/* `disk` is the open folder on disk. */
static long merge(const struct place *p, DIR *disk)
{
	struct stream *s = disk ? calloc(1, sizeof(*s)) : NULL, *none = NULL;
	unsigned i = 0;

	if (!s)
		return (long)disk;
	s->disk = disk;
	s->up = p->in_up ? opendir(p->up) : NULL;
	strcpy(s->user, p->user);
	while (i < STREAMS && !__atomic_compare_exchange_n(&streams[i++], &none, s, false,
							   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		none = NULL;
	return (long)disk;
}

static long open_folder(void *next, long *a, const struct shape *shape)
{
	struct place p;

	if (!frag_held || !frag_held->changes ||
	    !frag_held_find(&p, AT_FDCWD, (const char *)a[0], true))
		return frag_held_go(next, a);
	if (!*p.user)
		strcpy(p.user, "/");
	a[0] = (long)(p.hidden || (p.in_up && !p.on_disk) ? p.up : p.user);
	return frag_held_is_merged(&p) ? merge(&p, (DIR *)frag_held_go(next, a))
				       : frag_held_go(next, a);
}

static long open_descriptor(void *next, long *a, const struct shape *shape)
{
	struct place p;
	DIR *dir = (DIR *)frag_held_go(next, a);

	return dir && frag_held && frag_held->changes && frag_held_find_fd(&p, (int)a[0]) &&
			       frag_held_is_merged(&p)
		       ? merge(&p, dir)
		       : (long)dir;
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

static bool is_replaced(const struct stream *s, const char *name)
{
	char user[2 * PATH_MAX], up[2 * PATH_MAX];
	struct stat st;

	if (snprintf(user, sizeof(user), "%s/%s", s->user, name) >= PATH_MAX)
		return false;
	frag_held_up(user, up);
	return !FRAG_SYS(newfstatat, AT_FDCWD, up, &st, AT_SYMLINK_NOFOLLOW) ||
	       frag_held_is_hidden(user);
}

static long read_entry(void *next, long *a, const struct shape *shape)
{
	struct stream *s = stream_of((DIR *)a[0]);
	const struct dirent *e;
	int before = errno;

	if (!s)
		return frag_held_go(next, a);
	while (!s->second && (e = (const struct dirent *)frag_held_go(next, a)))
		if (is_dots(e->d_name) || !is_replaced(s, e->d_name))
			return errno = before, (long)e;
	s->second = true;
	while (s->up && (e = readdir(s->up)))
		if (!is_dots(e->d_name))
			return errno = before, (long)e;
	return errno = before, 0;
}

static long begin_again(void *next, long *a, const struct shape *shape)
{
	struct stream *s = stream_of((DIR *)a[0]);

	if (s && s->up)
		rewinddir(s->up);
	if (s)
		s->second = false;
	return frag_held_go(next, a);
}

static long close_folder(void *next, long *a, const struct shape *shape)
{
	struct stream *s = stream_of((DIR *)a[0]);

	for (unsigned i = 0; s && i < STREAMS; i++)
		if (streams[i] == s)
			__atomic_store_n(&streams[i], NULL, __ATOMIC_RELEASE);
	if (s && s->up)
		closedir(s->up);
	free(s);
	return frag_held_go(next, a);
}

ROW(open_folder, opendir, .path = 1)
ROW(open_descriptor, fdopendir, .dir = 1)
ROWS(read_entry, readdir, .dir = 1)
ROW(begin_again, rewinddir, .dir = 1)
ROW(close_folder, closedir, .dir = 1)

bool frag_held_is_empty(const char *user)
{
	DIR *dir = opendir(user);
	const struct dirent *e = NULL;

	while (dir && (e = readdir(dir)) && is_dots(e->d_name))
		;
	if (dir)
		closedir(dir);
	return !e;
}

/* Files copied earlier are in up. */
int frag_held_copy_all(struct place *p)
{
	char path[2 * PATH_MAX];
	struct place *part;
	const struct dirent *e;
	DIR *dir;
	int rc;

	if (!p->on_disk)
		return 0;
	rc = frag_held_copy(p, false);
	frag_held_up(p->user, p->up);
	if (rc || !S_ISDIR(p->mode))
		return rc;
	dir = opendir(p->user);
	part = malloc(sizeof(*part));
	while (!rc && dir && part && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", p->user, e->d_name);
		if (!is_dots(e->d_name) && frag_held_find(part, AT_FDCWD, path, false))
			rc = frag_held_copy_all(part);
	}
	rc = dir && part ? rc : -1;
	if (dir)
		closedir(dir);
	free(part);
	return rc;
}
