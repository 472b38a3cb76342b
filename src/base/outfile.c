/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output files: open aside, commit by rename, or leave no trace. Where the file system can, what is
 * written has no name until it is complete, so that nothing is left of a program that is killed;
 * elsewhere it has the target's name with an ending.
 */
#include "outfile.h"

#include <frag/base.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void forget(struct frag_outfile *out)
{
	frag_host_free(out->path);
	frag_host_free(out->temp);
	memset(out, 0, sizeof(*out));
}

/* The file gets the permissions that open(2) with 0666 would have given; mkstemp gives 0600. */
static void usual_mode(int fd)
{
	mode_t mask = umask(0);

	umask(mask);
	(void)!fchmod(fd, 0666 & ~mask);
}

/* "PATH.XXXXXX" */
static int temp_name(struct frag_outfile *out, struct frag_err *err)
{
	size_t len = strlen(out->path);

	out->temp = frag_host_alloc(len + sizeof(".XXXXXX"));
	if (!out->temp)
		return frag_fail_nomem(err, out->path);
	memcpy(out->temp, out->path, len);
	memcpy(out->temp + len, ".XXXXXX", sizeof(".XXXXXX"));
	return 0;
}

/* A file without a name in the folder of the target; -1 where there is no such thing. */
static int open_nameless(const char *path)
{
	const char *slash = strrchr(path, '/');
	FRAG_FREED char *folder = slash ? frag_host_strdup(path) : NULL;
	int fd = -1;

	if (folder)
		folder[slash == path ? 1 : slash - path] = '\0';
	/* it is linked through here when it is complete */
	if (!access("/proc/self/fd", X_OK) && (folder || !slash))
		fd = open(folder ? folder : ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
	return fd;
}

static int open_temp(struct frag_outfile *out, struct frag_err *err)
{
	int fd = open_nameless(out->path);

	out->nameless = fd >= 0;
	FRAG_TRY(temp_name(out, err));
	if (!out->nameless) {
		fd = mkstemp(out->temp);
		if (fd < 0)
			return frag_fail(err, FRAG_EOUTPUT, "cannot write '%s': %s", out->path,
					 strerror(errno));
		usual_mode(fd);
	}
	out->to = fdopen(fd, "w");
	if (!out->to) {
		close(fd);
		if (!out->nameless)
			unlink(out->temp);
		return frag_fail_nomem(err, out->path);
	}
	return 0;
}

/* Gives the complete file a name beside the target. 0 or an errno. */
static int name_it(struct frag_outfile *out)
{
	char fd[64];
	size_t len = strlen(out->path);

	snprintf(fd, sizeof(fd), "/proc/self/fd/%d", fileno(out->to));
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(out->temp + len, sizeof(".XXXXXX"), ".%06x",
			 ((unsigned)getpid() * 1000u + i) & 0xffffffu);
		if (!linkat(AT_FDCWD, fd, AT_FDCWD, out->temp, AT_SYMLINK_FOLLOW)) {
			out->nameless = false;
			return 0;
		}
		if (errno != EEXIST)
			break;
	}
	return errno;
}

int frag_outfile_open(struct frag_outfile *out, const char *path, struct frag_err *err)
{
	struct stat st;
	int ret;

	memset(out, 0, sizeof(*out));
	out->path = frag_host_strdup(path);
	if (!out->path)
		return frag_fail_nomem(err, path);
	if (!strcmp(path, "-")) {
		out->to = stdout;
		return 0;
	}
	/* A device or pipe (/dev/stdout, a FIFO) cannot be renamed over: write it directly. */
	if (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		out->to = fopen(path, "w");
		ret = out->to ? 0
			      : frag_fail(err, FRAG_EOUTPUT, "cannot write '%s': %s", path,
					  strerror(errno));
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
	/* what failed before left a mark but no reason: a byte more meets the same one */
	if (!reason && ferror(to))
		reason = write(fileno(to), "\n", 1) < 0 ? errno : EIO;
	if (reason) {
		/* said once: nobody shall try the rest again */
		__fpurge(to);
		clearerr(to);
	}
	return reason;
}

int frag_outfile_commit(struct frag_outfile *out, struct frag_err *err)
{
	int ret = 0, saved = frag_outfile_reason(out->to);

	if (!saved && out->temp && out->nameless)
		saved = name_it(out);
	if (out->to != stdout && fclose(out->to) && !saved)
		saved = errno;
	if (!saved && out->temp && rename(out->temp, out->path))
		saved = errno;
	if (saved) {
		if (out->temp && !out->nameless)
			unlink(out->temp);
		ret = out->to == stdout
			      ? frag_fail(err, FRAG_EOUTPUT, "cannot write standard output: %s",
					  strerror(saved))
			      : frag_fail(err, FRAG_EOUTPUT, "cannot write '%s': %s", out->path,
					  strerror(saved));
	}
	forget(out);
	return ret;
}

void frag_outfile_abort(struct frag_outfile *out)
{
	if (out->to && out->to != stdout)
		fclose(out->to);
	if (out->temp && !out->nameless)
		unlink(out->temp);
	forget(out);
}
