/* SPDX-License-Identifier: Apache-2.0 */
/* Traces, policies, progress and interruption of the planning commands. */
#include "planning.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "session.h"

/* ---- traces ---------------------------------------------------------------------- */

static uint64_t recorded_peak(const struct frag_trace_dev *d)
{
	uint64_t now = 0, peak;

	for (size_t i = 0; i < d->seed.segments_count; i++)
		now += d->seed.segments[i].bytes;
	peak = now;
	for (size_t i = 0; i < d->seen_count; i++) {
		const struct frag_evidence *e = &d->seen[i];

		if (e->kind == FRAG_SEEN_SEGMENT_ALLOC || e->kind == FRAG_SEEN_SEGMENT_MAP)
			now += e->bytes;
		else if (e->kind == FRAG_SEEN_SEGMENT_FREE || e->kind == FRAG_SEEN_SEGMENT_UNMAP)
			now -= FRAG_MIN(now, e->bytes);
		peak = FRAG_MAX(peak, now);
	}
	return peak;
}

/* The card and limit of the command line are those of the what-if; they are the recording's,
 * too, unless it did not fit into them. */
static int settle(const struct frag_cli *cli, struct frag_trace *trace, struct frag_err *err)
{
	const struct frag_sim_config *card = &cli->card;
	uint64_t limit = frag_cli_limit(cli, card->total_bytes);

	for (uint32_t d = 0; d < trace->devs_count; d++) {
		uint64_t peak = recorded_peak(&trace->devs[d]);
		bool fits = peak <= card->total_bytes - card->context_bytes;

		if (trace->devs[d].has_evidence)
			FRAG_TRY(frag_resolve(trace, d, fits ? card : NULL,
					      peak <= limit ? limit : UINT64_MAX, err));
	}
	return 0;
}

static int add_units(struct frag_units *u, const struct frag_trace *trace, struct frag_err *err)
{
	struct frag_unit *list =
		frag_host_realloc(u->list, u->count + trace->devs_count, sizeof(*list));

	if (!list)
		return frag_fail_nomem(err, "traces");
	u->list = list;
	for (uint32_t d = 0; d < trace->devs_count; d++) {
		size_t room = strlen(trace->name) + 32;
		char *label = frag_host_alloc(room);

		if (!label)
			return frag_fail_nomem(err, "traces");
		if (trace->devs_count == 1)
			snprintf(label, room, "%s", trace->name);
		else
			snprintf(label, room, "%s device %u", trace->name, trace->devs[d].ordinal);
		u->list[u->count++] = (struct frag_unit){ trace, &trace->devs[d], label };
	}
	return 0;
}

int frag_units_read(struct frag_units *u, const struct frag_cli *cli, struct frag_err *err)
{
	int rc = 0;

	*u = (struct frag_units){ 0 };
	u->traces = frag_host_calloc(cli->operands_count, sizeof(struct frag_trace *));
	if (!u->traces)
		return frag_fail_nomem(err, "traces");
	for (size_t i = 0; !rc && i < cli->operands_count; i++) {
		struct frag_trace *trace;

		rc = frag_trace_read(cli->operands[i], NULL, &trace, err);
		if (rc)
			break;
		u->traces[u->traces_count++] = trace;
		rc = settle(cli, trace, err);
		if (!rc && !trace->devs_count)
			rc = frag_fail(err, FRAG_EINPUT, "'%.200s' holds no events",
				       cli->operands[i]);
		if (!rc)
			rc = add_units(u, trace, err);
	}
	if (rc)
		frag_units_release(u);
	return rc;
}

void frag_units_release(struct frag_units *u)
{
	for (size_t i = 0; i < u->count; i++)
		frag_host_free(u->list[i].label);
	for (size_t i = 0; i < u->traces_count; i++)
		frag_trace_destroy(u->traces[i]);
	frag_host_free(u->list);
	frag_host_free(u->traces);
	*u = (struct frag_units){ 0 };
}

/* ---- policies -------------------------------------------------------------------- */

int frag_unit_spec(const struct frag_unit *unit, const char *text, struct frag_policy_spec **out,
		   struct frag_err *err)
{
	struct frag_session s = { 0 };
	struct frag_policy_spec **specs = NULL;
	size_t recorded;
	int rc;

	*out = NULL;
	rc = frag_policy_texts_add(&s.policies, text, err);
	if (!rc)
		rc = frag_session_specs(&s, unit->trace, &specs, &recorded, err);
	frag_policy_texts_release(&s.policies);
	if (rc == FRAG_EUSAGE && !strcmp(text, "recorded"))
		return 0;
	if (rc)
		return rc;
	*out = specs[0];
	frag_host_free(specs);
	return 0;
}

void frag_plan_env_init(struct frag_plan_env *env, const struct frag_cli *cli)
{
	*env = (struct frag_plan_env){ .threads = cli->threads, .card = cli->card };
	frag_run_options_defaults(&env->run);
	env->run.seed = cli->seed;
	env->run.limit_bytes = frag_cli_limit(cli, cli->card.total_bytes);
	/* a fraction is one of every card that is tried */
	if (cli->limit && strchr(cli->limit, '.') && env->run.limit_bytes != UINT64_MAX &&
	    !cli->limit[strspn(cli->limit, "0123456789.")])
		env->limit_fraction = strtod(cli->limit, NULL);
}

/* ---- progress and Ctrl-C --------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
}

bool frag_interrupted(void)
{
	return interrupted;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The estimate assumes that the rest goes as the part that is done. */
static void show(void *ctx, uint64_t done, uint64_t total)
{
	struct frag_eta *eta = ctx;
	double past = (double)(now_ns() - eta->begin_ns) / 1e9;

	if (done && total && past > 2)
		snprintf(eta->label, sizeof(eta->label), "%.100s, about %.0f s left,", eta->what,
			 past * (double)(total - done) / (double)done);
	frag_progress_update(&eta->line, done, total);
}

void frag_eta_begin(struct frag_eta *eta, const char *what, struct frag_watch *watch)
{
	/* the default comes back with the first signal: a second Ctrl-C ends the program */
	struct sigaction act = { .sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND };

	*eta = (struct frag_eta){ .what = what, .begin_ns = now_ns() };
	snprintf(eta->label, sizeof(eta->label), "%.100s", what);
	frag_progress_begin(&eta->line, eta->label);
	sigaction(SIGINT, &act, NULL);
	*watch = (struct frag_watch){ .progress = show, .ctx = eta, .stop = &interrupted };
}

void frag_eta_end(struct frag_eta *eta)
{
	frag_progress_end(&eta->line);
}
