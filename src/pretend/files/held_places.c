/* SPDX-License-Identifier: Apache-2.0 */
/* Where a program's path leads: to disk, to a copy, or nowhere; see held.h. Calls the kernel
 * directly, because the C library's functions are replaced. */
#include "held.h"
#include "protocol_list.inc"

#include <ftw.h>
#include <sys/mman.h>

#define LINKS_MAX 40
#define CLEAN_SLOTS 4096u

struct frag_held_state *frag_held;

static char root[2048], not_held[8192]; /* without trailing slashes; each entry ends with ':' */
static size_t root_len;
/* Cache of folders without held entries: hashes of path and number of changes. */
static uint64_t clean[CLEAN_SLOTS];

FRAG_EXPORT void cufrag_held_into(const char *folder);

static bool is_exempt(const char *path)
{
	if (!strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6) || !strncmp(path, "/sys/", 5))
		return true;
	for (const char *at = not_held, *end; (end = strchr(at, ':')); at = end + 1)
		if (end > at && !strncmp(path, at, (size_t)(end - at)))
			return true;
	return false;
}

/* ---- names of the overlay ------------------------------------------------------------------- */

/* A path that is too long for the kernel becomes a descriptor of its first half, and the rest. */
static void shorten(char *path)
{
	static __thread int last[4] = { -1, -1, -1, -1 };
	static __thread unsigned turn;
	int *fd = &last[turn++ % 4];
	char *cut = path + PATH_MAX / 2, rest[PATH_MAX];

	if (strlen(path) < PATH_MAX || !(cut = strchr(cut, '/')) || strlen(cut) >= sizeof(rest))
		return;
	strcpy(rest, cut);
	*cut = '\0';
	if (*fd >= 0)
		FRAG_SYS(close, *fd);
	*fd = (int)FRAG_SYS(openat, AT_FDCWD, path, O_PATH | O_CLOEXEC);
	sprintf(path, "/proc/self/fd/%d%s", *fd, rest);
}

static void name_in(const char *kind, const char *user, char *name)
{
	sprintf(name, "%s/%s%s", root, kind, user);
	shorten(name);
}

void frag_held_up(const char *user, char *up)
{
	name_in("up", user, up);
}

void frag_held_strip(char *path)
{
	if (root_len && !strncmp(path, root, root_len) && !strncmp(path + root_len, "/up", 3) &&
	    (path[root_len + 3] == '/' || !path[root_len + 3]))
		memmove(path, path[root_len + 3] ? path + root_len + 3 : "/",
			strlen(path + root_len + 3) + 1 + !path[root_len + 3]);
}

static int look(const char *path, struct stat *st)
{
	return (int)FRAG_SYS(newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

static ssize_t read_link(const char *path, char *to)
{
	ssize_t n = FRAG_SYS(readlinkat, AT_FDCWD, path, to, PATH_MAX - 1);

	if (n >= 0)
		to[n] = '\0';
	return n;
}

void frag_held_changed(void)
{
	__atomic_add_fetch(&frag_held->changes, 1, __ATOMIC_SEQ_CST);
}

bool frag_held_is_hidden(const char *user)
{
	char gone[2 * PATH_MAX];
	struct stat st;

	name_in("gone", user, gone);
	return look(gone, &st) ? errno == ENOTDIR : S_ISREG(st.st_mode);
}

static void make_name(char *name, const char *kind)
{
	static unsigned count;

	sprintf(name, "%s/new/%s.%ld.%u", root, kind, syscall(SYS_gettid),
		__atomic_add_fetch(&count, 1, __ATOMIC_RELAXED));
}

void frag_held_hide(const char *user)
{
	char gone[2 * PATH_MAX], aside[2200], folder[PATH_MAX];

	for (const char *at = user + 1; (at = strchr(at, '/')); at++) {
		snprintf(folder, sizeof(folder), "%.*s", (int)(at - user), user);
		name_in("gone", folder, gone);
		FRAG_SYS(mkdirat, AT_FDCWD, gone, 0700);
	}
	name_in("gone", user, gone);
	make_name(aside, "gone");
	FRAG_SYS(mknodat, AT_FDCWD, aside, S_IFREG | 0600, 0);
	if (FRAG_SYS(renameat2, AT_FDCWD, aside, AT_FDCWD, gone, 0) && errno == EISDIR)
		FRAG_SYS(renameat2, AT_FDCWD, aside, AT_FDCWD, gone, RENAME_EXCHANGE);
	frag_held_changed();
}

/* ---- where a path leads ---------------------------------------------------------------------- */

/* readlink as the program sees it. *deep: up may have entries below. */
static ssize_t read_merged(const char *user, char *to, bool *deep)
{
	char up[2 * PATH_MAX];
	ssize_t n;

	if (*deep) {
		frag_held_up(user, up);
		n = read_link(up, to);
		if (n >= 0 || errno == EINVAL)
			return n;
		*deep = false;
	}
	n = read_link(user, to);
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
		n = read_link(link, user);
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
	sprintf(copy, "%s/links/%llx-%llx", root, (long long)p->disk.st_dev,
		(long long)p->disk.st_ino);
	if (!look(copy, &st))
		frag_held_copy(p, false);
}

static void look_at(struct place *p)
{
	struct stat st;
	bool there;

	frag_held_up(p->user, p->up);
	p->in_up = !look(p->up, &st);
	there = !look(*p->user ? p->user : "/", &p->disk);
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

	if (!frag_held || !path || !*path || (*path == '/' && is_exempt(path)))
		return false;
	if (!walk(p, dir, path, links || path[strlen(path) - 1] == '/') || is_exempt(p->user))
		return false;
	look_at(p);
	errno = before;
	return true;
}

bool frag_held_find_fd(struct place *p, int fd)
{
	char link[40], path[PATH_MAX];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return frag_held && read_link(link, path) > 0 && *path == '/' &&
	       strncmp(path, root, root_len) && frag_held_find(p, AT_FDCWD, path, false);
}

/* For a path that is only read: is its folder known to have no held entries? Then only the last
 * component can be a symbolic link. */
static uint64_t *folder_slot(int dir, const char *path, uint64_t *key)
{
	const char *slash = strrchr(path, '/');
	char here[PATH_MAX];
	uint64_t hash = 0x9e3779b97f4a7c15u * (frag_held->changes + 1);

	if (*path != '/') {
		if (!begin_at(here, dir))
			return NULL;
		for (const char *c = here; *c; c++)
			hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
	}
	for (const char *c = path; slash && c <= slash; c++)
		hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
	*key = hash | 1;
	return &clean[(hash ^ hash >> 29) % CLEAN_SLOTS];
}

static void learn(const struct place *p, uint64_t *slot, uint64_t key)
{
	char name[2 * PATH_MAX], folder[PATH_MAX];
	struct stat st;

	strcpy(folder, p->user);
	*strrchr(folder, '/') = '\0';
	frag_held_up(folder, name);
	if (!look(name, &st))
		return;
	name_in("gone", folder, name);
	if (look(name, &st) && errno == ENOENT)
		__atomic_store_n(slot, key, __ATOMIC_RELAXED);
}

static const char *path_to_read(struct place *p, int *dir, const char *path, bool links)
{
	uint64_t *slot, key;
	char link[PATH_MAX];
	int before = errno;

	if (!frag_held->changes || (*path == '/' && is_exempt(path)))
		return path;
	slot = folder_slot(*dir, path, &key);
	if (slot && __atomic_load_n(slot, __ATOMIC_RELAXED) == key && !frag_held->links &&
	    path[strlen(path) - 1] != '/' &&
	    (!links || FRAG_SYS(readlinkat, *dir, path, link, sizeof(link)) < 0))
		return errno = before, path;
	if (!frag_held_find(p, *dir, path, links))
		return errno = before, path;
	if (slot && *p->user)
		learn(p, slot, key);
	errno = before;
	*dir = AT_FDCWD;
	return p->hidden || (p->in_up && !p->on_disk) ? p->up : *p->user ? p->user : "/";
}

const char *frag_held_path(struct place *p, int *dir, const char *path, enum how how)
{
	const bool links = how == READ || how == CHANGE;

	if (!frag_held || !path || !*path)
		return path;
	if (how == READ || how == READ_LINK)
		return path_to_read(p, dir, path, links);
	errno = 0;
	if (!frag_held_find(p, *dir, path, links))
		return errno == ENAMETOOLONG || errno == ELOOP ? NULL : path;
	if (p->on_disk && !p->in_up && frag_held_copy(p, false))
		return NULL;
	*dir = AT_FDCWD;
	return p->up;
}

/* ---- copies ------------------------------------------------------------------------- */

static __thread uint64_t sum;

static int add(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)path, (void)kind, (void)at;
	sum += (uint64_t)st->st_blocks * 512;
	return 0;
}

/* Is there disk space for so many bytes more? */
static bool has_room(uint64_t bytes)
{
	char up[2200];

	sum = 0;
	sprintf(up, "%s/up", root);
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
	return read_link(link, path) >= 0 && !strncmp(path, root, root_len);
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
	if (!look(up, &st))
		return S_ISDIR(st.st_mode) ? 0 : (errno = ENOTDIR, -1);
	for (char *at = user + 1;; at++) {
		char *end = strchr(at, '/');

		if (end)
			*end = '\0';
		frag_held_up(user, up);
		if (look(user, &st))
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
	make_name(made, "copy");
	if (!S_ISREG(p->mode) && !S_ISLNK(p->mode))
		rc = (int)FRAG_SYS(mknodat, AT_FDCWD, made, p->mode, p->disk.st_rdev);
	if (S_ISLNK(p->mode))
		rc = read_link(p->user, link) < 0 || FRAG_SYS(symlinkat, link, AT_FDCWD, made);
	sprintf(shared, "%s/links/%llx-%llx", root, (long long)p->disk.st_dev,
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

bool frag_held_is_merged(const struct place *p)
{
	char gone[2 * PATH_MAX];
	struct stat st;

	name_in("gone", p->user, gone);
	return p->on_disk && S_ISDIR(p->mode) && (p->in_up || !look(gone, &st));
}

/* ---- start ----------------------------------------------------------------------------------- */

/* Switches to this folder; "": writes are not held. Each fork of the fork server has its own. */
FRAG_EXPORT void cufrag_held_into(const char *folder)
{
	const char *exempt = getenv(CUFRAG_HELD_NOT);
	char path[2200];
	void *state;
	int fd;

	if (!folder || !*folder || strlen(folder) >= sizeof(root) || !strcmp(folder, root))
		return;
	root_len = (size_t)sprintf(root, "%s", folder);
	snprintf(not_held, sizeof(not_held), "%s:", exempt ? exempt : "");
	snprintf(path, sizeof(path), "%s/state", root);
	fd = (int)FRAG_SYS(openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
	state = fd < 0 ? MAP_FAILED
		       : mmap(NULL, sizeof(*frag_held), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (state == MAP_FAILED) { /* the recording is over: discard writes */
		static struct frag_held_state none = { .changes = 1 };

		state = &none;
	}
	if (fd >= 0)
		FRAG_SYS(close, fd);
	frag_held = state;
}

static void __attribute__((constructor(101))) begin(void)
{
	cufrag_held_into(getenv(CUFRAG_HELD));
}

/* Adds our variables to a program's environment; `all` has room for 3 more. */
char *const *frag_held_variables(char *const *given, size_t n, char **all)
{
	static char ours[3][sizeof(not_held) + 64];
	static const char *const names[] = { CUFRAG_HELD "=", CUFRAG_HELD_NOT "=", "LD_PRELOAD=" };
	Dl_info self;

	snprintf(ours[0], sizeof(ours[0]), "%s%s", names[0], root);
	snprintf(ours[1], sizeof(ours[1]), "%s%s", names[1], not_held);
	memcpy(all, given, n * sizeof(*all));
	for (size_t i = 0, k; i < 3; i++) {
		for (k = 0; k < n && strncmp(all[k], names[i], strlen(names[i])) != 0;)
			k++;
		if (i == 2 && dladdr((void *)frag_held_variables, &self) &&
		    (k == n || !strstr(all[k], self.dli_fname)))
			snprintf(ours[2], sizeof(ours[2]), "%s%s%s%.6000s", names[2],
				 self.dli_fname, k < n ? ":" : "",
				 k < n ? all[k] + strlen(names[2]) : "");
		else if (k < n)
			continue;
		all[k < n ? k : n] = ours[i];
		n += k == n;
	}
	all[n] = NULL;
	return all;
}
