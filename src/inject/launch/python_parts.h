/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the Python processes of one recorded run left in a folder (cufrag_recorder.py): for each PID.pickle and PID.json.
 *
 * The files come from the user's program and are read as any input.
 */
#ifndef FRAG_LAUNCH_PYTHON_PARTS_H
#define FRAG_LAUNCH_PYTHON_PARTS_H

#include <jansson.h>

#include "inject/launch/launch.h"

struct frag_torch_part {
	char stem[4400]; /* path without its ending */
	long rank, pid;
	json_t *notes; /* NULL: none */
	struct frag_trace *trace;
};

struct frag_torch_parts {
	struct frag_torch_part *list;
	size_t count, room;
};

/* Reads and settles all of them, in the order of ranks. Errors: FRAG_EINPUT if none is there. */
int frag_torch_parts_read(const struct frag_launch *l, const char *folder,
			  struct frag_torch_parts *out, struct frag_err *err);
/* One trace of all; the parts have none afterwards. */
int frag_torch_parts_join(struct frag_torch_parts *p, struct frag_trace **out,
			  struct frag_err *err);
void frag_torch_parts_release(struct frag_torch_parts *p);

#endif
