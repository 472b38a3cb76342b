/* SPDX-License-Identifier: Apache-2.0 */
/* A folder with a file of each process of a recorded program, made into one trace. */
#include "launch.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/appended_cft.h"
#include "base/clean.h"
#include "base/live_page.h"
#include "base/outfile.h"
#include "base/room.h"
#include "base/scratch.h"
#include "recording/recording.h"
#include "trace/whole.h"

#define PARTS_MAX 4096

void frag_launch_note(const struct frag_launch *l, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (l->note)
		l->note(l->ctx, text);
}

/* ---- the folder ------------------------------------------------------------------------ */

int frag_launch_folder(char *folder, size_t cap, struct frag_err *err)
{
	const char *dir = getenv("TMPDIR");
	int reason;

	snprintf(folder, cap, "%s/cufrag-record-XXXXXX", dir && *dir ? dir : "/tmp");
	reason = frag_scratch_adopt(folder);
	if (!reason)
		return 0;
	folder[0] = '\0';
	return frag_fail(err, FRAG_EOUTPUT,
			 "cannot create a temporary folder: %s; set TMPDIR to one that can be "
			 "written",
			 strerror(reason));
}

void frag_launch_folder_remove(const char *folder)
{
	frag_scratch_remove(folder);
}

/* ---- what processes left ------------------------------------------------------------- */

/* Of cufrag record, of cufrag run. */
static int is_log(const struct dirent *entry)
{
	return frag_ends_with(entry->d_name, ".csv") || frag_ends_with(entry->d_name, ".cft");
}

/* A process that asked for nothing is no part: its CSV has a header, and perhaps remarks, … */
static bool is_empty_csv(const char *path)
{
	FRAG_AUTO_FILE FILE *f = fopen(path, "r");
	FRAG_AUTO_FREE char *line = NULL;
	size_t room = 0;
	int lines = 0;

	while (f && lines < 2 && getline(&line, &room, f) > 0)
		lines += *line != '#' && *line != '\n';
	return lines < 2;
}

/* … its .cft, which grows, no block. */
static bool is_empty(const struct dirent *entry, const char *path)
{
	struct stat st;

	if (frag_ends_with(entry->d_name, ".cft"))
		return !stat(path, &st) && st.st_size <= FRAG_APPENDED_PREAMBLE;
	return is_empty_csv(path);
}

int frag_launch_read(const char *path, struct frag_trace **out, struct frag_err *err)
{
	const char *conf = getenv("PYTORCH_CUDA_ALLOC_CONF");

	FRAG_TRY(frag_recording_read(path, NULL, out, err));
	if (!conf || (*out)->settings.present || !(*out)->settings.torch_last)
		return 0;
	frag_trace_destroy(*out);
	*out = NULL;
	return frag_recording_read(path, conf, out, err);
}

static int read_all(const char *folder, struct dirent **names, int count, struct frag_trace **out,
		    struct frag_err *err)
{
	FRAG_AUTO(frag_trace_parts_release) struct frag_trace_parts parts = { 0 };
	int cut = 0;

	if (count > PARTS_MAX)
		return frag_fail(err, FRAG_EINPUT,
				 "%d processes were recorded; at most %d can be merged", count,
				 PARTS_MAX);
	FRAG_TRY_CALLOC(parts.list, (size_t)FRAG_MAX(count, 1), "recordings", err);
	for (int i = 0; i < count; i++) {
		FRAG_AUTO_FREE char *path = frag_path_join(folder, names[i]->d_name);

		FRAG_CHECK_ALLOC(path, "path", err);
		cut += frag_room_is_cut(path);
		if (cut || is_empty(names[i], path))
			continue;
		FRAG_TRY(frag_launch_read(path, &parts.list[parts.count], err));
		parts.count++;
	}
	if (cut) /* complete or absent */
		return frag_fail(err, FRAG_EOUTPUT,
				 "%d of %d processes could not write all of their recording; "
				 "nothing is made of parts",
				 cut, count);
	if (!parts.count)
		return frag_fail(err, FRAG_EINPUT,
				 "nothing was recorded: no process of the program allocated CUDA "
				 "memory (a process with other rights, or without the program's "
				 "environment, is not seen); without a GPU, use --no-gpu");
	return frag_trace_parts_join(&parts, out, err);
}

bool frag_launch_forget_pages(const char *folder)
{
	FRAG_AUTO_FREE struct dirent **names = NULL;
	int count = scandir(folder, &names, is_log, alphasort);
	bool any = false;

	for (int i = 0; i < count; i++) {
		const char *pid = strchr(names[i]->d_name, '.');
		FRAG_AUTO_FREE char *path = frag_path_join(folder, names[i]->d_name);

		if (pid)
			frag_live_page_forget(strtoull(pid + 1, NULL, 10));
		any |= path && !is_empty(names[i], path);
		free(names[i]);
	}
	return any;
}

int frag_launch_gather(const char *folder, struct frag_trace **out, struct frag_err *err)
{
	FRAG_AUTO_FREE struct dirent **names = NULL;
	int count = scandir(folder, &names, is_log, versionsort), rc;

	*out = NULL;
	rc = read_all(folder, names, FRAG_MAX(count, 0), out, err);
	for (int i = 0; i < count; i++)
		free(names[i]);
	return rc;
}

/* ---- what is left out ("#apart BYTES LIBRARY" in the files) ---- */

struct left_out {
	uint64_t count, bytes;
	char names[400];
};

static void read_apart(struct left_out *a, const char *path)
{
	FRAG_AUTO_FILE FILE *f = fopen(path, "r");
	FRAG_AUTO_FREE char *line = NULL;
	size_t room = 0, at = strlen(a->names);
	char *name;

	for (; f && getline(&line, &room, f) > 0; at = strlen(a->names)) {
		if (strncmp(line, "#apart ", 7) != 0)
			continue;
		a->count++;
		a->bytes += strtoull(line + 7, &name, 10);
		name += strspn(name, " ");
		name[strcspn(name, "\n")] = '\0';
		if (!strstr(a->names, name))
			snprintf(a->names + at, sizeof(a->names) - at, "%s%.60s", at ? ", " : "",
				 name);
	}
}

void frag_launch_note_left_out(const struct frag_launch *l, const char *folder)
{
	FRAG_AUTO_FREE struct dirent **names = NULL;
	int count = scandir(folder, &names, is_log, alphasort);
	struct left_out a = { 0 };

	for (int i = 0; i < count; i++) {
		FRAG_AUTO_FREE char *path = frag_path_join(folder, names[i]->d_name);

		if (path)
			read_apart(&a, path);
		free(names[i]);
	}
	if (a.count)
		frag_launch_note(l,
				 "left out: %" PRIu64 " requests (%s) that %s made for their own "
				 "use; record without --no-pool to include them",
				 a.count, FRAG_BYTES(a.bytes), a.names);
}

/* ---- names ---- */

int frag_launch_name_as_file(struct frag_trace *trace, const char *path, struct frag_err *err)
{
	const char *slash = strrchr(path, '/');
	char *name = frag_host_strdup(slash ? slash + 1 : path), *dot;

	FRAG_CHECK_ALLOC(name, "trace", err);
	dot = strrchr(name, '.');
	if (dot && dot != name)
		*dot = '\0';
	frag_host_free(trace->name);
	trace->name = name;
	return 0;
}

int frag_launch_name_as_program(struct frag_trace *trace, char **program, struct frag_err *err)
{
	const char *word = program[0], *slash;

	for (char **p = program; *p; p++)
		if (frag_ends_with(*p, ".py")) {
			word = *p;
			break;
		}
	slash = strrchr(word, '/');
	frag_host_free(trace->name);
	trace->name = frag_host_strdup(slash ? slash + 1 : word);
	return trace->name ? 0 : frag_fail_nomem(err, "trace");
}
