/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of an estimate; see estimate.h. The note's lines: docs/nogpu.md. */
#include "estimate.h"

#include <stdlib.h>
#include <string.h>

#define PLACES_SHOWN 12

/* "value invented 24 _local_scalar_dense train.py:42" */
struct place {
	const char *values, *what, *where;
	size_t values_len, what_len, where_len;
	unsigned long long count;
};

static const char *line_end(const char *line)
{
	return line + strcspn(line, "\n");
}

static const char *next_line(const char *line)
{
	const char *end = line_end(line);

	return *end ? end + 1 : end;
}

static bool parse_place(const char *line, struct place *out)
{
	const char *at = line, *end = line_end(line);
	char *after;

	if (strncmp(at, "value ", 6) != 0)
		return false;
	out->values = at += 6;
	out->values_len = strcspn(at, " \n");
	at += out->values_len;
	out->count = strtoull(at, &after, 10);
	at = after + (*after == ' ');
	out->what = at;
	out->what_len = strcspn(at, " \n");
	at += out->what_len;
	at += *at == ' ';
	out->where = at;
	out->where_len = (size_t)(end - at);
	return at <= end;
}

static bool is(const struct place *p, const char *values)
{
	return p->values_len == strlen(values) && !strncmp(p->values, values, p->values_len);
}

/* The text behind "key " in a line of its own; *len 0: none. */
static const char *value_of(const char *note, const char *key, size_t *len)
{
	size_t n = strlen(key);

	for (const char *line = note; *line; line = next_line(line)) {
		if (strncmp(line, key, n) != 0 || line[n] != ' ')
			continue;
		*len = (size_t)(line_end(line) - line) - n - 1;
		return line + n + 1;
	}
	*len = 0;
	return "";
}

static unsigned count_places(const char *note, const char *values)
{
	unsigned count = 0;
	struct place p;

	for (const char *line = note; *line; line = next_line(line))
		count += parse_place(line, &p) && is(&p, values);
	return count;
}

/* What a second run with other values needed; false: there was none. */
struct again {
	unsigned long long peak, other_peak, requests, other_requests;
};

static bool again_of(const char *note, struct again *a)
{
	size_t len;
	const char *at = value_of(note, "again", &len);

	return len && sscanf(at, "%*s %llu %llu %llu %llu", &a->peak, &a->other_peak, &a->requests,
			     &a->other_requests) == 4;
}

static double change(unsigned long long from, unsigned long long to)
{
	return from ? 100.0 * ((double)to / (double)from - 1) : 0;
}

/* "; with other values ..." or nothing. */
static const char *again_text(const char *note, char *buf, size_t cap)
{
	struct again a;

	if (!again_of(note, &a))
		return "";
	if (a.peak == a.other_peak && a.requests == a.other_requests)
		return "; with other values it asked for as much";
	snprintf(buf, cap, "; with other values its peak live was %+.2f %%, its requests %+.2f %%",
		 change(a.peak, a.other_peak), change(a.requests, a.other_requests));
	return buf;
}

void frag_cli_note_estimate(const struct frag_cli *cli, const struct frag_trace *trace)
{
	char again[120];
	size_t scaled_len;
	unsigned invented;

	if (!trace->estimate)
		return;
	value_of(trace->estimate, "scaled", &scaled_len);
	invented = count_places(trace->estimate, "invented");
	if (scaled_len)
		frag_cli_note(cli, "'%s' is an estimate, scaled from other recordings",
			      trace->name);
	else if (invented)
		frag_cli_note(cli,
			      "'%s' is an estimate, recorded without a GPU; at %u %s of the "
			      "program "
			      "it got values that were invented (cufrag info%s lists them)%s",
			      trace->name, invented, invented == 1 ? "place" : "places",
			      cli->program ? " of what cufrag record writes" : "",
			      again_text(trace->estimate, again, sizeof(again)));
	else
		frag_cli_note(cli,
			      "'%s' is an estimate, recorded without a GPU; no invented value "
			      "reached the program%s",
			      trace->name, again_text(trace->estimate, again, sizeof(again)));
}

static const char *plain_name(const struct place *p, char *buf, size_t cap)
{
	static const char *const names[][2] = {
		{ "_local_scalar_dense", "a number (.item(), if, int)" },
		{ "copy_", "a tensor copied to the host" },
		{ "nonzero", "how many are not zero" },
		{ "equal", "whether two are equal" },
	};

	snprintf(buf, cap, "%.*s", (int)p->what_len, p->what);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(names); i++)
		if (!strcmp(buf, names[i][0]))
			return names[i][1];
	return buf;
}

void frag_cli_print_estimate(const struct frag_trace *trace, unsigned label_width)
{
	size_t card_len, torch_len, values_len, clock_len, scaled_len;
	const char *note = trace->estimate, *card, *torch, *values, *clock, *scaled;
	unsigned shown = 0, left = 0;
	struct again a;
	struct place p;
	char buf[64];

	if (!note)
		return;
	card = value_of(note, "card", &card_len);
	torch = value_of(note, "torch", &torch_len);
	values = value_of(note, "values", &values_len);
	clock = value_of(note, "clock", &clock_len);
	scaled = value_of(note, "scaled", &scaled_len);
	if (scaled_len)
		printf("%-*s scaled from recordings at %.*s (cufrag scale)\n", (int)label_width,
		       "estimate", (int)scaled_len, scaled);
	if (!card_len)
		return;
	printf("%-*s recorded without a GPU: %.*s pretended, torch %.*s, times %s\n",
	       (int)label_width, "estimate", (int)card_len, card, (int)torch_len, torch,
	       clock_len == 8 && !strncmp(clock, "modelled", 8) ? "modelled" : "of the host");
	printf("%-*s values by %.*s reached the program at %u places, computed ones at %u, given "
	       "ones at %u\n",
	       (int)label_width, "", (int)values_len, values, count_places(note, "invented"),
	       count_places(note, "computed"), count_places(note, "given"));
	if (again_of(note, &a))
		printf("%-*s with other values: peak live %s instead of %s, %llu requests instead "
		       "of %llu\n",
		       (int)label_width, "", FRAG_BYTES(a.other_peak), FRAG_BYTES(a.peak),
		       a.other_requests, a.requests);
	for (const char *line = note; *line; line = next_line(line)) {
		if (!parse_place(line, &p) || is(&p, "computed"))
			continue;
		if (shown++ >= PLACES_SHOWN) {
			left++;
			continue;
		}
		printf("%-*s   %.*s %llu x at %.*s: %s\n", (int)label_width, "", (int)p.values_len,
		       p.values, p.count, (int)p.where_len, p.where,
		       plain_name(&p, buf, sizeof(buf)));
	}
	if (left)
		printf("%-*s   and %u more (--json)\n", (int)label_width, "", left);
}

static json_t *text(const char *from, size_t len)
{
	return json_stringn(from, len);
}

json_t *frag_cli_json_estimate(const struct frag_trace *trace)
{
	static const char *const keys[] = { "card", "torch", "values", "clock", "scaled" };
	const char *note = trace->estimate;
	json_t *out, *places;
	struct again a;
	struct place p;

	if (!note)
		return json_null();
	out = json_object();
	for (size_t i = 0; i < FRAG_ARRAY_LEN(keys); i++) {
		size_t len;
		const char *value = value_of(note, keys[i], &len);

		json_object_set_new(out, keys[i], text(value, len));
	}
	if (again_of(note, &a))
		json_object_set_new(out, "again",
				    json_pack("{s:I, s:I, s:I, s:I}", "peak_live_bytes",
					      (json_int_t)a.peak, "other_peak_live_bytes",
					      (json_int_t)a.other_peak, "requests",
					      (json_int_t)a.requests, "other_requests",
					      (json_int_t)a.other_requests));
	places = json_array();
	for (const char *line = note; *line; line = next_line(line)) {
		json_t *one;

		if (!parse_place(line, &p))
			continue;
		one = json_object();
		json_object_set_new(one, "place", text(p.where, p.where_len));
		json_object_set_new(one, "what", text(p.what, p.what_len));
		json_object_set_new(one, "values", text(p.values, p.values_len));
		json_object_set_new(one, "count", json_integer((json_int_t)p.count));
		json_array_append_new(places, one);
	}
	json_object_set_new(out, "places", places);
	return out;
}
