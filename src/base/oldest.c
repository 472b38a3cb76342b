/* SPDX-License-Identifier: Apache-2.0 */
/* See oldest.h. */
#include "base/oldest.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <frag/base.h>

struct file {
	char name[48]; /* those of a cache are short */
	int64_t used;
	uint64_t bytes;
};

FRAG_COMPARE(newest_first, struct file, FRAG_ORDER(y->used, x->used))

static size_t list_files(DIR *dir, struct file *list, size_t cap)
{
	struct dirent *entry;
	size_t count = 0;

	while (count < cap && (entry = readdir(dir))) {
		struct file *f = &list[count];
		struct stat st;

		if (snprintf(f->name, sizeof(f->name), "%s", entry->d_name) >=
			    (int)sizeof(f->name) ||
		    fstatat(dirfd(dir), f->name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		f->used = st.st_atime;
		f->bytes = (uint64_t)st.st_size;
		count++;
	}
	return count;
}

void frag_remove_oldest(const char *folder, size_t count, uint64_t bytes, int64_t in_use_s)
{
	FRAG_AUTO_FREE struct file *list = frag_host_calloc(2 * count, sizeof(*list));
	DIR *dir = list ? opendir(folder) : NULL;
	uint64_t taken = 0;
	size_t there;

	if (!dir)
		return;
	there = list_files(dir, list, 2 * count);
	qsort(list, there, sizeof(*list), newest_first);
	for (size_t i = 0; i < there; i++) {
		taken += list[i].bytes;
		if ((i >= count || taken > bytes) && list[i].used <= time(NULL) - in_use_s)
			unlinkat(dirfd(dir), list[i].name, 0);
	}
	closedir(dir);
}
