/* SPDX-License-Identifier: Apache-2.0 */
/* One row per event: what the program did, at which address, and the bytes after it. */
#include "export.h"

#include <inttypes.h>

#include "answer/textbuf.h"
#include "recording/sites.h"

static const char *const kinds[FRAG_EV_COUNT] = {
	[FRAG_EV_ALLOC] = "alloc",
	[FRAG_EV_FREE] = "free",
	[FRAG_EV_FREE_REQUESTED] = "free_requested",
	[FRAG_EV_FREE_COMPLETED] = "free_completed",
	[FRAG_EV_TRIM] = "trim",
	[FRAG_EV_REFUSED] = "refused",
	[FRAG_EV_MARK] = "mark",
};

struct rows {
	const struct frag_export_job *job;
	const struct frag_sites *sites;
	uint32_t ordinal;
	uint64_t step;
};

/* The line, or the name of a mark. */
static int add_site(const struct rows *r, const struct frag_event *e, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text name = { 0 };
	int rc;

	if (e->kind == FRAG_EV_MARK)
		frag_text_add_csv(&name, frag_trace_string(r->job->trace, e->slot));
	else if (e->stack)
		frag_text_add_csv(&name, r->sites->names[frag_site_of(r->sites, e->stack)]);
	rc = frag_text_check(&name, err);
	fputs(frag_text_str(&name), r->job->to);
	return rc;
}

static int row(void *ctx, const struct frag_told *t, struct frag_err *err)
{
	struct rows *r = ctx;
	const struct frag_event *e = t->e;
	FILE *to = r->job->to;

	fprintf(to, "%" PRIu32 ",%" PRIu64 ",%.6f,%" PRIu64 ",%s,%" PRIu64 ",%u,%u,", r->ordinal,
		t->index, (double)e->time_us / 1e6, r->step,
		t->refused ? kinds[FRAG_EV_REFUSED] : kinds[e->kind],
		e->kind == FRAG_EV_MARK ? 0 : (uint64_t)e->bytes, (unsigned)e->stream,
		(unsigned)e->pool);
	if (t->addr != FRAG_NO_ADDR)
		fprintf(to, "0x%" PRIx64, t->addr);
	fprintf(to, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", t->requested, t->allocated,
		t->active, t->reserved);
	FRAG_TRY(add_site(r, e, err));
	fputc('\n', to);
	r->step += frag_event_ends_step(e);
	return 0;
}

static int put(const struct frag_export_job *job, struct frag_err *err)
{
	FRAG_AUTO(frag_sites_release) struct frag_sites sites = { 0 };

	FRAG_TRY(frag_sites_init(&sites, job->trace, FRAG_BY_LINE, NULL, err));
	fputs("device,event,time_s,step,action,bytes,stream,pool,address,requested_bytes,allocated_"
	      "bytes,active_bytes,reserved_bytes,site\n",
	      job->to);
	for (uint32_t d = 0; d < job->trace->devs_count; d++) {
		struct rows r = { job, &sites, job->trace->devs[d].ordinal, 0 };

		FRAG_TRY(frag_export_walk(job, d, row, NULL, &r, err));
	}
	return 0;
}

const struct frag_export_format frag_export_csv = { .write = put };
