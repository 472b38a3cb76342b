/* SPDX-License-Identifier: Apache-2.0 */
/* See inject_files.h. */
#include "inject_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <frag/base.h>

#include "base/outfile.h"
#include "base/share.h"

/* The folder for caches. NULL: the environment names none. */
static char *cache_root(void)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	FRAG_AUTO_FREE char *base = NULL;

	if (xdg && *xdg == '/')
		return frag_path_join(xdg, "cufrag");
	if (!home || *home != '/')
		return NULL;
	base = frag_path_join(home, ".cache");
	return base ? frag_path_join(base, "cufrag") : NULL;
}

static int fail_shared(const char *path, struct frag_err *err)
{
	return frag_fail(err, FRAG_EOUTPUT,
			 "'%s' belongs to another user or can be written by others; set "
			 "XDG_CACHE_HOME to a folder of your own",
			 path);
}

/* Only what this user wrote is run by this user's programs. */
static int check_owner(const char *path, struct frag_err *err)
{
	struct stat st;

	if (lstat(path, &st))
		return frag_fail(err, FRAG_EOUTPUT, "cannot use '%s': %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return fail_shared(path, err);
	return 0;
}

/*
 * The folder for all versions, made if it is missing; *root becomes its path without links, which
 * another user may point elsewhere while a program runs. What umask 002 once left to the group is
 * taken back: the folders in it have an owner and are checked themselves.
 */
static int open_root(char **root, struct frag_err *err)
{
	char *slash = strrchr(*root, '/'), *path;
	struct stat st;
	int rc;

	*slash = '\0';
	rc = frag_make_dirs(**root ? *root : "/", err);
	if (rc)
		frag_err_prefix(err, "no cache folder (XDG_CACHE_HOME names another one)");
	if (!rc && !stat(**root ? *root : "/", &st) && st.st_mode & S_IWOTH &&
	    !(st.st_mode & S_ISVTX))
		rc = fail_shared(*root, err);
	*slash = '/';
	if (rc)
		return rc;
	if (mkdir(*root, 0700) && errno != EEXIST)
		return frag_fail(err, FRAG_EOUTPUT, "cannot create folder '%s': %s", *root,
				 strerror(errno));
	if (!lstat(*root, &st) && S_ISLNK(st.st_mode) && st.st_uid && st.st_uid != geteuid())
		return fail_shared(*root, err);
	path = realpath(*root, NULL);
	if (!path)
		return frag_fail(err, FRAG_EOUTPUT, "cannot use '%s': %s", *root, strerror(errno));
	frag_host_free(*root);
	*root = path;
	if (!lstat(*root, &st) && st.st_uid == geteuid() && st.st_mode & S_IWGRP &&
	    !(st.st_mode & S_IWOTH))
		(void)!chmod(*root, st.st_mode & 07777 & ~(mode_t)S_IWGRP);
	return check_owner(*root, err);
}

/* The hash of all files, which make wrote beside them: 16 letters. */
static bool read_key(const char *folder, char *key)
{
	FRAG_AUTO_FREE char *path = frag_path_join(folder, "key");
	FRAG_AUTO_FILE FILE *f = path ? fopen(path, "re") : NULL;

	return f && fread(key, 1, 16, f) == 16 && strspn(key, "0123456789abcdef") == 16;
}

static int find_files(struct frag_inject_files *f, struct frag_err *err)
{
	char name[32] = "pretend-";

	f->folder = frag_share_find("inject", NULL, "key");
	if (!f->folder || !read_key(f->folder, name + strlen(name)))
		return frag_fail(err, FRAG_EOUTPUT,
				 "the files that enter programs are not found near the program: "
				 "set FRAG_SHARE to the folder that holds inject/key "
				 "(share/cufrag of the installation)");
	f->cache = frag_path_join(f->root, name);
	FRAG_CHECK_ALLOC(f->cache, "path", err);
	if (mkdir(f->cache, 0700) && errno != EEXIST)
		return frag_fail(err, FRAG_EOUTPUT, "cannot create folder '%s': %s", f->cache,
				 strerror(errno));
	return check_owner(f->cache, err);
}

int frag_inject_files_open(struct frag_inject_files *f, struct frag_err *err)
{
	int rc;

	*f = (struct frag_inject_files){ .root = cache_root() };
	if (!f->root)
		return frag_fail(err, FRAG_EOUTPUT, "no cache folder: set HOME or XDG_CACHE_HOME");
	rc = open_root(&f->root, err) ?: find_files(f, err);
	if (rc)
		frag_inject_files_release(f);
	return rc;
}

void frag_inject_files_release(struct frag_inject_files *f)
{
	FRAG_FREE(f->root, f->folder, f->cache);
	*f = (struct frag_inject_files){ 0 };
}
