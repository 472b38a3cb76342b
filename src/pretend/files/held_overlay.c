/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of held files, and names in it; see held.h. It calls the kernel directly, because the
 * C library's functions are replaced. */
#include "held.h"
#include "protocol_list.inc"

#include <sys/mman.h>

struct frag_held_state *frag_held;

char frag_held_root[2048];
static char not_held[8192]; /* each entry ends with ':' */
static size_t root_len;

FRAG_EXPORT void cufrag_held_into(const char *folder);

bool frag_held_is_exempt(const char *path)
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
	sprintf(name, "%s/%s%s", frag_held_root, kind, user);
	shorten(name);
}

void frag_held_up(const char *user, char *up)
{
	name_in("up", user, up);
}

void frag_held_strip(char *path)
{
	if (root_len && !strncmp(path, frag_held_root, root_len) &&
	    !strncmp(path + root_len, "/up", 3) &&
	    (path[root_len + 3] == '/' || !path[root_len + 3]))
		memmove(path, path[root_len + 3] ? path + root_len + 3 : "/",
			strlen(path + root_len + 3) + 1 + !path[root_len + 3]);
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
	return frag_held_look(gone, &st) ? errno == ENOTDIR : S_ISREG(st.st_mode);
}

void frag_held_make_name(char *name, const char *kind)
{
	static unsigned count;

	sprintf(name, "%s/new/%s.%ld.%u", frag_held_root, kind, syscall(SYS_gettid),
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
	frag_held_make_name(aside, "gone");
	FRAG_SYS(mknodat, AT_FDCWD, aside, S_IFREG | 0600, 0);
	if (FRAG_SYS(renameat2, AT_FDCWD, aside, AT_FDCWD, gone, 0) && errno == EISDIR)
		FRAG_SYS(renameat2, AT_FDCWD, aside, AT_FDCWD, gone, RENAME_EXCHANGE);
	frag_held_changed();
}

bool frag_held_is_merged(const struct place *p)
{
	char gone[2 * PATH_MAX];
	struct stat st;

	name_in("gone", p->user, gone);
	return p->on_disk && S_ISDIR(p->mode) && (p->in_up || !frag_held_look(gone, &st));
}

/* ---- start ----------------------------------------------------------------------------------- */

/* Switches to this folder; "": writes are not held. Each fork of the fork server has its own. */
FRAG_EXPORT void cufrag_held_into(const char *folder)
{
	const char *exempt = getenv(CUFRAG_HELD_NOT);
	char path[2200];
	void *state;
	int fd;

	if (!folder || !*folder || strlen(folder) >= sizeof(frag_held_root) ||
	    !strcmp(folder, frag_held_root))
		return;
	root_len = (size_t)sprintf(frag_held_root, "%s", folder);
	snprintf(not_held, sizeof(not_held), "%s:", exempt ? exempt : "");
	snprintf(path, sizeof(path), "%s/state", frag_held_root);
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

	snprintf(ours[0], sizeof(ours[0]), "%s%s", names[0], frag_held_root);
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
