/* SPDX-License-Identifier: Apache-2.0 */
/* See share.h. */
#include "base/share.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <frag/base.h>

#include "base/outfile.h"

#define UP_MAX 6

/* base/name, if `file` lies in it. Absolute: programs that are given it change their folder. */
static char *try_folder(const char *base, const char *name, const char *file)
{
	FRAG_AUTO_FREE char *path = frag_path_join(base, name);
	FRAG_AUTO_FREE char *probe = path ? frag_path_join(path, file) : NULL;

	return probe && !access(probe, R_OK) ? realpath(path, NULL) : NULL;
}

char *frag_share_find(const char *name, const char *source, const char *file)
{
	const char *share = getenv("FRAG_SHARE");
	FRAG_AUTO_FREE char *installed = frag_path_join("share/cufrag", name);
	char *found = share && *share ? try_folder(share, name, file) : NULL;
	char exe[4096];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	exe[FRAG_MAX(n, 0)] = '\0';
	for (int up = 0; installed && !found && up < UP_MAX; up++) {
		char *slash = strrchr(exe, '/');

		if (!slash || slash == exe)
			break;
		*slash = '\0';
		found = try_folder(exe, installed, file);
		if (!found && source)
			found = try_folder(exe, source, file);
	}
	return found;
}
