/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording of PyTorch, from reading to the answer: settled, verified, diagnosed, exported. Reading
 * alone is fuzz_torch; here it is what stands behind the reader that meets histories which no
 * allocator ever made.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/replay.h>

#include "explain/diagnose/diagnose.h"
#include "explain/export/export.h"
#include "fuzz.h"

#define LENGTH_MAX 65536u
#define EVENTS_MAX 20000u

extern const struct frag_reader_ops frag_reader_torch;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever fails says why. */
static int said(int rc, const struct frag_err *err)
{
	must(!rc || (rc == err->code && err->msg[0] && memchr(err->msg, 0, sizeof(err->msg))));
	return rc;
}

static void verify(struct frag_trace *t, uint32_t dev)
{
	const struct frag_settled *s = &t->devs[dev].settled;
	struct frag_verify_result r;
	struct frag_err err = { 0 };

	if (!t->devs[dev].has_evidence ||
	    said(frag_verify(t, dev, NULL, UINT64_MAX, NULL, &r, &err), &err))
		return;
	must(!r.identical || (r.allocs_same == r.allocs && r.segments_same == r.segments &&
			      r.ooms_same == r.ooms && r.finals_same == r.finals));
	must(r.identical || r.first_difference[0]);
	must(!s->checked || !s->identical || !r.undetermined);
	frag_verify_result_release(&r);
}

static void diagnose(const struct frag_trace *t, uint32_t dev, const struct frag_policy_spec *spec,
		     const struct frag_sim_config *card)
{
	const struct frag_case in = { .events = { t, dev, NULL },
				      .spec = spec,
				      .recorded = true,
				      .target = { .card = *card, .seed = 1 } };
	struct frag_answer texts = { 0 };
	struct frag_findings found = { .texts = &texts };
	struct frag_err err = { 0 };

	said(frag_diagnose(&in, "fuzz", &found, &err), &err);
	frag_findings_release(&found);
	frag_answer_release(&texts);
}

static void export(const struct frag_trace *t, const struct frag_policy_spec *spec,
		   const struct frag_sim_config *card)
{
	for (unsigned i = 0; i < 2 * FRAG_EXPORT_COUNT; i++) {
		char *text = NULL;
		size_t len;
		struct frag_err err = { 0 };
		struct frag_export_job job = { .trace = t,
					       .spec = spec,
					       .as_recorded = i & 1,
					       .target = { .card = *card },
					       .name = "fuzz",
					       .policy = "pytorch",
					       .to = open_memstream(&text, &len) };

		must(job.to != NULL);
		said(frag_export(&job, i / 2, &err), &err);
		fclose(job.to);
		free(text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frag_policy_spec *spec;
	const struct frag_sim_config card = { .context_bytes = UINT64_MAX };
	struct frag_err err = { 0 };
	struct frag_trace *t;
	size_t events = 0;

	if (size > LENGTH_MAX || !(t = read_memory(&frag_reader_torch, data, size)))
		return 0;
	for (uint32_t d = 0; d < t->devs_count; d++)
		events += t->devs[d].events_count + t->devs[d].initial.blocks_count;
	must(!frag_policy_spec_parse("pytorch", &spec, &err));
	if (events <= EVENTS_MAX && t->devs_count <= 8 &&
	    !said(frag_settle(t, &card, UINT64_MAX, false, &err), &err)) {
		for (uint32_t d = 0; d < t->devs_count; d++) {
			verify(t, d);
			diagnose(t, d, spec, &card);
		}
		export(t, spec, &card);
	}
	frag_policy_spec_destroy(spec);
	frag_trace_destroy(t);
	return 0;
}
