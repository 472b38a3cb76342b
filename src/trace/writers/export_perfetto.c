/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome trace JSON: one process per device with a counter track per curve; steps and other marks
 * are slices, refusals and empty_cache are instants. Counters are written whenever the time or
 * reserved memory changes: for one microsecond the last value, and the largest reserved one.
 */
#include "export.h"

#include <inttypes.h>

#include <frag/opt.h>

struct out {
	const struct frag_export_job *job;
	uint32_t ordinal;
	bool any; /* something was written, in the file */
	/* the counters that are not written yet */
	bool held;
	struct frag_told last;
	uint64_t us;
	uint64_t step;
};

/* {"ph":…,"name":" of an entry; its name and the end are for the caller. */
static void begin(struct out *o, char ph, unsigned tid, uint64_t us)
{
	fprintf(o->job->to,
		"%s{\"ph\":\"%c\",\"pid\":%" PRIu32 ",\"tid\":%u,\"ts\":%" PRIu64 ",\"name\":\"",
		o->any ? ",\n" : "\n", ph, o->ordinal, tid, us);
	o->any = true;
}

static void counters(struct out *o)
{
	if (!o->held)
		return;
	begin(o, 'C', 0, o->us);
	fprintf(o->job->to, "reserved\",\"args\":{\"bytes\":%" PRIu64 "}}", o->last.reserved);
	begin(o, 'C', 0, o->us);
	fprintf(o->job->to,
		"live\",\"args\":{\"requested\":%" PRIu64 ",\"rounding\":%" PRIu64
		",\"waiting\":%" PRIu64 "}}",
		o->last.requested, o->last.allocated - o->last.requested,
		o->last.active - o->last.allocated);
	o->held = false;
}

static void instant(struct out *o, uint64_t us, const char *what, uint64_t bytes)
{
	begin(o, 'i', 0, us);
	fprintf(o->job->to, "%s%s%s\",\"s\":\"p\"}", what, bytes ? " " : "",
		bytes ? FRAG_BYTES(bytes) : "");
}

static void mark(struct out *o, const struct frag_event *e, uint64_t us)
{
	bool end = e->flags & FRAG_EVF_END, step = e->flags & FRAG_EVF_STEP;

	begin(o, end ? 'E' : 'B', step ? 1 : 2, us);
	frag_export_escaped(o->job->to, frag_trace_string(o->job->trace, e->slot));
	fputs("\"}", o->job->to);
	if (!end || !step)
		return;
	begin(o, 'C', 0, us);
	fprintf(o->job->to, "steps\",\"args\":{\"done\":%" PRIu64 "}}", ++o->step);
}

static int on_event(void *ctx, const struct frag_told *t, struct frag_err *err)
{
	struct out *o = ctx;
	uint64_t us = o->job->trace->start_us + t->e->time_us;

	(void)err;
	if (o->held && (us != o->us || t->reserved != o->last.reserved))
		counters(o);
	o->held = true;
	o->us = us;
	o->last = *t;
	if (t->e->kind == FRAG_EV_MARK)
		mark(o, t->e, us);
	if (t->e->kind == FRAG_EV_TRIM)
		instant(o, us, "empty_cache", 0);
	if (t->refused)
		instant(o, us, "out of memory:", t->e->bytes);
	return 0;
}

static void meta(struct out *o, const char *what, unsigned tid, const char *name, const char *more)
{
	begin(o, 'M', tid, 0);
	fprintf(o->job->to, "%s\",\"args\":{\"name\":\"", what);
	frag_export_escaped(o->job->to, name);
	fprintf(o->job->to, "%s\"}}", more);
}

static int put(const struct frag_export_job *job, struct frag_err *err)
{
	struct out o = { .job = job };

	fputs("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"trace\":\"", job->to);
	frag_export_escaped(job->to, job->name);
	fputs("\",\"policy\":\"", job->to);
	frag_export_escaped(job->to, job->policy);
	fputs("\"},\"traceEvents\":[", job->to);
	for (uint32_t d = 0; d < job->trace->devs_count; d++) {
		char device[32];

		o.ordinal = job->trace->devs[d].ordinal;
		o.held = false;
		o.step = 0;
		snprintf(device, sizeof(device), ", device %" PRIu32, o.ordinal);
		meta(&o, "process_name", 0, job->name, device);
		meta(&o, "thread_name", 1, "steps", "");
		meta(&o, "thread_name", 2, "marks", "");
		FRAG_TRY(frag_export_walk(job, d, on_event, NULL, &o, err));
		counters(&o);
	}
	fputs("\n]}\n", job->to);
	return 0;
}

const struct frag_export_format frag_export_perfetto = { .write = put };
