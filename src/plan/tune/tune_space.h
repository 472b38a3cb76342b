/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of one policy as numbers. Each option is a digit: a value of its `tune` list, 0 =
 * not set. A setting's code is the mixed-radix number of its digits.
 */
#ifndef FRAG_PLAN_TUNE_SPACE_H
#define FRAG_PLAN_TUNE_SPACE_H

#include <frag/plan.h>

#define FRAG_TUNE_DIMS 16
#define FRAG_TUNE_VALUES 32

struct frag_tune_dim {
	const char *key;
	const char *value[FRAG_TUNE_VALUES]; /* points into the option table, not NUL-terminated */
	size_t length[FRAG_TUNE_VALUES];
	unsigned count;
};

struct frag_tune_space {
	const char *base;	       /* borrowed */
	struct frag_policy_spec *spec; /* spec of base; keeps its option table loaded */
	bool conf;		       /* options are written "key:value" */
	struct frag_tune_dim dims[FRAG_TUNE_DIMS];
	unsigned dims_count;
	uint64_t size; /* number of codes */
};

/* Release with frag_tune_space_release. limited: there is a limit on reserved bytes, so garbage
 * collection has an effect. release: leaves out values that it does not know; 0 = keeps all.
 * Errors: FRAG_EUSAGE from the text. */
int frag_tune_space_init(struct frag_tune_space *s, const char *base, bool limited,
			 unsigned release, struct frag_err *err);
/* Does this release of the policy know all set options? True if host memory is short. */
bool frag_tune_is_known(const struct frag_policy_spec *spec, unsigned release);
void frag_tune_space_release(struct frag_tune_space *s);
/* Digit of option d in a code; and the code with another digit there. */
uint64_t frag_tune_with(const struct frag_tune_space *s, uint64_t code, unsigned d, unsigned digit);
/* The text of a code, in new memory (NULL if short); *changed: number of non-zero digits. */
char *frag_tune_text(const struct frag_tune_space *s, uint64_t code, unsigned *changed);

#endif
