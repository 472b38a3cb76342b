/* SPDX-License-Identifier: Apache-2.0 */
/* Programs on the pretended card, for the folders of src/pretend that run them. */
#ifndef FRAG_PRETEND_START_H
#define FRAG_PRETEND_START_H

#include "pretend/pretend.h"

/* Starts the program with this card, limit and seed. */
struct frag_launch frag_program_launch(const struct frag_program *p);

/* Runs the program once, or once for each of the ranks, and gives all recordings as one trace,
 * marked as an estimate. *status as of frag_launch_run. */
int frag_pretend_record(const struct frag_launch *l, const struct frag_pretend *o, char **program,
			struct frag_trace **out, int *status, struct frag_err *err);

/* The same without a trace: what its processes write stays in `folder`, for frag_pretend_collect. */
int frag_pretend_run_into(const struct frag_launch *l, const struct frag_pretend *o, char **program,
			  const char *folder, int *status, struct frag_err *err);

/* Says which hooks did not find what they need and which calls of CUDA are missing, by what
 * processes wrote into `folder`. Returns how many. */
unsigned frag_pretend_note_hooks(const struct frag_launch *l, const char *folder);

/* What a trace needs: the largest peak of live bytes of any device, in units of 512, as PyTorch
 * rounds requests, and the requests of all. */
struct frag_pretend_need {
	uint64_t peak_bytes, requests;
};
struct frag_pretend_need frag_pretend_measure(const struct frag_trace *trace);

/* The card whose chip is pretended, also where its memory was given; NULL = unknown. */
const struct frag_gpu *frag_pretend_gpu(const struct frag_launch *l);

/* Requests that the card had no memory for, also those that the program caught. */
uint64_t frag_vary_refusals(const struct frag_trace *trace);

#endif
