/* SPDX-License-Identifier: Apache-2.0 */
/* See held_runs.h. */
#include "pretend/start/held_runs.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/held_state.h"
#include "base/outfile.h"
#include "base/scratch.h"
#include "inject/launch/launch.h"

/* Files that a run wrote. */
static struct written {
	uint64_t count, bytes;
	char names[200];
} now;

/* In memory that all processes of this command share. */
static struct sums {
	struct written most; /* of the run that wrote most files */
	uint64_t full, unseen;
} * sums;

static const char *held; /* the folder that is looked through */

void frag_held_watch(void)
{
	void *room = mmap(NULL, sizeof(*sums), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);

	sums = room == MAP_FAILED ? NULL : room;
	/* cppcheck-suppress memleak ; it stays to the end of the program */
}

/* The first few, as seen from here. */
static void add_name(const char *path)
{
	FRAG_AUTO_FREE char *here = realpath(".", NULL);
	size_t len = here ? strlen(here) : 0, used = strlen(now.names);

	if (len && !strncmp(path, here, len) && path[len] == '/')
		path += len + 1;
	if (now.count > 3 || used + strlen(path) + 3 > sizeof(now.names) - 8)
		snprintf(now.names + used, sizeof(now.names) - used, ", …");
	else
		snprintf(now.names + used, sizeof(now.names) - used, "%s%s", used ? ", " : "",
			 path);
}

/* Python's compiled files, and copies that stayed as they were, are nothing that the program wrote. */
static int add(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	const char *user = path + strlen(held) + strlen("/up");
	struct stat disk;

	(void)kind, (void)at;
	if (!S_ISREG(st->st_mode) || strstr(user, "/__pycache__/") ||
	    (!lstat(user, &disk) && disk.st_size == st->st_size &&
	     disk.st_mtim.tv_sec == st->st_mtim.tv_sec &&
	     disk.st_mtim.tv_nsec == st->st_mtim.tv_nsec))
		return 0;
	now.bytes += (uint64_t)st->st_size;
	if (++now.count <= 4)
		add_name(user);
	return 0;
}

void frag_held_say(void (*note)(const void *ctx, const char *text), const void *ctx)
{
	const struct written *w = sums ? &sums->most : &now;
	const bool one = w->count == 1;
	char text[600];

	snprintf(text, sizeof(text),
		 "%llu %s (%s) that the program wrote %s held back: %s; --keep-writes keeps %s",
		 (unsigned long long)w->count, one ? "file" : "files", FRAG_BYTES(w->bytes),
		 one ? "was" : "were", w->names, one ? "it" : "them");
	if (w->count)
		note(ctx, text);
	if (sums && sums->full)
		note(ctx, "for more there was no room (--writes-max, TMPDIR): the program was told "
			  "that the disk is full");
	snprintf(text, sizeof(text),
		 "the program started %llu that %s: what they wrote was not held back",
		 sums ? (unsigned long long)sums->unseen : 0,
		 sums && sums->unseen == 1 ? "is linked statically or has other rights"
					   : "are linked statically or have other rights");
	if (sums && sums->unseen)
		note(ctx, text);
}

/* ---- one run ------------------------------------------------------------------------------- */

static bool holds(const struct frag_hold *h)
{
	return !h->keep || *h->keep;
}

int frag_held_make(const char *folder, uint64_t most_bytes, struct frag_err *err)
{
	static const char *const parts[] = { "tmp",	  "held",	"held/up",
					     "held/gone", "held/links", "held/new" };
	const struct frag_held_state state = { .most_bytes = most_bytes };
	char path[4200];

	for (size_t i = 0; i < FRAG_ARRAY_LEN(parts); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, parts[i]);
		if (mkdir(path, 0700) && errno != EEXIST)
			return frag_fail(err, FRAG_EOUTPUT, "cannot create folder '%s': %s", path,
					 strerror(errno));
	}
	snprintf(path, sizeof(path), "%s/held/state", folder);
	return frag_outfile_put(path, (const char *)&state, sizeof(state), err);
}

int frag_held_begin(const struct frag_hold *h, const char *folder,
		    const struct frag_inject_files *files, struct frag_err *err)
{
	FRAG_AUTO_FREE char *library = frag_path_join(files->folder, FRAG_HELD_LIBRARY);

	if (!holds(h))
		return 0;
	FRAG_CHECK_ALLOC(library, "path", err);
	if (!frag_launch_can_preload(library))
		return frag_fail(err, FRAG_EUSAGE,
				 "files cannot be protected from the program, as '%s' has a blank "
				 "or a colon in its name: set XDG_CACHE_HOME to another folder, or "
				 "let it write (--keep-writes)",
				 library);
	return frag_held_make(folder, h->most_bytes, err);
}

void frag_held_end(const struct frag_hold *h, const char *folder)
{
	char root[4200], path[4300];
	struct frag_held_state state = { 0 };
	FRAG_AUTO_FILE FILE *f = NULL;

	if (!holds(h))
		return;
	snprintf(root, sizeof(root), "%s/held", folder);
	snprintf(path, sizeof(path), "%s/state", root);
	f = fopen(path, "re");
	if (f && sums && fread(&state, sizeof(state), 1, f) == 1) {
		sums->full |= state.full;
		sums->unseen = FRAG_MAX(sums->unseen, state.unseen);
		now = (struct written){ 0 };
		held = root;
		snprintf(path, sizeof(path), "%s/up", root);
		nftw(path, add, 16, FTW_PHYS);
		if (now.count > sums->most.count)
			sums->most = now;
	}
	frag_scratch_remove_folder(root);
	snprintf(path, sizeof(path), "%s/tmp", folder);
	frag_scratch_remove_folder(path);
}

/* Programs that would tell others of themselves are asked to stay here, by their own variables. */
static void put_trackers(const char *temp)
{
	static const char *const trackers[][2] = {
		{ "WANDB_MODE", "offline" },	 { "HF_HUB_OFFLINE", "1" },
		{ "TRANSFORMERS_OFFLINE", "1" }, { "HF_DATASETS_OFFLINE", "1" },
		{ "NEPTUNE_MODE", "offline" },	 { "COMET_MODE", "offline" },
		{ "COMET_START_ONLINE", "0" },	 { "CLEARML_OFFLINE_MODE", "1" }
	};
	static const char *const folders[] = { "WANDB_DIR", "COMET_OFFLINE_DIRECTORY",
					       "MLFLOW_TRACKING_URI" };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(trackers); i++)
		setenv(trackers[i][0], trackers[i][1], 0);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(folders); i++)
		setenv(folders[i], temp, 0);
}

/* The policy's own file, the one it is renamed from, and those of other cards begin alike: up to
 * the name's last dot (policies/adapt_log.c). */
static void exempt_own(const char *file, char *list, size_t cap)
{
	const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
	const char *dot = strrchr(name, '.');
	FRAG_AUTO_FREE char *full = NULL;
	size_t n = strlen(list);
	char folder[4096];

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(name - file) : 1,
		 slash ? file : ".");
	full = realpath(folder, NULL);
	if (full)
		snprintf(list + n, cap - n, ":%s/%.*s", full,
			 dot ? (int)(dot + 1 - name) : (int)strlen(name), name);
}

void frag_held_put(const struct frag_hold *h, const char *folder,
		   const struct frag_inject_files *files)
{
	const char *temp = getenv("TMPDIR");
	FRAG_AUTO_FREE char *library = frag_path_join(files->folder, FRAG_HELD_LIBRARY);
	FRAG_AUTO_FREE char *keep = holds(h) && h->keep ? realpath(h->keep, NULL) : NULL;
	FRAG_AUTO_FREE char *own = realpath(folder, NULL),
			    *temps = realpath(temp && *temp ? temp : "/tmp", NULL);
	char path[8500];

	if (library)
		frag_launch_preload(library);
	if (!holds(h) || !own || !temps)
		return;
	frag_launch_put_path(CUFRAG_HELD, own, "held");
	/* folders of cufrag: its cache, and those of a recording */
	snprintf(path, sizeof(path), "%s/:%s/:%s/cufrag-record-:%s/.cufrag-:%s%s", own, files->root,
		 temps, temps, keep ? keep : "", keep ? "/" : "");
	if (h->own)
		exempt_own(h->own, path, sizeof(path));
	setenv(CUFRAG_HELD_NOT, path, 1);
	snprintf(path, sizeof(path), "%s/tmp", own);
	setenv("TMPDIR", path, 1);
	put_trackers(path);
}
