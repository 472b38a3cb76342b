/* SPDX-License-Identifier: Apache-2.0 */
/* scale: table, JSON, CSV, and the two sentences. */
#include <inttypes.h>
#include <string.h>

#include <frag/opt.h>

#include "answer/json.h"
#include "answer/table.h"
#include "scale_sheet.h"

static const char *const source_words[] = { [FRAG_SHEET_RECORDED] = "recorded",
					    [FRAG_SHEET_SAME] = "same requests",
					    [FRAG_SHEET_BEYOND] = "beyond",
					    [FRAG_SHEET_ESTIMATED] = "estimated" };

/* ---- sentences ------------------------------------------------------------------------------ */

/* The laws of the largest recording, all devices. */
static void laws_text(struct frag_sheet *s, struct frag_text *out)
{
	uint64_t laws[FRAG_SCALING_LAWS] = { 0 }, requests = 0;
	uint64_t unmatched[FRAG_SCALING_PARTS] = { 0 }, moved[FRAG_SCALING_PARTS] = { 0 };
	const char *comma = "";

	for (uint32_t d = 0; d < s->devices; d++) {
		const struct frag_scaling *sc;

		if (frag_sheet_scaling(s, UINT32_MAX, d, &sc, NULL))
			continue;
		for (size_t i = 0; i < FRAG_SCALING_LAWS; i++)
			laws[i] += sc->laws[i];
		for (size_t k = 0; k < s->parts_count; k++) {
			unmatched[k] += sc->unmatched[k];
			moved[k] += sc->moved[k];
		}
		requests += sc->requests;
	}
	frag_text_addf(out, "# %" PRIu64 " requests; their sizes: ", requests);
	for (size_t i = 0; i < FRAG_SCALING_LAWS; i++) {
		if (!laws[i])
			continue;
		frag_text_addf(out, "%s%" PRIu64 " %s", comma, laws[i],
			       frag_scaling_law_name((enum frag_scaling_law)i));
		comma = ", ";
	}
	frag_text_add(out, "\n");
	for (size_t k = 0; k + 1 < s->parts_count; k++) {
		if (unmatched[k])
			frag_text_addf(out,
				       "# not the same requests at %" PRIu64 " and %" PRIu64
				       ": %" PRIu64 " are in one of them only\n",
				       s->parts[k].value, s->parts[s->parts_count - 1].value,
				       unmatched[k]);
		if (moved[k])
			frag_text_addf(out,
				       "# not the same order at %" PRIu64 " and %" PRIu64
				       ": %" PRIu64 " requests end at another place\n",
				       s->parts[k].value, s->parts[s->parts_count - 1].value,
				       moved[k]);
	}
}

static bool exact_beyond(struct frag_sheet *s)
{
	return frag_sheet_source(s, UINT32_MAX) == FRAG_SHEET_BEYOND;
}

static void test_text(const struct frag_sheet *s, struct frag_text *out)
{
	const struct frag_sheet_cell *a = &s->check_predicted, *b = &s->check_recorded;

	frag_text_addf(out, " The test: %s = %" PRIu64 ", predicted from the others, reserves ",
		       s->name, s->parts[s->parts_count - 1].value);
	frag_text_add_bytes(out, a->low_bytes);
	if (a->high_bytes != a->low_bytes) {
		frag_text_add(out, " to ");
		frag_text_add_bytes(out, a->high_bytes);
	}
	if (a->low_bytes == b->low_bytes && a->high_bytes == a->low_bytes) {
		frag_text_add(out, ", to the byte what was recorded.");
	} else {
		frag_text_add(out, "; the recording ");
		frag_text_add_bytes(out, b->low_bytes);
		frag_text_addf(out, " (%+.2f %%).",
			       100 * ((double)a->low_bytes / (double)b->low_bytes - 1));
	}
}

void frag_sheet_trust(struct frag_sheet *s, struct frag_text *out)
{
	if (exact_beyond(s))
		frag_text_add(out,
			      "All recordings make the same requests, and each size has its law. "
			      "Beyond them this is exact only as long as the program makes these "
			      "requests: kernels take other temporary storage from certain "
			      "sizes on, so record one near to what matters.");
	else if (s->parts_count < 3)
		frag_text_add(out, "Two recordings lie on many laws: a third would tell more.");
	else
		frag_text_add(out,
			      "The recordings do not make the same requests everywhere: beyond "
			      "them this is an estimate. Record one near to what matters.");
	if (s->checked)
		test_text(s, out);
}

static void number_text(uint64_t n, struct frag_text *out)
{
	if (n == UINT64_MAX)
		frag_text_add(out, "more than --most");
	else
		frag_text_addf(out, "%" PRIu64, n);
}

void frag_sheet_answer(const struct frag_sheet *s, struct frag_text *out)
{
	char buf[40];

	frag_text_addf(out, "the greatest %s that completes on %s is ", s->name,
		       frag_vary_card(&s->cli->target.card, buf, sizeof(buf)));
	for (size_t p = 0; p < s->specs_count; p++) {
		frag_text_add(out, p ? ", " : "");
		number_text(s->largest_low[p], out);
		if (s->largest_low[p] != s->largest_high[p]) {
			frag_text_add(out, " to ");
			number_text(s->largest_high[p], out);
		}
		frag_text_addf(out, " with %s", frag_policy_spec_echo(s->specs[p]));
	}
	if (s->confirmed)
		frag_text_addf(out,
			       "; recorded there and beside it (%u %s): with the settings of the "
			       "program it is %" PRIu64,
			       s->confirm_runs, s->confirm_runs == 1 ? "run" : "runs",
			       s->confirmed_value);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void cell_text(struct frag_table *t, const struct frag_sheet_cell *c)
{
	if (!c->completed && !c->low_bytes)
		frag_table_cell(t, "more than 1 TiB");
	else if (c->low_bytes == c->high_bytes)
		frag_table_cell(t, "%s", FRAG_BYTES(c->low_bytes));
	else
		frag_table_cell(t, "%s to %s", FRAG_BYTES(c->low_bytes), FRAG_BYTES(c->high_bytes));
}

static void put_text(struct frag_sheet *s, struct frag_text *out)
{
	const struct frag_table_column columns[] = {
		{ .head = s->name, .unit = "" },
		{ .head = "from", .unit = "", .left = true },
		{ .head = "policy", .unit = "", .left = true },
		{ .head = "peak requested", .unit = "" },
		{ .head = "peak reserved", .unit = "" },
		{ .head = "bytes", .unit = "" },
	};
	static const char *const spare[] = { "bytes", "from", NULL };
	struct frag_table t = { .room = frag_term_room(stdout), .spare = spare };

	frag_text_addf(out, "# cufrag %s scale: %s at ", FRAG_VERSION,
		       s->parts[s->parts_count - 1].recording.trace->name);
	for (size_t i = 0; i < s->parts_count; i++)
		frag_text_addf(out, "%s%" PRIu64, i ? ", " : "", s->parts[i].value);
	frag_text_add(out, "\n");
	laws_text(s, out);
	frag_table_columns(&t, columns, FRAG_ARRAY_LEN(columns));
	for (size_t i = 0; i < s->values_count; i++) {
		for (size_t p = 0; p < s->specs_count; p++) {
			const struct frag_sheet_cell *c = &s->cells[i * s->specs_count + p];

			frag_table_cell(&t, "%" PRIu64, s->values[i]);
			frag_table_cell(&t, "%s", source_words[frag_sheet_source(s, s->values[i])]);
			frag_table_cell(&t, "%s", frag_policy_spec_echo(s->specs[p]));
			frag_table_cell(&t, "%s", FRAG_BYTES(c->peak_requested_bytes));
			cell_text(&t, c);
			frag_table_cell(&t, c->completed ? "%" PRIu64 : "-", c->low_bytes);
		}
	}
	frag_table_print(&t, out);
	frag_table_release(&t);
	frag_text_add(out, "\n");
	frag_sheet_trust(s, out);
	frag_text_add(out, "\nanswer: ");
	frag_sheet_answer(s, out);
	frag_text_add(out, "\n");
}

/* ---- JSON, CSV ---------------------------------------------------------------------------------- */

static json_t *cell_json(struct frag_sheet *s, size_t i, size_t p)
{
	const struct frag_sheet_cell *c = &s->cells[i * s->specs_count + p];

	return json_pack("{s:I, s:s, s:s, s:o, s:o, s:o}", "value", (json_int_t)s->values[i],
			 "from", source_words[frag_sheet_source(s, s->values[i])], "policy",
			 frag_policy_spec_echo(s->specs[p]), "peak_requested_bytes",
			 frag_json_if(c->completed, c->peak_requested_bytes), "peak_reserved_bytes",
			 frag_json_if(c->completed, c->low_bytes), "peak_reserved_most_bytes",
			 frag_json_if(c->completed, c->high_bytes));
}

static json_t *largest_json(const struct frag_sheet *s, size_t p)
{
	return json_pack("{s:s, s:o, s:o}", "policy", frag_policy_spec_echo(s->specs[p]), "value",
			 frag_json_if(s->largest_low[p] != UINT64_MAX, s->largest_low[p]),
			 "value_most",
			 frag_json_if(s->largest_high[p] != UINT64_MAX, s->largest_high[p]));
}

static json_t *test_json(const struct frag_sheet *s)
{
	if (!s->checked)
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:I}", "value",
			 (json_int_t)s->parts[s->parts_count - 1].value, "predicted_bytes",
			 (json_int_t)s->check_predicted.low_bytes, "predicted_most_bytes",
			 (json_int_t)s->check_predicted.high_bytes, "recorded_bytes",
			 (json_int_t)s->check_recorded.low_bytes);
}

static bool any_estimated(const struct frag_sheet *s)
{
	bool any = false;

	for (size_t i = 0; i < s->parts_count; i++)
		any |= s->parts[i].recording.trace->estimate != NULL;
	return any;
}

static int write_json(struct frag_sheet *s, struct frag_err *err)
{
	json_t *root = frag_cli_json_head(s->cli), *results = json_array(), *largest = json_array(),
	       *at = json_array(), *laws = json_object();
	const struct frag_scaling *sc;

	for (size_t i = 0; i < s->parts_count; i++)
		json_array_append_new(at, json_integer((json_int_t)s->parts[i].value));
	for (size_t i = 0; i < s->values_count * s->specs_count; i++)
		json_array_append_new(results,
				      cell_json(s, i / s->specs_count, i % s->specs_count));
	for (size_t p = 0; p < s->specs_count; p++)
		json_array_append_new(largest, largest_json(s, p));
	for (size_t i = 0; i < FRAG_SCALING_LAWS; i++) {
		uint64_t count = 0;

		for (uint32_t d = 0; d < s->devices; d++)
			if (!frag_sheet_scaling(s, UINT32_MAX, d, &sc, NULL))
				count += sc->laws[i];
		json_object_set_new(laws, frag_scaling_law_name((enum frag_scaling_law)i),
				    json_integer((json_int_t)count));
	}
	json_object_set_new(root, "name", json_string(s->name));
	json_object_set_new(root, "at", at);
	json_object_set_new(root, "estimated", json_boolean(any_estimated(s)));
	json_object_set_new(root, "same_requests", json_boolean(exact_beyond(s)));
	json_object_set_new(root, "laws", laws);
	json_object_set_new(root, "test", test_json(s));
	json_object_set_new(root, "results", results);
	json_object_set_new(root, "capacity_bytes",
			    json_integer((json_int_t)s->cli->target.card.total_bytes));
	json_object_set_new(root, "largest", largest);
	json_object_set_new(root, "confirmed",
			    s->confirmed ? json_integer((json_int_t)s->confirmed_value)
					 : json_null());
	return frag_cli_json_write(s->cli, root, err);
}

static int write_csv(struct frag_sheet *s, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };

	frag_text_add(&out, "value,from,policy,peak_requested_bytes,peak_reserved_bytes,"
			    "peak_reserved_most_bytes\n");
	for (size_t i = 0; i < s->values_count * s->specs_count; i++) {
		uint64_t value = s->values[i / s->specs_count];

		frag_text_addf(&out, "%" PRIu64 ",%s,", value,
			       source_words[frag_sheet_source(s, value)]);
		frag_text_add_csv(&out, frag_policy_spec_echo(s->specs[i % s->specs_count]));
		if (s->cells[i].completed)
			frag_text_addf(&out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
				       s->cells[i].peak_requested_bytes, s->cells[i].low_bytes,
				       s->cells[i].high_bytes);
		else
			frag_text_add(&out, ",,,\n");
	}
	return frag_text_put(&out, s->cli->csv, err);
}

int frag_sheet_print(struct frag_sheet *s, struct frag_err *err)
{
	const char *json = s->cli->json, *csv = s->cli->csv;
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };

	put_text(s, &out);
	FRAG_TRY(frag_text_check(&out, err));
	if (json)
		FRAG_TRY(write_json(s, err));
	if (csv)
		FRAG_TRY(write_csv(s, err));
	if (s->cli->out)
		FRAG_TRY(frag_sheet_page(s, frag_text_str(&out), err));
	if ((!json || strcmp(json, "-") != 0) && (!csv || strcmp(csv, "-") != 0))
		fputs(frag_text_str(&out), stdout);
	return 0;
}
