/* SPDX-License-Identifier: Apache-2.0 */
/* The files of src/inside in the user's cache; see inside_files.h. */
#include "inside_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include <frag/base.h>

#include "base/outfile.h"
#include "base/scratch.h"

/* Bytes of each file, from obj/inside_files_data.o. */
#define FRAG_ENTRY(name, number) \
	extern const char frag_inside_file_##number[], frag_inside_file_##number##_end[];
#include "inside_file_list.inc"
#undef FRAG_ENTRY

static const struct {
	const char *name, *begin, *end;
} files[] = {
#define FRAG_ENTRY(name, number) \
	{ name, frag_inside_file_##number, frag_inside_file_##number##_end },
#include "inside_file_list.inc"
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
static int make_folder(const char *root, const char *folder, struct frag_err *err)
{
	char *aside;
	int rc = frag_scratch_folder(root, &aside);

	if (rc)
		return frag_fail(err, FRAG_EOUTPUT, "cannot create a folder beside '%s': %s",
				 folder, strerror(rc));
	rc = write_files(aside, err);
	if (!rc && !rename(aside, folder)) {
		frag_scratch_done(aside);
		return 0;
	}
	if (!rc && errno != ENOTEMPTY && errno != EEXIST)
		rc = frag_fail(err, FRAG_EOUTPUT, "cannot create '%s': %s", folder,
			       strerror(errno));
	frag_scratch_remove(aside);
	return rc;
}

int frag_inside_files_open(struct frag_inside_files *f, struct frag_err *err)
{
	char *root = cache_root(), name[64];
	int rc = 0;

	*f = (struct frag_inside_files){ 0 };
	if (!root)
		return frag_fail(err, FRAG_EOUTPUT, "no cache folder: set HOME or XDG_CACHE_HOME");
	snprintf(name, sizeof(name), "nogpu-%016llx", (unsigned long long)files_hash());
	f->folder = frag_path_join(root, name);
	f->cache = f->folder ? frag_path_join(f->folder, "wheels") : NULL;
	if (!f->cache)
		rc = frag_fail_nomem(err, "path");
	if (!rc && access(f->folder, F_OK)) {
		rc = frag_make_dirs(root, err);
		if (rc)
			frag_err_prefix(err, "no cache folder (XDG_CACHE_HOME names another one)");
		rc = rc ?: check_owner(root, err) ?: make_folder(root, f->folder, err);
	}
	if (!rc)
		rc = check_owner(root, err);
	if (!rc)
		rc = check_owner(f->folder, err);
	if (!rc && !is_whole(f->folder))
		rc = write_files(f->folder, err);
	frag_host_free(root);
	if (rc)
		frag_inside_files_release(f);
	return rc;
}

void frag_inside_files_release(struct frag_inside_files *f)
{
	FRAG_FREE(f->folder, f->cache);
	*f = (struct frag_inside_files){ 0 };
}
