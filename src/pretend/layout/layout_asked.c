/* SPDX-License-Identifier: Apache-2.0 */
/* From the options of a layout command to its plan; see layouts.h. */
#include "layouts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/grow.h"
#include "plan/fit/fit_cards.h"
#include "pretend/layout/preset.h"

int frag_layout_vary(void *layouts, const char *text, struct frag_err *err)
{
	struct frag_layout_asked *o = &((struct frag_layouts *)layouts)->asked;

	if (o->vary_count == FRAG_AXES_MAX)
		return frag_fail(err, FRAG_EUSAGE, "more than %u names vary", FRAG_AXES_MAX);
	o->vary[o->vary_count++] = text;
	return 0;
}

int frag_layout_where(void *layouts, const char *text, struct frag_err *err)
{
	struct frag_layouts *x = layouts;

	if (x->where_count == FRAG_LAYOUT_WHERE)
		return frag_fail(err, FRAG_EUSAGE, "more than %u conditions", FRAG_LAYOUT_WHERE);
	x->where[x->where_count++] = text;
	return 0;
}

int frag_layout_shard(void *layouts, const char *text, struct frag_err *err)
{
	struct frag_layouts *x = layouts;

	x->resume = !strcmp(text, "all");
	return x->resume ? 0 : frag_sweep_set_shard(&x->shard, text, err);
}

static int set_card(struct frag_layouts *x, const struct frag_catalog *catalog, const char *name,
		    struct frag_err *err)
{
	const struct frag_gpu *card = NULL;

	for (size_t g = 0; g < catalog->count; g++)
		if (catalog->path && !strcmp(catalog->cards[g]->name, name))
			card = catalog->cards[g];
	if (!card)
		FRAG_TRY(frag_gpu_named(name, &card, err));
	for (size_t c = 0; c < x->cards_count; c++)
		if (x->cards[c] == card)
			return 0;
	if (x->cards_count == FRAG_LAYOUT_CARDS)
		return frag_fail(err, FRAG_EUSAGE, "more than %u cards", FRAG_LAYOUT_CARDS);
	x->cards[x->cards_count++] = card;
	return 0;
}

/* The next entry of a list; NULL: the end. entry[80]. */
static const char *next_entry(const char *text, char *entry)
{
	size_t n = strcspn(text, ",");

	if (!*text)
		return NULL;
	snprintf(entry, 80, "%.*s", (int)FRAG_MIN(n, 79u), text);
	return text + n + (text[n] == ',');
}

static int set_cards(struct frag_layouts *x, const struct frag_catalog *catalog, const char *list,
		     struct frag_err *err)
{
	char name[80];

	while ((list = next_entry(list, name)))
		FRAG_TRY(set_card(x, catalog, name, err));
	return 0;
}

/* "h100=2.5,h200=3" */
static int set_prices(struct frag_layouts *x, const char *list, struct frag_err *err)
{
	char entry[80], *equals, *end;

	for (size_t c = 0; c < x->cards_count; c++)
		x->prices[c] = NAN;
	while ((list = next_entry(list, entry))) {
		double price = (equals = strchr(entry, '=')) ? strtod(equals + 1, &end) : NAN;
		bool good = equals && end != equals + 1 && !*end && price >= 0 && !isinf(price);

		if (equals)
			*equals = '\0';
		if (!good)
			return frag_fail(err, FRAG_EUSAGE,
					 "invalid price '%.60s': expected CARD=PRICE, as h100=2.5",
					 entry);
		for (size_t c = 0; c < x->cards_count; c++)
			if (!strcmp(x->cards[c]->name, entry) && isnan(x->prices[c]))
				x->prices[c] = price;
	}
	return 0;
}

static int set_axes(struct frag_layouts *x, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };
	const struct frag_layout_asked *o = &x->asked;
	struct frag_axes *axes = &x->axes;

	x->world = SIZE_MAX;
	if (o->world) {
		frag_text_addf(&t, "{world}=%s", o->world);
		FRAG_TRY(frag_text_check(&t, err));
		FRAG_TRY(frag_axes_add(axes, t.s, err));
		axes->list[0].implied = true;
		x->world = 0;
	}
	for (size_t i = 0; i < o->vary_count; i++)
		FRAG_TRY(frag_axes_add(axes, o->vary[i], err));
	if (!axes->count)
		return frag_fail(err, FRAG_EUSAGE,
				 "nothing varies: give --vary '{NAME}=VALUES', or --world");
	if (o->rising)
		FRAG_TRY(frag_axes_set_order(axes, o->rising, FRAG_AXIS_RISING, err));
	if (o->falling)
		FRAG_TRY(frag_axes_set_order(axes, o->falling, FRAG_AXIS_FALLING, err));
	frag_axes_guess_order(axes);
	return 0;
}

/* A serving command as it is: its preset, and tensor parallelism as far as nothing else varies. */
static int set_serve(struct frag_layouts *x, struct frag_err *err)
{
	struct frag_layout_asked *o = &x->asked;

	if (!o->serve)
		return 0;
	if (!x->requests)
		return frag_fail(err, FRAG_EUSAGE, "--serve needs --requests and --tokens");
	o->preset = o->preset ? o->preset : frag_preset_engine(o->program);
	if (!o->vary_count && !o->world) {
		if (!o->preset)
			return frag_fail(err, FRAG_EUSAGE,
					 "the command does not name a known serving engine: give "
					 "--preset or --vary");
		o->vary[o->vary_count++] = "tp=1,2,4,8";
		o->falling = o->falling ? o->falling : "tp";
	}
	return 0;
}

static bool varies(const struct frag_layout_asked *o, const char *name)
{
	for (size_t i = 0; i < o->vary_count; i++) {
		const char *text = o->vary[i] + (o->vary[i][0] == '{');

		if (!strncmp(text, name, strlen(name)) && strspn(text + strlen(name), "}=") > 0)
			return true;
	}
	return false;
}

/* The degrees of a serving command that do not vary decide how many cards it takes, too. */
static int set_degrees(struct frag_layouts *x, struct frag_err *err)
{
	static const char *const names[] = { "tp", "pp", "dp" };
	struct frag_layout_asked *o = &x->asked;

	for (size_t k = 0; k < FRAG_ARRAY_LEN(names) && x->requests && !o->world; k++) {
		const char *value = o->preset && !varies(o, names[k])
					    ? frag_preset_value(o->preset, names[k], o->program)
					    : NULL;

		if (!value || strspn(value, "0123456789") != strlen(value))
			continue;
		snprintf(o->degrees[k], sizeof(o->degrees[k]), "%s=%.20s", names[k], value);
		FRAG_TRY(frag_layout_vary(x, o->degrees[k], err));
	}
	return 0;
}

/* Policies are those of `fit`, host memory a share of the machine each. */
static int set_rest(struct frag_layouts *x, struct frag_err *err)
{
	FRAG_TRY(frag_fit_policies(&x->policies, err));
	x->pretend.no_gpu = true;
	x->fresh |= x->requests != 0;
	x->pretend.reuse = !x->fresh; /* what it prints counts */
	if (x->pretend.memory_bytes)
		x->pretend.memory_bytes = FRAG_MAX(x->pretend.memory_bytes / x->jobs, FRAG_MIB);
	if (!x->requests) /* the engine's own option sets its share of the card */
		x->headroom = x->asked.headroom;
	return 0;
}

/* ---- shards of an array job that share --keep ------------------------------------------- */

extern char **environ;

/* cufrag's own job is not the planned one: programs read their rank from these. */
static void forget_array_job(void)
{
	static const char *const of_jobs[] = { "SLURM_", "OMPI_", "PMI_",
					       "PMIX_",	 "MV2_",  "JOB_COMPLETION_INDEX=" };
	char name[200];

	for (char **at = environ; *at;) {
		bool found = false;

		for (size_t k = 0; k < FRAG_ARRAY_LEN(of_jobs); k++)
			found |= !strncmp(*at, of_jobs[k], strlen(of_jobs[k]));
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*at, "="), *at);
		if (found && !unsetenv(name))
			at = environ;
		else
			at++;
	}
}

static int set_shard(struct frag_layouts *x, struct frag_err *err)
{
	if (x->shard.n)
		FRAG_TRY(frag_sweep_find_index(&x->shard, true, err));
	if (x->shard.n)
		forget_array_job();
	if (x->shard.n && (!x->keep || x->store))
		return frag_fail(err, FRAG_EUSAGE,
				 "shards of an array job need --keep DIR, and no --store: when all "
				 "are done, the same command with --keep DIR --shard all --store "
				 "FILE");
	if (x->resume && !x->keep)
		return frag_fail(err, FRAG_EUSAGE, "--shard all needs --keep DIR");
	if (x->store && !x->keep)
		return frag_fail(err, FRAG_EUSAGE,
				 "--store needs --keep DIR: its results are of these recordings");
	return 0;
}

int frag_layouts_store(const struct frag_layouts *x, const struct frag_target *target,
		       struct frag_err *err)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };
	FRAG_AUTO(frag_sweep_release)
	struct frag_sweep s = { .target = *target,
				.threads = x->jobs,
				.operands_count = 1,
				.output = x->store,
				.fresh = true };
	struct frag_rows failures = { 0 };
	char *operands[] = { (char *)(uintptr_t)x->keep, NULL }, text[4300];

	if (!x->store)
		return 0;
	s.operands = operands;
	FRAG_TRY(frag_policy_texts_default(&s.policies, FRAG_SWEEP_POLICIES, err));
	for (size_t c = 0; c < x->cards_count; c++) {
		FRAG_TRY(FRAG_GROW(s.cards, s.cards_count, s.cards_cap, "cards", err));
		s.cards[s.cards_count++] = x->cards[c];
	}
	FRAG_TRY(frag_sweep_run(&s, &a, &failures, err));
	snprintf(text, sizeof(text), "wrote %s, for cufrag fleet", x->store);
	x->tell(x->ctx, text);
	return 0;
}

/* ---- the plan ------------------------------------------------------------------------------ */

int frag_layouts_plan(struct frag_layouts *x, const struct frag_catalog *catalog,
		      struct frag_err *err)
{
	const struct frag_layout_asked *o = &x->asked;

	FRAG_TRY(set_serve(x, err));
	FRAG_TRY(set_degrees(x, err));
	if (!x->requests != !x->request_tokens)
		return frag_fail(err, FRAG_EUSAGE, "--requests and --tokens go together");
	FRAG_TRY(set_axes(x, err));
	FRAG_TRY(frag_preset_apply(o->preset, &x->axes, o->program, x->settings, &x->words, err));
	FRAG_TRY(set_cards(x, catalog, o->gpus ? o->gpus : "h100,h200", err));
	FRAG_TRY(set_prices(x, o->price ? o->price : "", err));
	FRAG_TRY(set_rest(x, err));
	return set_shard(x, err);
}
