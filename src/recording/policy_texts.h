/* SPDX-License-Identifier: Apache-2.0 */
/* Which policies to replay: texts from the command line, and what they stand for on a trace. */
#ifndef FRAG_RECORDING_POLICY_TEXTS_H
#define FRAG_RECORDING_POLICY_TEXTS_H

#include <stdbool.h>

#include <frag/policy.h>
#include <frag/trace.h>

/* In the order asked for; "recorded" is replaced per trace. */
struct frag_policy_texts {
	char **text;
	size_t count, cap;
	bool usual; /* none was asked for */
	bool all;   /* "all": those that cannot run here are left out with a note */
};

/* texts: a struct frag_policy_texts, as the field of an option. Adds one policy text, or a list
 * separated by ';' ("all" = every one that is listed). */
int frag_policy_texts_add(void *texts, const char *text, struct frag_err *err);
int frag_policy_texts_list(void *texts, const char *list, struct frag_err *err);
void frag_policy_texts_release(void *texts);
/* Those of the list, which are the usual ones, where none was given. */
int frag_policy_texts_default(struct frag_policy_texts *p, const char *list, struct frag_err *err);
/* Text i for a trace; NULL: none. Of the usual ones PyTorch's, which stand behind the recorded one,
 * are for logs of other libraries what these have instead. */
const char *frag_policy_texts_for(const struct frag_policy_texts *p, size_t i,
				  const struct frag_trace *trace);
/* A mistyped one is found before the first trace is read. *flags: FRAG_POLICY_… that one of them
 * has; NULL: not asked. Errors: FRAG_EUSAGE. */
int frag_policy_texts_check(const struct frag_policy_texts *p, uint32_t *flags,
			    struct frag_err *err);

/*
 * Specs for one trace, NULL-terminated, without repetitions; the caller releases them.
 * *recorded: index of the recorded settings, SIZE_MAX = not among them.
 */
int frag_policy_texts_specs(const struct frag_policy_texts *p, const struct frag_trace *trace,
			    struct frag_policy_spec ***out, size_t *recorded, struct frag_err *err);
void frag_policy_specs_release(struct frag_policy_spec ***specs);

#endif
