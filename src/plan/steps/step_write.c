/* SPDX-License-Identifier: Apache-2.0 */
/* Writes plans for repeated steps to the file that policy `planned` reads; see docs/choose.md. */
#include <frag/plan.h>

#include <inttypes.h>

#include "base/outfile.h"

int frag_step_plan_write(const struct frag_step_plan *p, const char *comment, const char *path,
			 struct frag_err *err)
{
	struct frag_outfile out;
	size_t at = 0;

	FRAG_TRY(frag_outfile_open(&out, path, err));
	fprintf(out.to,
		"cufrag-plan 1\n# %s\n"
		"reserve %" PRIu64 " prefix_marks %" PRIu32 " phase_marks %" PRIu32 " skip %" PRIu32
		" phases %" PRIu32 " requests %zu\n",
		comment, p->reserve_bytes, p->prefix_marks, p->phase_marks, p->skip, p->period + 1,
		p->requests_count);
	for (uint32_t k = 0; k <= p->period; k++) {
		size_t end = at + p->phases[k];

		fprintf(out.to, "phase %" PRIu32 "\n", p->phases[k]);
		for (; at < end; at++)
			if (p->offsets[at] == UINT64_MAX)
				fprintf(out.to, "%" PRIu64 " -\n", p->bytes[at]);
			else
				fprintf(out.to, "%" PRIu64 " %" PRIu64 "\n", p->bytes[at],
					p->offsets[at]);
	}
	return frag_outfile_commit(&out, err);
}

void frag_step_plan_release(struct frag_step_plan *p)
{
	FRAG_FREE(p->phases, p->bytes, p->offsets);
	*p = (struct frag_step_plan){ 0 };
}
