/* SPDX-License-Identifier: Apache-2.0 */
/* See family.h: /proc is read once, then children are followed. */
#include "family.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/proc.h"
#include "lib/grow.h"

struct process {
	long pid, parent, group;
	uint64_t bytes;
	bool member, ended;
};

/* "pid (any name) state parent group …"; "size resident of-files …" in pages. */
static bool read_process(long pid, struct process *out)
{
	unsigned long long resident, of_files;
	char text[512];
	const char *at;
	char state;

	if (!frag_proc_read(pid, "stat", text, sizeof(text)))
		return false;
	at = strrchr(text, ')');
	*out = (struct process){ .pid = pid };
	if (!at || sscanf(at + 1, " %c %ld %ld", &state, &out->parent, &out->group) != 3)
		return false;
	out->ended = state == 'Z' || state == 'X';
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

/* All processes, those of the family marked; the caller frees the list. */
static size_t read_family(pid_t pid, bool group, struct process **list)
{
	size_t count = 0, room = 0;
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) && !FRAG_GROW(*list, count, room, "processes", NULL)) {
		struct process *p = *list + count;

		if (entry->d_name[0] < '0' || entry->d_name[0] > '9' ||
		    !read_process(strtol(entry->d_name, NULL, 10), p))
			continue;
		p->member = p->pid == pid || (group && p->group == pid);
		count++;
	}
	if (dir)
		closedir(dir);
	while (join(*list, count))
		;
	return count;
}

uint64_t frag_launch_family_bytes(pid_t pid)
{
	FRAG_AUTO_FREE struct process *list = NULL;
	size_t count = read_family(pid, false, &list);
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += list[i].member ? list[i].bytes : 0;
	return bytes;
}

/* True: there are others than pid. */
static bool send_family(pid_t pid, bool group, int number)
{
	FRAG_AUTO_FREE struct process *list = NULL;
	size_t count = read_family(pid, group, &list);
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		const struct process *p = list + i;

		if (p->member && !p->ended && p->pid != pid)
			any |= !kill((pid_t)p->pid, number);
	}
	return any;
}

void frag_launch_family_kill(pid_t pid)
{
	/* again for those that were started meanwhile */
	for (int looks = 0; looks < 1000 && send_family(pid, true, SIGKILL); looks++)
		usleep(1000);
}

void frag_launch_family_ask(pid_t pid)
{
	send_family(pid, false, SIGTERM);
}
