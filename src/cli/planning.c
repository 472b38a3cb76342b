/* SPDX-License-Identifier: Apache-2.0 */
/* Traces, policies, progress and interruption of the planning commands. */
#include "planning.h"

#include <stdlib.h>
#include <string.h>

#include <frag/clock.h>
#include <frag/opt.h>

#include "cli/session/session.h"
#include "settle.h"

/* ---- traces ---------------------------------------------------------------------- */

/* Where a recording met a limit, the answer without one may surprise. */
static void note_limit(const struct frag_cli *cli, const struct frag_trace *trace)
{
	char size[32];

	if (!cli->limit && trace->settings.limit_known && trace->settings.limit_bytes != UINT64_MAX)
		frag_cli_note(cli,
			      "'%s' was recorded under a limit of %s, which is not applied "
			      "here; --limit sets one",
			      trace->name,
			      frag_format_bytes(trace->settings.limit_bytes, size, sizeof(size)));
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
		rc = frag_cli_settle(cli, frag_cli_limit(cli, cli->card.total_bytes), trace, err);
		if (!rc && !trace->devs_count)
			rc = frag_fail(err, FRAG_EINPUT, "'%.200s' holds no events",
				       cli->operands[i]);
		if (!rc)
			rc = add_units(u, trace, err);
		if (!rc)
			note_limit(cli, trace);
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
	    !cli->limit[strspn(cli->limit, "0123456789.")]) {
		env->limit_fraction = strtod(cli->limit, NULL);
		env->run.limit_bytes = UINT64_MAX;
	}
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

/* The estimate assumes that the rest goes as the part that is done. */
static void show(void *ctx, uint64_t done, uint64_t total)
{
	struct frag_eta *eta = ctx;
	double past = (double)(frag_clock_ns() - eta->begin_ns) / 1e9;

	if (done && total && past > 2)
		snprintf(eta->label, sizeof(eta->label), "%.100s, about %.0f s left,", eta->what,
			 past * (double)(total - done) / (double)done);
	frag_progress_update(&eta->line, done, total);
}

void frag_eta_begin(struct frag_eta *eta, const char *what, struct frag_watch *watch)
{
	/* the default comes back with the first signal: a second Ctrl-C ends the program */
	struct sigaction act = { .sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND };

	*eta = (struct frag_eta){ .what = what, .begin_ns = frag_clock_ns() };
	snprintf(eta->label, sizeof(eta->label), "%.100s", what);
	frag_progress_begin(&eta->line, eta->label);
	sigaction(SIGINT, &act, NULL);
	*watch = (struct frag_watch){ .progress = show, .ctx = eta, .stop = &interrupted };
}

void frag_eta_end(struct frag_eta *eta)
{
	frag_progress_end(&eta->line);
}
