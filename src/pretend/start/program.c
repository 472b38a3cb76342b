/* SPDX-License-Identifier: Apache-2.0 */
/* A program in place of a recording; see program.h. */
#include "program.h"

#include "pretend/start/vary.h"
#include "recording/recording.h"

static int read_trace(void *ctx, const char *path, const char *conf, struct frag_trace **out,
		      struct frag_err *err)
{
	(void)ctx;
	return frag_recording_read(path, conf, out, err);
}

static int settle(void *ctx, struct frag_trace *trace, struct frag_err *err)
{
	const struct frag_program *p = ctx;

	return frag_trace_settle(trace, &p->target, FRAG_OPEN_AS_RECORDED, err);
}

static void note(void *ctx, const char *text)
{
	const struct frag_program *p = ctx;

	if (p->note)
		p->note(p->ctx, text);
}

struct frag_launch frag_program_launch(const struct frag_program *p)
{
	return (struct frag_launch){
		.card = p->target.card,
		.gpu = p->gpu,
		.limit_bytes = frag_target_limit(&p->target),
		.seed = p->target.seed,
		.read = read_trace,
		.settle = settle,
		.note = note,
		.ctx = (void *)(uintptr_t)p,
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

int frag_program_vary(const struct frag_program *p, const char *name, uint64_t n,
		      struct frag_trace **out, int *status, uint64_t *refused, struct frag_err *err)
{
	struct frag_launch launch = frag_program_launch(p);

	launch.stdout_to_stderr = true;
	return frag_vary_record(&launch, p->pretend, p->words, name, n, out, status, refused, err);
}
