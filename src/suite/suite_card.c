/* SPDX-License-Identifier: Apache-2.0 */
/* A turn of the card division, and the row of several; see suite.h. */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/replay.h>

#include "device/nvml.h"

#define NOISE 0.02 /* an interval of at most this part of the mean, to each side, is settled */

int frag_suite_card_look(int ordinal, struct frag_suite_card *out, struct frag_err *err)
{
	struct frag_nvml *nvml = frag_nvml_shared();
	struct frag_nvml_card card;
	struct frag_nvml_pace pace;

	if (!nvml || ordinal < 0 || (unsigned)ordinal >= frag_nvml_count(nvml))
		return frag_fail(err, FRAG_EDEVICE, "NVML does not know card %d", ordinal);
	frag_nvml_read(nvml, (unsigned)ordinal, &card);
	if (!card.known)
		return frag_fail(err, FRAG_EDEVICE, "card %d does not answer: %s", ordinal,
				 card.fault);
	pace = frag_nvml_pace(nvml, (unsigned)ordinal);
	*out = (struct frag_suite_card){ .clock_mhz = pace.clock_mhz,
					 .throttled = pace.throttled,
					 .processes = card.processes_count };
	snprintf(out->name, sizeof(out->name), "%s", card.name);
	snprintf(out->driver, sizeof(out->driver), "%s", frag_nvml_driver(nvml));
	return 0;
}

/* ---- a turn ------------------------------------------------------------------------------- */

static uint64_t given_back_bytes; /* by the turn before, in this process */

static int replay(const struct frag_suite *s, const struct frag_suite_trace *t, const char *policy,
		  struct frag_result *out, struct frag_err *err)
{
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
	FRAG_AUTO(frag_dev_close_at) struct frag_device *dev = NULL;
	FRAG_AUTO(frag_run_destroy_at) struct frag_run *run = NULL;
	struct frag_run_options opt;
	int rc;

	frag_target_run_options(&s->target, &opt);
	opt.latency = true;
	opt.losses = false;
	FRAG_TRY(frag_policy_spec_parse(policy, &spec, err));
	FRAG_TRY(s->open(s->ctx, 0, &dev, err));
	FRAG_TRY(frag_dev_make_ready(dev, given_back_bytes, err));
	rc = frag_run_create(spec, dev, t->dev, &opt, &run, err) ?:
	     frag_run_feed(run, t->dev->events, t->dev->events_count, err) ?:
	     frag_run_finish(run, out, err);
	given_back_bytes = dev->stat[FRAG_CALL_FREE].bytes + dev->stat[FRAG_CALL_RELEASE].bytes +
			   dev->reserved_peak_bytes;
	return rc;
}

void frag_suite_turn(const struct frag_suite *s, const struct frag_suite_trace *t,
		     const char *policy, struct frag_suite_row *row)
{
	FRAG_AUTO(frag_result_release) struct frag_result r = { 0 };
	struct frag_suite_card card = { .clock_mhz = UINT64_MAX };
	struct frag_err err = { 0 };
	struct frag_hist host;
	int rc = replay(s, t, policy, &r, &err);

	if (rc) {
		frag_suite_row_fail(row, rc, &err);
		return;
	}
	frag_suite_card_look(s->ordinal, &card, NULL); /* without it the clock is not known */
	row->turns_count = 1;
	row->clock_mhz = card.clock_mhz;
	row->throttled_count = card.throttled;
	row->state = r.completed && !r.m.ooms_count ? "done" : "refused";
	row->reserved_bytes = r.m.peak_reserved_bytes;
	row->driver_ns = r.m.modelled_ns * 1000 / t->requests;
	frag_hist_clear(&host);
	for (unsigned i = 0; i < FRAG_CLASS_COUNT; i++)
		frag_hist_merge(&host, &r.alloc_host_ns[i]);
	row->host_p50_ns = frag_hist_quantile(&host, 0.5);
	row->host_p99_ns = frag_hist_quantile(&host, 0.99);
	row->host_p999_ns = frag_hist_quantile(&host, 0.999);
}

/* ---- the row of several ------------------------------------------------------------------- */

static uint64_t median(const struct frag_suite_row *turns, size_t count, size_t offset)
{
	uint64_t values[FRAG_SUITE_TURNS_MAX] = { 0 };

	for (size_t i = 0; i < count; i++)
		values[i] = *(const uint64_t *)((const char *)&turns[i] + offset);
	qsort(values, count, sizeof(*values), frag_compare_u64);
	return values[count / 2];
}
#define MEDIAN(member) row->member = median(turns, count, offsetof(struct frag_suite_row, member))

bool frag_suite_sum_turns(const struct frag_suite_row *turns, size_t count,
			  struct frag_suite_row *row)
{
	double values[FRAG_SUITE_TURNS_MAX] = { 0 }, mean, half;

	*row = turns[0];
	for (size_t i = 0; i < count; i++)
		if (strcmp(turns[i].state, "done") != 0) {
			*row = turns[i]; /* a policy that fails once has failed */
			return true;
		}
	if (row->turns_count == UINT64_MAX)
		return true; /* simulated: once is enough */
	if (count < FRAG_SUITE_TURNS_MIN)
		return false;
	count = FRAG_MIN(count, FRAG_SUITE_TURNS_MAX);
	row->throttled_count = 0;
	for (size_t i = 0; i < count; i++) {
		values[i] = (double)turns[i].driver_ns;
		row->throttled_count += turns[i].throttled_count;
		row->clock_mhz = FRAG_MIN(row->clock_mhz, turns[i].clock_mhz);
	}
	frag_suite_interval(values, count, &mean, &half);
	MEDIAN(reserved_bytes);
	MEDIAN(host_p50_ns);
	MEDIAN(host_p99_ns);
	MEDIAN(host_p999_ns);
	row->turns_count = count;
	row->driver_ns = (uint64_t)(mean + 0.5);
	row->driver_low_ns = (uint64_t)(mean > half ? mean - half : 0);
	row->driver_high_ns = (uint64_t)(mean + half + 0.5);
	row->settled = half <= NOISE * mean;
	return row->settled || count == FRAG_SUITE_TURNS_MAX;
}
