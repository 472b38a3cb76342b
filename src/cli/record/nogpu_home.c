/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of the pretended card, which the program carries inside, in the user's cache:
 *
 *	$XDG_CACHE_HOME/cufrag (~/.cache/cufrag)
 *	  nogpu-<hash of the files>/		written once, complete or not at all
 *	  nogpu-<hash of the files>/wheels/	made by cufrag_card.py for each PyTorch
 */
#include "record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/scratch.h"

/* Bytes of each file, from obj/nogpu_files.o. */
#define FRAG_ENTRY(name, number) \
	extern const char frag_nogpu_file_##number[], frag_nogpu_file_##number##_end[];
#include "nogpu_file_list.inc"
#undef FRAG_ENTRY

static const struct {
	const char *name, *begin, *end;
} files[] = {
#define FRAG_ENTRY(name, number) { name, frag_nogpu_file_##number, frag_nogpu_file_##number##_end },
#include "nogpu_file_list.inc"
#undef FRAG_ENTRY
};

static size_t file_bytes(size_t i)
{
	return (size_t)(files[i].end - files[i].begin);
}

static uint64_t files_hash(void)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(files); i++)
		hash = XXH3_64bits_withSeed(files[i].begin, file_bytes(i), hash);
	return hash;
}

/* The folder for caches. NULL: the environment names none. */
static char *cache_root(void)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *base = NULL, *root;

	if (xdg && *xdg == '/')
		return frag_path_join(xdg, "cufrag");
	if (!home || *home != '/')
		return NULL;
	base = frag_path_join(home, ".cache");
	root = base ? frag_path_join(base, "cufrag") : NULL;
	frag_host_free(base);
	return root;
}

/* Only what this user wrote is run by this user's programs. */
static int check_owner(const char *path, struct frag_err *err)
{
	struct stat st;

	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return frag_fail(err, FRAG_EOUTPUT, "cannot use '%s': %s", path, strerror(errno));
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return frag_fail(err, FRAG_EOUTPUT,
				 "'%s' belongs to another user or can be written by others; set "
				 "XDG_CACHE_HOME to a folder of your own",
				 path);
	return 0;
}

static int write_files(const char *folder, struct frag_err *err)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(files); i++) {
		char *path = frag_path_join(folder, files[i].name);
		const char *slash = strrchr(files[i].name, '/');
		int rc = path ? 0 : frag_fail_nomem(err, "path");

		if (!rc && slash) {
			path[strlen(path) - strlen(slash)] = '\0';
			rc = frag_make_dirs(path, err);
			path[strlen(path)] = '/';
		}
		if (!rc)
			rc = frag_outfile_put(path, files[i].begin, file_bytes(i), err);
		frag_host_free(path);
		FRAG_TRY(rc);
	}
	return 0;
}

/* Those who tidy up in caches take single files. */
static bool is_whole(const char *folder)
{
	bool whole = true;

	for (size_t i = 0; whole && i < FRAG_ARRAY_LEN(files); i++) {
		FRAG_AUTO_FREE char *path = frag_path_join(folder, files[i].name);
		struct stat st;

		whole = path && !stat(path, &st) && (size_t)st.st_size == file_bytes(i);
	}
	return whole;
}

/* Beside, then renamed: two may do it at once, and the second finds it done. */
static int make_home(const char *root, const char *home, struct frag_err *err)
{
	char *aside;
	int rc = frag_scratch_folder(root, &aside);

	if (rc)
		return frag_fail(err, FRAG_EOUTPUT, "cannot create a folder beside '%s': %s", home,
				 strerror(rc));
	rc = write_files(aside, err);
	if (!rc && !rename(aside, home)) {
		frag_scratch_done(aside);
		return 0;
	}
	if (!rc && errno != ENOTEMPTY && errno != EEXIST)
		rc = frag_fail(err, FRAG_EOUTPUT, "cannot create '%s': %s", home, strerror(errno));
	frag_scratch_remove(aside);
	return rc;
}

int frag_nogpu_home_open(struct frag_nogpu_home *h, struct frag_err *err)
{
	char *root = cache_root(), name[64];
	int rc = 0;

	*h = (struct frag_nogpu_home){ 0 };
	if (!root)
		return frag_fail(err, FRAG_EOUTPUT,
				 "no folder for caches: set HOME or XDG_CACHE_HOME");
	snprintf(name, sizeof(name), "nogpu-%016llx", (unsigned long long)files_hash());
	h->home = frag_path_join(root, name);
	h->cache = h->home ? frag_path_join(h->home, "wheels") : NULL;
	if (!h->cache)
		rc = frag_fail_nomem(err, "path");
	if (!rc && access(h->home, F_OK)) {
		rc = frag_make_dirs(root, err);
		if (rc)
			frag_err_prefix(err, "no folder for caches (XDG_CACHE_HOME can name "
					     "another)");
		rc = rc ?: check_owner(root, err) ?: make_home(root, h->home, err);
	}
	if (!rc)
		rc = check_owner(root, err);
	if (!rc)
		rc = check_owner(h->home, err);
	if (!rc && !is_whole(h->home))
		rc = write_files(h->home, err);
	frag_host_free(root);
	if (rc)
		frag_nogpu_home_release(h);
	return rc;
}

void frag_nogpu_home_release(struct frag_nogpu_home *h)
{
	FRAG_FREE(h->home, h->cache);
	*h = (struct frag_nogpu_home){ 0 };
}
