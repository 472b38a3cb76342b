/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag diff: what a change did to the memory of a program; a regression test for CI. */
#include <stdlib.h>
#include <string.h>

#include <frag/opt.h>

#include "cli/common.h"
#include "cli/recordings.h"
#include "explain/page.h"
#include "explain/diff/diff.h"
#include "base/term.h"
#include "answer/table.h"

struct options {
	const char *policy, *frame;
	double fail_on_growth; /* negative: never */
	uint64_t top;
	unsigned by;
};

static int set_growth(void *whole, const char *text, struct frag_err *err)
{
	struct options *o = whole;
	char *end;
	double v = strtod(text, &end);

	if (end == text || (strcmp(end, "%") != 0 && *end) || !(v >= 0 && v <= 1e6))
		return frag_fail(err, FRAG_EUSAGE, "'%.40s' is no growth; write it as 5%%", text);
	o->fail_on_growth = v / 100;
	return 0;
}

/* ---- the two sides ----------------------------------------------------------------------- */

/* A JSON document, or NULL: then it is a recording. */
static json_t *read_json(const char *path)
{
	json_t *root;
	FILE *f = strcmp(path, "-") != 0 ? fopen(path, "rb") : NULL;
	int c;

	if (!f)
		return NULL;
	do
		c = fgetc(f);
	while (c == ' ' || c == '\n' || c == '\t' || c == '\r');
	rewind(f);
	root = c == '{' ? json_loadf(f, JSON_REJECT_DUPLICATES, NULL) : NULL;
	fclose(f);
	if (root && !json_object_get(root, "schema")) {
		json_decref(root);
		root = NULL;
	}
	return root;
}

/* The call sites are those of the peak of live memory, which no policy moves. */
static int take_side(const struct frag_unit *unit, struct frag_explain_options opt,
		     const struct frag_explained *x, struct frag_side *out, struct frag_err *err)
{
	struct frag_explained *live = frag_host_calloc(1, sizeof(*live));
	int rc = live ? 0 : frag_fail_nomem(err, "comparison");

	opt.at = (struct frag_at){ FRAG_AT_EVENT, x->history.peak_event };
	opt.series = false;
	if (!rc)
		rc = frag_explain(&unit->events, &opt, live, err);
	if (!rc) {
		rc = frag_side_of(x, live, unit->label, frag_policy_spec_text(opt.spec), out, err);
		frag_explained_release(live);
	}
	frag_host_free(live);
	return rc;
}

/* The device that reserves most, explained at its peak. */
static int explain(const struct frag_cli *cli, const struct options *o,
		   const struct frag_recording *in, struct frag_side *out, struct frag_err *err)
{
	struct frag_explain_options opt = { .at = { .what = FRAG_AT_PEAK },
					    .by = o->by,
					    .frame = o->frame,
					    .recorded = frag_policy_is_recorded(o->policy),
					    .target = cli->target,
					    .threads = cli->threads,
					    .series = cli->out != NULL };
	struct frag_policy_spec *spec;
	struct frag_explained *x;
	uint64_t most = 0;
	int rc;

	FRAG_TRY_CALLOC(x, 1, "comparison", err);
	rc = frag_cli_spec(cli, in, o->policy, &spec, err);
	for (uint32_t d = 0; !rc && d < in->trace->devs_count; d++) {
		opt.spec = spec;
		rc = frag_explain(&in->units[d].events, &opt, x, err);
		if (rc)
			break;
		if (!d || x->peak_reserved_bytes > most) {
			most = x->peak_reserved_bytes;
			frag_side_release(out);
			rc = take_side(&in->units[d], opt, x, out, err);
		}
		frag_explained_release(x);
	}
	if (spec)
		frag_policy_spec_destroy(spec);
	frag_host_free(x);
	return rc;
}

static int read_side(const struct frag_cli *cli, const struct options *o, const char *path,
		     struct frag_side *out, struct frag_err *err)
{
	json_t *root = read_json(path);
	FRAG_AUTO(frag_recording_release) struct frag_recording in = { 0 };
	FRAG_AUTO(frag_progress_end) struct frag_progress progress;
	int rc;

	frag_cli_show(&progress, "explaining", path);
	*out = (struct frag_side){ 0 };
	if (root) {
		rc = frag_side_of_json(root, path, out, err);
		json_decref(root);
		return rc;
	}
	FRAG_TRY(frag_recording_open(&in, path, &cli->target, FRAG_OPEN_LONG_HEAD, err));
	rc = explain(cli, o, &in, out, err);
	out->estimate = in.trace->estimate != NULL;
	return rc;
}

/* ---- output -------------------------------------------------------------------------------- */

static void change_row(struct frag_table *t, const char *name, uint64_t before, uint64_t after)
{
	uint64_t by = before > after ? before - after : after - before;

	frag_table_cell(t, "%s", FRAG_BYTES(before));
	frag_table_cell(t, "%s", FRAG_BYTES(after));
	frag_table_cell(t, "%s%s",
			before > after	 ? "-"
			: after > before ? "+"
					 : "",
			FRAG_BYTES(by));
	if (before && after)
		frag_table_cell(t, "%+.1f %%", 100 * ((double)after / (double)before - 1));
	else
		frag_table_cell(t, "%s", before ? "went" : after ? "came" : "");
	frag_table_cell(t, "%s", name);
}

static void heads(struct frag_table *t, const char *what)
{
	const struct frag_table_column list[] = {
		{ .head = "before", .unit = "" },	    { .head = "after", .unit = "" },
		{ .head = "difference", .unit = "" },	    { .head = "", .unit = "" },
		{ .head = what, .unit = "", .left = true },
	};

	frag_table_columns(t, list, FRAG_ARRAY_LEN(list));
}

static void peaks(const struct frag_side *a, const struct frag_side *b, struct frag_text *out)
{
	FRAG_AUTO(frag_table_release) struct frag_table t = { 0 };

	heads(&t, "at the peak");
	change_row(&t, "reserved", a->peak_reserved, b->peak_reserved);
	if (a->peak_live && b->peak_live)
		change_row(&t, "live at most (no policy reserves less)", a->peak_live,
			   b->peak_live);
	change_row(&t, "requested", a->loss.requested_bytes, b->loss.requested_bytes);
	if (a->has_loss && b->has_loss) {
		change_row(&t, "rounding", a->loss.rounding_bytes, b->loss.rounding_bytes);
		change_row(&t, "waiting", a->loss.waiting_bytes, b->loss.waiting_bytes);
	}
	change_row(&t, "free, non-releasable", a->loss.non_releasable_bytes,
		   b->loss.non_releasable_bytes);
	change_row(&t, "free, releasable", a->loss.releasable_bytes, b->loss.releasable_bytes);
	t.room = frag_term_room(stdout);
	t.wraps = true;
	frag_table_print(&t, out);
}

static void sites(const struct frag_compared *c, size_t top, struct frag_text *out)
{
	struct frag_table t = { 0 };

	if (!c->count)
		return;
	heads(&t, "requested at the peak of live memory, at");
	for (size_t i = 0; i < c->count && i < top; i++)
		change_row(&t, c->rows[i].name, c->rows[i].before, c->rows[i].after);
	frag_text_add(out, "\n");
	t.room = frag_term_room(stdout);
	t.wraps = true;
	frag_table_print(&t, out);
	frag_table_release(&t);
	if (c->count > top)
		frag_text_addf(out, "and %zu more (--top)\n", c->count - top);
}

static void add_curve(struct frag_text *csv, size_t number, const char *name,
		      const struct frag_side *s, const uint64_t *bytes)
{
	for (size_t i = 0; i < s->points; i++)
		frag_page_point(csv, number, name, 100.0 * (double)(i + 1) / (double)s->points,
				s->us[i], bytes[i], bytes[i]);
}

/* Of the curves that are drawn. */
static uint64_t most(const struct frag_side *s)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < s->points; i++)
		bytes = FRAG_MAX(bytes, s->reserved[i]);
	return bytes;
}

static void finding(const struct frag_side *a, const struct frag_side *b, struct frag_text *out)
{
	uint64_t before = most(a), after = most(b);

	frag_text_add_bytes(out, after);
	frag_text_add(out, " are reserved after the change, ");
	if (after == before) {
		frag_text_add(out, "as much as before");
		return;
	}
	frag_text_add_bytes(out, after > before ? after - before : before - after);
	frag_text_add(out, after > before ? " more than before" : " less than before");
}

static int write_page(const struct frag_cli *cli, const struct frag_side *a,
		      const struct frag_side *b, const struct frag_compared *c, const char *text,
		      struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text verdict = { 0 }, title = { 0 };
	struct frag_page page = { .dir = cli->out,
				  .file = "diff.html",
				  .title = a->estimate || b->estimate
						   ? "What the change did, an estimate"
						   : "What the change did",
				  .question = "Does it need more memory than before, and where?",
				  .text = text,
				  .argv = cli->argv,
				  .argc = cli->argc,
				  .threads = cli->threads };
	int rc;

	frag_compared_verdict(a, b, c, &verdict);
	page.answer = frag_text_str(&verdict);
	finding(a, b, &title);
	page.charts[0] = (struct frag_page_chart){ .base = "diff-memory",
						   .heading = "Memory over the run",
						   .caption = "Reserved and live memory, both runs "
							      "stretched to the same length.",
						   .title = frag_text_str(&title),
						   .subtitle = "" };
	page.charts_count = a->points && b->points;
	frag_page_header(&page.charts[0].csv, "run_percent");
	add_curve(&page.charts[0].csv, 0, "before: reserved", a, a->reserved);
	add_curve(&page.charts[0].csv, 1, "after: reserved", b, b->reserved);
	add_curve(&page.charts[0].csv, 2, "before: live", a, a->active);
	add_curve(&page.charts[0].csv, 3, "after: live", b, b->active);
	rc = frag_page_write(&page, err);
	if (!page.charts_count)
		frag_text_release(&page.charts[0].csv);
	return rc;
}

static int print(const struct frag_cli *cli, const struct options *o, const struct frag_side *a,
		 const struct frag_side *b, const struct frag_compared *c, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };

	frag_compared_verdict(a, b, c, &out);
	frag_text_addf(&out, "\n\n# before: %s, %s%s\n# after:  %s, %s%s\n", a->name, a->setting,
		       a->estimate ? ", an estimate" : "", b->name, b->setting,
		       b->estimate ? ", an estimate" : "");
	peaks(a, b, &out);
	if (a->steps_count && b->steps_count && c->first_step != SIZE_MAX) {
		frag_text_addf(&out, "\nthe first step whose peak differs: step %zu, ",
			       c->first_step + 1);
		frag_text_add_bytes(&out, a->steps[c->first_step]);
		frag_text_add(&out, " -> ");
		frag_text_add_bytes(&out, b->steps[c->first_step]);
		frag_text_add(&out, "\n");
	} else if (a->steps_count && b->steps_count) {
		frag_text_addf(&out, "\nlive peaks of %zu steps are the same within 1 %%\n",
			       FRAG_MIN(a->steps_count, b->steps_count));
	}
	sites(c, o->top, &out);
	FRAG_TRY(frag_text_check(&out, err));
	if (cli->out)
		FRAG_TRY(write_page(cli, a, b, c, frag_text_str(&out), err));
	if (!cli->json || strcmp(cli->json, "-") != 0)
		fputs(frag_text_str(&out), stdout);
	return 0;
}

static json_t *side_json(const struct frag_side *s)
{
	return json_pack("{ss ss sb sI sI sI}", "name", s->name, "policy", s->setting, "estimate",
			 s->estimate, "peak_reserved_bytes", (json_int_t)s->peak_reserved,
			 "peak_live_bytes", (json_int_t)s->peak_live, "non_releasable_bytes",
			 (json_int_t)s->loss.non_releasable_bytes);
}

static int write_json(const struct frag_cli *cli, const struct frag_side *a,
		      const struct frag_side *b, const struct frag_compared *c,
		      struct frag_err *err)
{
	json_t *root = frag_cli_json_head(cli), *rows = json_array();
	FRAG_AUTO(frag_text_release) struct frag_text verdict = { 0 };

	frag_compared_verdict(a, b, c, &verdict);
	for (size_t i = 0; i < c->count; i++)
		json_array_append_new(rows, json_pack("{ss sI sI}", "site", c->rows[i].name,
						      "before_bytes", (json_int_t)c->rows[i].before,
						      "after_bytes", (json_int_t)c->rows[i].after));
	if (root) {
		json_object_set_new(root, "verdict", json_string(frag_text_str(&verdict)));
		json_object_set_new(root, "before", side_json(a));
		json_object_set_new(root, "after", side_json(b));
		json_object_set_new(root, "reserved_growth_ratio", json_real(c->reserved_growth));
		json_object_set_new(root, "live_growth_ratio", json_real(c->live_growth));
		json_object_set_new(root, "sites", rows);
	}
	return frag_cli_json_write(cli, root, err);
}

static int diff(const struct frag_cli *cli, const struct options *o, struct frag_side *a,
		struct frag_side *b, struct frag_err *err)
{
	FRAG_AUTO(frag_compared_release) struct frag_compared c = { 0 };

	FRAG_TRY(frag_sides_compare(a, b, &c, err));
	if (cli->json)
		FRAG_TRY(write_json(cli, a, b, &c, err));
	FRAG_TRY(print(cli, o, a, b, &c, err));
	if (o->fail_on_growth >= 0 &&
	    (c.reserved_growth > o->fail_on_growth || c.live_growth > o->fail_on_growth))
		return FRAG_EXIT_CONDITION;
	return 0;
}

/* ---- the command ----------------------------------------------------------------- */

static const struct frag_arg options[] = {
	{ FRAG_ARG_TEXT, "policy", FRAG_ARG_AT(struct options, policy), .value = "POLICY",
	  .help = "replay both under this policy (default: recorded, each under its own "
		  "settings)" },
	{ FRAG_ARG_OWN, "fail-on-growth", .set = set_growth, .value = "PERCENT%",
	  .help = "exit with 1 if peak reserved or live memory grew by more: a test for CI" },
	{ FRAG_ARG_UINT, "top", FRAG_ARG_AT(struct options, top), .value = "N", .min = 1,
	  .max = 100000, .def = "10", .help = "rows of the table" },
	{ FRAG_ARG_WORD, "by", FRAG_ARG_AT(struct options, by), .words = frag_site_by_words,
	  .def = "function",
	  .help = "what a call site is; lines move when a program is changed, functions stay" },
	{ FRAG_ARG_TEXT, "frame", FRAG_ARG_AT(struct options, frame), .value = "WHICH",
	  .help = "the frame of a stack that counts, as for explain (default: user)" },
	{ 0 },
};

static void init(void *values)
{
	((struct options *)values)->fail_on_growth = -1;
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	FRAG_AUTO(frag_side_release) struct frag_side a = { 0 }, b = { 0 };

	FRAG_TRY(read_side(cli, values, cli->operands[0], &a, err));
	FRAG_TRY(read_side(cli, values, cli->operands[1], &b, err));
	return diff(cli, values, &a, &b, err);
}

const struct frag_cmd frag_cmd_diff = {
	.name = "diff",
	.summary = "what a change did: peaks, causes and call sites of two runs",
	.group = FRAG_GROUP_UNDERSTAND,
	.rank = 2,
	.operands = "BEFORE AFTER",
	.operands_min = 2,
	.operands_max = 2,
	.about = "Compares two recordings, or the JSON that replay, compare or explain wrote of a "
		 "former run: peak reserved and live memory, where it was at the peak, and which "
		 "call "
		 "sites grew, shrank, came or went. Call sites are matched by name and steps by "
		 "number, not by event. With --fail-on-growth, a memory regression test for CI.",
	.examples = "  cufrag diff before.pickle after.pickle\n"
		    "  cufrag diff main.json branch.pickle --fail-on-growth 5%\n",
	.shared = FRAG_CLI_CARD | FRAG_CLI_TORCH | FRAG_CLI_JSON | FRAG_CLI_OUT | FRAG_CLI_SEED |
		  FRAG_CLI_THREADS,
	.options = FRAG_CMD_OPTIONS(options),
	.options_size = sizeof(struct options),
	.init = init,
	.run = run,
};
