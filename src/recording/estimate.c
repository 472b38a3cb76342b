/* SPDX-License-Identifier: Apache-2.0 */
/* The note of a recording made without a GPU; see estimate.h. */
#include "estimate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/opt.h>

#define PLACES_SHOWN 12u

FRAG_ROW_SHAPE(static, frag_again_shape, frag_again, "again", FRAG_AGAIN_ROW,
	       "a second run with other values");
FRAG_ROW_SHAPE(static, frag_place_shape, frag_place, "place", FRAG_PLACE_ROW,
	       "a place of the program that got a value from the card");
FRAG_ROW_SHAPE(static, frag_role_shape, frag_role_row, "role", FRAG_ROLE_ROW,
	       "a rank that stands for those that are alike");
FRAG_ROW_SHAPE(, frag_estimate_shape, frag_estimate, "estimate", FRAG_ESTIMATE_ROW,
	       "how a recording without a GPU was made");

static const char *next_line(const char *line)
{
	line += strcspn(line, "\n");
	return *line ? line + 1 : line;
}

/* The word at *at, which moves behind it and a blank. */
static const char *word(struct frag_answer *a, const char **at)
{
	size_t n = strcspn(*at, " \n");
	const char *text = frag_answer_print(a, "%.*s", (int)n, *at);

	*at += n + ((*at)[n] == ' ');
	return text;
}

/* The text behind "key " in a line of its own; NULL: none. */
static const char *value_of(struct frag_answer *a, const char *note, const char *key)
{
	size_t n = strlen(key);

	for (const char *line = note; *line; line = next_line(line))
		if (!strncmp(line, key, n) && line[n] == ' ')
			return frag_answer_print(a, "%.*s", (int)strcspn(line + n + 1, "\n"),
						 line + n + 1);
	return NULL;
}

/* "again VALUES PEAK PEAK2 REQUESTS REQUESTS2" */
static const struct frag_again *again_of(struct frag_answer *a, const char *note)
{
	struct frag_again *out = frag_answer_new(a, 1, sizeof(*out));
	const char *text = value_of(a, note, "again");
	unsigned long long n[4];

	if (!out || !text ||
	    sscanf(text, "%*s %llu %llu %llu %llu", &n[0], &n[1], &n[2], &n[3]) != 4)
		return NULL;
	*out = (struct frag_again){ word(a, &text), n[0], n[1], n[2], n[3] };
	return out;
}

/* A row of `bytes` bytes for each line "key …", filled from what is behind the key. */
static struct frag_rows rows_of(struct frag_answer *a, const char *note, const char *key,
				size_t bytes,
				void (*fill)(struct frag_answer *a, const char *at, void *row))
{
	size_t n = strlen(key), count = 0;
	char *rows;

	for (const char *line = note; *line; line = next_line(line))
		count += !strncmp(line, key, n);
	rows = frag_answer_new(a, count, bytes);
	count = 0;
	for (const char *line = note; rows && *line; line = next_line(line))
		if (!strncmp(line, key, n))
			fill(a, line + n, rows + bytes * count++);
	return (struct frag_rows){ rows, count };
}

/* As word(); NULL for "-". */
static const char *word_if_any(struct frag_answer *a, const char **at)
{
	const char *text = word(a, at);

	return text && strcmp(text, "-") != 0 ? text : NULL;
}

/* "role 0 0-7,64 7 -" */
static void fill_role(struct frag_answer *a, const char *at, void *row)
{
	struct frag_role_row *r = row;

	r->rank = strtoull(word(a, &at), NULL, 10);
	r->stands_for = word(a, &at);
	r->alike = word_if_any(a, &at);
	r->unlike = word_if_any(a, &at);
}

/* "value invented 24 _local_scalar_dense train.py:42" */
static void fill_place(struct frag_answer *a, const char *at, void *row)
{
	struct frag_place *p = row;

	p->values = word(a, &at);
	p->count = strtoull(word(a, &at), NULL, 10);
	p->what = word(a, &at);
	p->place = frag_answer_print(a, "%.*s", (int)strcspn(at, "\n"), at);
}

const struct frag_estimate *frag_estimate_read(struct frag_answer *a,
					       const struct frag_trace *trace)
{
	const struct frag_neighbours shared = frag_estimate_shared(trace);
	const char *note = trace->estimate;
	struct frag_estimate *e = note ? frag_answer_new(a, 1, sizeof(*e)) : NULL;

	if (!e)
		return NULL;
	*e = (struct frag_estimate){
		.card = value_of(a, note, "card"),
		.torch = value_of(a, note, "torch"),
		.values = value_of(a, note, "values"),
		.clock = value_of(a, note, "clock"),
		.convolutions = value_of(a, note, "convolutions"),
		.scaled = value_of(a, note, "scaled"),
		.shared_count = shared.count,
		.shared_bytes = shared.count ? shared.bytes : UINT64_MAX,
		.again = again_of(a, note),
		.roles = rows_of(a, note, "role ", sizeof(struct frag_role_row), fill_role),
		.places = rows_of(a, note, "value ", sizeof(struct frag_place), fill_place)
	};
	return e;
}

#define CARD_MAX (1ull << 50) /* bytes: no card, but what somebody wrote */

bool frag_estimate_card(const struct frag_trace *trace, struct frag_sim_config *card)
{
	const char *at = trace->estimate ? strstr(trace->estimate, "\ntotal ") : NULL;
	unsigned long long total, context;

	if (!at || sscanf(at, "\ntotal %llu\ncontext %llu\n", &total, &context) != 2 ||
	    context >= total || total > CARD_MAX)
		return false;
	card->total_bytes = total;
	card->context_bytes = context;
	return true;
}

/* "\nKEY BYTES COUNT DEVICE" */
static struct frag_neighbours neighbours_of(const struct frag_trace *trace, const char *key)
{
	const char *at = trace->estimate ? strstr(trace->estimate, key) : NULL;
	struct frag_sim_config card = { 0 };
	struct frag_neighbours n = { .most_dev = UINT32_MAX };
	unsigned long long bytes;
	unsigned count, dev = UINT32_MAX;

	if (!at || !frag_estimate_card(trace, &card) ||
	    sscanf(at + strlen(key), " %llu %u %u", &bytes, &count, &dev) < 2 || bytes > CARD_MAX ||
	    count > CARD_MAX / card.total_bytes || count * card.context_bytes > bytes)
		return n;
	n = (struct frag_neighbours){ bytes, count * card.context_bytes, count, UINT32_MAX };
	if (dev < trace->devs_count)
		n.most_dev = dev;
	return n;
}

struct frag_neighbours frag_estimate_shared(const struct frag_trace *trace)
{
	return neighbours_of(trace, "\nshared");
}

struct frag_neighbours frag_estimate_neighbours(const struct frag_trace *trace, uint32_t dev)
{
	char key[32];

	snprintf(key, sizeof(key), "\nneighbours %u", dev);
	return neighbours_of(trace, key);
}

const char *frag_neighbours_text(struct frag_answer *a, const struct frag_trace *trace,
				 const struct frag_neighbours *n)
{
	const char *held = FRAG_BYTES(n->bytes - n->contexts_bytes);

	if (n->count > 1)
		return frag_answer_print(
			a, "%u other processes on the card held %s and a context each", n->count,
			held);
	if (n->most_dev == UINT32_MAX)
		return frag_answer_print(a, "another process on the card held %s and its context",
					 held);
	return frag_answer_print(a,
				 "device %u, another process on the card, held %s and its context",
				 trace->devs[n->most_dev].ordinal, held);
}

bool frag_estimate_to_end(const struct frag_trace *trace)
{
	return trace->estimate && strstr(trace->estimate, "\nstatus 0\n");
}

static const struct frag_place *place(const struct frag_estimate *e, size_t i)
{
	return (const struct frag_place *)e->places.rows + i;
}

unsigned frag_estimate_places(const struct frag_estimate *e, const char *values)
{
	unsigned n = 0;

	for (size_t i = 0; i < e->places.count; i++)
		n += !strcmp(place(e, i)->values, values);
	return n;
}

static double change(uint64_t from, uint64_t to)
{
	return from ? 100.0 * ((double)to / (double)from - 1) : 0;
}

const char *frag_estimate_again(struct frag_answer *a, const struct frag_estimate *e)
{
	const struct frag_again *r = e->again;

	if (!r)
		return "";
	if (r->peak_live_bytes == r->other_peak_live_bytes && r->requests == r->other_requests)
		return "; with other values it asked for as much";
	return frag_answer_print(a,
				 "; with other values its peak of live memory was %+.2f %%, its "
				 "requests %+.2f %%",
				 change(r->peak_live_bytes, r->other_peak_live_bytes),
				 change(r->requests, r->other_requests));
}

static const char *plain_name(const char *what)
{
	static const char *const names[][2] = {
		{ "_local_scalar_dense", "a number (.item(), if, int)" },
		{ "copy_", "a tensor copied to the host" },
		{ "nonzero", "the number of nonzero elements" },
		{ "index", "how many elements a mask selects" },
		{ "masked_select", "how many elements a mask selects" },
		{ "nms", "how many boxes suppression keeps" },
		{ "_unique2", "how many elements differ" },
		{ "unique_dim", "how many slices differ" },
		{ "unique_consecutive", "how many elements differ" },
		{ "_to_sparse", "how many elements are not zero" },
		{ "_coalesce", "how many places of a sparse tensor differ" },
		{ "equal", "a comparison of two tensors" },
		{ "router", "a router's choice of experts" },
		{ "found_inf", "whether gradients overflow (GradScaler skips the step)" },
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(names); i++)
		if (!strcmp(what, names[i][0]))
			return names[i][1];
	return what;
}

static void add_roles(const struct frag_estimate *e, struct frag_text *out)
{
	const struct frag_role_row *r = e->roles.rows;

	for (size_t i = 0; i < e->roles.count; i++, r++)
		frag_text_addf(
			out, "\nrank %llu stands for ranks %s%s%s%s%s", (unsigned long long)r->rank,
			r->stands_for, r->alike ? "; the same ran: " : "", r->alike ? r->alike : "",
			r->unlike ? "; others, recorded, too: " : "", r->unlike ? r->unlike : "");
}

static void add_places(const struct frag_estimate *e, struct frag_text *out)
{
	size_t shown = 0, left = 0;

	for (size_t i = 0; i < e->places.count; i++) {
		const struct frag_place *p = place(e, i);

		if (!strcmp(p->values, "computed"))
			continue;
		if (shown++ < PLACES_SHOWN)
			frag_text_addf(out, "\n  %s %llu x at %s: %s", p->values,
				       (unsigned long long)p->count, p->place, plain_name(p->what));
		else
			left++;
	}
	if (left)
		frag_text_addf(out, "\n  and %zu more (--json)", left);
}

const char *frag_estimate_text(struct frag_answer *a, const struct frag_estimate *e)
{
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };
	const struct frag_again *again = e->again;

	if (e->scaled)
		frag_text_addf(&t, "scaled from recordings at %s (cufrag scale)\n", e->scaled);
	if (e->card)
		frag_text_addf(
			&t,
			"recorded without a GPU: on a pretended %s, torch %s, times %s\n"
			"values from %s reached the program at %u places, computed ones at %u, "
			"given ones at %u",
			e->card, e->torch ? e->torch : "",
			e->clock && !strcmp(e->clock, "modelled") ? "modelled" : "of the host",
			e->values ? e->values : "", frag_estimate_places(e, "invented"),
			frag_estimate_places(e, "computed"), frag_estimate_places(e, "given"));
	if (e->convolutions)
		frag_text_addf(&t, "\n%s", e->convolutions);
	if (e->shared_count)
		frag_text_addf(&t, "\n%s: at most %s, with a context each",
			       frag_answer_count(a, e->shared_count, "process shared a card",
						 "processes shared a card"),
			       FRAG_BYTES(e->shared_bytes));
	if (e->card && again)
		frag_text_addf(
			&t, "\n%s: peak live %s instead of %s, %llu requests instead of %llu",
			again->values && !strcmp(again->values, "worst") ? "with the worst routing"
									 : "with other values",
			FRAG_BYTES(again->other_peak_live_bytes),
			FRAG_BYTES(again->peak_live_bytes),
			(unsigned long long)again->other_requests,
			(unsigned long long)again->requests);
	add_roles(e, &t);
	if (e->card)
		add_places(e, &t);
	return frag_answer_take(a, &t);
}
