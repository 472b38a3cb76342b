/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenMetrics: one gauge per curve, with times. Prometheus keeps milliseconds, so all events of a
 * millisecond become one sample with the largest value: no peak is lost. The samples of a family
 * must be contiguous, so one replay keeps all samples (32 bytes per millisecond).
 */
#include "export.h"

#include <inttypes.h>

#include "lib/grow.h"

#define CURVES 4u

static const struct {
	const char *name, *help;
} curves[CURVES] = {
	{ "requested", "Live bytes as asked for." },
	{ "allocated", "Live bytes as granted." },
	{ "active", "Live bytes and those that wait for a stream." },
	{ "reserved", "Physical bytes taken from the device." },
};

struct sample {
	uint64_t ms, value[CURVES];
};

struct samples {
	struct sample *list;
	size_t count, cap;
};

static int take(void *ctx, const struct frag_told *t, struct frag_err *err)
{
	const uint64_t now[CURVES] = { t->requested, t->allocated, t->active, t->reserved };
	struct samples *s = ctx;
	uint64_t ms = t->e->time_us / 1000;
	struct sample *last = s->count ? &s->list[s->count - 1] : NULL;

	if (!last || last->ms < ms) {
		FRAG_TRY(FRAG_GROW(s->list, s->count, s->cap, "export", err));
		last = &s->list[s->count++];
		*last = (struct sample){ .ms = ms };
	}
	for (unsigned c = 0; c < CURVES; c++)
		last->value[c] = FRAG_MAX(last->value[c], now[c]);
	return 0;
}

static void write_curve(const struct frag_export_job *job, unsigned c, const struct samples *all)
{
	FILE *to = job->to;

	fprintf(to,
		"# TYPE cufrag_%s_bytes gauge\n# UNIT cufrag_%s_bytes bytes\n"
		"# HELP cufrag_%s_bytes %s\n",
		curves[c].name, curves[c].name, curves[c].name, curves[c].help);
	for (uint32_t d = 0; d < job->trace->devs_count; d++) {
		for (size_t i = 0; i < all[d].count; i++) {
			const struct sample *s = &all[d].list[i];
			uint64_t ms = job->trace->start_us / 1000 + s->ms;

			fprintf(to, "cufrag_%s_bytes{trace=\"", curves[c].name);
			frag_export_escaped(to, job->name);
			fprintf(to, "\",policy=\"");
			frag_export_escaped(to, job->policy);
			fprintf(to, "\",device=\"%" PRIu32 "\"} %" PRIu64 " %" PRIu64 ".%03u\n",
				job->trace->devs[d].ordinal, s->value[c], ms / 1000,
				(unsigned)(ms % 1000));
		}
	}
}

static int put(const struct frag_export_job *job, struct frag_err *err)
{
	FRAG_AUTO_FREE struct samples *all = frag_host_calloc(job->trace->devs_count, sizeof(*all));
	int rc = all ? 0 : frag_fail_nomem(err, "export");

	for (uint32_t d = 0; !rc && d < job->trace->devs_count; d++)
		rc = frag_export_walk(job, d, take, NULL, &all[d], err);
	for (unsigned c = 0; !rc && c < CURVES; c++)
		write_curve(job, c, all);
	if (!rc)
		fputs("# EOF\n", job->to);
	for (uint32_t d = 0; all && d < job->trace->devs_count; d++)
		frag_host_free(all[d].list);
	return rc;
}

const struct frag_export_format frag_export_openmetrics = { .write = put };
