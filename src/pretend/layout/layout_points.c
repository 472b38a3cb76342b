/* SPDX-License-Identifier: Apache-2.0 */
/* From axes and cards to the points of the search, with errors of the plan, and which of them to take: see layouts.h. */
#include "layouts.h"

#include <stdlib.h>
#include <string.h>

#include "plan/kvcache/kvcache.h"
#include "recording/recording.h"

#define PRETENDED_MAX 16u /* as --gpus of way_pretend.c */
#define WORLD_MAX 1000000ull

/* The value of tp, pp or dp of a serving engine, by default 1. */
static uint64_t degree_of(const struct frag_layouts *x, size_t layout, const char *name)
{
	uint64_t n = 1;

	for (size_t k = 0; x->requests && k < x->axes.count; k++)
		if (!strcmp(x->axes.list[k].name, name))
			n = strtoull(frag_axes_value(&x->axes, layout, k), NULL, 10);
	return FRAG_MAX(FRAG_MIN(n, WORLD_MAX), 1u);
}

/* SGLang's data-parallel attention takes the cards of tensor parallelism. */
static bool shares_cards(const struct frag_layouts *x)
{
	char *const *w = x->words;

	while (*w && strcmp(*w, "--enable-dp-attention") != 0)
		w++;
	return *w;
}

uint64_t frag_layout_world(const struct frag_layouts *x, size_t layout)
{
	uint64_t degrees;

	if (x->world != SIZE_MAX)
		return strtoull(frag_axes_value(&x->axes, layout, x->world), NULL, 10);
	degrees = FRAG_MIN(degree_of(x, layout, "tp") * degree_of(x, layout, "pp"), WORLD_MAX);
	if (!shares_cards(x))
		degrees = FRAG_MIN(degrees * degree_of(x, layout, "dp"), WORLD_MAX);
	return degrees;
}

uint64_t frag_layout_engines(const struct frag_layouts *x, size_t layout)
{
	return degree_of(x, layout, "dp");
}

uint64_t frag_layout_held(const struct frag_layouts *x, const struct frag_layout_result *r)
{
	struct frag_kvcache k = { .request_tokens = x->request_tokens };

	frag_kvcache_take(&k, &r->engine);
	return r->engines * k.held;
}

size_t frag_layout_card(const struct frag_layouts *x, size_t i)
{
	size_t c = 0;

	while (!frag_layout_on(x, i, c))
		c++;
	return c;
}

static int find_classes(struct frag_layouts *x, struct frag_err *err)
{
	for (size_t c = 0; c < x->cards_count; c++) {
		const struct frag_gpu *gpu = frag_gpu_find(x->cards[c]->name);
		const struct frag_gpu_chip *chip = gpu ? frag_gpu_chip_find(gpu->name) : NULL;
		size_t same = 0;

		if (!chip)
			return frag_fail(err, FRAG_EUSAGE,
					 "'%s' does not run CUDA programs, so it cannot be "
					 "pretended (cufrag list gpus)",
					 x->cards[c]->name);
		while (same < c &&
		       (x->fresh ||
			!frag_same_kernels(chip, frag_gpu_chip_find(x->cards[same]->name))))
			same++;
		x->classes[c] = same < c ? x->classes[same] : x->classes_count++;
	}
	return 0;
}

static int check_worlds(const struct frag_layouts *x, struct frag_err *err)
{
	const struct frag_axis *a = x->world == SIZE_MAX ? NULL : &x->axes.list[x->world];

	for (size_t v = 0; a && v < a->count; v++) {
		unsigned long long n = strtoull(a->values[v], NULL, 10);

		if (a->values[v][strspn(a->values[v], "0123456789")] || !n || n > WORLD_MAX)
			return frag_fail(err, FRAG_EUSAGE,
					 "invalid --world '%.40s': expected numbers of ranks from "
					 "1 to 1000000",
					 a->values[v]);
	}
	return 0;
}

/* Orders by the names that neither rise nor fall, then by class. A group is equal in both. */
static int by_group(const void *a, const void *b, void *ctx)
{
	const struct frag_layouts *x = ctx;
	const size_t p = *(const size_t *)a, q = *(const size_t *)b;
	const uint16_t *l = x->axes.at + p / x->classes_count * x->axes.count,
		       *m = x->axes.at + q / x->classes_count * x->axes.count;
	int order = FRAG_ORDER(p % x->classes_count, q % x->classes_count);

	for (size_t i = 0; !order && i < x->axes.count; i++)
		if (x->axes.list[i].order == FRAG_AXIS_ANY)
			order = FRAG_ORDER(l[i], m[i]);
	return order;
}

static int by_group_then_place(const void *a, const void *b, void *ctx)
{
	return by_group(a, b, ctx) ?: FRAG_ORDER(*(const size_t *)a, *(const size_t *)b);
}

static void set_point(struct frag_layouts *x, size_t i)
{
	struct frag_border_point *p = &x->border.points[i];
	size_t layout = frag_layout_of(x, i), n = 0;

	for (size_t k = 0; k < x->axes.count; k++) {
		const struct frag_axis *a = &x->axes.list[k];
		uint16_t at = x->axes.at[layout * x->axes.count + k];

		if (a->order == FRAG_AXIS_ANY)
			continue;
		p->level[n++] = a->order == FRAG_AXIS_RISING ? at : (uint16_t)(a->count - 1 - at);
	}
	p->group = i && !by_group(&x->points[i - 1], &x->points[i], x)
			   ? x->border.points[i - 1].group
			   : i;
	/* cards of other classes are decided from the start */
	for (size_t c = 0; c < x->cards_count; c++)
		if (!frag_layout_on(x, i, c))
			p->elsewhere |= 1ull << c;
	p->decided = p->elsewhere;
}

/* Enough points per group to keep all jobs busy while all groups are open. */
static unsigned places_in_group(const struct frag_layouts *x)
{
	size_t groups = 0;

	for (size_t i = 0; i < x->border.count; i++)
		groups += x->border.points[i].group == i;
	return (unsigned)FRAG_MIN((x->jobs + groups - 1) / FRAG_MAX(groups, 1u),
				  FRAG_BORDER_AT_ONCE);
}

static int make_points(struct frag_layouts *x, struct frag_err *err)
{
	size_t n = x->axes.layouts_count * x->classes_count;

	FRAG_TRY_CALLOC(x->points, n, "layouts", err);
	FRAG_TRY_CALLOC(x->border.points, n, "layouts", err);
	FRAG_TRY_CALLOC(x->results, n, "layouts", err);
	x->border.count = n;
	x->border.cards = (1ull << x->cards_count) - 1;
	for (size_t i = 0; i < x->axes.count; i++)
		x->border.axes += x->axes.list[i].order != FRAG_AXIS_ANY;
	if (x->border.axes > FRAG_BORDER_AXES)
		return frag_fail(err, FRAG_EUSAGE, "more than %u names rise or fall",
				 FRAG_BORDER_AXES);
	for (size_t i = 0; i < n; i++)
		x->points[i] = i;
	qsort_r(x->points, n, sizeof(*x->points), by_group_then_place, x);
	for (size_t i = 0; i < n; i++)
		set_point(x, i);
	x->border.at_once = places_in_group(x);
	return 0;
}

/* Keeps the points of this shard. A group stays in one shard, as it is bisected as a whole. */
static int take_shard(struct frag_layouts *x, struct frag_err *err)
{
	struct frag_axes *a = &x->axes;
	size_t kept = 0;

	for (size_t l = 0; x->shard.n && l < a->layouts_count; l++) {
		uint64_t group = 0;

		for (size_t k = 0; k < a->count; k++)
			if (a->list[k].order == FRAG_AXIS_ANY)
				group = group * a->list[k].count + a->at[l * a->count + k];
		if (group % x->shard.n == x->shard.i)
			memmove(a->at + kept++ * a->count, a->at + l * a->count,
				a->count * sizeof(*a->at));
	}
	a->layouts_count = x->shard.n ? kept : a->layouts_count;
	return a->layouts_count ? 0
				: frag_fail(err, FRAG_EUSAGE, "no layout is left for shard %u/%u",
					    x->shard.i, x->shard.n);
}

/* Checks the settings before anything runs. */
static int try_settings(const struct frag_layouts *x, struct frag_err *err)
{
	FRAG_AUTO(frag_words_release) char **words = NULL;

	FRAG_TRY(frag_axes_words(&x->axes, 0, x->words, &words, err));
	return frag_config_apply(x->settings, &x->axes, 0, words, err);
}

int frag_layouts_open(struct frag_layouts *x, struct frag_err *err)
{
	FRAG_TRY(find_classes(x, err));
	FRAG_TRY(check_worlds(x, err));
	FRAG_TRY(frag_axes_check(&x->axes, x->words, x->settings, err));
	FRAG_TRY(frag_axes_expand(&x->axes, x->where, x->where_count, err));
	FRAG_TRY(take_shard(x, err));
	FRAG_TRY(try_settings(x, err));
	for (size_t l = 0; x->world == SIZE_MAX && l < x->axes.layouts_count; l++)
		if (frag_layout_world(x, l) > PRETENDED_MAX)
			return frag_fail(err, FRAG_EUSAGE,
					 "an engine on more than %u cards: so many are pretended",
					 PRETENDED_MAX);
	return make_points(x, err);
}

void frag_layouts_release(struct frag_layouts *x)
{
	frag_axes_release(&x->axes);
	for (char **s = x->settings; *s; s++)
		frag_host_free(*s);
	frag_policy_texts_release(&x->policies);
	frag_words_release(&x->words);
	FRAG_FREE(x->points, x->border.points, x->results);
}

/* ---- which to take ------------------------------------------------------------------------ */

const struct frag_layout_result *frag_layout_confirmed(const struct frag_layouts *x, size_t i,
						       size_t c)
{
	for (size_t k = 0; k < x->confirms_count; k++)
		if (x->confirms[k].point == i && x->confirms[k].card == c)
			return &x->confirms[k].result;
	return NULL;
}

bool frag_layout_fits(const struct frag_layouts *x, size_t i, size_t c)
{
	const struct frag_border_point *p = &x->border.points[i];
	const struct frag_layout_result *own = frag_layout_confirmed(x, i, c);

	if (!frag_layout_on(x, i, c) || !(p->fits >> c & 1))
		return false;
	return !own || (own->status == FRAG_LAYOUT_RAN && own->cards[c].roomy);
}

/* The size of a layout: the product of its levels along rising axes. */
static double size_of(const struct frag_layouts *x, size_t i)
{
	size_t layout = frag_layout_of(x, i);
	double size = 1;

	for (size_t k = 0; k < x->axes.count; k++)
		if (x->axes.list[k].order == FRAG_AXIS_RISING)
			size *= 1 + x->axes.at[layout * x->axes.count + k];
	return size;
}

size_t frag_layout_best(const struct frag_layouts *x, size_t c, uint64_t world)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < x->border.count; i++) {
		double more;

		if (!frag_layout_fits(x, i, c) ||
		    frag_layout_world(x, frag_layout_of(x, i)) != world)
			continue;
		more = best == SIZE_MAX ? 1 : size_of(x, i) - size_of(x, best);
		if (more > 0 || (!(more < 0) && frag_layout_of(x, i) < frag_layout_of(x, best)))
			best = i;
	}
	return best;
}

uint64_t frag_layout_fewest(const struct frag_layouts *x, size_t c)
{
	uint64_t fewest = 0;

	for (size_t i = 0; i < x->border.count; i++) {
		uint64_t world = frag_layout_world(x, frag_layout_of(x, i));

		if ((!fewest || world < fewest) && frag_layout_fits(x, i, c))
			fewest = world;
	}
	return fewest;
}
