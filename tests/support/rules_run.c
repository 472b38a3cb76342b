/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the rules of a section, step by step, on a rig. */
#include "rules_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "script.h"

bool rules_wrong(struct rules *r, const char *format, ...)
{
	int n = snprintf(r->message, RULES_MESSAGE, "%s: ", r->where);
	va_list args;

	va_start(args, format);
	vsnprintf(r->message + n, RULES_MESSAGE - (size_t)n, format, args);
	va_end(args);
	return false;
}

bool rules_error(struct rules *r, char **words, const char **out)
{
	bool given = words[0] && words[1] && words[2] && !words[3] && !strcmp(words[0], "->") &&
		     !strcmp(words[1], "error");

	*out = given ? words[2] : NULL;
	return given || !*words ||
	       rules_wrong(r, "'%s': only -> error \"part of its message\" may follow", *words);
}

bool rules_result(struct rules *r, int rc, const char *error)
{
	if (!rc)
		return !error || rules_wrong(r, "no error");
	if (rc == FRAG_OOM)
		return rules_wrong(r, "out of memory");
	return (error && strstr(r->rig.err.msg, error)) || rules_wrong(r, "%s", r->rig.err.msg);
}

/* ---- policy TEXT [card N] [context N] [limit N] [places N …] [release 2.N] ------------------ */

static void log_event(struct rules_log *log, char kind, uint64_t bytes, frag_addr_t addr)
{
	if (log->count < RULES_LOG)
		log->at[log->count++] = (struct rules_event){ kind, bytes, addr };
}

static void on_call(void *ctx, enum frag_call call, uint64_t bytes, int result)
{
	struct rules *r = ctx;

	if (call == FRAG_CALL_MALLOC)
		log_event(&r->calls, result ? 'r' : 'm', bytes, r->rig.dev->logged_addr);
	else if (call == FRAG_CALL_FREE)
		log_event(&r->calls, result ? 'x' : 'f', bytes, r->rig.dev->logged_addr);
}

static void on_segment(void *ctx, enum frag_segment_event kind, frag_addr_t addr, uint64_t bytes,
		       uint32_t stream)
{
	struct rules *r = ctx;

	(void)stream;
	log_event(&r->journal, RULES_JOURNAL[kind], bytes, addr);
}

static int place(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr)
{
	struct rules *r = ctx;

	(void)bytes;
	if (kind == FRAG_CALL_CREATE || !r->places[r->places_used])
		return -1;
	*addr = r->places[r->places_used++];
	return 0;
}

/* Where the number behind this word goes; NULL: it is no option. */
static uint64_t *option(struct rules *r, const char *word, struct rig_options *o)
{
	return !strcmp(word, "card")	  ? &o->total_bytes
	       : !strcmp(word, "context") ? &o->context_bytes
	       : !strcmp(word, "limit")	  ? &o->limit_bytes
	       : !strcmp(word, "places")  ? r->places
					  : NULL;
}

static bool policy_options(struct rules *r, char ***words, struct rig_options *o)
{
	uint64_t *into = NULL, *next;
	unsigned minor;

	for (; **words && strcmp(**words, "->") != 0; ++*words) {
		next = option(r, **words, o);
		if (next) {
			into = next;
		} else if (!strcmp(**words, "release") && (*words)[1] &&
			   sscanf((*words)[1], "2.%u", &minor) == 1) {
			o->source_release = 200 + minor;
			++*words;
		} else if (!into || into == r->places + RULES_PLACES - 1) {
			return rules_wrong(
				r, "'%s': options are card, context, limit, places, release",
				**words);
		} else {
			if (!rules_number(r, **words, into, NULL))
				return false;
			into = into >= r->places && into < r->places + RULES_PLACES ? into + 1
										    : NULL;
		}
	}
	return true;
}

static void close_policy(struct rules *r)
{
	if (r->open)
		rig_close(&r->rig);
	r->open = false;
}

static bool step_policy(struct rules *r, char **words)
{
	struct rig_options o = { .still = true,
				 .total_bytes = 64 * FRAG_GIB,
				 .watch = { on_call, on_segment, place, r } };
	const char *error;
	int rc;

	close_policy(r);
	r->names_count = r->places_used = r->calls.count = r->journal.count = 0;
	memset(r->places, 0, sizeof(r->places));
	if (!*words)
		return rules_wrong(r, "which policy?");
	snprintf(r->text, sizeof(r->text), "%s", *words++);
	if (!policy_options(r, &words, &o) || !rules_error(r, words, &error))
		return false;
	rc = rig_open(&r->rig, r->text, &o);
	r->rig.where = r->where;
	r->open = !rc;
	return rules_result(r, rc, error);
}

/* ---- other steps ------------------------------------------------------------------------- */

/* trim [pool N] [-> error TEXT] */
static bool step_trim(struct rules *r, char **words)
{
	const char *error;
	uint64_t pool = 0;

	if (words[0] && words[1] && !strcmp(words[0], "pool")) {
		if (!rules_number(r, words[1], &pool, NULL))
			return false;
		words += 2;
	}
	return rules_error(r, words, &error) &&
	       rules_result(r, rig_trim(&r->rig, (uint16_t)pool), error);
}

/* sync; sync stream N: the device only, nobody tells the policy */
static bool step_sync(struct rules *r, char **words)
{
	uint64_t stream;

	if (!*words)
		return rules_result(r, rig_synced(&r->rig), NULL);
	if (strcmp(words[0], "stream") != 0 || !words[1] || words[2])
		return rules_wrong(r, "which stream?");
	return rules_number(r, words[1], &stream, NULL) &&
	       rules_result(r, frag_dev_sync(r->rig.dev, (uint32_t)stream, &r->rig.err), NULL);
}

static bool one_number(struct rules *r, char **words, uint64_t *out)
{
	if (!words[0] || words[1])
		return rules_wrong(r, "one number is wanted");
	return rules_number(r, words[0], out, NULL);
}

static bool step_at(struct rules *r, char **words)
{
	return one_number(r, words, &r->rig.dev->now_ns);
}

static bool step_wait(struct rules *r, char **words)
{
	uint64_t ns = 0;
	bool ok = one_number(r, words, &ns);

	r->rig.dev->now_ns += ns;
	return ok;
}

/* fail N: of the driver calls from now on the N-th fails */
static bool step_fail(struct rules *r, char **words)
{
	uint64_t n = 0;
	bool ok = one_number(r, words, &n);

	r->rig.dev->fail_call = r->rig.dev->driver_calls + n;
	return ok;
}

/* soak [steps=N] [slots=N] [max=N] [seed=N] [plain] [failures]: random calls, see script.h */
static bool step_soak(struct rules *r, char **words)
{
	static const char *const keys[] = {
		"steps=", "slots=", "max=", "seed=", "plain", "failures"
	};
	uint64_t values[] = { 4000, 150, 200 * FRAG_MIB, 1, 0, 0 };
	struct script s;

	for (; *words; words++) {
		size_t i = 0;

		while (i < FRAG_ARRAY_LEN(keys) && strncmp(*words, keys[i], strlen(keys[i])) != 0)
			i++;
		if (i == FRAG_ARRAY_LEN(keys))
			return rules_wrong(
				r, "'%s': steps=, slots=, max=, seed=, plain or failures", *words);
		values[i] = 1;
		if (strchr(keys[i], '=') &&
		    !rules_number(r, *words + strlen(keys[i]), &values[i], NULL))
			return false;
	}
	if (values[1] - 1 >= RIG_SLOTS || !values[2])
		return rules_wrong(r, "1 to %d slots, of 1 byte at least", RIG_SLOTS);
	script_init(&s, values[3], (unsigned)values[1]);
	s.max_bytes = values[2];
	s.plain = values[4];
	return rules_result(r, script_soak(&s, &r->rig, (unsigned)values[0], values[5]), NULL);
}

/* usage exact: without a walk the policy knows its blocks and the largest free one */
static bool step_usage(struct rules *r, char **words)
{
	r->rig.usage_exact = *words && !strcmp(*words, "exact");
	return r->rig.usage_exact || rules_wrong(r, "usage exact?");
}

/* accepted TEXTS; refused TEXTS [says PART]: which options there are */
static bool look_at_texts(struct rules *r, char **words, bool refused)
{
	const char *part = "";

	for (char **w = words; *w; w++)
		if (!strcmp(*w, "says") && w[1])
			part = w[1];
	for (; *words && strcmp(*words, "says") != 0; words++) {
		struct frag_policy_spec *spec = NULL;
		struct frag_err err = { 0 };
		int rc = frag_policy_spec_parse(*words, &spec, &err);

		frag_policy_spec_destroy(spec);
		if (!rc && refused)
			return rules_wrong(r, "'%s' is accepted", *words);
		if (rc && (!refused || rc != FRAG_EUSAGE || !err.msg[0] || !strstr(err.msg, part)))
			return rules_wrong(r, "'%s' is refused by '%s'", *words, err.msg);
	}
	return true;
}

static bool step_refused(struct rules *r, char **words)
{
	return look_at_texts(r, words, true);
}

static bool step_accepted(struct rules *r, char **words)
{
	return look_at_texts(r, words, false);
}

/* ---- lines -------------------------------------------------------------------------------- */

static const struct {
	const char *word;
	bool (*run)(struct rules *r, char **words);
	bool alone; /* needs no policy */
} steps[] = {
	{ "policy", step_policy, true },
	{ "refused", step_refused, true },
	{ "accepted", step_accepted, true },
	{ "grants", rules_grants, false },
	{ "free", rules_free, false },
	{ "request", rules_request, false },
	{ "trim", step_trim, false },
	{ "sync", step_sync, false },
	{ "at", step_at, false },
	{ "wait", step_wait, false },
	{ "fail", step_fail, false },
	{ "soak", step_soak, false },
	{ "usage", step_usage, false },
	{ "expect", rules_expect, false },
	{ "calls", rules_calls, false },
	{ "journal", rules_journal, false },
	{ "alloc", rules_alloc, false },
};

static bool run_step(struct rules *r, char **words)
{
	size_t i = 0, at = 0;

	/* "a b = alloc …": the word is behind the names */
	while (words[at] && strcmp(words[at], "=") != 0)
		at++;
	at = words[at] ? at + 1 : 0;
	while (i < FRAG_ARRAY_LEN(steps) && (!words[at] || strcmp(words[at], steps[i].word) != 0))
		i++;
	if (i == FRAG_ARRAY_LEN(steps) || (at && steps[i].run != rules_alloc))
		return rules_wrong(r, "there is no step '%s'", words[at] ? words[at] : "=");
	if (!r->open && !steps[i].alone)
		return rules_wrong(r, "%s: no policy is open", words[at]);
	if (!steps[i].run(r, steps[i].run == rules_alloc ? words : words + 1))
		return false;
	if (r->open) {
		rig_check(&r->rig);
		rig_walk(&r->rig, NULL);
	}
	return true;
}

/* Steps with NULL between them, and one more at the end. */
static bool run_steps(struct rules *r, char **words)
{
	uint64_t times = 1;

	if (*words && !strcmp(*words, "repeat")) {
		if (!words[1] || !rules_number(r, words[1], &times, NULL) || times > 10000)
			return rules_wrong(r, "repeat up to 10000 times");
		words += 2;
	}
	while (times--) {
		for (char **step = words; *step; step++) {
			if (!run_step(r, step))
				return false;
			while (*step)
				step++;
		}
	}
	return true;
}

/* Cuts a line into words; what stands in quotes is one. NULL stands for ';', and twice for the end. */
static bool cut(struct rules *r, char *line, char **words)
{
	size_t n = 0;

	for (char *at = line + strspn(line, " \t"); *at; at += strspn(at, " \t")) {
		bool quoted = *at == '"', ends;
		size_t length = quoted ? strcspn(at + 1, "\"") : strcspn(at, " \t;");

		if (n + 3 >= RULES_WORDS)
			return rules_wrong(r, "too many words");
		if (quoted && !at[1 + length])
			return rules_wrong(r, "a quote is not closed");
		if (length || quoted)
			words[n++] = at + quoted;
		at += length + quoted;
		ends = *at == ';' || (quoted && at[1] == ';');
		if (ends && n && words[n - 1])
			words[n++] = NULL;
		if (*at)
			*at++ = '\0';
		at += quoted && ends;
	}
	words[n] = words[n + 1] = NULL;
	return true;
}

/* ---- for $NAMES VALUES: the section once for each row --------------------------------------- */

struct rows {
	char line[8192];
	char *words[RULES_WORDS];
	size_t names, rows;
};

static bool read_rows(struct rules *r, struct rows *t)
{
	const struct rules_line *first = r->section->lines;
	size_t values = 0;

	*t = (struct rows){ .rows = 1 };
	if (strncmp(first->text, "for ", 4) != 0)
		return true;
	snprintf(t->line, sizeof(t->line), "%s", first->text + 4);
	if (!cut(r, t->line, t->words))
		return false;
	while (t->words[t->names] && *t->words[t->names] == '$')
		t->names++;
	while (t->words[t->names + values])
		values++;
	if (!t->names || !values || values % t->names)
		return rules_wrong(r, "for: %zu values for %zu names", values, t->names);
	t->rows = values / t->names;
	return true;
}

/* A copy of a line with the values of a row in place of the names. False: too long. */
static bool fill_in(const struct rows *t, size_t row, const char *text, char *out, size_t cap)
{
	size_t n = 0;

	while (*text && n + 1 < cap) {
		size_t i = 0;

		while (i < t->names && strncmp(text, t->words[i], strlen(t->words[i])) != 0)
			i++;
		if (i == t->names) {
			out[n++] = *text++;
			continue;
		}
		n += (size_t)snprintf(out + n, cap - n, "%s", t->words[t->names * (row + 1) + i]);
		text += strlen(t->words[i]);
	}
	out[FRAG_MIN(n, cap - 1)] = '\0';
	return n + 1 < cap;
}

static bool run_row(struct rules *r, const struct rows *t, size_t row)
{
	const struct rules_section *s = r->section;
	static char line[8192];
	static char *words[RULES_WORDS];

	for (size_t i = t->names != 0; i < s->lines_count; i++) {
		int n = snprintf(r->where, sizeof(r->where), "%s:%u", s->path, s->lines[i].number);

		if (t->names)
			snprintf(r->where + n, sizeof(r->where) - (size_t)n, " (%s %.100s)",
				 t->words[0], t->words[t->names * (row + 1)]);
		if (!fill_in(t, row, s->lines[i].text, line, sizeof(line)))
			return rules_wrong(r, "too long a line");
		if (!cut(r, line, words) || !run_steps(r, words))
			return false;
	}
	close_policy(r);
	return true;
}

bool rules_run(const struct rules_section *section, char *message)
{
	static struct rules r; /* large: not for the stack */
	static struct rows rows;
	bool ok;

	memset(&r, 0, sizeof(r));
	r.section = section;
	r.message = message;
	snprintf(r.where, sizeof(r.where), "%s:%u", section->path, section->lines[0].number);
	ok = read_rows(&r, &rows);
	for (size_t row = 0; ok && row < rows.rows; row++)
		ok = run_row(&r, &rows, row);
	if (r.open)
		rig_close_count_leaks(&r.rig);
	return ok;
}
