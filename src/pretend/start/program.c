/* SPDX-License-Identifier: Apache-2.0 */
/* A program in place of a recording; and one number in its words; see pretend.h. */
#include "pretend/axes.h"
#include "start.h"

#include <inttypes.h>
#include <string.h>

struct frag_launch frag_program_launch(const struct frag_program *p)
{
	return (struct frag_launch){
		.target = p->target,
		.gpu = p->gpu,
		.collect = frag_pretend_collect,
		.note = p->note,
		.ctx = p->ctx,
	};
}

int frag_program_record(const struct frag_program *p, struct frag_trace **out, int *status,
			struct frag_err *err)
{
	struct frag_launch launch = frag_program_launch(p);

	launch.stdout_to_stderr = true;
	FRAG_TRY(frag_pretend_record(&launch, p->pretend, p->words, out, status, err));
	return frag_launch_name_as_program(*out, p->words, err);
}

/* ---- a number in it --------------------------------------------------------------------- */

const char *frag_vary_name(const char *text, char *name)
{
	const char *equals = strchr(text, '=');
	size_t len = equals ? (size_t)(equals - text) : 0;

	if (len < 3 || len >= FRAG_VARY_NAME || text[0] != '{' || equals[-1] != '}')
		return NULL;
	memcpy(name, text, len);
	name[len] = '\0';
	return equals + 1;
}

uint64_t frag_vary_refusals(const struct frag_trace *trace)
{
	uint64_t count = 0;

	for (uint32_t d = 0; d < trace->devs_count; d++) {
		const struct frag_trace_dev *dev = &trace->devs[d];

		for (size_t i = 0; i < dev->seen_count; i++)
			count += dev->seen[i].kind == FRAG_SEEN_OOM;
		for (size_t i = 0; i < dev->events_count; i++)
			count += dev->events[i].kind == FRAG_EV_REFUSED;
	}
	return count;
}

/* The program with the number in it, in new memory. */
static int make_words(char *const *program, const char *name, uint64_t n, char ***out,
		      struct frag_err *err)
{
	FRAG_AUTO(frag_axes_release) struct frag_axes axes = { 0 };
	char text[FRAG_VARY_NAME + 24];
	bool used = false;

	snprintf(text, sizeof(text), "%s=%" PRIu64, name, n);
	FRAG_TRY(frag_axes_add(&axes, text, err));
	FRAG_TRY(frag_axes_expand(&axes, NULL, 0, err));
	FRAG_TRY(frag_axes_words(&axes, 0, program, out, err));
	for (size_t i = 0; program[i]; i++)
		used |= strcmp((*out)[i], program[i]) != 0;
	return used ? 0
		    : frag_fail(err, FRAG_EUSAGE,
				"--vary %s changes nothing: the command has no %s", name, name);
}

int frag_program_vary(const struct frag_program *p, const char *name, uint64_t n,
		      struct frag_trace **out, int *status, uint64_t *refused, struct frag_err *err)
{
	struct frag_launch launch = frag_program_launch(p);
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	FRAG_AUTO(frag_words_release) char **words = NULL;
	int rc;

	launch.stdout_to_stderr = true;
	rc = make_words(p->words, name, n, &words, err)
		     ?: frag_pretend_record(&launch, p->pretend, words, &trace, status, err);
	*out = NULL;
	if (rc == FRAG_EINPUT)
		frag_err_prefix(err, "with %s = %" PRIu64, name, n);
	FRAG_TRY(rc);
	if (frag_launch_interrupted())
		return frag_fail(err, FRAG_EINTR, "interrupted with %s = %" PRIu64, name, n);
	FRAG_TRY(frag_launch_name_as_program(trace, p->words, err));
	*refused = frag_vary_refusals(trace);
	if (*status && !*refused)
		return frag_fail(err, FRAG_EINPUT,
				 "with %s = %" PRIu64
				 " the program ended with status %d, but no request was refused",
				 name, n, *status);
	*out = FRAG_GIVE(trace);
	return 0;
}
