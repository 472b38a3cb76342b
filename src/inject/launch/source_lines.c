/* SPDX-License-Identifier: Apache-2.0 */
/* Source files and lines of recorded host stacks, by addr2line of binutils. */
#include "launch.h"

#include <stdlib.h>
#include <string.h>

#include "answer/textbuf.h"
#include "base/clean.h"
#include "trace/strings.h"

/* "name+0x1f2a": where the offset is; NULL: none. */
static const char *offset_of(const struct frag_trace *t, const struct frag_frame *f)
{
	const char *name = frag_trace_string(t, f->name), *plus = strrchr(name, '+');

	return !f->line && f->file && plus && !strncmp(plus, "+0x", 3) ? plus + 1 : NULL;
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
	FRAG_AUTO(frag_text_release) struct frag_text command = { 0 };
	const uint32_t file = t->stacks.frames[i].file;
	const char *path = frag_trace_string(t, file);
	struct frag_frame *frames = t->stacks.frames;
	FRAG_AUTO_FILE FILE *in = tmpfile();
	FILE *from = NULL;
	int rc = 0;

	for (size_t k = i; in && k < t->stacks.frames_count; k++)
		if (frames[k].file == file && offset_of(t, &frames[k]))
			fprintf(in, "%s\n", offset_of(t, &frames[k]));
	frag_text_add(&command, "addr2line -C -f -e ");
	frag_text_add_shell(&command, path);
	if (in && !fflush(in) && frag_clean_is(path, strlen(path))) {
		frag_text_addf(&command, " < /dev/fd/%d 2> /dev/null", fileno(in));
		from = popen(frag_text_str(&command), "r");
	}
	for (size_t k = i; k < t->stacks.frames_count && !rc; k++) {
		if (frames[k].file != file || done[k] || !offset_of(t, &frames[k]))
			continue;
		done[k] = true;
		if (from)
			rc = take_answer(from, t, &frames[k], err);
	}
	if (from)
		pclose(from);
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
