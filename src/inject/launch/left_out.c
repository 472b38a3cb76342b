/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording without pools left out: what libraries took ("#apart BYTES LIBRARY"). */
#include "launch.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/outfile.h"

#define NAMES_MAX 8u

struct left_out {
	uint64_t count, bytes;
	char *names[NAMES_MAX];
	size_t names_count;
};

static void add(struct left_out *a, char *text)
{
	char *name;

	a->count++;
	a->bytes += strtoull(text, &name, 10);
	name += strspn(name, " ");
	name[strcspn(name, "\n")] = '\0';
	for (size_t i = 0; i < a->names_count; i++)
		if (!strcmp(a->names[i], name))
			return;
	if (a->names_count < NAMES_MAX && (a->names[a->names_count] = frag_host_strdup(name)))
		a->names_count++;
}

static void read_file(struct left_out *a, const char *path)
{
	FRAG_AUTO_FILE FILE *f = fopen(path, "r");
	FRAG_AUTO_FREE char *line = NULL;
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0)
		if (!strncmp(line, "#apart ", 7))
			add(a, line + 7);
}

static void say(const struct frag_launch *l, const struct left_out *a)
{
	char names[400] = "";
	size_t at = 0;

	for (size_t i = 0; i < a->names_count && at < sizeof(names); i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%.60s", i ? ", " : "",
				       a->names[i]);
	frag_launch_note(l,
			 "left out: %" PRIu64 " requests (%s) that %s made for their own use; "
			 "record without --no-pool to include them",
			 a->count, FRAG_BYTES(a->bytes), names);
}

void frag_launch_note_left_out(const struct frag_launch *l, const char *folder)
{
	struct left_out a = { 0 };
	struct dirent *entry;
	DIR *dir = opendir(folder);

	while (dir && (entry = readdir(dir))) {
		FRAG_AUTO_FREE char *path =
			entry->d_name[0] == '.' ? NULL : frag_path_join(folder, entry->d_name);

		if (path)
			read_file(&a, path);
	}
	if (dir)
		closedir(dir);
	if (a.count)
		say(l, &a);
	for (size_t i = 0; i < a.names_count; i++)
		frag_host_free(a.names[i]);
}
