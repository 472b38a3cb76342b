/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag view: recordings as an interactive page, in a file or served on this machine. */
#include <string.h>

#include "base/clean.h"
#include "cli/common.h"
#include "compare/lanes.h"
#include "explain/diagnose/diagnose.h"

#define DIAGNOSED_MAX 32000000u /* events: half a minute */

struct options {
	struct frag_policy_texts policies;
	unsigned port;
	bool no_notes;
	uint64_t max_bytes;
};

/* ---- what diagnose says, at the moments that it is about ---- */

static int add_notes(const struct frag_cli *cli, const struct frag_recording *in,
		     struct frag_view *v, size_t first, size_t lanes, struct frag_err *err)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer texts = { 0 };
	FRAG_AUTO(frag_findings_release) struct frag_findings found = { .texts = &texts };
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
	struct frag_case c = { .recorded = true, .target = cli->target };

	FRAG_TRY(frag_cli_spec(cli, in, NULL, &spec, err));
	c.spec = spec;
	for (uint32_t d = 0; d < in->trace->devs_count; d++) {
		size_t from = found.count;

		c.events = in->units[d].events;
		FRAG_TRY(frag_diagnose(&c, in->units[d].label, &found, err));
		for (size_t i = from; i < found.count; i++) {
			struct frag_finding *f = &found.list[i];
			double event = frag_finding_value(f, "event");

			FRAG_TRY(frag_view_note(
				v, first + d * lanes,
				event > 0 ? (uint64_t)event
					  : v->lane_list[first + d * lanes].peak_event,
				frag_answer_print(&texts, "%s: %s", frag_finding_text(f->kind),
						  frag_text_str(&f->words)),
				err));
		}
	}
	return 0;
}

static int add_recording(const struct frag_cli *cli, const struct options *o, const char *path,
			 struct frag_view *v, struct frag_err *err)
{
	FRAG_AUTO(frag_recording_release) struct frag_recording in = { 0 };
	FRAG_AUTO(frag_policy_specs_release) struct frag_policy_spec **specs = NULL;
	size_t first = v->lanes.count, count = 0, recorded = 0;

	FRAG_TRY(frag_recording_open(&in, path, &cli->target, FRAG_OPEN_LONG_HEAD, err));
	if (o->policies.count) {
		FRAG_TRY(frag_policy_texts_specs(&o->policies, in.trace, &specs, &recorded, err));
	} else {
		FRAG_TRY_CALLOC(specs, 2, "policies", err);
		FRAG_TRY(frag_cli_spec(cli, &in, NULL, &specs[0], err));
	}
	while (specs[count])
		count++;
	FRAG_TRY(frag_lanes_add(&FRAG_CLI_LANES(cli), &in, specs, count, recorded, v, err));
	if (o->no_notes)
		return 0;
	return frag_trace_events_count(in.trace) <= DIAGNOSED_MAX
		       ? add_notes(cli, &in, v, first, count, err)
		       : frag_view_note(v, first, 0,
					"not diagnosed: that takes minutes at this length; "
					"cufrag diagnose does it",
					err);
}

/* ---- the page ---- */

static int fill_answer(struct frag_view *v, struct frag_answer *a, struct frag_err *err)
{
	a->title = frag_answer_print(a, "%s", v->file_list[0].trace);
	a->question = "Who holds the memory, where, and when?";
	frag_answer_data(a, &frag_view_shape, v);
	frag_answer_csv(a, &frag_lane_shape, v->lane_list, v->lanes.count);
	frag_answer_table(a, &frag_lane_shape, v->lane_list, v->lanes.count);
	return frag_view_charts(v, a, err);
}

static int render(const struct frag_cli *cli, const struct frag_answer *a, struct frag_text *page,
		  struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text command = { 0 };
	struct frag_answer_page how = { .threads = cli->threads };

	frag_cli_add_command_line(cli, &command);
	FRAG_TRY(frag_text_check(&command, err));
	how.command_line = frag_text_str(&command);
	return frag_answer_page_text(a, &how, page, err);
}

static void tell(void *ctx, const char *address)
{
	(void)ctx;
	printf("open %s in a browser on this machine; Ctrl-C ends it\n", address);
	fflush(stdout);
}

/* --out PAGE.html is one file, --out DIR a folder; without it the page is served. */
static int show(const struct frag_cli *cli, const struct options *o, struct frag_view *v,
		struct frag_err *err)
{
	bool serve = !cli->out && !cli->json && !cli->csv;
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	FRAG_AUTO(frag_text_release) struct frag_text page = { 0 };

	a.command = cli->cmd->name;
	a.estimated = cli->estimated;
	FRAG_TRY(frag_view_put(v, serve ? 0 : o->max_bytes, &a, err));
	FRAG_TRY(fill_answer(v, &a, err));
	if (serve) {
		FRAG_TRY(render(cli, &a, &page, err));
		return frag_view_serve(v, frag_text_str(&page), o->port, tell, NULL, err);
	}
	if (!cli->out || !frag_ends_with(cli->out, ".html"))
		return frag_cli_show_answer(cli, &a, err);
	FRAG_TRY(render(cli, &a, &page, err));
	FRAG_TRY(frag_text_put(&page, cli->out, err));
	return frag_cli_print_answer(cli, &a, err);
}

static const struct frag_arg options[] = {
	FRAG_CLI_POLICIES("policies", struct options, policies,
			  "what these policies would have done, separated by ';' (default: "
			  "recorded)"),
	FRAG_CLI_POLICY(struct options, policies),
	{ FRAG_ARG_UINT, "port", FRAG_ARG_AT(struct options, port), .value = "N", .max = 65535,
	  .def = "0", .rare = true,
	  .help = "port to serve the page on, 127.0.0.1 only; 0 = any free one" },
	{ FRAG_ARG_BYTES, "page-max", FRAG_ARG_AT(struct options, max_bytes), .value = "SIZE",
	  .min = 1 << 20, .max = 1 << 30, .def = "19M", .rare = true,
	  .help = "with --out: largest page; for longer recordings, it has the single events "
		  "around the peaks of live and of reserved memory" },
	{ FRAG_ARG_FLAG, "no-notes", FRAG_ARG_AT(struct options, no_notes), .silent = true,
	  .help = "do not diagnose" },
	{ 0 },
};

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	FRAG_AUTO(frag_view_release) struct frag_view v = { 0 };
	const struct options *o = values;

	FRAG_TRY(frag_policy_texts_check(&o->policies, NULL, err));
	FRAG_TRY(frag_lanes_open(&FRAG_CLI_LANES(cli), &v, err));
	for (size_t i = 0; i < cli->operands_count; i++)
		FRAG_TRY(add_recording(cli, o, cli->operands[i], &v, err));
	return show(cli, o, &v, err);
}

const struct frag_cmd frag_cmd_view = {
	.name = "view",
	.summary = "an interactive page: memory over time, its addresses, who holds it",
	.group = FRAG_GROUP_UNDERSTAND,
	.rank = 1,
	.operands = "TRACE...",
	.operands_max = 64,
	.about = "Shows recordings in a browser: memory over time from the whole run to single "
		 "events, the address map at any moment, a flame graph of who holds the memory, "
		 "and what policies would have done. Without --out, the page is served on this "
		 "machine until Ctrl-C, for recordings of any length; --out PAGE.html writes it "
		 "as one file with everything inside.",
	.examples = "  cufrag view run.pickle\n"
		    "  cufrag view run.pickle --policies 'recorded; vmm' --out page.html\n"
		    "  cufrag view rank*.pickle --out ranks.html\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_CARDS | FRAG_CLI_TORCH | FRAG_CLI_PAGE,
	.answer = &frag_view_shape,
	FRAG_CMD_OPTIONS(struct options, options),
	.run = run,
};
