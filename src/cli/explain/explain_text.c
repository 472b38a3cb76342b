/* SPDX-License-Identifier: Apache-2.0 */
/* An explanation for people: a paragraph, then tables. */
#include "explain_out.h"

#include <inttypes.h>

#include "explain/diagnose/diagnose.h"
#include "base/term.h"
#include "cli/common.h"
#include "answer/table.h"

static const char *const at_words[] = {
	[FRAG_AT_AUTO] = "",
	[FRAG_AT_PEAK] = "at the peak of reserved memory",
	[FRAG_AT_OOM] = "where a request was refused",
	[FRAG_AT_EVENT] = "at the asked event",
	[FRAG_AT_TIME] = "at the asked time",
};

/* "at the peak of reserved memory, event 12 (1.2 s, step 3)" */
static void add_moment(const struct frag_explained *x, struct frag_text *out)
{
	frag_text_addf(out, "%s (event %" PRIu64 ", ", at_words[x->at.what], x->event);
	frag_text_add_ns(out, x->time_us * 1000);
	if (x->history.from != FRAG_STEPS_NONE) {
		frag_text_add(out, ", ");
		frag_step_words(&x->history, x->step, out);
	}
	frag_text_add(out, ")");
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

static void paragraph_oom(const struct frag_explained *x, struct frag_text *out)
{
	const struct frag_oom_story *o = &x->oom;
	FRAG_AUTO_FREE char *line = frag_stack_line(&x->sites, o->stack);

	frag_text_add(out, "A request of ");
	frag_text_add_bytes(out, o->request_bytes);
	if (line)
		frag_text_addf(out, " at %s", line);
	frag_text_add(out, " was refused. ");
	frag_text_add(out, o->fragmentation ? "It is fragmentation: " : "The program needs it: ");
	frag_text_add_bytes(out, o->live_bytes);
	frag_text_add(out, " were live, ");
	frag_text_add_bytes(out, o->reserved_bytes);
	frag_text_add(out, " reserved");
	if (x->limit_bytes != UINT64_MAX) {
		frag_text_add(out, " under a limit of ");
		frag_text_add_bytes(out, x->limit_bytes);
		frag_text_add(out, x->limit_guessed ? " (which is not recorded: the most that was "
						      "ever reserved)"
						    : "");
	}
	if (x->limit_high_bytes) {
		frag_text_add(out, " (inferred: between ");
		frag_text_add_bytes(out, x->limit_low_bytes);
		frag_text_add(out, " and ");
		frag_text_add_bytes(out, x->limit_high_bytes);
		frag_text_add(out, ")");
	}
	if (o->fragmentation) {
		frag_text_add(out, "; live bytes and the request would have fitted, but ");
		frag_text_add_bytes(out, o->non_releasable_bytes);
		frag_text_add(out, " lie free in segments with live blocks, the largest hole ");
		frag_text_add_bytes(out, o->largest_free_bytes);
	} else if (o->live_bytes + o->request_bytes > x->limit_bytes) {
		frag_text_add(out, "; live bytes and the request are more than that");
		if (!x->limit_high_bytes) {
			frag_text_add(out, " by ");
			frag_text_add_bytes(out, o->live_bytes + o->request_bytes - x->limit_bytes);
		}
	} else {
		frag_text_add(out, "; live bytes and the request would fit only without any hole");
	}
	frag_text_add(out, ". ");
	for (size_t i = 0; i < o->remedies_count; i++) {
		if (!o->remedies[i].served)
			continue;
		frag_text_addf(out, "Replayed, this serves it: %s%s%s. ", o->remedies[i].text,
			       o->remedies[i].line ? ", " : "",
			       o->remedies[i].line ? o->remedies[i].line : "");
		break;
	}
}

void frag_explain_paragraph(const struct frag_explained *x, struct frag_text *out)
{
	const struct frag_loss *l = &x->loss;
	uint64_t live = l->requested_bytes + l->rounding_bytes;
	struct frag_text moment = { 0 };

	if (x->oom.happened)
		paragraph_oom(x, out);
	add_moment(x, &moment);
	if (moment.s)
		moment.s[0] = (char)(moment.s[0] - 'a' + 'A');
	frag_text_addf(out, "%s ", frag_text_str(&moment));
	frag_text_release(&moment);
	frag_text_add_bytes(out, l->reserved_bytes);
	frag_text_add(out, " are reserved: ");
	frag_text_add_bytes(out, live);
	frag_text_addf(out, " live in %zu blocks of %zu call sites", x->scene.count, x->rows_count);
	if (x->rows_count)
		frag_text_addf(out, ", most of it (%.0f %%) %s",
			       percent(x->rows[0].allocated_bytes, live), x->rows[0].name);
	if (l->waiting_bytes) {
		frag_text_add(out, "; ");
		frag_text_add_bytes(out, l->waiting_bytes);
		frag_text_add(out, " waiting for other streams");
	}
	frag_text_add(out, "; ");
	frag_text_add_bytes(out, l->non_releasable_bytes);
	frag_text_addf(out, " free, but in %u segments with live blocks", x->scene.segments_held);
	if (x->held_count && x->rows[x->held[0]].non_releasable_bytes)
		frag_text_addf(
			out, ", most of it (%.0f %%) held by %s",
			percent(x->rows[x->held[0]].non_releasable_bytes, l->non_releasable_bytes),
			x->rows[x->held[0]].name);
	frag_text_add(out, "; ");
	frag_text_add_bytes(out, l->releasable_bytes);
	frag_text_add(out, " free and releasable.");
	if (!frag_sites_known(&x->sites))
		frag_text_add(out,
			      " The recording has no stacks, so blocks are told by size and step: "
			      "record with torch.cuda.memory._record_memory_history(stacks="
			      "\"python\") to see the lines.");
}

/* ---- tables ------------------------------------------------------------------------------- */

/* "step 3", short: the column has the word. */
static void cell_step(struct frag_table *t, const struct frag_explained *x, uint64_t event)
{
	size_t step = frag_history_step(&x->history, event);

	if (x->history.from == FRAG_STEPS_NONE)
		frag_table_cell(t, "-");
	else if (step >= x->history.count)
		frag_table_cell(t, "end");
	else
		frag_table_cell(t, "%zu", step * x->history.stride + 1);
}

static void table_live(const struct frag_explained *x, size_t top, struct frag_text *out)
{
	static const struct frag_table_column heads[] = {
		{ .head = "live" },
		{ .head = "share" },
		{ .head = "blocks" },
		{ .head = "oldest", .unit = "step" },
		{ .head = "newest", .unit = "step" },
		{ .head = "age", .unit = "of the oldest" },
		{ .head = "kind", .left = true },
		{ .head = "sure" },
		{ .head = "asked for at", .left = true },
	};
	static const char *const spare[] = { "sure", "age", "newest", "oldest", "kind", NULL };
	uint64_t live = x->loss.requested_bytes + x->loss.rounding_bytes, rest = 0, blocks = 0;
	struct frag_table t = { 0 };
	size_t n = FRAG_MIN(top, x->rows_count);

	frag_table_columns(&t, heads, FRAG_ARRAY_LEN(heads));
	for (size_t i = 0; i < n; i++) {
		const struct frag_row *r = &x->rows[i];
		struct frag_text age = { 0 };

		frag_table_cell(&t, "%s", FRAG_BYTES(r->allocated_bytes));
		frag_table_cell(&t, "%.1f %%", percent(r->allocated_bytes, live));
		frag_table_cell(&t, "%" PRIu64, r->blocks_count);
		cell_step(&t, x, r->oldest);
		cell_step(&t, x, r->newest);
		frag_text_add_ns(&age, (x->time_us - FRAG_MIN(r->oldest_us, x->time_us)) * 1000);
		frag_table_cell(&t, "%s", frag_text_str(&age));
		frag_text_release(&age);
		frag_table_cell(&t, "%s", frag_kind_name(r->kind));
		if (r->kind == FRAG_KIND_UNKNOWN)
			frag_table_cell(&t, "-");
		else
			frag_table_cell(&t, "%.0f %%", 100 * r->confidence);
		frag_table_cell(&t, "%s", r->name);
	}
	t.spare = spare;
	t.room = frag_term_room(stdout);
	frag_text_add(out, "\nlive, by who asked for it\n");
	frag_table_print(&t, out);
	frag_table_release(&t);
	for (size_t i = n; i < x->rows_count; i++) {
		rest += x->rows[i].allocated_bytes;
		blocks += x->rows[i].blocks_count;
	}
	if (n == x->rows_count)
		return;
	frag_text_addf(out, "and %zu more with ", x->rows_count - n);
	frag_text_add_bytes(out, rest);
	frag_text_addf(out, " in %" PRIu64 " blocks (--top)\n", blocks);
}

static void table_held(const struct frag_explained *x, size_t top, struct frag_text *out)
{
	static const struct frag_table_column heads[] = {
		{ .head = "non-releasable" },
		{ .head = "share" },
		{ .head = "segments" },
		{ .head = "largest hole" },
		{ .head = "blocks" },
		{ .head = "regained", .unit = "if gone" },
		{ .head = "held by", .left = true },
	};
	static const char *const spare[] = { "blocks", "largest hole", "segments", "share", NULL };
	struct frag_table t = { 0 };
	size_t n = FRAG_MIN(top, x->held_count);

	if (!n)
		return;
	frag_table_columns(&t, heads, FRAG_ARRAY_LEN(heads));
	for (size_t i = 0; i < n; i++) {
		const struct frag_row *r = &x->rows[x->held[i]];

		frag_table_cell(&t, "%s", FRAG_BYTES(r->non_releasable_bytes));
		frag_table_cell(&t, "%.1f %%",
				percent(r->non_releasable_bytes, x->loss.non_releasable_bytes));
		frag_table_cell(&t, "%" PRIu64, r->segments_count);
		frag_table_cell(&t, "%s", FRAG_BYTES(r->largest_hole_bytes));
		frag_table_cell(&t, "%" PRIu64, r->blocks_count);
		if (r->regained_known)
			frag_table_cell(&t, "%s", FRAG_BYTES(r->regained_bytes));
		else
			frag_table_cell(&t, "-");
		frag_table_cell(&t, "%s", r->name);
	}
	t.spare = spare;
	t.room = frag_term_room(stdout);
	frag_text_add(out, "\nfree, but not to be given back, by whose blocks hold the segments\n");
	frag_table_print(&t, out);
	frag_table_release(&t);
	if (n < x->held_count)
		frag_text_addf(out, "and %zu more (--top)\n", x->held_count - n);
	frag_text_add(out,
		      "# a segment's free bytes are dealt out equally to its blocks; regained: "
		      "replayed without them, then trimmed\n");
}

static void table_kinds(const struct frag_explained *x, struct frag_text *out)
{
	static const char *const rules[FRAG_KINDS] = {
		[FRAG_KIND_PERMANENT] = "asked for in the first step, there to the end: weights",
		[FRAG_KIND_OPTIMIZER] = "asked for within the first optimizer step, there to the "
					"end",
		[FRAG_KIND_GRADIENT] = "lives through the optimizer step, gone before any other "
				       "request",
		[FRAG_KIND_ACTIVATION] = "asked for and gone before the optimizer of its step",
		[FRAG_KIND_TEMPORARY] = "gone after at most 2 % of the requests of its step",
		[FRAG_KIND_CARRIED] = "asked for in one step, gone in the next: a batch, a loss",
		[FRAG_KIND_KEPT] = "asked for after the first step, lives two steps or more",
		[FRAG_KIND_WITHIN] = "asked for and gone within one step",
		[FRAG_KIND_UNKNOWN] = "no steps to tell it by",
	};
	static const struct frag_table_column heads[] = { { .head = "live" },
							  { .head = "share" },
							  { .head = "blocks" },
							  { .head = "kind", .left = true },
							  { .head = "rule", .left = true } };
	static const char *const spare[] = { "rule", NULL };
	uint64_t live = x->loss.requested_bytes + x->loss.rounding_bytes;
	FRAG_AUTO(frag_table_release) struct frag_table t = { 0 };

	frag_table_columns(&t, heads, FRAG_ARRAY_LEN(heads));
	for (unsigned k = 0; k < FRAG_KINDS; k++) {
		if (!x->kind_blocks[k])
			continue;
		frag_table_cell(&t, "%s", FRAG_BYTES(x->kind_bytes[k]));
		frag_table_cell(&t, "%.1f %%", percent(x->kind_bytes[k], live));
		frag_table_cell(&t, "%" PRIu64, x->kind_blocks[k]);
		frag_table_cell(&t, "%s", frag_kind_name(k));
		frag_table_cell(&t, "%s", rules[k]);
	}
	t.spare = spare;
	t.room = frag_term_room(stdout);
	frag_text_add(out, "\nwhat it is for, by how it behaves over the steps\n");
	frag_table_print(&t, out);
}

static void list_remedies(const struct frag_explained *x, struct frag_text *out)
{
	frag_text_add(out, "\nwhat would have served the request, each replayed up to it\n");
	for (size_t i = 0; i < x->oom.remedies_count; i++) {
		const struct frag_remedy *r = &x->oom.remedies[i];

		frag_text_addf(out, "  %-4s %s\n", r->served ? "yes" : "no", r->text);
		if (r->line)
			frag_text_addf(out, "       %s\n", r->line);
	}
}

int frag_explain_text(const struct frag_explained *x, const char *title, const char *policy,
		      size_t top, struct frag_text *out, struct frag_err *err)
{
	frag_text_addf(out, "# %s under %s%s\n", title, policy,
		       frag_cli_estimate_word(x->estimate));
	frag_explain_paragraph(x, out);
	frag_text_add(out, "\n");
	if (x->oom.happened)
		list_remedies(x, out);
	table_live(x, top, out);
	table_held(x, top, out);
	table_kinds(x, out);
	return frag_text_check(out, err);
}
