/* SPDX-License-Identifier: Apache-2.0 */
/* See family_memory.h: /proc is read once, then children are followed. */
#include "family_memory.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/proc.h"
#include "lib/grow.h"

struct process {
	long pid, parent;
	uint64_t bytes;
	bool member;
};

/* "pid (any name) state parent …"; "size resident of-files …" in pages. */
static bool read_process(long pid, struct process *out)
{
	unsigned long long resident, of_files;
	char text[512];
	const char *at;

	if (!frag_proc_read(pid, "stat", text, sizeof(text)))
		return false;
	at = strrchr(text, ')');
	*out = (struct process){ .pid = pid };
	if (!at || sscanf(at + 1, " %*c %ld", &out->parent) != 1)
		return false;
	if (frag_proc_read(pid, "statm", text, sizeof(text)) &&
	    sscanf(text, "%*u %llu %llu", &resident, &of_files) == 2 && resident > of_files)
		out->bytes = (resident - of_files) * (uint64_t)sysconf(_SC_PAGESIZE);
	return true;
}

/* True: another one joined. */
static bool join(struct process *list, size_t count)
{
	bool more = false;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; !list[i].member && k < count; k++)
			if (list[k].member && list[k].pid == list[i].parent)
				more = list[i].member = true;
	return more;
}

uint64_t frag_launch_family_bytes(pid_t pid)
{
	FRAG_AUTO_FREE struct process *list = NULL;
	size_t count = 0, room = 0;
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	uint64_t bytes = 0;

	while (dir && (entry = readdir(dir)) && !FRAG_GROW(list, count, room, "processes", NULL)) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9' ||
		    !read_process(strtol(entry->d_name, NULL, 10), &list[count]))
			continue;
		list[count].member = list[count].pid == pid;
		count++;
	}
	if (dir)
		closedir(dir);
	while (join(list, count))
		;
	for (size_t i = 0; i < count; i++)
		bytes += list[i].member ? list[i].bytes : 0;
	return bytes;
}
