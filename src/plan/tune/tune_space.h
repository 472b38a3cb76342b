/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of one policy as numbers: option by option the values of its `tune` list, 0 =
 * not set. A setting is one digit per option; its code is the mixed-radix number.
 */
#ifndef FRAG_PLAN_TUNE_SPACE_H
#define FRAG_PLAN_TUNE_SPACE_H

#include <frag/plan.h>

#define FRAG_TUNE_DIMS 16
#define FRAG_TUNE_VALUES 32

struct frag_tune_dim {
	const char *key;
	const char *value[FRAG_TUNE_VALUES]; /* into the option table, not terminated */
	size_t length[FRAG_TUNE_VALUES];
	unsigned count;
};

struct frag_tune_space {
	const char *base;	       /* borrowed */
	struct frag_policy_spec *spec; /* of base: keeps its option table loaded */
	bool conf;		       /* options are written "key:value" */
	struct frag_tune_dim dims[FRAG_TUNE_DIMS];
	unsigned dims_count;
	uint64_t size; /* number of codes */
};

/* Release with frag_tune_space_release. limited: a limit on reserved bytes is known, so garbage collection can do something.
 * release: values that it does not know are left out, 0 = none are. Errors: FRAG_EUSAGE from the text. */
int frag_tune_space_init(struct frag_tune_space *s, const char *base, bool limited,
			 unsigned release, struct frag_err *err);
/* Does the policy know all that is set, in this release of it? Without memory: yes. */
bool frag_tune_is_known(const struct frag_policy_spec *spec, unsigned release);
void frag_tune_space_release(struct frag_tune_space *s);
/* Digit of option d in a code; and the code with another digit there. */
uint64_t frag_tune_with(const struct frag_tune_space *s, uint64_t code, unsigned d, unsigned digit);
/* The text of a code, new memory (NULL if short); *changed: digits that are not 0. */
char *frag_tune_text(const struct frag_tune_space *s, uint64_t code, unsigned *changed);

#endif
