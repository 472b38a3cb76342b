/* SPDX-License-Identifier: Apache-2.0 */
/* Source lines of recorded host stacks, by addr2line of binutils if there is debug information. */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace/strings.h"

extern char **environ;

/* "name+0x1f2a": where the offset is; NULL: none. */
static const char *offset_of(const struct frag_trace *t, const struct frag_frame *f)
{
	const char *name = frag_trace_string(t, f->name), *plus = strrchr(name, '+');

	return !f->line && f->file && plus && !strncmp(plus, "+0x", 3) ? plus + 1 : NULL;
}

/* Runs addr2line on the file, addresses from `in`; what it says, NULL where there is none. */
static FILE *ask(char *file, FILE *in, pid_t *pid)
{
	char *argv[] = {
		(char *)"addr2line", (char *)"-C", (char *)"-f", (char *)"-e", file, NULL
	};
	posix_spawn_file_actions_t acts;
	FILE *out = NULL;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return NULL;
	posix_spawn_file_actions_init(&acts);
	posix_spawn_file_actions_adddup2(&acts, fileno(in), STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&acts, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&acts, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	if (!posix_spawnp(pid, argv[0], &acts, NULL, argv, environ))
		out = fdopen(ends[0], "r");
	posix_spawn_file_actions_destroy(&acts);
	close(ends[1]);
	if (!out)
		close(ends[0]);
	return out;
}

/* Two lines of each address: the function, then "file:line" or "??:0". */
static int take_answer(FILE *from, struct frag_trace *t, struct frag_frame *f, struct frag_err *err)
{
	char name[1024], place[4096], *colon;
	unsigned long line;

	if (!fgets(name, sizeof(name), from) || !fgets(place, sizeof(place), from))
		return 0;
	name[strcspn(name, "\n")] = '\0';
	colon = strrchr(place, ':');
	line = colon ? strtoul(colon + 1, NULL, 10) : 0;
	if (strcmp(name, "??") != 0 && (line || *frag_trace_string(t, f->name) == '+'))
		FRAG_TRY(frag_strings_intern(t->strings, name, strlen(name), &f->name, err));
	if (!line || *place == '?')
		return 0;
	f->line = (uint32_t)line;
	return frag_strings_intern(t->strings, place, (size_t)(colon - place), &f->file, err);
}

/* All frames of the file of frame i, which is the first of them. done[]: of frames. */
static int name_file(struct frag_trace *t, size_t i, bool *done, struct frag_err *err)
{
	uint32_t file = t->stacks.frames[i].file;
	struct frag_frame *frames = t->stacks.frames;
	FRAG_AUTO_FILE FILE *in = tmpfile();
	FILE *from = NULL;
	pid_t pid = 0;
	int rc = 0;

	for (size_t k = i; k < t->stacks.frames_count; k++)
		if (in && frames[k].file == file && offset_of(t, &frames[k]))
			fprintf(in, "%s\n", offset_of(t, &frames[k]));
	if (in && !fflush(in) && !fseek(in, 0, SEEK_SET))
		from = ask((char *)(uintptr_t)frag_trace_string(t, file), in, &pid);
	for (size_t k = i; k < t->stacks.frames_count && !rc; k++) {
		if (frames[k].file != file || done[k] || !offset_of(t, &frames[k]))
			continue;
		done[k] = true;
		if (from)
			rc = take_answer(from, t, &frames[k], err);
	}
	if (from) {
		fclose(from);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	return rc;
}

int frag_launch_source_lines(struct frag_trace *t, struct frag_err *err)
{
	FRAG_AUTO_FREE bool *done = NULL;

	FRAG_TRY_CALLOC(done, t->stacks.frames_count + 1, "frames", err);
	for (size_t i = 0; i < t->stacks.frames_count; i++)
		if (!done[i] && offset_of(t, &t->stacks.frames[i]))
			FRAG_TRY(name_file(t, i, done, err));
	return 0;
}
