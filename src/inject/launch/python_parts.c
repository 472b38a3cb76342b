/* SPDX-License-Identifier: Apache-2.0 */
/* See python_parts.h. */
#include "python_parts.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "lib/grow.h"
#include "recording/recording.h"
#include "trace/whole.h"

void frag_torch_parts_release(struct frag_torch_parts *p)
{
	for (size_t i = 0; i < p->count; i++) {
		frag_trace_destroy(p->list[i].trace);
		json_decref(p->list[i].notes);
	}
	frag_host_free(p->list);
}

FRAG_COMPARE(by_rank, struct frag_torch_part, FRAG_ORDER(x->rank, y->rank),
	     FRAG_ORDER(x->pid, y->pid))

static int add(struct frag_torch_parts *p, const char *folder, const char *name, size_t len,
	       struct frag_err *err)
{
	char path[4500];
	struct frag_torch_part *part;

	FRAG_TRY(FRAG_GROW(p->list, p->count, p->room, "recordings", err));
	part = &p->list[p->count++];
	memset(part, 0, sizeof(*part));
	snprintf(part->stem, sizeof(part->stem), "%.4000s/%.*s", folder, (int)FRAG_MIN(len, 300u),
		 name);
	part->pid = strtol(name, NULL, 10);
	snprintf(path, sizeof(path), "%s.json", part->stem);
	part->notes = json_load_file(path, 0, NULL);
	part->rank = (long)json_integer_value(json_object_get(part->notes, "rank"));
	return 0;
}

/* A process that took memory and did not come to write its recording leaves PID.begun
 * (src/pretend/card/memory.c); one that could not write it, PID.unwritten. */
static int list(struct frag_torch_parts *p, const char *folder, const struct frag_launch *l,
		struct frag_err *err)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	unsigned lost = 0, unwritten = 0;
	int rc = 0;

	while (dir && !rc && (entry = readdir(dir))) {
		size_t len = frag_stem(entry->d_name, ".pickle");

		lost += frag_stem(entry->d_name, ".begun") != 0;
		unwritten += frag_stem(entry->d_name, ".unwritten") != 0;
		if (len)
			rc = add(p, folder, entry->d_name, len, err);
	}
	if (dir)
		closedir(dir);
	if (rc)
		return rc;
	if (unwritten)
		return frag_fail(err, FRAG_EOUTPUT,
				 "%u of %zu recordings could not be written below '%.200s'; set "
				 "TMPDIR to a folder with more room",
				 unwritten, unwritten + p->count, folder);
	if (!p->count && lost)
		return frag_fail(err, FRAG_EINPUT,
				 "nothing was recorded: the process that used the card was killed "
				 "(SIGKILL), crashed, or called _exit outside of Python");
	if (!p->count)
		return frag_fail(err, FRAG_EINPUT,
				 "nothing was recorded: no Python process of the program allocated "
				 "memory of a card through torch (started with -S, or without its "
				 "environment, Python does not see cufrag)");
	if (lost)
		frag_launch_note(l,
				 "%u of %zu processes that used a card left no recording: killed "
				 "(SIGKILL), crashed, or called _exit outside of Python",
				 lost, lost + p->count);
	qsort(p->list, p->count, sizeof(*p->list), by_rank);
	return 0;
}

static int read_part(struct frag_torch_part *part, struct frag_err *err)
{
	char path[4500];

	snprintf(path, sizeof(path), "%s.pickle", part->stem);
	FRAG_TRY(frag_launch_read(path, &part->trace, err));
	frag_trace_take_release(part->trace, json_string_value(json_object_get(part->notes, "torc"
											    "h")));
	return 0;
}

int frag_torch_parts_read(const struct frag_launch *l, const char *folder,
			  struct frag_torch_parts *out, struct frag_err *err)
{
	FRAG_TRY(list(out, folder, l, err));
	for (size_t i = 0; i < out->count; i++)
		FRAG_TRY(read_part(&out->list[i], err));
	/* a release is told from a retry by a replay, which knows the limit */
	for (size_t i = 0; i < out->count; i++)
		FRAG_TRY(frag_trace_settle(out->list[i].trace, &l->target, FRAG_OPEN_AS_RECORDED,
					   err));
	return 0;
}

int frag_torch_parts_join(struct frag_torch_parts *p, struct frag_trace **out, struct frag_err *err)
{
	FRAG_AUTO(frag_trace_parts_release) struct frag_trace_parts traces = { 0 };

	FRAG_TRY_CALLOC(traces.list, p->count, "recordings", err);
	for (; traces.count < p->count; traces.count++)
		traces.list[traces.count] = FRAG_GIVE(p->list[traces.count].trace);
	return frag_trace_parts_join(&traces, out, err);
}
