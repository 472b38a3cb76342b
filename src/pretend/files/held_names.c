/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files: where they are, links, removing and renaming; see held.h. */
#include "held.h"

/* their declarations have attributes that these definitions need not repeat */
#ifndef __clang__ /* no such warning */
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#endif

FRAG_EXPORT char *realpath(const char *restrict path, char *restrict to)
{
	static void *function;
	struct place p;

	if (!frag_held || !frag_held->changes || !frag_held_find(&p, AT_FDCWD, path, true))
		return ((char *(*)(const char *, char *))frag_next(&function, "realpath"))(path,
											   to);
	if (!p.in_up && !p.on_disk)
		return errno = ENOENT, NULL;
	if (!*p.user)
		strcpy(p.user, "/");
	return to ? strcpy(to, p.user) : strdup(p.user);
}
FRAG_EXPORT char *__realpath_chk(const char *path, char *to, size_t room);
char *__realpath_chk(const char *path, char *to, size_t room)
{
	return realpath(path, to);
}
FRAG_EXPORT char *canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}

FRAG_EXPORT char *getcwd(char *to, size_t room)
{
	static void *function;
	char *here = ((char *(*)(char *, size_t))frag_next(&function, "getcwd"))(to, room);

	if (here && frag_held)
		frag_held_strip(here);
	return here;
}

FRAG_EXPORT int linkat(int from, const char *old, int dir, const char *path, int flags)
{
	struct place a, b;
	bool held;

	if (flags & AT_EMPTY_PATH || !strncmp(old, "/proc/", 6) ||
	    !frag_held_find(&a, from, old, flags & AT_SYMLINK_FOLLOW))
		*a.up = '\0';
	else if (a.on_disk && !a.in_up && frag_held_copy(&a, false))
		return -1;
	held = frag_held_find(&b, dir, path, false);
	if (held && frag_held_make_room(&b))
		return -1;
	return (int)FRAG_SYS(linkat, *a.up ? AT_FDCWD : from, *a.up ? a.up : old,
			     held ? AT_FDCWD : dir, held ? b.up : path, *a.up ? 0 : flags);
}
FRAG_EXPORT int link(const char *old, const char *path)
{
	return linkat(AT_FDCWD, old, AT_FDCWD, path, 0);
}

/* Is its folder writable? */
static int may_rename(const struct place *p)
{
	char folder[PATH_MAX];

	if (!p->on_disk)
		return 0;
	strcpy(folder, p->user);
	*strrchr(folder, '/') = '\0';
	return (int)FRAG_SYS(faccessat, AT_FDCWD, *folder ? folder : "/", W_OK);
}

static void hide(const struct place *p)
{
	if (p->beneath)
		frag_held_hide(p->user);
}

FRAG_EXPORT int unlinkat(int dir, const char *path, int flags)
{
	struct place p;
	bool folder = flags & AT_REMOVEDIR;

	errno = 0;
	if (!frag_held_find(&p, dir, path, false))
		return errno == ENAMETOOLONG || errno == ELOOP
			       ? -1
			       : (int)FRAG_SYS(unlinkat, dir, path, flags);
	if (!p.mode)
		return (int)FRAG_SYS(unlinkat, AT_FDCWD, p.up, flags); /* sets errno */
	if (S_ISDIR(p.mode) != folder)
		return errno = folder ? ENOTDIR : EISDIR, -1;
	if (may_rename(&p))
		return -1;
	if (folder && !frag_held_is_empty(p.user))
		return errno = ENOTEMPTY, -1;
	hide(&p);
	return p.in_up ? (int)FRAG_SYS(unlinkat, AT_FDCWD, p.up, flags) : 0;
}
FRAG_EXPORT int unlink(const char *path)
{
	return unlinkat(AT_FDCWD, path, 0);
}
FRAG_EXPORT int rmdir(const char *path)
{
	return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}
FRAG_EXPORT int remove(const char *path)
{
	int rc = unlinkat(AT_FDCWD, path, 0);

	return rc && errno == EISDIR ? unlinkat(AT_FDCWD, path, AT_REMOVEDIR) : rc;
}

/* Can a replace b? 0, or -1 and errno. */
static int may_replace(const struct place *a, const struct place *b, unsigned flags)
{
	if (!a->mode)
		return errno = ENOENT, -1;
	if (flags & ~(unsigned)RENAME_NOREPLACE) /* as where a file system has no such flag */
		return errno = EINVAL, -1;
	if (flags && b->mode)
		return errno = EEXIST, -1;
	if (b->mode && S_ISDIR(a->mode) != S_ISDIR(b->mode))
		return errno = S_ISDIR(b->mode) ? EISDIR : ENOTDIR, -1;
	if (S_ISDIR(b->mode) && !frag_held_is_empty(b->user))
		return errno = ENOTEMPTY, -1;
	return may_rename(a) || may_rename(b) ? -1 : 0;
}

static int prepare_rename(struct place *a, struct place *b, unsigned flags)
{
	if (may_replace(a, b, flags) || frag_held_copy_all(a))
		return -1;
	if (!b->mode)
		return frag_held_make_room(b);
	/* its folder exists; b itself need not be copied */
	return frag_held_copy_folder_of(b->user);
}

FRAG_EXPORT int renameat2(int from, const char *old, int to, const char *path, unsigned flags)
{
	struct place a, b;
	bool held = frag_held_find(&a, from, old, false), too = frag_held_find(&b, to, path, false);

	if (held && too && !strcmp(a.user, b.user))
		return a.mode ? 0 : (errno = ENOENT, -1);
	if (held && too && prepare_rename(&a, &b, flags))
		return -1;
	if (held && !too && (!a.mode || frag_held_copy_all(&a)))
		return errno = a.mode ? errno : ENOENT, -1;
	if (!held && too && (b.mode ? frag_held_copy_folder_of(b.user) : frag_held_make_room(&b)))
		return -1;
	if (held)
		hide(&a);
	if (too && S_ISDIR(a.mode))
		hide(&b);
	if (held || too)
		frag_held_changed();
	return (int)FRAG_SYS(renameat2, held ? AT_FDCWD : from, held ? a.up : old,
			     too ? AT_FDCWD : to, too ? b.up : path, flags);
}
FRAG_EXPORT int renameat(int from, const char *old, int to, const char *path)
{
	return renameat2(from, old, to, path, 0);
}
FRAG_EXPORT int rename(const char *old, const char *path)
{
	return renameat2(AT_FDCWD, old, AT_FDCWD, path, 0);
}
