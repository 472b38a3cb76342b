/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes of one recorded run left in a folder (cufrag_recorder.py): for each
 * process PID.pickle, PID.json and, with a modelled clock, PID.clock; made into one trace,
 * in the order of the ranks.
 *
 * The files come from the user's program and are read as any input.
 */
#include "pretend.h"
#include "roles.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <frag/torch.h>

#include "lib/bisect.h"
#include "lib/grow.h"
#include "trace/merge.h"

struct part {
	char stem[4400]; /* path without its ending */
	long rank, pid;
	json_t *notes; /* NULL: none */
	struct frag_trace *trace;
};

struct parts {
	struct part *list;
	size_t count, room;
};

static void release(struct parts *p)
{
	for (size_t i = 0; i < p->count; i++) {
		frag_trace_destroy(p->list[i].trace);
		json_decref(p->list[i].notes);
	}
	frag_host_free(p->list);
}

FRAG_COMPARE(by_rank, struct part, FRAG_ORDER(x->rank, y->rank), FRAG_ORDER(x->pid, y->pid))

static int add(struct parts *p, const char *folder, const char *name, size_t len,
	       struct frag_err *err)
{
	char path[4500];
	struct part *part;

	FRAG_TRY(FRAG_GROW(p->list, p->count, p->room, "recordings", err));
	part = &p->list[p->count++];
	memset(part, 0, sizeof(*part));
	snprintf(part->stem, sizeof(part->stem), "%.4000s/%.*s", folder, (int)FRAG_MIN(len, 300u),
		 name);
	part->pid = strtol(name, NULL, 10);
	snprintf(path, sizeof(path), "%s.json", part->stem);
	part->notes = json_load_file(path, 0, NULL);
	part->rank = (long)json_integer_value(json_object_get(part->notes, "rank"));
	return 0;
}

/* The length of a name without its ending; 0: it has another. */
static size_t stem_of(const char *name, const char *ending)
{
	size_t len = strlen(name), n = strlen(ending);

	return len > n && !strcmp(name + len - n, ending) ? len - n : 0;
}

/* A process that took memory and did not come to write its recording leaves PID.begun (src/pretend/card/memory.c); one that
 * could not write it, PID.unwritten. */
static int list(struct parts *p, const char *folder, const struct frag_launch *l,
		struct frag_err *err)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	unsigned lost = 0, unwritten = 0;
	int rc = 0;

	while (dir && !rc && (entry = readdir(dir))) {
		size_t len = stem_of(entry->d_name, ".pickle");

		lost += stem_of(entry->d_name, ".begun") != 0;
		unwritten += stem_of(entry->d_name, ".unwritten") != 0;
		if (len)
			rc = add(p, folder, entry->d_name, len, err);
	}
	if (dir)
		closedir(dir);
	if (rc)
		return rc;
	if (unwritten)
		return frag_fail(err, FRAG_EOUTPUT,
				 "%u of %zu recordings could not be written below '%.200s'; set "
				 "TMPDIR to a folder with more room",
				 unwritten, unwritten + p->count, folder);
	if (!p->count && lost)
		return frag_fail(err, FRAG_EINPUT,
				 "nothing was recorded: the process that used the card was killed "
				 "(SIGKILL), crashed, or called _exit outside of Python");
	if (!p->count)
		return frag_fail(err, FRAG_EINPUT,
				 "nothing was recorded: no Python process of the program allocated "
				 "memory of a card through torch (started with -S, or without its "
				 "environment, Python does not see cufrag)");
	if (lost)
		frag_launch_note(l,
				 "%u of %zu processes that used a card left no recording: killed "
				 "(SIGKILL), crashed, or called _exit outside of Python",
				 lost, lost + p->count);
	qsort(p->list, p->count, sizeof(*p->list), by_rank);
	return 0;
}

/* ---- the modelled clock -------------------------------------------------------------- */

/* As cufrag_values.cpp writes them, ascending in both. */
struct tick {
	int64_t host_us, model_ns;
};

/* Modelled time, us, at an instant of the host: that of the operator before. */
static uint64_t model_us(const struct tick *ticks, size_t count, int64_t host_us)
{
	size_t at;

	FRAG_BISECT(at, 0, count, ticks[at].host_us <= host_us);
	return at ? (uint64_t)FRAG_MAX(ticks[at - 1].model_ns, 0) / 1000 : 0;
}

static void set_clock(struct frag_trace *trace, const struct tick *ticks, size_t count)
{
	for (uint32_t d = 0; d < trace->devs_count; d++) {
		struct frag_trace_dev *dev = &trace->devs[d];

		for (size_t i = 0; i < dev->events_count; i++)
			dev->events[i].time_us = model_us(
				ticks, count, (int64_t)(trace->start_us + dev->events[i].time_us));
		for (size_t i = 0; i < dev->seen_count; i++)
			dev->seen[i].time_us = model_us(
				ticks, count, (int64_t)(trace->start_us + dev->seen[i].time_us));
	}
}

/* true: times are modelled now. */
static bool take_clock(const struct part *part)
{
	char path[4500];
	FRAG_AUTO_FREE struct tick *ticks = NULL;
	FRAG_AUTO_FILE FILE *f = NULL;
	size_t count = 0;
	bool done = false;
	long bytes;

	snprintf(path, sizeof(path), "%s.clock", part->stem);
	f = fopen(path, "rb");
	if (f && !fseek(f, 0, SEEK_END) && (bytes = ftell(f)) > 0) {
		count = (size_t)bytes / sizeof(*ticks);
		ticks = frag_host_calloc(count, sizeof(*ticks));
		rewind(f);
		done = ticks && fread(ticks, sizeof(*ticks), count, f) == count;
	}
	if (done)
		set_clock(part->trace, ticks, count);
	return done;
}

/* ---- the note ------------------------------------------------------------------------- */

/* ASCII without control characters, '?' for each other one: paths and names are the program's. */
static void put_clean(FILE *to, const char *text)
{
	for (; text && *text; text++)
		if ((*text & 0xc0) != 0x80)
			fputc(*text >= ' ' && *text < 127 ? *text : '?', to);
}

static void put_places(FILE *to, const json_t *notes)
{
	const json_t *place;
	size_t i;

	json_array_foreach(json_object_get(notes, "steered"), i, place)
	{
		fprintf(to, "value ");
		put_clean(to, json_string_value(json_object_get(place, "values")));
		fprintf(to, " %lld ",
			(long long)json_integer_value(json_object_get(place, "count")));
		put_clean(to, json_string_value(json_object_get(place, "what")));
		fputc(' ', to);
		put_clean(to, json_string_value(json_object_get(place, "place")));
		fputc('\n', to);
	}
}

/* In whole steps, which has no meaning without a modelled clock. */
static void put_recomputed(FILE *to, const json_t *notes)
{
	json_int_t part = json_integer_value(json_object_get(notes, "recomputed_ns")),
		   all = json_integer_value(json_object_get(notes, "model_ns"));

	if (part >= 0 && all > 0 && part <= all)
		fprintf(to, "recomputed %lld %lld\n", (long long)part, (long long)all);
}

/* What the card's cuDNN would have planned otherwise; NULL: nothing. */
static const char *convolutions_of(const struct parts *p)
{
	for (size_t i = 0; i < p->count; i++) {
		const char *text =
			json_string_value(json_object_get(p->list[i].notes, "convolutions"));

		if (text && *text)
			return text;
	}
	return NULL;
}

/* NULL: memory is short. */
static char *make_note(const struct frag_launch *l, const struct parts *p,
		       const struct frag_roles *roles, bool modelled, int status)
{
	const struct frag_gpu *gpu = frag_pretend_gpu(l);
	const json_t *first = p->list[0].notes;
	FRAG_AUTO_FREE char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	if (!to)
		return NULL;
	fprintf(to, "card %s\n", l->card.name ? l->card.name : "h200");
	fprintf(to, "chip %s\n", gpu ? gpu->name : "");
	fprintf(to, "total %llu\ncontext %llu\nstatus %d\n",
		(unsigned long long)l->card.total_bytes, (unsigned long long)l->card.context_bytes,
		status);
	fprintf(to, "torch ");
	put_clean(to, json_string_value(json_object_get(first, "torch")));
	fprintf(to, "\nvalues ");
	put_clean(to, json_string_value(json_object_get(first, "values")));
	fprintf(to, "\nclock %s\nworld %lld\n", modelled ? "modelled" : "host",
		(long long)json_integer_value(json_object_get(first, "world")));
	if (convolutions_of(p)) {
		fprintf(to, "convolutions ");
		put_clean(to, convolutions_of(p));
		fputc('\n', to);
		frag_launch_note(l, "%s", convolutions_of(p));
	}
	frag_roles_put(to, roles);
	for (size_t i = 0; i < p->count; i++) {
		fprintf(to, "rank %ld\n", p->list[i].rank);
		put_recomputed(to, p->list[i].notes);
		put_places(to, p->list[i].notes);
	}
	return fclose(to) ? NULL : FRAG_GIVE(text);
}

/* ---- all together ------------------------------------------------------------------------ */

/* The file tells some releases from others; the program said which it is. */
static void take_release(struct part *part)
{
	const char *text = json_string_value(json_object_get(part->notes, "torch"));
	const struct frag_trace_settings *s = &part->trace->settings;
	unsigned release;

	if (text && s->torch_last && !frag_torch_parse(text, &release, NULL) &&
	    release >= s->torch_first && release <= s->torch_last)
		frag_trace_set_torch(part->trace, release, release);
}

static int read_part(const struct frag_launch *l, struct part *part, struct frag_err *err)
{
	char path[4500];
	const json_t *limit;

	snprintf(path, sizeof(path), "%s.pickle", part->stem);
	FRAG_TRY(frag_launch_read(l, path, &part->trace, err));
	take_release(part);
	limit = json_object_get(part->notes, "limit_bytes");
	if (json_is_integer(limit) && json_integer_value(limit) > 0) {
		part->trace->settings.limit_bytes = (uint64_t)json_integer_value(limit);
		part->trace->settings.limit_known = true;
	}
	return 0;
}

static int read_parts(const struct frag_launch *l, struct parts *p, bool *modelled,
		      struct frag_err *err)
{
	for (size_t i = 0; i < p->count; i++)
		FRAG_TRY(read_part(l, &p->list[i], err));
	/* a release is told from a retry by a replay, which knows the limit; times do not matter to it */
	for (size_t i = 0; i < p->count; i++)
		FRAG_TRY(l->settle(l->ctx, p->list[i].trace, err));
	*modelled = true;
	for (size_t i = 0; i < p->count; i++)
		*modelled &= take_clock(&p->list[i]);
	return 0;
}

static const struct part *part_of(const struct parts *p, long rank)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->list[i].rank == rank)
			return &p->list[i];
	return NULL;
}

/* Takes out the ranks that ran as a check and asked for what their roles did. */
static int check_roles(const struct frag_launch *l, struct parts *p, struct frag_roles *roles,
		       struct frag_err *err)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->count; i++) {
		struct part *part = &p->list[i];
		long role = frag_roles_checked(roles, part->rank);
		const struct part *other = role < 0 ? NULL : part_of(p, role);
		struct frag_pretend_need a, b;
		bool same;

		p->list[kept++] = *part;
		if (!other)
			continue;
		a = frag_pretend_measure(part->trace);
		b = frag_pretend_measure(other->trace);
		same = a.peak_bytes == b.peak_bytes && a.requests == b.requests;
		FRAG_TRY(frag_roles_found(roles, (unsigned)part->rank, (unsigned)role, same, err));
		if (same) {
			frag_trace_destroy(part->trace);
			json_decref(part->notes);
			kept--;
		}
	}
	p->count = kept;
	frag_roles_tell(l, roles);
	return 0;
}

int frag_pretend_collect(const struct frag_launch *l, const char *folder, int status,
			 struct frag_trace **out, struct frag_err *err)
{
	FRAG_AUTO(release) struct parts p = { 0 };
	FRAG_AUTO(frag_roles_release) struct frag_roles roles = { 0 };
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *all = NULL;
	FRAG_AUTO(frag_trace_parts_release) struct frag_trace_parts traces = { 0 };
	bool modelled;

	FRAG_TRY(list(&p, folder, l, err));
	FRAG_TRY(read_parts(l, &p, &modelled, err));
	FRAG_TRY(frag_roles_read(folder, &roles, err));
	FRAG_TRY(check_roles(l, &p, &roles, err));
	FRAG_TRY_CALLOC(traces.list, p.count, "recordings", err);
	for (; traces.count < p.count; traces.count++)
		traces.list[traces.count] = FRAG_GIVE(p.list[traces.count].trace);
	FRAG_TRY(frag_trace_parts_join(&traces, &all, err));
	all->estimate = make_note(l, &p, &roles, modelled, status);
	FRAG_CHECK_ALLOC(all->estimate, "recordings", err);
	*out = FRAG_GIVE(all);
	return 0;
}
