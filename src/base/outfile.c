/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output files: written to a temporary file, then renamed, or removed without a trace.
 */
#include "outfile.h"

#include <frag/base.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scratch.h"

static void forget(struct frag_outfile *out)
{
	frag_host_free(out->path);
	memset(out, 0, sizeof(*out));
}

/* The file gets the permissions that open(2) with 0666 would have given; mkstemp gives 0600. */
static void usual_mode(int fd)
{
	mode_t mask = umask(0);

	umask(mask);
	(void)!fchmod(fd, 0666 & ~mask);
}

/* Folder of the target. NULL if memory is short. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = frag_host_strdup(slash ? path : ".");

	if (folder && slash)
		folder[slash == path ? 1 : slash - path] = '\0';
	return folder;
}

static int open_temp(struct frag_outfile *out, struct frag_err *err)
{
	FRAG_AUTO_FREE char *folder = folder_of(out->path);
	int fd = -1, reason;

	FRAG_CHECK_ALLOC(folder, out->path, err);
	reason = frag_scratch_file(folder, &out->temp, &fd);
	if (reason == ENOMEM)
		return frag_fail_nomem(err, out->path);
	if (reason)
		return FRAG_OUTPUT(err, "cannot write '%s': %s", out->path, strerror(reason));
	usual_mode(fd);
	out->to = fdopen(fd, "w");
	if (!out->to) {
		close(fd);
		frag_scratch_remove(out->temp);
		return frag_fail_nomem(err, out->path);
	}
	return 0;
}

int frag_outfile_open(struct frag_outfile *out, const char *path, struct frag_err *err)
{
	struct stat st;
	int ret;

	memset(out, 0, sizeof(*out));
	out->path = frag_host_strdup(path);
	FRAG_CHECK_ALLOC(out->path, path, err);
	if (!strcmp(path, "-")) {
		out->to = stdout;
		return 0;
	}
	/* A device or pipe (/dev/stdout, a FIFO) cannot be replaced by renaming: write to it. */
	if (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		out->to = fopen(path, "w");
		ret = out->to ? 0
			      : FRAG_OUTPUT(err, "cannot write '%s': %s", path, strerror(errno));
	} else {
		ret = open_temp(out, err);
	}
	if (ret)
		forget(out);
	return ret;
}

int frag_outfile_reason(FILE *to)
{
	int reason = 0;

	errno = 0;
	if (fflush(to))
		reason = errno ? errno : EIO;
	/* an earlier failure left a flag but no errno: one more byte fails for the same reason */
	if (!reason && ferror(to))
		reason = write(fileno(to), "\n", 1) < 0 ? errno : EIO;
	if (reason) {
		/* reported once: do not write the rest again */
		__fpurge(to);
		clearerr(to);
	}
	return reason;
}

int frag_outfile_commit(struct frag_outfile *out, struct frag_err *err)
{
	int ret = 0, saved = frag_outfile_reason(out->to);

	if (out->to != stdout && fclose(out->to) && !saved)
		saved = errno;
	if (!saved && out->temp && rename(out->temp, out->path))
		saved = errno;
	if (!saved)
		frag_scratch_done(out->temp);
	else
		frag_scratch_remove(out->temp);
	if (saved)
		ret = out->to == stdout ? FRAG_OUTPUT(err, "cannot write standard output: %s",
						      strerror(saved))
					: FRAG_OUTPUT(err, "cannot write '%s': %s", out->path,
						      strerror(saved));
	forget(out);
	return ret;
}

void frag_outfile_abort(struct frag_outfile *out)
{
	if (out->to && out->to != stdout)
		fclose(out->to);
	frag_scratch_remove(out->temp);
	forget(out);
}

/* ---- whole files at once, folders and paths ---- */

int frag_outfile_put(const char *path, const char *bytes, size_t len, struct frag_err *err)
{
	struct frag_outfile out;

	FRAG_TRY(frag_outfile_open(&out, path, err));
	fwrite(bytes, 1, len, out.to);
	return frag_outfile_commit(&out, err);
}

int frag_make_dirs(const char *path, struct frag_err *err)
{
	FRAG_AUTO_FREE char *copy = frag_host_strdup(path);
	struct stat st;
	int ret = 0;

	FRAG_CHECK_ALLOC(copy, path, err);
	for (char *p = copy + 1; *copy; p++) {
		char kept = *p;

		if (kept && kept != '/')
			continue;
		*p = '\0';
		if (mkdir(copy, 0777) && errno != EEXIST) {
			ret = FRAG_OUTPUT(err, "cannot create folder '%s': %s", copy,
					  strerror(errno));
			break;
		}
		*p = kept;
		if (!kept)
			break;
	}
	if (!ret && (stat(path, &st) || !S_ISDIR(st.st_mode)))
		ret = FRAG_OUTPUT(err, "'%s' is not a folder", path);
	return ret;
}

int frag_can_make_dirs(const char *path, struct frag_err *err)
{
	FRAG_AUTO_FREE char *at = frag_host_strdup(path);
	struct stat st;

	while (at && stat(at, &st) && errno == ENOENT) {
		char *below = at;

		at = folder_of(below);
		frag_host_free(below);
	}
	FRAG_CHECK_ALLOC(at, path, err);
	if (!stat(path, &st) && !S_ISDIR(st.st_mode))
		return FRAG_OUTPUT(err, "'%s' is not a folder", path);
	return !access(at, W_OK | X_OK)
		       ? 0
		       : FRAG_OUTPUT(err, "cannot create folder '%s': %s", path, strerror(errno));
}

size_t frag_path_shared(const char *a, const char *b)
{
	size_t folder = 0;

	for (size_t i = 0; a[i] && a[i] == b[i]; i++)
		folder = a[i] == '/' ? i + 1 : folder;
	return folder;
}

char *frag_path_join(const char *dir, const char *name)
{
	size_t d = strlen(dir), n = strlen(name);
	bool slash = d && dir[d - 1] != '/';
	char *path = frag_host_alloc(d + slash + n + 1);

	if (!path)
		return NULL;
	memcpy(path, dir, d);
	if (slash)
		path[d] = '/';
	memcpy(path + d + slash, name, n + 1);
	return path;
}
