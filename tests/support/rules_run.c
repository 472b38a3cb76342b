/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the rules of a section, step by step, on a rig. */
#include "rules_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script.h"

static bool run_steps(struct rules *r, char **words);

bool rules_wrong(struct rules *r, const char *format, ...)
{
	int n = snprintf(r->message, RULES_MESSAGE, "%s: ", r->where);
	va_list args;

	va_start(args, format);
	vsnprintf(r->message + n, RULES_MESSAGE - (size_t)n, format, args);
	va_end(args);
	return false;
}

/* ---- names of blocks ------------------------------------------------------------------- */

struct rules_name *rules_find_name(struct rules *r, const char *text)
{
	for (size_t i = 0; i < r->names_count; i++)
		if (!strcmp(r->names[i].text, text))
			return &r->names[i];
	return NULL;
}

bool rules_is_held(const struct rules *r, const struct rules_name *name)
{
	const struct rig_slot *s = &r->rig.slots[name->slot];

	return s->state != RIG_EMPTY && s->serial == name->serial;
}

struct list {
	char at[RIG_SLOTS][sizeof((struct rules_name){ 0 }.text)];
	size_t count;
};

/* "a", or "b0..b7" for eight of them */
static bool add_names(struct rules *r, const char *word, struct list *list)
{
	unsigned from = 0, to = 0;
	int stem = 0, rest = 0;
	bool range = sscanf(word, "%*[a-z]%n%u..%*[a-z]%u%n", &stem, &from, &to, &rest) == 2 &&
		     rest && !word[rest];

	if (!range && strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789") != strlen(word))
		return rules_wrong(r, "'%s' is no name of a block", word);
	if (!range)
		from = to = 0;
	if (list->count + to - from >= RIG_SLOTS || to < from || strlen(word) > 15)
		return rules_wrong(r, "'%s': too many blocks, or too long a name", word);
	if (!range)
		strcpy(list->at[list->count++], word);
	for (unsigned i = from; range && i <= to; i++)
		snprintf(list->at[list->count++], sizeof(list->at[0]), "%.*s%u",
			 stem > 8 ? 8 : stem, word, i);
	return true;
}

/* Binds a name to the block in the slot. */
static bool set_name(struct rules *r, const char *text, unsigned slot)
{
	struct rules_name *name = rules_find_name(r, text);

	if (!name && r->names_count == FRAG_ARRAY_LEN(r->names))
		return rules_wrong(r, "too many names");
	if (!name) {
		name = &r->names[r->names_count++];
		strcpy(name->text, text);
	}
	name->slot = slot;
	name->serial = r->rig.slots[slot].serial;
	name->addr = r->rig.slots[slot].block.addr;
	return true;
}

/* ---- policy TEXT [card N] … ------------------------------------------------------------ */

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
	log_event(&r->journal, (char)kind, bytes, addr);
}

static int place(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr)
{
	struct rules *r = ctx;

	(void)bytes;
	if (kind == FRAG_CALL_CREATE || r->places_used == r->places_count)
		return -1;
	*addr = r->places[r->places_used++];
	return 0;
}

static void close_policy(struct rules *r)
{
	if (r->open)
		rig_close(&r->rig);
	r->open = false;
}

/* Options behind the text; *rest: what comes behind them. */
static bool policy_options(struct rules *r, char **words, struct rig_options *o, char ***rest)
{
	unsigned minor;

	for (; *words && strcmp(*words, "->") != 0; words += 2) {
		uint64_t *number = !strcmp(*words, "card")	? &o->total_bytes
				   : !strcmp(*words, "context") ? &o->context_bytes
				   : !strcmp(*words, "limit")	? &o->limit_bytes
				   : !strcmp(*words, "places")	? &r->places[r->places_count]
								: NULL;

		if (!strcmp(*words, "release") && words[1] &&
		    sscanf(words[1], "2.%u", &minor) == 1) {
			o->source_release = 200 + minor;
			continue;
		}
		if (!number || !words[1])
			return rules_wrong(
				r, "'%s': options are card, context, limit, places and release",
				*words);
		if (!rules_number(r, words[1], number, NULL))
			return false;
		for (; number >= r->places && number < r->places + RULES_PLACES;
		     words++, number++) {
			r->places_count++;
			if (!words[2] || !strcmp(words[2], "->") || r->places_count == RULES_PLACES)
				break;
			if (!rules_number(r, words[2], number + 1, NULL))
				return false;
		}
	}
	*rest = words;
	return true;
}

/* -> error "part of the message" */
static bool expect_error(struct rules *r, int rc, char **words)
{
	if (strcmp(words[0], "->") != 0 || !words[1] || strcmp(words[1], "error") != 0 ||
	    !words[2] || words[3])
		return rules_wrong(r, "here only -> error \"part of its message\" may follow");
	if (rc >= 0)
		return rules_wrong(r, "no error, but %d", rc);
	if (!strstr(r->rig.err.msg, words[2]))
		return rules_wrong(r, "the error is '%s'", r->rig.err.msg);
	return true;
}

/* What a call returned against what follows it: nothing (it succeeds), or -> error. */
static bool expect_result(struct rules *r, int rc, char **words)
{
	if (*words)
		return expect_error(r, rc, words);
	return !rc || rules_wrong(r, "%s", rc == FRAG_OOM ? "out of memory" : r->rig.err.msg);
}

static bool step_policy(struct rules *r, char **words)
{
	struct rig_options o = { .still = true, .total_bytes = 64 * FRAG_GIB };
	int rc;

	close_policy(r);
	r->names_count = r->places_count = r->places_used = 0;
	r->calls.count = r->journal.count = 0;
	o.watch = (struct rig_watch){ on_call, on_segment, place, r };
	if (!*words)
		return rules_wrong(r, "which policy?");
	snprintf(r->text, sizeof(r->text), "%s", *words);
	if (!policy_options(r, words + 1, &o, &words))
		return false;
	rc = rig_open(&r->rig, r->text, &o);
	r->rig.where = r->where;
	r->open = !rc;
	return expect_result(r, rc, words);
}

/* ---- [NAMES =] alloc SIZES [stream N] [pool N] [-> RESULTS] ------------------------------ */

struct alloc {
	struct list names;
	char *sizes[RULES_WORDS], *granted[RULES_WORDS], *addresses[RULES_WORDS],
		*classes[RULES_WORDS];
	size_t sizes_count, granted_count, addresses_count, classes_count;
	uint64_t stream, pool;
	bool oom, error;
	char *error_part;
};

static bool is_class(const char *word)
{
	for (unsigned i = 0; i < FRAG_CLASS_COUNT; i++)
		if (!strcmp(word, frag_class_name((enum frag_class)i)))
			return true;
	return false;
}

static bool parse_results(struct rules *r, char **words, struct alloc *a)
{
	for (; *words; words++) {
		if (**words == '@')
			a->addresses[a->addresses_count++] = *words + 1;
		else if (is_class(*words))
			a->classes[a->classes_count++] = *words;
		else if (!strcmp(*words, "oom"))
			a->oom = true;
		else if (!strcmp(*words, "error") && words[1])
			a->error = true, a->error_part = *++words;
		else
			a->granted[a->granted_count++] = *words;
	}
	if ((a->oom || a->error) && a->granted_count + a->addresses_count + a->classes_count)
		return rules_wrong(r, "a request that is refused has no block");
	return true;
}

static bool parse_alloc(struct rules *r, char **words, struct alloc *a)
{
	for (; strcmp(*words, "alloc") != 0; words++)
		if (strcmp(*words, "=") != 0 && !add_names(r, *words, &a->names))
			return false;
	for (words++; *words; words++) {
		uint64_t *number = !strcmp(*words, "stream") ? &a->stream
				   : !strcmp(*words, "pool") ? &a->pool
							     : NULL;

		if (!strcmp(*words, "->"))
			return (words[1] || rules_wrong(r, "what is expected behind '->'?")) &&
			       parse_results(r, words + 1, a);
		if (!number)
			a->sizes[a->sizes_count++] = *words;
		else if (!words[1] || !rules_number(r, *++words, number, NULL))
			return rules_wrong(r, "stream and pool want a number");
	}
	return true;
}

/* Lists are as long as there are requests, or have one that holds for all. */
static bool fits(struct rules *r, size_t count, size_t requests, const char *what)
{
	return count < 2 || count == requests ||
	       rules_wrong(r, "%zu %s for %zu requests", count, what, requests);
}

static char *nth(char **list, size_t count, size_t i)
{
	return count ? list[count == 1 ? 0 : i] : NULL;
}

/* "a+64K", or with '!', '<' or '>' in front: not there, below, above */
static bool expect_address(struct rules *r, const char *want, frag_addr_t got)
{
	size_t relation = strspn(want, "!<>");
	char text[48], wanted[48];
	frag_addr_t addr;
	bool ok;

	if (!rules_address(r, want + relation, &addr))
		return false;
	ok = *want == '!'   ? got != addr
	     : *want == '<' ? got < addr
	     : *want == '>' ? got > addr
			    : got == addr;
	return ok || rules_wrong(r, "the block is at %s, expected %.*s%s",
				 rules_address_text(r, got, text), (int)relation, want,
				 rules_address_text(r, addr, wanted));
}

static bool expect_block(struct rules *r, const struct alloc *a, size_t i,
			 const struct frag_block *b)
{
	char *granted = nth((char **)a->granted, a->granted_count, i);
	char *address = nth((char **)a->addresses, a->addresses_count, i);
	char *cls = nth((char **)a->classes, a->classes_count, i);
	uint64_t bytes;
	char text[48];

	if (granted && !rules_number(r, granted, &bytes, NULL))
		return false;
	if (granted && b->granted != bytes)
		return rules_wrong(r, "alloc %llu: %s granted, expected %s",
				   (unsigned long long)b->requested,
				   rules_bytes_text(b->granted, text), granted);
	if (cls && strcmp(cls, frag_class_name((enum frag_class)b->cls)) != 0)
		return rules_wrong(r, "alloc %llu: served by %s, expected %s",
				   (unsigned long long)b->requested,
				   frag_class_name((enum frag_class)b->cls), cls);
	return !address || expect_address(r, address, b->addr);
}

static bool alloc_one(struct rules *r, const struct alloc *a, size_t i)
{
	uint64_t bytes, next;
	unsigned slot = 0;
	int rc;

	if (!rules_number(r, nth((char **)a->sizes, a->sizes_count, i), &bytes, NULL))
		return false;
	while (slot < RIG_SLOTS && r->rig.slots[slot].state != RIG_EMPTY)
		slot++;
	if (slot == RIG_SLOTS)
		return rules_wrong(r, "more than %d blocks", RIG_SLOTS);
	rc = rig_alloc(&r->rig, slot, bytes, (uint32_t)a->stream, (uint16_t)a->pool);
	if (a->error)
		return expect_error(r, rc, (char *[]){ "->", "error", a->error_part, NULL });
	if (a->oom)
		return rc == FRAG_OOM ||
		       rules_wrong(r, "alloc %llu: not refused (%s)", (unsigned long long)bytes,
				   rc ? r->rig.err.msg : "a block was granted");
	if (rc)
		return expect_result(r, rc, (char *[]){ NULL });
	next = r->rig.slots[slot].block.addr + r->rig.slots[slot].block.granted;
	if (a->names.count && !set_name(r, a->names.at[i], slot))
		return false;
	if (!expect_block(r, a, i, &r->rig.slots[slot].block))
		return false;
	r->next = next;
	return true;
}

static bool step_alloc(struct rules *r, char **words)
{
	static struct alloc a; /* large: not for the stack */
	size_t n;

	memset(&a, 0, sizeof(a));
	if (!parse_alloc(r, words, &a))
		return false;
	n = FRAG_MAX(a.names.count, a.sizes_count);
	if (!a.sizes_count || !fits(r, a.sizes_count, n, "sizes") ||
	    !fits(r, a.granted_count, n, "granted sizes") ||
	    !fits(r, a.addresses_count, n, "addresses") || !fits(r, a.classes_count, n, "classes"))
		return a.sizes_count || rules_wrong(r, "how many bytes?");
	if (a.names.count && a.names.count != n)
		return rules_wrong(r, "%zu names for %zu requests", a.names.count, n);
	for (size_t i = 0; i < n; i++)
		if (!alloc_one(r, &a, i))
			return false;
	return true;
}

/* grants 1:512 513:1K …: a request, and what it is granted */
static bool step_grants(struct rules *r, char **words)
{
	for (; *words; words++) {
		char *colon = strchr(*words, ':');

		if (!colon)
			return rules_wrong(r, "'%s': request:granted is wanted", *words);
		*colon = '\0';
		if (!step_alloc(r, (char *[]){ "alloc", *words, "->", colon + 1, NULL }))
			return false;
		*colon = ':';
	}
	return true;
}

/* ---- other steps ------------------------------------------------------------------------- */

/* free all; free NAMES [-> error TEXT] */
static bool step_free(struct rules *r, char **words)
{
	static struct list names;

	names.count = 0;
	if (*words && !strcmp(*words, "all"))
		return expect_result(r, rig_free_all(&r->rig), words + 1);
	for (; *words && strcmp(*words, "->") != 0; words++)
		if (!add_names(r, *words, &names))
			return false;
	for (size_t i = 0; i < names.count; i++) {
		const struct rules_name *name = rules_find_name(r, names.at[i]);

		if (!name || !rules_is_held(r, name))
			return rules_wrong(r, "no block '%s' is held", names.at[i]);
		if (!expect_result(r, rig_free(&r->rig, name->slot), words))
			return false;
	}
	return names.count || rules_wrong(r, "which block?");
}

static bool step_request(struct rules *r, char **words)
{
	for (; *words; words++) {
		const struct rules_name *name = rules_find_name(r, *words);

		if (!name || !rules_is_held(r, name) || r->rig.slots[name->slot].state != RIG_LIVE)
			return rules_wrong(r, "no block '%s' is live", *words);
		rig_request(&r->rig, name->slot);
	}
	return true;
}

/* trim [pool N] [-> error TEXT] */
static bool step_trim(struct rules *r, char **words)
{
	uint64_t pool = 0;

	if (*words && !strcmp(*words, "pool")) {
		if (!words[1] || !rules_number(r, words[1], &pool, NULL))
			return rules_wrong(r, "which pool?");
		words += 2;
	}
	return expect_result(r, rig_trim(&r->rig, (uint16_t)pool), words);
}

/* sync; sync stream N: the device only, nobody tells the policy */
static bool step_sync(struct rules *r, char **words)
{
	uint64_t stream;

	if (!*words)
		return expect_result(r, rig_synced(&r->rig), words);
	if (strcmp(*words, "stream") != 0 || !words[1] || !rules_number(r, words[1], &stream, NULL))
		return rules_wrong(r, "which stream?");
	return expect_result(r, frag_dev_sync(r->rig.dev, (uint32_t)stream, &r->rig.err),
			     words + 2);
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

/* soak steps=N slots=N max=N seed=N [plain] [failures]: random calls, see script.h */
static bool step_soak(struct rules *r, char **words)
{
	uint64_t steps = 4000, slots = 150, max = 200 * FRAG_MIB, seed = 1;
	bool failures = false, plain = false;
	struct script s;

	for (; *words; words++) {
		char *value = strchr(*words, '=');
		uint64_t *number = !strncmp(*words, "steps=", 6)   ? &steps
				   : !strncmp(*words, "slots=", 6) ? &slots
				   : !strncmp(*words, "max=", 4)   ? &max
				   : !strncmp(*words, "seed=", 5)  ? &seed
								   : NULL;

		if (number && !rules_number(r, value + 1, number, NULL))
			return false;
		failures |= !strcmp(*words, "failures");
		plain |= !strcmp(*words, "plain");
		if (!number && strcmp(*words, "failures") != 0 && strcmp(*words, "plain") != 0)
			return rules_wrong(
				r, "'%s': steps=, slots=, max=, seed=, plain or failures", *words);
	}
	if (slots > RIG_SLOTS)
		return rules_wrong(r, "more than %d slots", RIG_SLOTS);
	script_init(&s, seed, (unsigned)slots);
	s.max_bytes = max;
	s.plain = plain;
	return expect_result(r, script_soak(&s, &r->rig, (unsigned)steps, failures),
			     (char *[]){ NULL });
}

/* usage exact: without a walk the policy knows its blocks and the largest free one */
static bool step_usage(struct rules *r, char **words)
{
	if (!*words || strcmp(*words, "exact") != 0 || words[1])
		return rules_wrong(r, "'usage exact' is a step");
	r->rig.usage_exact = true;
	return true;
}

/* refused TEXTS [says PART]: no policy has such a text */
static bool step_refused(struct rules *r, char **words)
{
	char *part = "";

	for (char **w = words; *w; w++)
		if (!strcmp(*w, "says"))
			part = w[1] ? w[1] : "?";
	for (; *words && strcmp(*words, "says") != 0; words++) {
		struct frag_policy_spec *spec = NULL;
		struct frag_err err = { 0 };
		int rc = frag_policy_spec_parse(*words, &spec, &err);

		frag_policy_spec_destroy(spec);
		if (rc != FRAG_EUSAGE || !err.msg[0])
			return rules_wrong(r, "'%s' is accepted", *words);
		if (!strstr(err.msg, part))
			return rules_wrong(r, "'%s' is refused by '%s'", *words, err.msg);
	}
	return true;
}

static bool step_accepted(struct rules *r, char **words)
{
	for (; *words; words++) {
		struct frag_policy_spec *spec = NULL;
		struct frag_err err = { 0 };

		if (frag_policy_spec_parse(*words, &spec, &err))
			return rules_wrong(r, "'%s': %s", *words, err.msg);
		frag_policy_spec_destroy(spec);
	}
	return true;
}

/* repeat N STEPS: all that follows on the line */
static bool step_repeat(struct rules *r, char **words)
{
	uint64_t times;

	if (!*words)
		return rules_wrong(r, "how often?");
	if (!rules_number(r, *words, &times, NULL))
		return false;
	if (times > 10000)
		return rules_wrong(r, "more than 10000 times");
	for (uint64_t i = 0; i < times; i++)
		if (!run_steps(r, words + 1))
			return false;
	return true;
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
	{ "grants", step_grants, false },
	{ "free", step_free, false },
	{ "request", step_request, false },
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
};

static bool run_step(struct rules *r, char **words)
{
	bool ok = false, known = false;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(steps) && !known; i++) {
		known = !strcmp(*words, steps[i].word);
		if (known && !r->open && !steps[i].alone)
			return rules_wrong(r, "%s: no policy is open", *words);
		if (known)
			ok = steps[i].run(r, words + 1);
	}
	for (char **w = words; *w && !known; w++) {
		known = !strcmp(*w, "alloc");
		if (known && !r->open)
			return rules_wrong(r, "alloc: no policy is open");
		if (known)
			ok = step_alloc(r, words);
	}
	if (!known)
		return rules_wrong(r, "there is no step '%s'", *words);
	if (ok && r->open) {
		rig_check(&r->rig);
		rig_walk(&r->rig, NULL);
	}
	return ok;
}

/* Steps with ";" between them. */
static bool run_steps(struct rules *r, char **words)
{
	static char *const end[] = { NULL };

	if (*words && !strcmp(*words, "repeat"))
		return step_repeat(r, words + 1);
	while (*words) {
		char **stop = words;
		bool more, ok;

		while (*stop && strcmp(*stop, ";") != 0)
			stop++;
		more = *stop;
		*stop = *end;
		ok = stop == words || run_step(r, words);
		if (more)
			*stop = ";";
		if (!ok)
			return false;
		words = stop + more;
	}
	return true;
}

/* Cuts a line into words; what stands in quotes is one. */
static bool cut(struct rules *r, char *line, char **words)
{
	size_t n = 0;

	for (char *at = line + strspn(line, " \t"); *at; at += strspn(at, " \t")) {
		bool quoted = *at == '"';
		size_t length = quoted ? strcspn(at + 1, "\"") : strcspn(at, " \t;");

		if (n + 2 >= RULES_WORDS)
			return rules_wrong(r, "too many words");
		if (quoted && !at[1 + length])
			return rules_wrong(r, "a quote is not closed");
		if (!length && *at == ';') {
			words[n++] = ";";
			*at++ = '\0';
			continue;
		}
		words[n++] = at + quoted;
		at += length + quoted;
		if (*at == ';') {
			words[n++] = ";";
			*at++ = '\0';
		} else if (*at) {
			*at++ = '\0';
		}
	}
	words[n] = NULL;
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
	const struct rules_section *s = r->section;
	size_t values = 0;

	*t = (struct rows){ .rows = 1 };
	if (strncmp(s->lines[0].text, "for ", 4) != 0)
		return true;
	snprintf(t->line, sizeof(t->line), "%s", s->lines[0].text + 4);
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
		size_t i = 0, length = 0;

		for (; *text == '$' && i < t->names; i++) {
			length = strlen(t->words[i]);
			if (!strncmp(text, t->words[i], length))
				break;
		}
		if (*text != '$' || i == t->names) {
			out[n++] = *text++;
			continue;
		}
		n += (size_t)snprintf(out + n, cap - n, "%s", t->words[t->names * (row + 1) + i]);
		text += length;
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
