/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording of PyTorch, from reading to the answer: settled, verified, diagnosed, exported.
 * Reading alone is fuzz_torch; here it is what stands behind the reader that meets histories which
 * no allocator ever made.
 */
#include <frag/replay.h>

#include "whole.h"

#define EVENTS_MAX 20000u

extern const struct frag_reader_ops frag_reader_torch;

static void verify(struct frag_trace *t, uint32_t dev)
{
	const struct frag_settled *s = &t->devs[dev].settled;
	FRAG_AUTO(frag_verify_result_release) struct frag_verify_result r = { 0 };
	struct frag_err err = { 0 };

	if (!t->devs[dev].has_evidence ||
	    said(frag_verify(t, dev, NULL, UINT64_MAX, NULL, &r, &err), &err))
		return;
	must(!r.identical || (r.allocs_same == r.allocs && r.segments_same == r.segments &&
			      r.ooms_same == r.ooms && r.finals_same == r.finals));
	must(r.identical || r.first_difference[0]);
	must(!s->checked || !s->identical || !r.undetermined);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frag_policy_spec *spec;
	const struct frag_target target = { .card = { .context_bytes = UINT64_MAX }, .seed = 1 };
	struct frag_err err = { 0 };
	struct frag_trace *t;
	size_t events = 0;

	if (size > LENGTH_MAX || !(t = read_memory(&frag_reader_torch, data, size)))
		return 0;
	for (uint32_t d = 0; d < t->devs_count; d++)
		events += t->devs[d].events_count + t->devs[d].initial.blocks_count;
	must(!frag_policy_spec_parse("pytorch", &spec, &err));
	if (events <= EVENTS_MAX && t->devs_count <= 8 &&
	    !said(frag_settle(t, &target.card, UINT64_MAX, false, &err), &err)) {
		for (uint32_t d = 0; d < t->devs_count; d++) {
			verify(t, d);
			diagnose_whole(&(struct frag_case){ .events = { t, d, NULL },
							    .spec = spec,
							    .recorded = true,
							    .target = target });
		}
		export_whole(t, spec, &target);
	}
	frag_policy_spec_destroy(spec);
	frag_trace_destroy(t);
	return 0;
}
