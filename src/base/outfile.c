/* SPDX-License-Identifier: Apache-2.0 */
/* Output files: open aside, commit by rename, or leave no trace. */
#include "outfile.h"

#include <frag/base.h>

#include <errno.h>
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

static int open_temp(struct frag_outfile *out, struct frag_err *err)
{
	size_t len = strlen(out->path);
	int fd;

	out->temp = frag_host_alloc(len + sizeof(".XXXXXX"));
	if (!out->temp)
		return frag_fail_nomem(err, out->path);
	memcpy(out->temp, out->path, len);
	memcpy(out->temp + len, ".XXXXXX", sizeof(".XXXXXX"));
	fd = mkstemp(out->temp);
	if (fd < 0)
		return frag_fail(err, FRAG_EOUTPUT, "cannot write '%s': %s", out->path,
				 strerror(errno));
	usual_mode(fd);
	out->to = fdopen(fd, "w");
	if (!out->to) {
		close(fd);
		unlink(out->temp);
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

int frag_outfile_commit(struct frag_outfile *out, struct frag_err *err)
{
	int ret = 0, saved = 0;

	errno = 0;
	if (fflush(out->to) || ferror(out->to))
		saved = errno ? errno : EIO;
	if (out->to != stdout && fclose(out->to) && !saved)
		saved = errno;
	if (!saved && out->temp && rename(out->temp, out->path))
		saved = errno;
	if (saved) {
		if (out->temp)
			unlink(out->temp);
		ret = frag_fail(err, FRAG_EOUTPUT, "cannot write '%s': %s", out->path,
				strerror(saved));
	}
	forget(out);
	return ret;
}

void frag_outfile_abort(struct frag_outfile *out)
{
	if (out->to && out->to != stdout)
		fclose(out->to);
	if (out->temp)
		unlink(out->temp);
	forget(out);
}
