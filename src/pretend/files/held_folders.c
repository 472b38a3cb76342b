/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listing folders; see held.h. A folder on disk and in up is read from disk first, without removed
 * and copied entries, then from up. (The C library's own glob, ftw and fts only see the disk.)
 */
#include "held.h"

#include <dirent.h>

#ifndef __clang__ /* no such warning */
#pragma GCC diagnostic ignored "-Wmismatched-dealloc"
#endif

#define STREAMS 256u

static struct stream {
	DIR *disk; /* the program's handle; NULL: a free entry */
	DIR *up;   /* NULL: only hidden entries */
	bool second;
	char user[PATH_MAX];
} * streams[STREAMS];
static unsigned used; /* number of entries ever used */

#define FRAG_NEXT(type, name) \
	static type next_##name(DIR *dir) \
	{ \
		static void *function; \
\
		return ((type(*)(DIR *))frag_next(&function, #name))(dir); \
	}
FRAG_NEXT(struct dirent *, readdir)
FRAG_NEXT(void, rewinddir)
FRAG_NEXT(int, closedir)

static DIR *next_opendir(const char *path)
{
	static void *function;

	return ((DIR * (*)(const char *)) frag_next(&function, "opendir"))(path);
}

static struct stream *stream_of(DIR *dir)
{
	for (unsigned i = 0; i < __atomic_load_n(&used, __ATOMIC_ACQUIRE); i++) {
		struct stream *s = __atomic_load_n(&streams[i], __ATOMIC_ACQUIRE);

		if (s && s->disk == dir)
			return s;
	}
	return NULL;
}

/* `disk` is the open folder on disk. */
static DIR *merge(const struct place *p, DIR *disk)
{
	struct stream *s = disk ? calloc(1, sizeof(*s)) : NULL, *none = NULL;
	unsigned i = 0;

	if (!s)
		return disk;
	s->disk = disk;
	s->up = p->in_up ? next_opendir(p->up) : NULL;
	strcpy(s->user, p->user);
	while (i < STREAMS && !__atomic_compare_exchange_n(&streams[i], &none, s, false,
							   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		none = NULL;
		i++;
	}
	for (unsigned n = used;
	     n < i + 1 && !__atomic_compare_exchange_n(&used, &n, i + 1, false, __ATOMIC_ACQ_REL,
						       __ATOMIC_RELAXED);)
		;
	return disk;
}

FRAG_EXPORT DIR *opendir(const char *path)
{
	struct place p;

	if (!frag_held || !frag_held->changes || !frag_held_find(&p, AT_FDCWD, path, true))
		return next_opendir(path);
	if (frag_held_is_merged(&p))
		return merge(&p, next_opendir(*p.user ? p.user : "/"));
	return next_opendir(p.hidden || p.in_up ? p.up : *p.user ? p.user : "/");
}

FRAG_EXPORT DIR *fdopendir(int fd)
{
	static void *function;
	struct place p;
	DIR *dir = ((DIR * (*)(int)) frag_next(&function, "fdopendir"))(fd);

	if (dir && frag_held && frag_held->changes && frag_held_find_fd(&p, fd) &&
	    frag_held_is_merged(&p))
		merge(&p, dir);
	return dir;
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

static bool is_replaced(const struct stream *s, const char *name)
{
	char user[2 * PATH_MAX], up[2 * PATH_MAX];

	if (snprintf(user, sizeof(user), "%s/%s", s->user, name) >= PATH_MAX)
		return false;
	frag_held_up(user, up);
	return !FRAG_SYS(faccessat, AT_FDCWD, up, F_OK) || frag_held_is_hidden(user);
}

FRAG_EXPORT struct dirent *readdir(DIR *dir)
{
	struct stream *s = stream_of(dir);
	struct dirent *e;
	int before = errno;

	if (!s)
		return next_readdir(dir);
	while (!s->second && (e = next_readdir(dir)))
		if (is_dots(e->d_name) || !is_replaced(s, e->d_name))
			return errno = before, e;
	s->second = true;
	while (s->up && (e = next_readdir(s->up)))
		if (!is_dots(e->d_name))
			return errno = before, e;
	return errno = before, NULL;
}

FRAG_EXPORT struct dirent64 *readdir64(DIR *dir)
{
	return (struct dirent64 *)readdir(dir);
}

FRAG_EXPORT void rewinddir(DIR *dir)
{
	struct stream *s = stream_of(dir);

	next_rewinddir(dir);
	if (s && s->up)
		next_rewinddir(s->up);
	if (s)
		s->second = false;
}

FRAG_EXPORT int closedir(DIR *dir)
{
	struct stream *s = stream_of(dir);

	for (unsigned i = 0; s && i < STREAMS; i++)
		if (streams[i] == s)
			__atomic_store_n(&streams[i], NULL, __ATOMIC_RELEASE);
	if (s && s->up)
		next_closedir(s->up);
	free(s);
	return next_closedir(dir);
}

FRAG_EXPORT int scandir(const char *restrict path, struct dirent ***restrict list,
			int (*wanted)(const struct dirent *),
			int (*order)(const struct dirent **, const struct dirent **))
{
	struct dirent **all = NULL, **more, *e;
	DIR *dir = opendir(path);
	int n = 0;

	while (dir && (e = readdir(dir))) {
		if (wanted && !wanted(e))
			continue;
		more = n % 64 ? all : realloc(all, ((size_t)n + 64) * sizeof(*all));
		if (!more || !(all = more, all[n] = malloc(e->d_reclen)))
			break;
		memcpy(all[n++], e, e->d_reclen);
	}
	if (!dir)
		return -1;
	closedir(dir);
	if (order && n)
		qsort(all, (size_t)n, sizeof(*all),
		      (int (*)(const void *, const void *))(void *)order);
	*list = all;
	return n;
}
FRAG_EXPORT int scandir64(const char *restrict path, struct dirent64 ***restrict list,
			  int (*wanted)(const struct dirent64 *),
			  int (*order)(const struct dirent64 **, const struct dirent64 **))
{
	return scandir(path, (struct dirent ***)list,
		       (int (*)(const struct dirent *))(void *)wanted,
		       (int (*)(const struct dirent **, const struct dirent **))(void *)order);
}

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
