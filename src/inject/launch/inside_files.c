/* SPDX-License-Identifier: Apache-2.0 */
/* The files of src/inject in the user's cache; see inside_files.h. */
#include "inside_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
 * The folder for all versions, made if it is missing; *root becomes its path without links, which another user may point
 * elsewhere while a program runs. What umask 002 once left to the group is taken back: the folders in it have an
 * owner and are checked themselves.
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

static int write_files(const char *folder, struct frag_err *err)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(files); i++) {
		FRAG_AUTO_FREE char *path = frag_path_join(folder, files[i].name);
		const char *slash = strrchr(files[i].name, '/');

		FRAG_CHECK_ALLOC(path, "path", err);
		if (slash) {
			path[strlen(path) - strlen(slash)] = '\0';
			FRAG_TRY(frag_make_dirs(path, err));
			path[strlen(path)] = '/';
		}
		FRAG_TRY(frag_outfile_put(path, files[i].begin, file_bytes(i), err));
		if (!strncmp(files[i].name, "bin/", 4) && chmod(path, 0755))
			return frag_fail(err, FRAG_EOUTPUT, "cannot make '%s' executable: %s", path,
					 strerror(errno));
	}
	return 0;
}

static bool is_same(const char *path, const void *bytes, size_t count)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *found = MAP_FAILED;
	bool same =
		fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && (size_t)st.st_size == count;

	if (same && count) {
		found = mmap(NULL, count, PROT_READ, MAP_PRIVATE, fd, 0);
		same = found != MAP_FAILED && !memcmp(found, bytes, count);
	}
	if (found != MAP_FAILED)
		munmap(found, count);
	if (fd >= 0)
		close(fd);
	return same;
}

/* Those who tidy up in caches take single files, and a crash leaves zeros in place of what was not on the disk yet. */
static bool is_whole(const char *folder)
{
	bool whole = true;

	for (size_t i = 0; whole && i < FRAG_ARRAY_LEN(files); i++) {
		FRAG_AUTO_FREE char *path = frag_path_join(folder, files[i].name);

		whole = path && is_same(path, files[i].begin, file_bytes(i));
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
	char name[64];
	int rc;

	*f = (struct frag_inside_files){ .root = cache_root() };
	if (!f->root)
		return frag_fail(err, FRAG_EOUTPUT, "no cache folder: set HOME or XDG_CACHE_HOME");
	snprintf(name, sizeof(name), "nogpu-%016llx", (unsigned long long)files_hash());
	rc = open_root(&f->root, err);
	f->folder = rc ? NULL : frag_path_join(f->root, name);
	f->cache = f->folder ? frag_path_join(f->folder, "wheels") : NULL;
	if (!rc && !f->cache)
		rc = frag_fail_nomem(err, "path");
	if (!rc && access(f->folder, F_OK))
		rc = make_folder(f->root, f->folder, err);
	if (!rc)
		rc = check_owner(f->folder, err);
	if (!rc && !is_whole(f->folder))
		rc = write_files(f->folder, err);
	if (rc)
		frag_inside_files_release(f);
	return rc;
}

void frag_inside_files_release(struct frag_inside_files *f)
{
	FRAG_FREE(f->root, f->folder, f->cache);
	*f = (struct frag_inside_files){ 0 };
}
