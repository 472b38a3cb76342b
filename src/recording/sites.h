/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call sites: to which line, function, file, module or stack an allocation belongs.
 *
 * The frame that counts is the innermost one of the user's own code: its file is not part of
 * PyTorch, an installed package or Python itself, and Python takes precedence over C and C++. If
 * there is none, the innermost Python frame counts, else the innermost frame that is not of the
 * machinery below every program: interpreter, unwinder, allocator, C library, cufrag itself. Names
 * come from a file and may be hostile: control characters and broken UTF-8 become '?' here, once.
 *
 * Ownership: the trace is borrowed; the table owns the names.
 */
#ifndef FRAG_RECORDING_SITES_H
#define FRAG_RECORDING_SITES_H

#include <frag/trace.h>

enum frag_site_by { FRAG_BY_LINE, FRAG_BY_FUNCTION, FRAG_BY_FILE, FRAG_BY_MODULE, FRAG_BY_STACK };
extern const char *const frag_site_by_words[]; /* of the command line, ended by NULL */

struct frag_sites {
	const struct frag_trace *trace;
	enum frag_site_by by;
	char **names; /* [count]; 0 = those without a stack */
	size_t count;
	uint32_t *of_stack; /* [stacks_count] */
	size_t stacks_count;
	/* [frames_count]: 4 user's Python, 3 C with a line, 2 Python, 1 other, 0 the machinery */
	uint8_t *frame_own;
	uint32_t *shown;     /* frames of all stacks without the machinery, innermost first */
	size_t *shown_first; /* [stacks_count + 1] */
};

/*
 * frame: NULL or "user", "inner" (the innermost), "outer" (the outermost), or text that the
 * frame's file must contain. Errors: FRAG_ENOMEM.
 */
int frag_sites_init(struct frag_sites *s, const struct frag_trace *trace, enum frag_site_by by,
		    const char *frame, struct frag_err *err);
void frag_sites_release(struct frag_sites *s);
static inline uint32_t frag_site_of(const struct frag_sites *s, uint32_t stack)
{
	return stack < s->stacks_count ? s->of_stack[stack] : 0;
}
/* Does the trace have stacks? */
bool frag_sites_known(const struct frag_sites *s);

/* Frames of stack i, innermost first; of frag_sites_frames without the machinery, for people. */
const uint32_t *frag_sites_frames(const struct frag_sites *s, uint32_t stack, size_t *count);
const uint32_t *frag_stack_frames(const struct frag_trace *t, uint32_t stack, size_t *count);
/* The user's line of a stack in new memory; NULL if it is empty, or all of it PyTorch's C++. */
char *frag_sites_line(const struct frag_sites *sites, uint32_t stack);
/* "file:line function" in new memory; NULL when it is short. */
char *frag_frame_name(const struct frag_trace *t, uint32_t frame);

/*
 * The line to blame. Of every user's line a part of `gain` (what grew, or what is too much) and a
 * part of `flow` (all that went through it) comes from the stacks that it is in; the best has much
 * of the gain and little else: gain/total x gain/flow, the innermost of those within `slack` of the
 * best, and not one that the whole program goes through where another does. gain, flow:
 * [stacks_count] bytes. *share: its part of the gain. Returns a frame, UINT32_MAX = none.
 */
uint32_t frag_blame(const struct frag_sites *s, const double *gain, const double *flow,
		    double slack, double *share, struct frag_err *err);

#endif
