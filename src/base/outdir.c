/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files at once, folders and paths. */
#include "outfile.h"

#include <frag/base.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

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
			ret = frag_fail(err, FRAG_EOUTPUT, "cannot create folder '%s': %s", copy,
					strerror(errno));
			break;
		}
		*p = kept;
		if (!kept)
			break;
	}
	if (!ret && (stat(path, &st) || !S_ISDIR(st.st_mode)))
		ret = frag_fail(err, FRAG_EOUTPUT, "'%s' is not a folder", path);
	return ret;
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
