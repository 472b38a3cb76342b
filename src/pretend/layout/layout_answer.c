/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts as an answer: the fewest cards, every layout, what bounds it. */
#include "layout_row.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 24u

/* ---- rows -------------------------------------------------------------------------------- */

FRAG_VALUED_SHAPE(static, layout_row_shape, frag_layout_row, "layout", FRAG_LAYOUT_ROW,
		  "one layout on one card");

#define FEWEST_ROW(F, P, S) \
	F(S, TEXT, card, x->cards[c]->name, "card", "its name in `list gpus`") \
	F(S, TEXT, label, x->cards[c]->label, NULL, "its full name") \
	F(S, COUNT, gpus_count, gpus ? gpus : UINT64_MAX, "GPUs", \
	  "ranks of the job; of the fewest null: no layout fits", .none = "none") \
	F(S, TEXT, layout, best.layout, "layout", \
	  "the layout with the largest values of rising names, then with " \
	  "those listed first") \
	F(S, BYTES, peak_reserved_bytes, best.peak_reserved_bytes, "peak", "of its worst rank") \
	F(S, BYTES, headroom_bytes, best.headroom_bytes, "left", "beside the margin") \
	F(S, BYTES, least_bytes, least_of(x, c), NULL, \
	  "the smallest capacity that any layout needs; null: none was " \
	  "recorded") \
	F(S, REAL, price_per_hour, best.price_per_hour, "per hour", "of all its cards", \
	  .precision = 2, .if_any = true) \
	F(S, REAL, price_per_step, best.price_per_step, "per step", \
	  "of all its cards, by a roofline; null: it knows none", .precision = 6, .if_any = true) \
	F(S, COUNT, cache_tokens_count, best.cache_tokens_count, "cache tokens", \
	  "that the serving engine printed; null: not asked", .if_any = true, .grouped = true) \
	F(S, COUNT, held_requests_count, best.held_requests_count, "requests", \
	  "of --tokens that this cache holds; null: not asked", .if_any = true, .grouped = true) \
	F(S, BOOL, confirmed, confirmed, "confirmed", "recorded on the card itself, too") \
	F(S, TEXT, setting, best.setting, "setting", "the policy that serves it best", .spare = 1) \
	F(S, TEXT, line, best.line, NULL, "the command, with the setting")
FRAG_VALUED_ROW(fewest_row, "fewest", FEWEST_ROW, "the layout to take on so many GPUs of one card");

#define LAYOUTS_ROW(F, P, S) \
	F(S, TEXT, command, command_of(x, a), NULL, "with names in braces") \
	F(S, COUNT, layouts_count, x->axes.layouts_count, NULL, "that meet the conditions") \
	F(S, COUNT, classes_count, x->classes_count, NULL, \
	  "compute capabilities of the cards: each is recorded") \
	F(S, COUNT, recordings_count, x->recordings, NULL, \
	  "runs of the program, kept ones among them") \
	F(S, COUNT, assumed_count, x->border.assumed, NULL, \
	  "layouts that did not run, because of rising or falling names") \
	F(S, COUNT, checked_count, x->border.checked, NULL, \
	  "of those that were assumed, run nevertheless") \
	F(S, COUNT, wrong_count, x->border.wrong, NULL, \
	  "of these, other than assumed; their group then ran whole") \
	F(S, COUNT, failed_count, 0, NULL, "layouts that failed for another reason than memory") \
	F(S, BOOL, complete, !x->interrupted, NULL, "it was not interrupted") \
	F(S, COUNT, requests_count, known(x->requests), NULL, "of --requests; null: not asked") \
	F(S, COUNT, request_tokens_count, x->requests ? x->request_tokens : UINT64_MAX, NULL, \
	  "of --tokens; null: not asked") \
	F(S, LIST, fewest, FRAG_ROWS(fewest, x->cards_count), NULL, "one for each card", \
	  .of = &fewest_row_shape) \
	F(S, LIST, sizes, FRAG_ROWS(sizes, sizes_count), NULL, \
	  "the same for each card and number of ranks", .of = &fewest_row_shape) \
	F(S, LIST, layouts, FRAG_ROWS(rows, count), NULL, "one for each layout and card", \
	  .of = &layout_row_shape)
FRAG_VALUED_ROW_AS(, frag_layouts_shape, layouts, "layouts", LAYOUTS_ROW,
		   "which layouts of a job fit which cards");

static double price_of(const struct frag_layouts *x, size_t c, uint64_t gpus)
{
	double price = isnan(x->prices[c]) ? x->cards[c]->price_per_hour : x->prices[c];

	return isnan(x->prices[c]) && !(price > 0) ? NAN : price * (double)gpus;
}

/* The command, and the setting that it needs to fit. */
static const char *line_of(const struct frag_layouts *x, size_t layout, const char *setting,
			   struct frag_answer *a)
{
	FRAG_AUTO(frag_words_release) char **words = NULL, **settings = NULL;
	struct frag_text t = { 0 };
	struct frag_err err;

	if (frag_axes_words(&x->axes, layout, x->words, &words, &err) ||
	    frag_axes_words(&x->axes, layout, x->settings, &settings, &err)) {
		a->failed = true;
		return NULL;
	}
	if (!strncmp(setting, "pytorch:", 8))
		frag_text_addf(&t, "PYTORCH_CUDA_ALLOC_CONF=%s ", setting + 8);
	for (char **w = words; *w; w++) {
		frag_text_add(&t, w == words ? "" : " ");
		frag_text_add_shell(&t, *w);
	}
	for (char **s = settings; s && *s; s++) /* a comment of the shell */
		frag_text_addf(&t, "%s%s", s == settings ? "  # " : ", ", *s);
	return frag_answer_take(a, &t);
}

static const char *answer_of(const struct frag_layouts *x, size_t i, size_t c,
			     const struct frag_layout_result *r)
{
	const struct frag_layout_result *own = frag_layout_confirmed(x, i, c);

	if (r->status == FRAG_LAYOUT_FAILED)
		return "failed";
	if (r->status == FRAG_LAYOUT_ENDLESS)
		return "no end";
	if (frag_layout_fits(x, i, c))
		return "fits";
	if (own && own->status != FRAG_LAYOUT_RAN)
		return own->status == FRAG_LAYOUT_MEMORY ? "does not fit" : "failed";
	if (!(x->border.points[i].decided >> c & 1))
		return "unknown";
	return r->cards[c].completes && !x->requests ? "tight" : "does not fit";
}

static uint64_t activations(const struct frag_layout_result *r)
{
	return r->kinds[FRAG_KIND_ACTIVATION] + r->kinds[FRAG_KIND_WITHIN];
}

static uint64_t others(const struct frag_layout_result *r)
{
	return r->kinds[FRAG_KIND_CARRIED] + r->kinds[FRAG_KIND_KEPT] + r->kinds[FRAG_KIND_UNKNOWN];
}

static const char *bound_by(const struct frag_layout_result *r)
{
	const struct {
		const char *name;
		uint64_t bytes;
	} parts[] = { { "weights and what stays", r->kinds[FRAG_KIND_PERMANENT] },
		      { "optimizer", r->kinds[FRAG_KIND_OPTIMIZER] },
		      { "gradients", r->kinds[FRAG_KIND_GRADIENT] },
		      { "activations", activations(r) },
		      { "workspace", r->kinds[FRAG_KIND_TEMPORARY] },
		      { "fragmentation", r->free_bytes } };
	size_t most = 0;

	for (size_t k = 1; k < FRAG_ARRAY_LEN(parts); k++)
		most = parts[k].bytes > parts[most].bytes ? k : most;
	return parts[most].bytes > others(r) ? parts[most].name : NULL;
}

static uint64_t if_ran(const struct frag_layout_result *r, uint64_t n)
{
	return r->status == FRAG_LAYOUT_RAN ? n : UINT64_MAX;
}

/* a - b; UINT64_MAX: negative or unknown. */
static uint64_t above(uint64_t a, uint64_t b)
{
	return a >= b && a != UINT64_MAX ? a - b : UINT64_MAX;
}

static uint64_t known(uint64_t n)
{
	return n ? n : UINT64_MAX;
}

static const char *basis_of(const struct frag_layouts *x, size_t i, size_t c,
			    const struct frag_layout_result *r)
{
	return frag_layout_confirmed(x, i, c) ? "card" : r->status ? "recorded" : "assumed";
}

static const char *layout_text(const struct frag_layouts *x, size_t layout, struct frag_answer *a)
{
	char text[400];

	frag_axes_text(&x->axes, layout, SIZE_MAX, text, sizeof(text));
	return frag_answer_print(a, "%s", text);
}

static struct frag_layout_row row_of(const struct frag_layouts *x, size_t i, size_t c,
				     struct frag_answer *a)
{
	const struct frag_layout_result *r = &x->results[i];
	const struct frag_layout_on_card *on = &r->cards[c];
	const bool ran = r->status == FRAG_LAYOUT_RAN, served = ran && x->requests;
	const size_t layout = frag_layout_of(x, i);
	const uint64_t gpus = frag_layout_world(x, layout);

	return FRAG_ROW_VALUES(frag_layout_row, FRAG_LAYOUT_ROW);
}

/* ---- conclusions --------------------------------------------------------------------------- */

static uint64_t least_of(const struct frag_layouts *x, size_t c)
{
	uint64_t least = UINT64_MAX;

	for (size_t k = 0; k < x->border.count; k++)
		if (frag_layout_on(x, k, c) && x->results[k].status == FRAG_LAYOUT_RAN)
			least = FRAG_MIN(least, x->results[k].min_bytes);
	return least;
}

/* gpus 0: none fits. */
static struct fewest_row take_of(const struct frag_layouts *x, size_t c, uint64_t gpus,
				 struct frag_answer *a)
{
	size_t i = gpus ? frag_layout_best(x, c, gpus) : SIZE_MAX;
	const struct frag_layout_row none = { .peak_reserved_bytes = UINT64_MAX,
					      .headroom_bytes = UINT64_MAX,
					      .cache_tokens_count = UINT64_MAX,
					      .held_requests_count = UINT64_MAX,
					      .price_per_hour = NAN,
					      .price_per_step = NAN },
				     best = i == SIZE_MAX ? none : row_of(x, i, c, a);
	const bool confirmed = i != SIZE_MAX && (frag_layout_confirmed(x, i, c) ||
						 (x->fresh && x->results[i].status));

	return FRAG_ROW_VALUES(fewest_row, FEWEST_ROW);
}

/* One row for each card and number of ranks. */
static size_t make_sizes(const struct frag_layouts *x, struct fewest_row *rows,
			 struct frag_answer *a)
{
	const struct frag_axis *worlds = x->world == SIZE_MAX ? NULL : &x->axes.list[x->world];
	size_t n = 0;

	for (size_t c = 0; c < x->cards_count; c++)
		for (size_t v = 0; worlds && v < worlds->count; v++)
			rows[n++] = take_of(x, c, strtoull(worlds->values[v], NULL, 10), a);
	return n;
}

static const char *requests_of(const struct frag_layouts *x, struct frag_answer *a)
{
	return frag_answer_print(a, "%s of %s",
				 frag_answer_count(a, x->requests, "request", "requests"),
				 frag_answer_count(a, x->request_tokens, "token", "tokens"));
}

/* Why there is no layout to take. */
static const char *none_of(const struct frag_layouts *x, size_t c, uint64_t least,
			   struct frag_answer *a)
{
	size_t known = 0, failed = 0;

	for (size_t k = 0; k < x->border.count; k++)
		if (frag_layout_on(x, k, c)) {
			failed += frag_layout_failed(&x->results[k]);
			known += x->results[k].status == FRAG_LAYOUT_RAN ||
				 x->results[k].status == FRAG_LAYOUT_MEMORY;
		}
	if (x->interrupted)
		return "interrupted before a layout was found";
	if (least == UINT64_MAX && !(x->requests && known))
		return "not known, no layout came to its end";
	if (!x->requests)
		return frag_answer_print(a,
					 "no layout fits and leaves the margin free; the least "
					 "needs a card of %s",
					 FRAG_BYTES(least));
	return failed ? frag_answer_print(
				a, "no layout that ran holds %s; %zu failed for another reason",
				requests_of(x, a), failed)
		      : frag_answer_print(a, "no layout holds %s", requests_of(x, a));
}

static const char *figures_of(const struct frag_layouts *x, const struct fewest_row *row,
			      struct frag_answer *a)
{
	if (x->requests)
		return frag_answer_print(
			a, ": its cache of %s holds %s",
			frag_answer_count(a, row->cache_tokens_count, "token", "tokens"),
			frag_answer_count(a, row->held_requests_count, "of them", "of them"));
	return row->peak_reserved_bytes == UINT64_MAX
		       ? ""
		       : frag_answer_print(a, ": peak %s, %s left beside the margin",
					   FRAG_BYTES(row->peak_reserved_bytes),
					   FRAG_BYTES(row->headroom_bytes));
}

static void conclude(const struct frag_layouts *x, size_t c, const struct fewest_row *row,
		     struct frag_answer *a)
{
	const char *label = x->cards[c]->label;

	if (row->gpus_count == UINT64_MAX)
		frag_answer_conclude(a, "%s: %s", label, none_of(x, c, row->least_bytes, a));
	else
		frag_answer_conclude(
			a, "%s: %llu %s%s%s, with %s%s%s", label,
			(unsigned long long)row->gpus_count,
			row->gpus_count == 1 ? "is enough" : "are the fewest",
			x->requests ? " for " : "", x->requests ? requests_of(x, a) : "",
			row->layout, figures_of(x, row, a),
			row->confirmed || x->requests ? "" : "; not recorded on the card itself");
	if (row->line)
		frag_answer_paste(a, x->cards[c]->name, row->line);
}

/* Warns of failures for another reason than memory, once for each message. */
static void say_failures(const struct frag_layouts *x, struct layouts *all, struct frag_answer *a)
{
	const char *said = NULL;

	for (size_t i = 0; i < x->border.count; i++) {
		const struct frag_layout_result *r = &x->results[i];

		if (!frag_layout_failed(r))
			continue;
		all->failed_count++;
		if (said && !strcmp(said, r->message))
			continue;
		said = r->message;
		frag_answer_warn(a, "%s %s, not for want of memory: %s",
				 layout_text(x, frag_layout_of(x, i), a),
				 r->status == FRAG_LAYOUT_ENDLESS ? "was ended" : "failed",
				 r->message);
	}
}

static void say_assumed(const struct frag_layouts *x, struct frag_answer *a)
{
	FRAG_AUTO(frag_text_release) struct frag_text names = { 0 };
	const struct frag_border *b = &x->border;

	if (!b->assumed && !b->checked)
		return;
	for (size_t k = 0; k < x->axes.count; k++)
		if (x->axes.list[k].order != FRAG_AXIS_ANY)
			frag_text_addf(&names, "%s%s of {%s}", names.len ? ", " : "",
				       x->axes.list[k].order == FRAG_AXIS_RISING ? "more" : "less",
				       x->axes.list[k].name);
	a->failed |= names.failed;
	frag_answer_say(
		a,
		"assumed: %s needs no less memory; %s did not run for it, %llu more ran as a "
		"check, and %llu of these contradicted",
		frag_text_str(&names), frag_answer_count(a, b->assumed, "layout", "layouts"),
		(unsigned long long)b->checked, (unsigned long long)b->wrong);
}

/* Warns if the program needs other memory on the card itself than on a larger one. */
static void warn_adapted(const struct frag_layouts *x, const struct frag_layout_confirm *own,
			 struct frag_answer *a)
{
	const uint64_t before = x->results[own->point].cards[own->card].peak_reserved_bytes,
		       now = own->result.cards[own->card].peak_reserved_bytes;
	const char *card = x->cards[own->card]->name,
		   *layout = layout_text(x, frag_layout_of(x, own->point), a);

	if (own->result.status != FRAG_LAYOUT_RAN)
		frag_answer_warn(a, "%s %s on %s itself: %s", layout,
				 own->result.status == FRAG_LAYOUT_MEMORY ? "runs out of memory"
									  : "failed",
				 card, own->result.message);
	else if (now > before + before / 50 || before > now + now / 50)
		frag_answer_warn(a,
				 "%s reserves %s on %s itself and %s on a card with more memory: "
				 "the program adapts, so record each on the card itself (--fresh)",
				 layout, FRAG_BYTES(now), card, FRAG_BYTES(before));
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* The layouts that ran, those that fit first. */
static size_t shown(const struct frag_layout_row *rows, size_t count, struct frag_layout_row *out)
{
	size_t n = 0;

	for (unsigned fits = 2; fits-- > 0;)
		for (size_t i = 0; i < count; i++)
			if (!strcmp(rows[i].answer, "fits") == (fits != 0) &&
			    strcmp(rows[i].basis, "assumed") != 0)
				out[n++] = rows[i];
	return n;
}

static struct frag_layout_row *make_rows(const struct frag_layouts *x, size_t *count,
					 struct frag_answer *a)
{
	struct frag_layout_row *rows =
		frag_answer_new(a, x->border.count * x->cards_count, sizeof(*rows));

	*count = 0;
	for (size_t i = 0; rows && i < x->border.count; i++)
		for (size_t c = 0; c < x->cards_count; c++)
			if (frag_layout_on(x, i, c))
				rows[(*count)++] = row_of(x, i, c, a);
	return rows;
}

static const char *command_of(const struct frag_layouts *x, struct frag_answer *a)
{
	struct frag_text t = { 0 };

	for (char *const *w = x->words; *w; w++)
		frag_text_addf(&t, "%s%s", w == x->words ? "" : " ", *w);
	return frag_answer_take(a, &t);
}

static void remarks(const struct frag_layouts *x, const struct layouts *all, struct frag_answer *a)
{
	FRAG_AUTO(frag_text_release) struct frag_text kept = { 0 };

	frag_headroom_text(&x->headroom, &kept);
	a->failed |= kept.failed;
	frag_answer_remark(a, "layout: %s", all->command);
	frag_answer_remark(a, "%s on %s, %s%s; kept free: %s",
			   frag_answer_count(a, all->layouts_count, "layout", "layouts"),
			   frag_answer_count(a, x->cards_count, "card", "cards"),
			   frag_answer_count(a, all->recordings_count, "run", "runs"),
			   x->fresh ? ", each on the card itself"
				    : ", each with enough memory for what it needs",
			   kept.len ? frag_text_str(&kept) : "nothing");
}

int frag_layouts_answer(const struct frag_layouts *x, struct frag_answer *a, struct frag_err *err)
{
	struct layouts *all = frag_answer_new(a, 1, sizeof(*all));
	struct fewest_row *fewest = frag_answer_new(a, x->cards_count, sizeof(*fewest));
	struct fewest_row *sizes = frag_answer_new(
		a, x->world == SIZE_MAX ? 1 : x->cards_count * x->axes.list[x->world].count,
		sizeof(*sizes));
	size_t count, sizes_count, unknown = 0;
	struct frag_layout_row *rows = make_rows(x, &count, a), *top;

	FRAG_CHECK_ALLOC(all && fewest && sizes && rows, "answer", err);
	top = frag_answer_new(a, count, sizeof(*top));
	FRAG_CHECK_ALLOC(top, "answer", err);
	sizes_count = make_sizes(x, sizes, a);
	*all = FRAG_ROW_VALUES(layouts, LAYOUTS_ROW);
	frag_answer_data(a, &frag_layouts_shape, all);
	frag_answer_csv(a, &layout_row_shape, rows, count);
	a->title = "Which layout on how many cards";
	a->question =
		"With how many cards of each kind does the job complete, and with which layout?";
	a->estimated = true;
	remarks(x, all, a);
	for (size_t i = 0; i < count; i++)
		unknown += !strcmp(rows[i].answer, "unknown");
	if (x->interrupted) /* first, so that no reader takes a partial answer for the whole */
		frag_answer_warn(a,
				 "Interrupted: %zu of %zu answers are unknown, so fewer cards or "
				 "another layout may be better.",
				 unknown, count);
	for (size_t c = 0; c < x->cards_count; c++) {
		fewest[c] = take_of(x, c, frag_layout_fewest(x, c), a);
		conclude(x, c, &fewest[c], a);
	}
	say_failures(x, all, a);
	for (size_t c = 0; c < x->cards_count; c++) /* not in the order of completion */
		for (size_t k = 0; k < x->confirms_count; k++)
			if (x->confirms[k].card == c)
				warn_adapted(x, &x->confirms[k], a);
	frag_answer_gap(a);
	frag_answer_table(a, &fewest_row_shape, sizes_count ? sizes : fewest,
			  sizes_count ? sizes_count : x->cards_count);
	for (size_t c = 0; c < x->cards_count; c++)
		frag_layout_map(x, c, rows, a);
	frag_answer_gap(a);
	frag_answer_table(a, &layout_row_shape, top, shown(rows, count, top))->top = SHOWN;
	frag_answer_gap(a);
	say_assumed(x, a);
	return a->failed ? frag_fail_nomem(err, "answer") : 0;
}
