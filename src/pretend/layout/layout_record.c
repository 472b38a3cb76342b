/* SPDX-License-Identifier: Apache-2.0 */
/* One layout: recorded, judged for each card of its class, and what its memory is for. Runs in a process of its own. */
#include "layouts.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/last_words.h"
#include "explain/moment/explain.h"
#include "explain/history.h"
#include "plan/fit/fit_cards.h"

#define LARGE (1ull << 40) /* more than any card has */

/* ---- what was recorded ----------------------------------------------------------------- */

/* The rank of device d: the note has a line for each process, in order. */
static uint64_t rank_of(const struct frag_trace *trace, size_t d)
{
	const char *at = trace->estimate;
	uint64_t rank = UINT64_MAX;
	size_t n = 0;

	for (; at; at = strchr(at, '\n'), at += at != NULL)
		if (!strncmp(at, "rank ", 5) && n++ == d)
			rank = strtoull(at + 5, NULL, 10);
	return n == trace->devs_count ? rank : UINT64_MAX;
}

/* The share of recomputation in the modelled time of a rank; NAN = unknown. */
static double recomputed(const struct frag_trace *trace, uint64_t rank)
{
	unsigned long long found = UINT64_MAX, part, all;

	for (const char *at = trace->estimate; at; at = strchr(at, '\n'), at += at != NULL) {
		if (!strncmp(at, "rank ", 5))
			found = strtoull(at + 5, NULL, 10);
		else if ((found == rank || rank == UINT64_MAX) &&
			 sscanf(at, "recomputed %llu %llu", &part, &all) == 2 && all)
			return (double)part / (double)all;
	}
	return NAN;
}

/* The modelled time between the ends of the last two steps. Nested optimizers end one twice. */
static uint64_t step_us(const struct frag_unit *u)
{
	const struct frag_event *events = u->dev->events;
	struct frag_step_ends ends = { 0 };
	struct frag_err err;
	uint64_t us = UINT64_MAX;

	if (!u->trace->estimate || !strstr(u->trace->estimate, "\nclock modelled\n") ||
	    frag_step_ends_find(&u->events, &ends, &err))
		return us;
	if (ends.from != FRAG_STEPS_MARKS || !ends.count ||
	    ends.list[ends.count - 1] >= u->dev->events_count)
		ends.count = 0;
	for (size_t last = ends.count, n = last; n-- > 1 && (!us || us == UINT64_MAX);)
		us = events[ends.list[last - 1]].time_us - events[ends.list[n - 1]].time_us;
	us = us ? us : UINT64_MAX;
	frag_host_free(ends.list);
	return us;
}

/* Classifies the most live memory of a unit, with the recorded settings; the rest up to the peak of
 * reserved memory is free. */
static int find_kinds(const struct frag_unit *u, const struct frag_target *target,
		      const struct frag_policy_spec *spec, struct frag_layout_result *out,
		      struct frag_err *err)
{
	const struct frag_case in = { .events = u->events, .spec = spec, .target = *target };
	const struct frag_explain_options opt = { .at = { .what = FRAG_AT_PEAK }, .top = 1 };
	FRAG_AUTO(frag_answer_release) struct frag_answer texts = { 0 };
	FRAG_AUTO(frag_explained_destroy_at) struct frag_explained *e = NULL;

	FRAG_TRY_CALLOC(e, 1, "explanation", err);
	FRAG_TRY(frag_explain(&in, &opt, &texts, e, err));
	for (size_t i = 0; i < e->view.count; i++)
		if (!e->view.list[i].waiting)
			out->kinds[e->kinds[i].kind] += e->view.list[i].granted;
	out->free_bytes =
		e->m.peak_reserved_bytes - FRAG_MIN(e->m.peak_reserved_bytes, e->m.allocated_bytes);
	return 0;
}

/* ---- a serving engine ------------------------------------------------------------------------ */

/* Its cache is there, and it waits for requests. */
static bool is_ready(void *ctx)
{
	const char *const *log = ctx;
	struct frag_engine_log said;
	struct frag_err err;

	return !frag_engine_log_read(*log, &said, &err) && said.tokens && said.listens;
}

/*
 * The peak of requested memory beside weights in the profile run, which determines the size of the cache. The cache is allocated
 * without a free in between; it begins where the sum exceeds the weights and half of the cache.
 */
static uint64_t profile_peak(const struct frag_unit *u, const struct frag_engine_log *said)
{
	const uint64_t half = said->weights_bytes + said->cache_bytes / 2;
	uint64_t live = 0, most = 0, before = 0;

	for (size_t i = 0; i < u->dev->events_count && said->cache_bytes; i++) {
		const struct frag_event *e = &u->dev->events[i];

		if (e->kind == FRAG_EV_ALLOC) {
			live += e->bytes;
			if (live > half)
				return before - FRAG_MIN(before, said->weights_bytes);
			most = FRAG_MAX(most, live);
		} else if (e->kind == FRAG_EV_FREE || e->kind == FRAG_EV_FREE_COMPLETED) {
			live -= FRAG_MIN(live, e->bytes);
			before = most;
		}
	}
	return 0;
}

/* ---- judged ---------------------------------------------------------------------------------- */

static void judge_card(const struct frag_fit_cards *f, size_t g, struct frag_layout_on_card *out)
{
	size_t r = frag_fit_best_row(f, g);
	const struct frag_fit_row *row, *least = &f->rows[0];

	for (size_t k = 0; k < f->rows_count; k++)
		if (f->rows[k].possible &&
		    (!least->possible || f->rows[k].ample_bytes < least->ample_bytes))
			least = &f->rows[k];
	row = r == SIZE_MAX ? least : &f->rows[r];
	out->completes = r != SIZE_MAX;
	out->roomy = r != SIZE_MAX && frag_fit_roomy(f, row, g);
	out->peak_reserved_bytes = row->possible ? frag_fit_peak(f, row) : UINT64_MAX;
	out->room_bytes = frag_fit_room(f, g, &f->headroom);
	out->rank = rank_of(f->units.units[row->worst].trace, row->worst);
	snprintf(out->setting, sizeof(out->setting), "%s",
		 frag_policy_spec_echo(row->specs[row->worst]));
}

/* As `fit` does it. */
static int judge(const struct frag_layouts *x, size_t i, struct frag_target *target, char *path,
		 struct frag_layout_result *out, struct frag_err *err)
{
	FRAG_AUTO(frag_fit_cards_release)
	struct frag_fit_cards f = { .target = target, .headroom = x->headroom, .borrows = true };
	size_t of[FRAG_LAYOUT_CARDS] = { 0 }, worst = 0;

	for (size_t c = 0; c < x->cards_count; c++)
		if (frag_layout_on(x, i, c)) {
			of[f.catalog.count] = c;
			f.catalog.cards[f.catalog.count++] = x->cards[c];
		}
	FRAG_TRY(frag_recordings_open(&f.units, &path, 1, target, 0, err));
	FRAG_TRY(frag_fit_cards_search(&f, &x->policies, 1, err));
	for (size_t g = 0; g < f.catalog.count; g++)
		judge_card(&f, g, &out->cards[of[g]]);
	out->min_bytes = UINT64_MAX;
	for (size_t r = f.rows_count; r-- > 0;)
		if (f.rows[r].possible) {
			out->min_bytes = FRAG_MIN(out->min_bytes, f.rows[r].min_bytes);
			worst = f.rows[r].worst;
		}
	for (size_t c = 0; x->world == SIZE_MAX && c < x->cards_count; c++)
		out->cards[c].rank = UINT64_MAX;
	out->ranks = f.units.units_count;
	for (size_t u = 0; u < f.units.units_count; u++)
		out->events += f.units.units[u].dev->events_count;
	out->rank = rank_of(f.units.units[worst].trace, worst);
	out->step_us = step_us(&f.units.units[worst]);
	out->recomputed = recomputed(f.units.units[worst].trace, out->rank);
	if (!out->engine.profile_bytes)
		out->engine.profile_bytes = profile_peak(&f.units.units[worst], &out->engine);
	return find_kinds(&f.units.units[worst], target, f.rows[0].specs[worst], out, err);
}

/* ---- the recording ----------------------------------------------------------------------- */

static struct frag_program program_of(const struct frag_layouts *x, size_t i, size_t on,
				      struct frag_pretend *pretend, char **words)
{
	uint64_t world = frag_layout_world(x, frag_layout_of(x, i));
	const struct frag_gpu *card = x->cards[on == SIZE_MAX ? frag_layout_card(x, i) : on];
	struct frag_program p = { .words = words, .pretend = pretend };

	*pretend = x->pretend;
	pretend->world = x->world == SIZE_MAX ? 0 : (unsigned)world;
	pretend->gpus = x->requests && x->world == SIZE_MAX ? (unsigned)world : 0;
	pretend->ranks = x->world == SIZE_MAX ? NULL : world == 1 ? "0" : x->pretend.ranks;
	if (world == 1 || !pretend->ranks)
		pretend->memory_bytes = 0; /* ranks run at the same time */
	p.gpu = card->name;
	p.target.seed = x->seed;
	p.target.card = (struct frag_sim_config){
		.name = card->name,
		.cost = frag_cost_of(card->profile),
		.total_bytes = on == SIZE_MAX && !x->fresh ? LARGE : card->total_bytes,
		.context_bytes = card->context_bytes,
	};
	return p;
}

static void say(struct frag_layout_result *out, enum frag_layout_status status, const char *log,
		const char *otherwise)
{
	out->status = status;
	*out->message = '\0';
	frag_last_words(log, out->message, sizeof(out->message));
	if (!*out->message)
		snprintf(out->message, sizeof(out->message), "%.200s", otherwise);
}

/* An engine always fills its share of the card, so it fits if its cache holds the requests. */
static int judge_cache(const struct frag_layouts *x, size_t i, struct frag_layout_result *out,
		       struct frag_err *err)
{
	if (!out->engine.tokens)
		return frag_fail(err, FRAG_EINPUT,
				 "it printed no size of its cache, as 'GPU KV cache size: N "
				 "tokens'");
	for (size_t c = 0; c < x->cards_count; c++)
		if (frag_layout_on(x, i, c))
			out->cards[c].roomy =
				out->cards[c].completes && frag_layout_held(x, out) >= x->requests;
	return 0;
}

/* "mb=2.ac=full": a layout as a file name, with a hash if values are too long or have characters that file names lack. */
static void file_name_of(const struct frag_layouts *x, size_t layout, char *name, size_t cap)
{
	static const char ambiguous[] = " /=\t\n\r";
	const size_t hash_room = sizeof(".0123456789abcdef");
	bool unique = true;
	uint64_t hash = 0;

	frag_axes_text(&x->axes, layout, SIZE_MAX, name, cap);
	unique = strlen(name) + 1 < cap;
	for (size_t k = 0; k < x->axes.count; k++) {
		const char *value = frag_axes_value(&x->axes, layout, k);

		unique &= !value[strcspn(value, ambiguous)];
		hash = XXH3_64bits_withSeed(value, strlen(value), hash + k + 1);
	}
	for (char *at = name; (at = strpbrk(at, " /\t\n\r"));)
		*at = '.';
	if (!unique) {
		size_t len = FRAG_MIN(strlen(name), cap - hash_room);

		snprintf(name + len, cap - len, ".%016llx", (unsigned long long)hash);
	}
}

/* The recording as a file: of --keep, or for this process. */
static void path_of(const struct frag_layouts *x, size_t i, size_t on, const char *log, char *path,
		    size_t cap)
{
	char name[200];

	file_name_of(x, frag_layout_of(x, i), name, sizeof(name));
	if (x->keep && on == SIZE_MAX && !x->pretend.trial)
		snprintf(path, cap, "%.3800s/%s.%s.cft", x->keep,
			 x->cards[frag_layout_card(x, i)]->name, name);
	else
		snprintf(path, cap, "%.4000s.cft", log);
}

/* Is there a recording of an earlier call or another shard? It lacks the output of an engine and the refusals of a card. */
static bool is_there(const struct frag_layouts *x, size_t on, const char *path)
{
	return x->resume && x->keep && on == SIZE_MAX && !x->fresh && !x->pretend.trial &&
	       !access(path, R_OK);
}

/* Path of the roles for jobs with the same ranks: equal values, except along ordered names and
 * recomputation. */
static void roles_path(const struct frag_layouts *x, size_t layout, char *path, size_t cap)
{
	static const char *const same_ranks[] = { "ac", "recompute", "checkpoint",
						  "checkpointing" };
	uint64_t key = 0;

	for (size_t k = 0; k < x->axes.count; k++) {
		const struct frag_axis *a = &x->axes.list[k];
		const char *value = frag_axes_value(&x->axes, layout, k);
		bool counts = k == x->world || a->order == FRAG_AXIS_ANY;

		for (size_t n = 0; n < FRAG_ARRAY_LEN(same_ranks); n++)
			counts &= strcmp(a->name, same_ranks[n]) != 0;
		if (counts)
			key = XXH3_64bits_withSeed(value, strlen(value), key + k + 1);
	}
	snprintf(path, cap, "%.4000s/roles.%016llx", x->folder, (unsigned long long)key);
}

static const struct frag_layout_result nothing = { .rank = UINT64_MAX, .step_us = UINT64_MAX };

static int record(const struct frag_layouts *x, size_t i, size_t on, const char *log,
		  struct frag_layout_result *out, struct frag_err *err)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	FRAG_AUTO(frag_words_release) char **words = NULL;
	struct frag_pretend pretend;
	struct frag_program p;
	char path[4200], roles[4200];
	struct frag_err unread;
	int status = 0, said = 0, rc;

	FRAG_TRY(frag_axes_words(&x->axes, frag_layout_of(x, i), x->words, &words, err));
	FRAG_TRY(frag_config_apply(x->settings, &x->axes, frag_layout_of(x, i), words, err));
	path_of(x, i, on, log, path, sizeof(path));
	p = program_of(x, i, on, &pretend, words);
	roles_path(x, frag_layout_of(x, i), roles, sizeof(roles));
	pretend.known_roles = x->fresh ? NULL : roles;
	if (is_there(x, on, path)) {
		out->status = FRAG_LAYOUT_RAN;
		if (!judge(x, i, &p.target, path, out, &unread))
			return 0;
		*out = nothing; /* a damaged file: it is recorded again */
	}
	if (x->requests)
		frag_launch_end_when(is_ready, &log);
	rc = frag_program_record(&p, &trace, &status, err);
	out->engines = frag_layout_engines(x, frag_layout_of(x, i));
	if (x->requests)
		said = frag_engine_log_read(log, &out->engine, rc ? &unread : err);
	if (out->engine.too_small) { /* it may have ended before it took any memory */
		say(out, FRAG_LAYOUT_MEMORY, log, "");
		return 0;
	}
	if (rc || said)
		return rc ?: said;
	if (status && !frag_launch_was_done()) {
		say(out, frag_vary_refusals(trace) ? FRAG_LAYOUT_MEMORY : FRAG_LAYOUT_FAILED, log,
		    "it printed nothing");
		return 0;
	}
	FRAG_TRY(frag_trace_write_cft(trace, path, err));
	rc = judge(x, i, &p.target, path, out, err);
	if (!rc && x->requests)
		rc = judge_cache(x, i, out, err);
	if (!x->keep || on != SIZE_MAX || x->pretend.trial)
		unlink(path);
	/* on the card itself, a refusal that the program caught counts as out of memory */
	out->status = (on != SIZE_MAX || x->fresh) && frag_vary_refusals(trace) ? FRAG_LAYOUT_MEMORY
										: FRAG_LAYOUT_RAN;
	return rc;
}

void frag_layout_record(const struct frag_layouts *x, size_t i, size_t on, const char *log,
			struct frag_layout_result *out)
{
	struct frag_err err = { 0 };

	*out = nothing;
	if (record(x, i, on, log, out, &err)) {
		say(out, FRAG_LAYOUT_FAILED, log, err.msg);
		if (!strstr(err.msg, "ended with status"))
			snprintf(out->message, sizeof(out->message), "%.239s", err.msg);
	}
}

static bool is_same_file(const char *path, const char *text)
{
	FRAG_AUTO_FILE FILE *f = fopen(path, "re");
	char found[65536];
	size_t n = f ? fread(found, 1, sizeof(found), f) : 0;

	return n == strlen(text) && !memcmp(found, text, n);
}

/* Writes the command with braces into the folder, with options that matter, and refuses to reuse recordings of another one. */
int frag_layout_open_keep(const struct frag_layouts *x, struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text text = { 0 };
	char path[4200];

	if (!x->keep)
		return 0;
	if (mkdir(x->keep, 0777) && errno != EEXIST)
		return frag_fail(err, FRAG_EOUTPUT, "cannot create '%.200s': %s", x->keep,
				 strerror(errno));
	snprintf(path, sizeof(path), "%.4000s/command", x->keep);
	for (char *const *w = x->words; *w; w++)
		frag_text_addf(&text, "%s\n", *w);
	frag_text_addf(&text, "seed %" PRIu64 "\nvalues %s\nranks %s\n", x->seed, x->pretend.values,
		       x->pretend.ranks);
	FRAG_TRY(frag_text_check(&text, err));
	if (x->resume && !access(path, F_OK) && !is_same_file(path, text.s))
		return frag_fail(err, FRAG_EUSAGE,
				 "the recordings in '%.200s' are of another command (see its file "
				 "'command')",
				 x->keep);
	return frag_text_put(&text, path, err);
}
