/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes of one run on the pretended card left in a folder, as one trace: beside the files of
 * inject/launch/python_parts.h, PID.clock with a modelled clock, and the roles of the ranks.
 */
#include "pretend_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/outfile.h"
#include "inject/launch/python_parts.h"
#include "lib/bisect.h"

/* ---- the modelled clock -------------------------------------------------------------- */

/* As values/clock.cpp writes them, ascending in both. */
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
static bool take_clock(const struct frag_torch_part *part)
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
static const char *convolutions_of(const struct frag_torch_parts *p)
{
	for (size_t i = 0; i < p->count; i++) {
		const char *text =
			json_string_value(json_object_get(p->list[i].notes, "convolutions"));

		if (text && *text)
			return text;
	}
	return NULL;
}

/* The number of a device in the trace of all parts; -1: its process left no recording. */
static int device_of(const struct frag_torch_parts *p, long pid, uint32_t ordinal)
{
	int number = 0;

	for (size_t i = 0; i < p->count; i++)
		for (uint32_t d = 0; d < p->list[i].trace->devs_count; d++, number++)
			if (p->list[i].pid == pid && p->list[i].trace->devs[d].ordinal == ordinal)
				return number;
	return -1;
}

/* What the others on its card held when one was refused memory (card/neighbours.c). */
static void put_refused(FILE *to, const struct frag_torch_parts *p, const char *folder, long pid,
			uint32_t ordinal)
{
	char path[4400];
	unsigned long long bytes;
	int count, most_pid;
	FILE *f;

	snprintf(path, sizeof(path), "%s/refused.%ld.%u", folder, pid, ordinal);
	f = fopen(path, "r");
	if (!f)
		return;
	if (fscanf(f, "%llu %d %d", &bytes, &count, &most_pid) == 3)
		fprintf(to, "neighbours %d %llu %d %d\n", device_of(p, pid, ordinal), bytes, count,
			device_of(p, most_pid, ordinal));
	fclose(f);
}

/* The most that processes held together on one card, with their contexts, and how many. */
static void put_shared(FILE *to, const struct frag_torch_parts *p, const char *folder)
{
	FRAG_AUTO_FREE char *path = frag_path_join(folder, "shared");
	FRAG_AUTO_FILE FILE *f = path ? fopen(path, "r") : NULL;
	unsigned long long bytes, most = 0;
	int count, most_count = 0;

	for (; f && fscanf(f, "%llu %d %*d", &bytes, &count) == 2; most = FRAG_MAX(most, bytes))
		most_count = bytes > most ? count : most_count;
	if (most)
		fprintf(to, "shared %llu %d\n", most, most_count);
	for (size_t i = 0; most && i < p->count; i++)
		for (uint32_t d = 0; d < p->list[i].trace->devs_count; d++)
			put_refused(to, p, folder, p->list[i].pid,
				    p->list[i].trace->devs[d].ordinal);
}

/* NULL: memory is short. */
static char *make_note(const struct frag_launch *l, const struct frag_torch_parts *p,
		       const struct frag_roles *roles, const char *folder, bool modelled,
		       int status)
{
	const struct frag_gpu *gpu = frag_pretend_gpu(l);
	const json_t *first = p->list[0].notes;
	FRAG_AUTO_FREE char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	if (!to)
		return NULL;
	fprintf(to, "card %s\n", l->target.card.name ? l->target.card.name : "h200");
	fprintf(to, "chip %s\n", gpu ? gpu->name : "");
	fprintf(to, "total %llu\ncontext %llu\nstatus %d\n",
		(unsigned long long)l->target.card.total_bytes,
		(unsigned long long)l->target.card.context_bytes, status);
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
	put_shared(to, p, folder);
	for (size_t i = 0; i < p->count; i++) {
		fprintf(to, "rank %ld\n", p->list[i].rank);
		put_recomputed(to, p->list[i].notes);
		put_places(to, p->list[i].notes);
	}
	return fclose(to) ? NULL : FRAG_GIVE(text);
}

/* ---- all together ------------------------------------------------------------------------ */

static const struct frag_torch_part *part_of(const struct frag_torch_parts *p, long rank)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->list[i].rank == rank)
			return &p->list[i];
	return NULL;
}

struct frag_pretend_need frag_pretend_measure(const struct frag_trace *trace)
{
	struct frag_pretend_need need = { 0 };

	for (uint32_t d = 0; d < trace->devs_count; d++) {
		const struct frag_trace_dev *dev = &trace->devs[d];
		uint64_t live = 0;

		for (size_t i = 0; i < dev->events_count; i++) {
			const struct frag_event *ev = &dev->events[i];
			uint64_t bytes = frag_round_up(ev->bytes, 512);

			if (ev->kind == FRAG_EV_ALLOC) {
				live += bytes;
				need.requests++;
			} else if (ev->kind == FRAG_EV_FREE || ev->kind == FRAG_EV_FREE_COMPLETED) {
				live -= bytes;
			}
			need.peak_bytes = FRAG_MAX(need.peak_bytes, live);
		}
	}
	return need;
}

/* Takes out the ranks that ran as a check and asked for what their roles did. */
static int check_roles(const struct frag_launch *l, struct frag_torch_parts *p,
		       struct frag_roles *roles, struct frag_err *err)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->count; i++) {
		struct frag_torch_part *part = &p->list[i];
		long role = frag_roles_checked(roles, part->rank);
		const struct frag_torch_part *other = role < 0 ? NULL : part_of(p, role);
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
	FRAG_AUTO(frag_torch_parts_release) struct frag_torch_parts p = { 0 };
	FRAG_AUTO(frag_roles_release) struct frag_roles roles = { 0 };
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *all = NULL;
	FRAG_AUTO_FREE char *note = NULL;
	bool modelled = true;

	FRAG_TRY(frag_torch_parts_read(l, folder, &p, err));
	for (size_t i = 0; i < p.count; i++)
		modelled &= take_clock(&p.list[i]);
	FRAG_TRY(frag_roles_read(folder, &roles, err));
	FRAG_TRY(check_roles(l, &p, &roles, err));
	note = make_note(l, &p, &roles, folder, modelled, status);
	FRAG_CHECK_ALLOC(note, "recordings", err);
	FRAG_TRY(frag_torch_parts_join(&p, &all, err));
	all->estimate = FRAG_GIVE(note);
	*out = FRAG_GIVE(all);
	return 0;
}
