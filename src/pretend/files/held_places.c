/* SPDX-License-Identifier: Apache-2.0 */
/* Where a program's path leads: to disk, to a copy, or nowhere; see held.h. */
#include "held.h"

#define LINKS_MAX 40

/* readlink as the program sees it. *deep: up may have entries below. */
static ssize_t read_merged(const char *user, char *to, bool *deep)
{
	char up[2 * PATH_MAX];
	ssize_t n;

	if (*deep) {
		frag_held_up(user, up);
		n = frag_held_read_link(up, to);
		if (n >= 0 || errno == EINVAL)
			return n;
		*deep = false;
	}
	n = frag_held_read_link(user, to);
	return n >= 0 && frag_held_is_hidden(user) ? -1 : n;
}

static bool is_too_long(void)
{
	errno = ENAMETOOLONG;
	return false;
}

/* The folder in which a relative path begins. */
static bool begin_at(char *user, int dir)
{
	char link[40];
	ssize_t n;

	if (dir == AT_FDCWD) {
		n = FRAG_SYS(getcwd, user, PATH_MAX);
	} else {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
		n = frag_held_read_link(link, user);
	}
	if (n <= 0 || *user != '/')
		return false;
	frag_held_strip(user);
	if (!user[1])
		*user = '\0';
	return true;
}

/* Resolves p->user. After a missing component, the rest is taken literally. */
static bool walk(struct place *p, int dir, const char *path, bool links)
{
	char rest[2 * PATH_MAX], link[PATH_MAX], *at = rest;
	unsigned followed = 0;
	bool deep = true;

	*p->user = '\0';
	if (*path != '/' && !begin_at(p->user, dir))
		return false;
	if (strlen(path) >= PATH_MAX)
		return is_too_long();
	strcpy(rest, path);
	while (*(at += strspn(at, "/"))) {
		size_t len = strcspn(at, "/"), n = strlen(p->user);
		bool last = !at[len];
		ssize_t got;

		if (len == 1 && *at == '.') {
			at += len;
			continue;
		}
		if (len == 2 && !strncmp(at, "..", 2)) {
			if (n)
				*strrchr(p->user, '/') = '\0';
			deep = true;
			at += len;
			continue;
		}
		if (n + len + 2 > PATH_MAX)
			return is_too_long();
		sprintf(p->user + n, "/%.*s", (int)len, at);
		at += len;
		got = last && !links ? -1 : read_merged(p->user, link, &deep);
		if (got < 0)
			continue;
		if (++followed > LINKS_MAX || (size_t)got + strlen(at) >= sizeof(rest))
			return errno = ELOOP, false;
		p->user[*link == '/' ? 0 : n] = '\0';
		deep = true;
		strcat(link, at); /* both parts are below PATH_MAX */
		at = strcpy(rest, link);
	}
	return true;
}

/* Another hard link to a copied file shares its copy. */
static void find_shared(struct place *p)
{
	char copy[2200];
	struct stat st;

	if (!frag_held->links || !S_ISREG(p->disk.st_mode) || p->disk.st_nlink < 2)
		return;
	sprintf(copy, "%s/links/%llx-%llx", frag_held_root, (long long)p->disk.st_dev,
		(long long)p->disk.st_ino);
	if (!frag_held_look(copy, &st))
		frag_held_copy(p, false);
}

static void look_at(struct place *p)
{
	struct stat st;
	bool there;

	frag_held_up(p->user, p->up);
	p->in_up = !frag_held_look(p->up, &st);
	there = !frag_held_look(*p->user ? p->user : "/", &p->disk);
	p->beneath = there && !frag_held_is_hidden(p->user);
	p->on_disk = p->beneath && (!p->in_up || (S_ISDIR(st.st_mode) && S_ISDIR(p->disk.st_mode)));
	p->hidden = there && !p->on_disk;
	p->mode = p->in_up ? st.st_mode : p->on_disk ? p->disk.st_mode : 0;
	if (p->on_disk && !p->in_up)
		find_shared(p);
}

bool frag_held_find(struct place *p, int dir, const char *path, bool links)
{
	int before = errno;

	if (!frag_held || !path || !*path || (*path == '/' && frag_held_is_exempt(path)))
		return false;
	if (!walk(p, dir, path, links || path[strlen(path) - 1] == '/') ||
	    frag_held_is_exempt(p->user))
		return false;
	look_at(p);
	errno = before;
	return true;
}

bool frag_held_find_fd(struct place *p, int fd)
{
	char link[40], path[PATH_MAX];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return frag_held && frag_held_read_link(link, path) > 0 && *path == '/' &&
	       strncmp(path, frag_held_root, strlen(frag_held_root)) &&
	       frag_held_find(p, AT_FDCWD, path, false);
}

const char *frag_held_path(struct place *p, int *dir, const char *path, unsigned how)
{
	const bool reads = !(how & (HELD_CHANGE | HELD_MAKE));
	int before = errno;

	if (!frag_held || !path || !*path || (reads && !frag_held->changes))
		return path;
	errno = 0;
	if (!frag_held_find(p, *dir, path, !(how & (HELD_LINK | HELD_MAKE)))) {
		if (!reads && (errno == ENAMETOOLONG || errno == ELOOP))
			return NULL;
		return errno = before, path;
	}
	errno = before;
	if (how & HELD_MAKE && frag_held_make_room(p))
		return NULL;
	if (how & HELD_MAKE)
		frag_held_changed();
	if (how & HELD_CHANGE && p->on_disk && !p->in_up && frag_held_copy(p, false))
		return NULL;
	*dir = AT_FDCWD;
	return !reads || p->hidden || (p->in_up && !p->on_disk) ? p->up : *p->user ? p->user : "/";
}

int frag_held_make_room(struct place *p)
{
	struct place folder;
	char *slash = strrchr(p->user, '/');

	if (p->in_up || p->on_disk)
		return errno = EEXIST, -1;
	memcpy(folder.user, p->user, (size_t)(slash - p->user));
	folder.user[slash - p->user] = '\0';
	look_at(&folder);
	if (!S_ISDIR(folder.mode))
		return errno = folder.mode ? ENOTDIR : ENOENT, -1;
	if (frag_held_may_change(&folder) || frag_held_copy_folder(folder.user))
		return -1;
	frag_held_up(p->user, p->up);
	if (!frag_held->changes)
		frag_held_changed();
	return 0;
}
