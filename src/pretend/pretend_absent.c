/* SPDX-License-Identifier: Apache-2.0 */
/* In place of the pretended card in a cufrag without it (make PRETEND=0); see pretend.h. */
#include "pretend.h"

#define NO_ROWS \
	{ \
		{ \
			0 \
		} \
	}
const struct frag_arg frag_pretend_rows[] = NO_ROWS, frag_pretend_run_rows[] = NO_ROWS,
		      frag_pretend_fit_rows[] = NO_ROWS, frag_pretend_scale_rows[] = NO_ROWS,
		      frag_pretend_implied[] = NO_ROWS;

static int fail(struct frag_err *err)
{
	return frag_fail(err, FRAG_EUSAGE,
			 "this cufrag was built without the pretended card (PRETEND=0), so it "
			 "records no program here; cufrag record does");
}

const struct frag_launch_cards frag_pretend_cards;

void frag_held_watch(void)
{
}

void frag_held_say(char *text, size_t cap)
{
	if (cap)
		*text = '\0';
}

int frag_pretend_collect(const struct frag_launch *l, const char *folder, int status,
			 struct frag_trace **out, struct frag_err *err)
{
	(void)l, (void)folder, (void)status, (void)out;
	return fail(err);
}

int frag_program_record(const struct frag_program *p, struct frag_trace **out, int *status,
			struct frag_err *err)
{
	(void)p, (void)out, (void)status;
	return fail(err);
}

const char *frag_vary_name(const char *text, char *name)
{
	(void)text, (void)name;
	return NULL;
}

int frag_program_vary(const struct frag_program *p, const char *name, uint64_t n,
		      struct frag_trace **out, int *status, uint64_t *refused, struct frag_err *err)
{
	(void)p, (void)name, (void)n, (void)out, (void)status, (void)refused;
	return fail(err);
}

int frag_fit_classes_record(struct frag_fit_classes *c, struct frag_fit_cards **out,
			    struct frag_err *err)
{
	(void)c, (void)out;
	return fail(err);
}

void frag_fit_classes_release(struct frag_fit_classes *c)
{
	(void)c;
}
