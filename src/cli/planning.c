/* SPDX-License-Identifier: Apache-2.0 */
/* Traces, policies, progress and interruption of the planning commands. */
#include "planning.h"

#include <stdlib.h>
#include <string.h>

#include "policy_texts.h"
#include "cli/estimate.h"
#include "settle.h"
#include "report/text/settled_json.h"

/* ---- traces ---------------------------------------------------------------------- */

static int add_units(struct frag_units *u, const struct frag_trace *trace, struct frag_err *err)
{
	struct frag_unit *list =
		frag_host_realloc(u->list, u->count + trace->devs_count, sizeof(*list));

	FRAG_CHECK_ALLOC(list, "traces", err);
	u->list = list;
	for (uint32_t d = 0; d < trace->devs_count; d++) {
		size_t room = strlen(trace->name) + 32;
		char *label = frag_host_alloc(room);

		FRAG_CHECK_ALLOC(label, "traces", err);
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
	FRAG_CHECK_ALLOC(u->traces, "traces", err);
	for (size_t i = 0; !rc && i < cli->operands_count; i++) {
		struct frag_trace *trace;

		rc = frag_cli_read(cli->operands[i], NULL, &trace, err);
		if (rc)
			break;
		u->traces[u->traces_count++] = trace;
		frag_cli_note_estimate(cli, trace);
		rc = frag_cli_settle(cli, frag_cli_limit(cli, cli->card.total_bytes), trace, err);
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

uint64_t frag_unit_limit(const struct frag_unit *unit, const struct frag_cli *cli)
{
	return !cli->limit && unit->dev->settled.identical ? unit->dev->settled.limit_bytes
							   : UINT64_MAX;
}

void frag_units_say(const struct frag_units *u, const struct frag_cli *cli, const char *what,
		    struct frag_text *out)
{
	for (size_t i = 0; i < u->count; i++) {
		const struct frag_settled *s = &u->list[i].dev->settled;
		char text[600];

		if (!s->checked || (s->identical && s->limit_source == FRAG_LIMIT_NONE))
			continue;
		frag_text_addf(out, "# recording %s: %s", u->list[i].label,
			       frag_settled_text(s, text, sizeof(text)));
		if (!s->identical)
			frag_text_add(out, "; what is said of its settings is simulated");
		else if (frag_unit_limit(&u->list[i], cli) != UINT64_MAX)
			frag_text_addf(out, "; %s", what);
		frag_text_add(out, "\n");
	}
}

json_t *frag_units_json(const struct frag_units *u)
{
	json_t *list = json_array();

	for (size_t i = 0; i < u->count; i++)
		json_array_append_new(list, json_pack("{s:s, s:o}", "trace", u->list[i].label,
						      "recording",
						      frag_settled_json(&u->list[i].dev->settled)));
	return list;
}

void frag_units_release(struct frag_units *u)
{
	for (size_t i = 0; i < u->count; i++)
		frag_host_free(u->list[i].label);
	for (size_t i = 0; i < u->traces_count; i++)
		frag_trace_destroy(u->traces[i]);
	FRAG_FREE(u->list, u->traces);
	*u = (struct frag_units){ 0 };
}

/* ---- policies -------------------------------------------------------------------- */

int frag_unit_spec(const struct frag_unit *unit, const char *text, struct frag_policy_spec **out,
		   struct frag_err *err)
{
	*out = NULL;
	if (strcmp(text, "recorded") != 0)
		return frag_policy_spec_parse(text, out, err);
	return frag_recorded_spec(unit->trace, out, err);
}

void frag_plan_env_init(struct frag_plan_env *env, const struct frag_cli *cli)
{
	*env = (struct frag_plan_env){ .threads = cli->threads, .card = cli->card };
	frag_run_options_defaults(&env->run);
	env->run.source_release = cli->torch;
	env->run.seed = cli->seed;
	env->run.limit_bytes = frag_cli_limit(cli, cli->card.total_bytes);
	/* a fraction is one of every card that is tried */
	if (cli->limit && strchr(cli->limit, '.') && env->run.limit_bytes != UINT64_MAX &&
	    !cli->limit[strspn(cli->limit, "0123456789.")]) {
		env->limit_fraction = strtod(cli->limit, NULL);
		env->run.limit_bytes = UINT64_MAX;
	}
}
