/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diagnose, explain and export from one end to the other: an answer, or an error that says why.
 *
 * "recording": snapshots of PyTorch, which meet histories that no allocator ever made. "whole": logs
 * that are sound and combine features: streams, pools, devices, stacks, steps, trims, refusals, a
 * limit. Their first bytes choose how many of each, the others the events: a changed byte is another
 * log, never a damaged one.
 */
#include <frag/replay.h>

#include "explain/diagnose/diagnose.h"
#include "explain/moment/explain.h"
#include "trace/writers/export.h"
#include "fuzz.h"

extern const struct frag_reader_ops frag_reader_csv;

/* Whatever fails says why. */
static int said(int rc, const struct frag_err *err)
{
	must(!rc || (rc == err->code && err->msg[0] && memchr(err->msg, 0, sizeof(err->msg))));
	return rc;
}

static void diagnose_whole(const struct frag_case *in)
{
	struct frag_answer texts = { 0 };
	struct frag_findings found = { .texts = &texts };
	struct frag_err err = { 0 };

	said(frag_diagnose(in, "fuzz", &found, &err), &err);
	frag_findings_release(&found);
	frag_answer_release(&texts);
}

static void explain_whole(const struct frag_case *in, struct frag_at at, enum frag_site_by by)
{
	const struct frag_explain_options opt = { .at = at, .by = by, .top = 10, .series = true };
	struct frag_answer texts = { 0 };
	struct frag_explained x = { 0 };
	struct frag_err err = { 0 };

	if (!said(frag_explain(in, &opt, &texts, &x, &err), &err)) {
		said(frag_explained_answer(&x, "fuzz", "fuzz", &err), &err);
		frag_explained_release(&x);
	}
	frag_answer_release(&texts);
}

/* In every form, as recorded and by the policy. */
static void export_whole(const struct frag_trace *t, const struct frag_policy_spec *spec,
			 const struct frag_target *target)
{
	for (unsigned i = 0; frag_export_formats[i / 2]; i++) {
		char *text = NULL;
		size_t len;
		struct frag_err err = { 0 };
		struct frag_export_job job = { .trace = t,
					       .spec = spec,
					       .as_recorded = i & 1,
					       .target = *target,
					       .name = "fuzz",
					       .policy = "pytorch",
					       .to = open_memstream(&text, &len) };

		must(job.to != NULL);
		said(frag_export_formats[i / 2]->write(&job, &err), &err);
		fclose(job.to);
		free(text);
	}
}

/* ---- a recording -------------------------------------------------------------------------- */

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

void fuzz_recording(const uint8_t *data, size_t size)
{
	struct frag_policy_spec *spec;
	const struct frag_target target = { .card = { .context_bytes = UINT64_MAX }, .seed = 1 };
	struct frag_err err = { 0 };
	struct frag_trace *t;
	size_t events = 0;

	if (!(t = read_memory(&frag_reader_torch, data, size)))
		return;
	for (uint32_t d = 0; d < t->devs_count; d++)
		events += t->devs[d].events_count + t->devs[d].initial.blocks_count;
	must(!frag_policy_spec_parse("pytorch", &spec, &err));
	if (events <= 20000u && t->devs_count <= 8 &&
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
}

/* ---- a log --------------------------------------------------------------------------------- */

struct dice {
	const uint8_t *at, *end;
};

static unsigned next(struct dice *d)
{
	return d->at < d->end ? *d->at++ : 0;
}

struct plan {
	unsigned streams, pools, devices, stacks, sizes, policy, limit, period, marks;
};

static struct plan plan_of(struct dice *d)
{
	static const unsigned streams[] = { 1, 2, 5, 300 }, pools[] = { 1, 3, 80, 300 };
	static const unsigned stacks[] = { 0, 1, 2, 9 };
	unsigned a = next(d), b = next(d), c = next(d);

	return (struct plan){
		streams[a & 3], pools[a >> 2 & 3], 1 + (a >> 4 & 3) % 3, stacks[a >> 6 & 3],
		b & 7,		b >> 3 & 7,	   b >> 6 & 3,		 c & 31,
		c >> 7
	};
}

static uint64_t size_of(const struct plan *p, unsigned n)
{
	static const uint64_t by[8][4] = { { 512, 512, 512, 512 },
					   { 512, 1 << 20, 512, 1 << 20 },
					   { 1 << 20, 2 << 20, 20 << 20, 3 << 20 },
					   { 1, 10 << 20, 1ull << 30, 1 },
					   { 3 << 20, (1 << 21) + 512, 5 << 20, 1 << 20 },
					   { 1ull << 34, 1ull << 36, 512, 1ull << 47 },
					   { 4096, 100000, 1 << 19, (1 << 20) + 1 },
					   { 0, 1, 511, 513 } };

	return by[p->sizes][n & 3] + (n & 4 ? 512 * (n >> 3) : 0);
}

/* One event. A free names a block by its number: the reader passes over one that is not live. */
static void put_event(FILE *to, const struct plan *p, struct dice *d, unsigned i, unsigned *t)
{
	unsigned what = next(d), n = p->period ? i % p->period : next(d), dev = n % p->devices;
	unsigned stack = p->stacks ? 1 + n % p->stacks : 0;

	*t += what & 1 ? 1000 : what & 2;
	if (what < 130)
		fprintf(to, "alloc,%u,%llu,%u,%u,%u,%u,%u\n", i + 1,
			(unsigned long long)size_of(p, n), n * 7 % p->streams, *t, dev,
			n * 5 % p->pools, stack);
	else if (what < 230)
		fprintf(to, "free,%u,,,%u,%u,,%u\n", i - (what - 130) % (i + 1), *t, dev, stack);
	else if (what < 238)
		fprintf(to, "trim,0,,,%u,%u,,\n", *t, dev);
	else
		fprintf(to, "refused,0,%llu,%u,%u,%u,0,%u\n",
			(unsigned long long)size_of(p, n) << (what & 3), n % p->streams, *t, dev,
			stack);
}

static char *write_log(const struct plan *p, struct dice *d, size_t *len)
{
	static const char *const files[] = { "a.py", "/usr/lib/python3/x.py", "torch/nn.py",
					     "c.cpp" };
	char *text = NULL;
	FILE *to = open_memstream(&text, len);
	unsigned t = 0;

	must(to != NULL);
	fputs("action,id,size,stream,time_us,device,pool,stack\n", to);
	for (unsigned i = 1; i <= p->stacks; i++)
		fprintf(to, "#frame 0x%x\tf%u\t%s\t:%u\n#stack %u 0x%x 0x%x\n", i, i, files[i % 4],
			i, i, i, 1 + i / 2);
	for (unsigned i = 0; d->at < d->end && i < 1000u; i++)
		put_event(to, p, d, i, &t);
	must(!fclose(to));
	return text;
}

/* A plain log has no marks: trims become ends of steps. */
static void put_marks(struct frag_trace *t)
{
	for (uint32_t d = 0; d < t->devs_count; d++) {
		struct frag_trace_dev *td = &t->devs[d];

		for (size_t i = 0; i < td->events_count; i++)
			if (td->events[i].kind == FRAG_EV_TRIM)
				td->events[i] =
					(struct frag_event){ .time_us = td->events[i].time_us,
							     .kind = FRAG_EV_MARK,
							     .flags =
								     FRAG_EVF_STEP | FRAG_EVF_END };
	}
}

static void look(struct frag_trace *t, const struct plan *p)
{
	static const char *const policies[] = { "pytorch",
						"pytorch:expandable_segments:True",
						"vmm",
						"buddy",
						"caching",
						("pytorch:max_split_size_mb:21,"
						 "garbage_collection_threshold:0.6"),
						"bfc",
						"async" };
	static const uint64_t limits[] = { 0, 64 * FRAG_MIB, 100 * FRAG_MIB, FRAG_MIB << 12 };
	struct frag_target target = { .card = { .context_bytes = UINT64_MAX }, .seed = 1 };
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
	struct frag_err err = { 0 };

	if (limits[p->limit])
		target.limit = (struct frag_limit){ .text = "fuzz", .bytes = limits[p->limit] };
	must(!frag_policy_spec_parse(policies[p->policy], &spec, &err));
	if (!said(frag_settle(t, &target.card, UINT64_MAX, false, &err), &err)) {
		for (uint32_t d = 0; d < t->devs_count; d++) {
			const struct frag_case in = { .events = { t, d, NULL },
						      .spec = spec,
						      .recorded = !p->policy,
						      .target = target };

			diagnose_whole(&in);
			explain_whole(&in, (struct frag_at){ FRAG_AT_AUTO, 0 }, FRAG_BY_LINE);
			explain_whole(&in, (struct frag_at){ FRAG_AT_EVENT, p->period },
				      FRAG_BY_STACK);
		}
		export_whole(t, spec, &target);
	}
}

void fuzz_whole(const uint8_t *data, size_t size)
{
	struct dice d = { data, data + size };
	struct plan p = plan_of(&d);
	size_t len;
	FRAG_AUTO_FREE char *text = write_log(&p, &d, &len);
	FRAG_AUTO(frag_trace_destroy_at)
	struct frag_trace *t = read_memory(&frag_reader_csv, text, len);

	if (t && p.marks)
		put_marks(t);
	if (t)
		look(t, &p);
}
