/* SPDX-License-Identifier: Apache-2.0 */
/* Programs on the pretended card (src/pretend/card). */
#ifndef FRAG_LAUNCH_PRETEND_H
#define FRAG_LAUNCH_PRETEND_H

#include "inject/launch/inside_files.h"
#include "inject/launch/launch.h"
#include "pretend/start/pretend_options.h"

/* Runs the program once, or once for each of the ranks, and gives all recordings as one trace, marked as an
 * estimate. *status as of frag_launch_run. */
int frag_pretend_record(const struct frag_launch *l, const struct frag_pretend *o, char **program,
			struct frag_trace **out, int *status, struct frag_err *err);

/* The same without a trace: what its processes write stays in `folder`, for frag_pretend_collect. */
int frag_pretend_run_into(const struct frag_launch *l, const struct frag_pretend *o, char **program,
			  const char *folder, int *status, struct frag_err *err);

/* Says which hooks into PyTorch did not find what they need, by what processes wrote into `folder`. Returns how many. */
unsigned frag_pretend_note_hooks(const struct frag_launch *l, const char *folder);

/* What a trace needs: the largest peak of live bytes of any device, in units of 512, as PyTorch rounds requests, and the
 * requests of all. */
struct frag_pretend_need {
	uint64_t peak_bytes, requests;
};
struct frag_pretend_need frag_pretend_measure(const struct frag_trace *trace);

/* The program once more with other values; what it needs then goes into the note of `trace` (other_values.c). */
int frag_pretend_again(const struct frag_launch *l, const struct frag_pretend *o, char **program,
		       struct frag_trace *trace, struct frag_err *err);

/* Everything that processes wrote into `folder` as one trace (pretend_collect.c). status: of the program. Errors:
 * FRAG_EINPUT if nothing is there. */
int frag_pretend_collect(const struct frag_launch *l, const char *folder, int status,
			 struct frag_trace **out, struct frag_err *err);
/* The card whose chip is pretended, also where its memory was given; NULL = unknown. */
const struct frag_gpu *frag_pretend_gpu(const struct frag_launch *l);

/* In the program's process, before it begins: Python finds cufrag's files … */
void frag_pretend_python(const struct frag_inside_files *files);
/* … and the pretended cards: as many as the user asked for; 0 = not asked, then as many as are needed. */
void frag_pretend_environment(const struct frag_launch *l, const struct frag_inside_files *files,
			      unsigned asked, unsigned needed, const char *values);

#endif
