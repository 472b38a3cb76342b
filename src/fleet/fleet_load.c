/* SPDX-License-Identifier: Apache-2.0 */
/* Results of a sweep as jobs; see fleet.h. */
#include "fleet.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <frag/policy.h>

#include "recording/recording.h"
#include "results.h"
#include "lib/grow.h"

#define CURVE_MAX 4096u /* points that are believed of a file */

/* ---- names ------------------------------------------------------------------------- */

/* "run/step.rank12.pickle" -> "run/step.rank*.pickle": the ranks of a job have one name. */
static char *job_name(const char *path)
{
	char *name = frag_host_alloc(strlen(path) + 2), *to = name;

	while (name && *path) {
		size_t digits;

		if (strncasecmp(path, "rank", 4) != 0) {
			*to++ = *path++;
			continue;
		}
		for (int i = 0; i < 4; i++)
			*to++ = *path++;
		if (strchr("-_.", *path) && *path && isdigit((unsigned char)path[1]))
			*to++ = *path++;
		digits = strspn(path, "0123456789");
		path += digits;
		if (digits)
			*to++ = '*';
	}
	if (name)
		*to = '\0';
	return name;
}

static int policy_index(struct frag_fleet *f, const char *text, size_t *out, struct frag_err *err)
{
	for (*out = 0; *out < f->policies_count; ++*out)
		if (!strcmp(f->policies[*out], text))
			return 0;
	FRAG_TRY(FRAG_GROW(f->policies, f->policies_count, f->policies_cap, "policies", err));
	f->policies[f->policies_count] = frag_host_strdup(text);
	return f->policies[f->policies_count++] ? 0 : frag_fail_nomem(err, "policies");
}

/* ---- rows --------------------------------------------------------------------------- */

/* A row before the number of policies is known. */
struct seen {
	struct frag_store_row r; /* its texts are gone */
	char *job, *label;
	size_t policy;
	size_t order; /* as they came: the largest card first */
	const struct frag_gpu_chip *chip;
	struct frag_fleet_point *curve;
	size_t curve_count;
};

struct loading {
	struct frag_fleet *f;
	struct seen *rows;
	size_t count, cap;
	struct frag_err *err;
};

static int take_curve(struct seen *row, const char *text, struct frag_err *err)
{
	json_auto_t *list = text ? json_loads(text, 0, NULL) : NULL;
	json_t *point;
	size_t i, n = json_array_size(list);

	if (n && n <= CURVE_MAX) {
		FRAG_TRY_CALLOC(row->curve, n, "curves", err);
		json_array_foreach(list, i, point) row->curve[i] = (struct frag_fleet_point){
			(uint64_t)json_integer_value(json_array_get(point, 0)),
			(uint64_t)json_integer_value(json_array_get(point, 1))
		};
		row->curve_count = n;
		for (i = 0; i < n; i++) /* else it is not a curve over time */
			if (row->curve[i].bytes > row->r.peak_reserved_bytes ||
			    row->curve[i].us > 1ull << 60 ||
			    (i && row->curve[i].us < row->curve[i - 1].us))
				row->curve_count = 0;
	}
	return 0;
}

/* "pytorch-snapshot, on l4" */
static const struct frag_gpu_chip *chip_of(const char *format)
{
	const char *at = format ? strstr(format, FRAG_STORE_CARD) : NULL;
	char name[32];

	if (!at)
		return NULL;
	at += strlen(FRAG_STORE_CARD);
	snprintf(name, sizeof(name), "%.*s", (int)FRAG_MIN(strcspn(at, ","), sizeof(name)), at);
	return frag_gpu_chip_find(name);
}

static int take_row(void *ctx, const struct frag_store_row *r)
{
	struct loading *l = ctx;
	struct seen *row;
	char label[512];

	FRAG_TRY(FRAG_GROW(l->rows, l->count, l->cap, "results", l->err));
	if (r->devices > 1)
		snprintf(label, sizeof(label), "%.480s device %lld", r->path, (long long)r->device);
	else
		snprintf(label, sizeof(label), "%.500s", r->path);
	row = &l->rows[l->count];
	*row = (struct seen){ .r = *r,
			      .job = job_name(r->path),
			      .label = frag_host_strdup(label),
			      .chip = chip_of(r->format),
			      .order = l->count };
	l->count++;
	FRAG_CHECK_ALLOC(row->job && row->label, "results", l->err);
	FRAG_TRY(policy_index(l->f, r->policy, &row->policy, l->err));
	return take_curve(row, r->curve, l->err);
}

FRAG_COMPARE(by_job, struct seen, strcmp(x->job, y->job), strcmp(x->label, y->label),
	     FRAG_ORDER(x->policy, y->policy), FRAG_ORDER(x->order, y->order))

/* ---- jobs ---------------------------------------------------------------------------- */

static int add_unit(struct frag_fleet *f, struct seen *row, struct frag_err *err)
{
	struct frag_fleet_unit *u;

	FRAG_TRY(FRAG_GROW(f->units, f->units_count, f->units_cap, "ranks", err));
	u = &f->units[f->units_count];
	*u = (struct frag_fleet_unit){
		.job = f->jobs_count - 1,
		.label = FRAG_GIVE(row->label),
		.start_us = row->r.start_us,
		.duration_us = row->r.duration_us,
		.uses = frag_host_calloc(f->policies_count, sizeof(*u->uses)),
	};
	f->units_count++;
	f->jobs[u->job].units_count++;
	return u->uses ? 0 : frag_fail_nomem(err, "ranks");
}

static int add_row(struct frag_fleet *f, struct seen *row, bool new_job, bool new_unit,
		   struct frag_err *err)
{
	struct frag_fleet_job *job;
	struct frag_fleet_use *use;

	if (new_job) {
		FRAG_TRY(FRAG_GROW(f->jobs, f->jobs_count, f->jobs_cap, "jobs", err));
		f->jobs[f->jobs_count++] = (struct frag_fleet_job){ .name = FRAG_GIVE(row->job),
								    .first_unit = f->units_count };
	}
	if (new_unit)
		FRAG_TRY(add_unit(f, row, err));
	job = &f->jobs[f->jobs_count - 1];
	f->estimates += row->r.estimate && !job->estimate;
	job->estimate |= row->r.estimate;
	f->ended += row->r.ended && !job->ended;
	job->ended |= row->r.ended;
	f->unreproduced += row->r.unreproduced && !job->unreproduced;
	job->unreproduced |= row->r.unreproduced;
	job->chip = new_job || frag_same_kernels(job->chip, row->chip) ? row->chip : NULL;
	use = &f->units[f->units_count - 1].uses[row->policy];
	if (use->seen) /* the same on a smaller card */
		return 0;
	*use = (struct frag_fleet_use){ true,
					row->r.completed,
					row->r.peak_reserved_bytes,
					row->r.lower_bound_bytes,
					FRAG_GIVE(row->curve),
					row->curve_count };
	job->bound_bytes = FRAG_MAX(job->bound_bytes, row->r.lower_bound_bytes);
	if (row->r.recorded && !job->today_recorded) {
		job->today_recorded = true;
		job->today.policy = row->policy;
	}
	return 0;
}

static int build(struct loading *l, struct frag_err *err)
{
	char *job = NULL, *label = NULL;

	if (l->count)
		qsort(l->rows, l->count, sizeof(*l->rows), by_job);
	for (size_t i = 0; i < l->count; i++) {
		bool new_job = !job || strcmp(job, l->rows[i].job) != 0;
		bool new_unit = new_job || strcmp(label, l->rows[i].label) != 0;

		FRAG_TRY(add_row(l->f, &l->rows[i], new_job, new_unit, err));
		job = l->f->jobs[l->f->jobs_count - 1].name;
		label = l->f->units[l->f->units_count - 1].label;
	}
	return 0;
}

/* Which policies are a line to paste. Texts come from a file: what cannot be parsed is none. */
static int note_settable(struct frag_fleet *f, struct frag_err *err)
{
	FRAG_TRY_CALLOC(f->settable, f->policies_count + 1, "policies", err);
	for (size_t i = 0; i < f->policies_count; i++) {
		FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;

		f->settable[i] = !frag_policy_spec_parse(f->policies[i], &spec, NULL) &&
				 frag_policy_spec_conf(spec);
	}
	return 0;
}

static void release_rows(struct loading *l)
{
	for (size_t i = 0; i < l->count; i++)
		FRAG_FREE(l->rows[i].job, l->rows[i].label, l->rows[i].curve);
	frag_host_free(l->rows);
}

int frag_fleet_load(struct frag_fleet *f, const char *path, struct frag_err *err)
{
	FRAG_AUTO(release_rows) struct loading l = { .f = f, .err = err };
	FRAG_AUTO(frag_store_close_at) struct frag_store *store = NULL;
	struct frag_store_counts counts;

	FRAG_TRY(frag_store_read(&store, path, err));
	FRAG_TRY(frag_store_each(store, take_row, &l, err));
	FRAG_TRY(frag_store_count(store, &counts, err));
	f->failures = counts.failed;
	if (!l.count)
		return FRAG_INPUT(err, "'%.200s' holds no results", path);
	FRAG_TRY(build(&l, err));
	return note_settable(f, err);
}

void frag_fleet_release(struct frag_fleet *f)
{
	for (size_t i = 0; i < f->units_count; i++) {
		for (size_t k = 0; f->units[i].uses && k < f->policies_count; k++)
			frag_host_free(f->units[i].uses[k].curve);
		FRAG_FREE(f->units[i].uses, f->units[i].label);
	}
	for (size_t i = 0; i < f->jobs_count; i++)
		frag_host_free(f->jobs[i].name);
	for (size_t i = 0; i < f->policies_count; i++)
		frag_host_free(f->policies[i]);
	FRAG_FREE(f->policies, f->settable, f->units, f->jobs);
	frag_catalog_release(&f->catalog);
}
