/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the rules of a section, step by step, on a rig. A step that does not hold ends it. */
#include "rules.h"

#include "test.h"

#include "rig.h"

#define LOG 1024
#define JOURNAL "afmu" /* a letter for each frag_segment_event */
#define PLACES 16
#define WORDS 512

/* A block that was handed out under a name; its address is known after its free, too. */
struct name {
	char text[16];
	unsigned slot;
	uint32_t serial; /* of the block in the slot: another one means that this is gone */
	frag_addr_t addr;
};

struct log {
	struct {
		char kind; /* m malloc, r malloc refused, f free, x free failed; or of JOURNAL */
		uint64_t bytes;
		frag_addr_t addr;
	} at[LOG];
	size_t count; /* since the last look */
};

/* The section that runs. */
static struct {
	const struct rules_section *section;
	jmp_buf end;
	char *message, where[256], text[256];
	struct rig rig;
	bool open;
	struct name names[RIG_SLOTS];
	size_t names_count;
	struct log calls, journal;
	frag_addr_t places[PLACES]; /* addresses of the next requests, up to a 0 */
	size_t places_used;
	frag_addr_t next; /* right behind the block that was handed out last */
} r;

/* Ends the section with the message "path:line: …". */
static _Noreturn __attribute__((format(printf, 1, 2))) void wrong(const char *format, ...)
{
	int n = snprintf(r.message, RULES_MESSAGE, "%s: ", r.where);
	va_list args;

	va_start(args, format);
	vsnprintf(r.message + n, RULES_MESSAGE - (size_t)n, format, args);
	va_end(args);
	longjmp(r.end, 1);
}

/* ---- numbers and addresses ------------------------------------------------------------------ */

static struct name *find_name(const char *text)
{
	for (size_t i = 0; i < r.names_count; i++)
		if (!strcmp(r.names[i].text, text))
			return &r.names[i];
	return NULL;
}

/* "max"; and where there may be an address (placed is not NULL), a block's name, S0 or next. */
static bool find_word(void *placed, const char *word, size_t length, uint64_t *out)
{
	const struct name *name;
	char text[32], rest;
	unsigned number;

	snprintf(text, sizeof(text), "%.*s", (int)length, word);
	if (!strcmp(text, "max")) {
		*out = UINT64_MAX;
		return true;
	}
	if (!placed)
		return false;
	*(bool *)placed = true;
	name = find_name(text);
	if (name)
		*out = name->addr;
	else if (!strcmp(text, "next"))
		*out = r.next;
	else if (sscanf(text, "S%u%c", &number, &rest) == 1 && number < r.rig.taken_count)
		*out = r.rig.taken[number].addr;
	else
		return false;
	return true;
}

/* "4K", "1M+1", "5*256", "10ms-1", "max". Units: K M G T, us ms s. */
static uint64_t number(const char *text)
{
	uint64_t n;

	if (!cases_sum(text, find_word, NULL, &n))
		wrong("'%s' is no number", text);
	return n;
}

/* An address; without a name in it, it is counted from S0. */
static frag_addr_t address(const char *text)
{
	bool placed = false;
	uint64_t n;

	if (!cases_sum(text, find_word, &placed, &n))
		wrong("'%s' is no number, block or segment", text);
	if (!placed && !r.rig.taken_count)
		wrong("'%s': there is no segment yet", text);
	return n + (placed ? 0 : r.rig.taken[0].addr);
}

/* "64K", "1000"; buf of at least 48. Returns buf. */
static char *bytes_text(uint64_t bytes, char *buf)
{
	static const char units[] = "TGMK";
	int i = 0;

	while (i < 4 && (!bytes || bytes % (1ull << (40 - 10 * i))))
		i++;
	sprintf(buf, "%llu%.1s", (ull)(i < 4 ? bytes >> (40 - 10 * i) : bytes), &units[i]);
	return buf;
}

/* "S1+64K" */
static char *address_text(frag_addr_t addr, char *buf)
{
	const struct rig_taken *t = r.rig.taken, *best = NULL;
	char offset[24];

	for (; t < r.rig.taken + r.rig.taken_count; t++)
		if (t->addr <= addr && (!best || t->addr >= best->addr))
			best = t;
	if (best)
		sprintf(buf, "S%td+%s", best - r.rig.taken, bytes_text(addr - best->addr, offset));
	else
		sprintf(buf, "%#llx", (ull)addr);
	return buf;
}

/* ---- results -------------------------------------------------------------------------------- */

/* The text of "-> error TEXT", or NULL if nothing stands here. */
static const char *error_of(char **words)
{
	if (!*words)
		return NULL;
	if (!words[1] || !words[2] || words[3] || strcmp(words[0], "->") ||
	    strcmp(words[1], "error"))
		wrong("'%s': only -> error \"part of its message\" may follow", *words);
	return words[2];
}

/* An error with this in its message, or NULL = success. */
static void expect_result(int rc, const char *error)
{
	if (!rc && error)
		wrong("no error");
	if (rc == FRAG_OOM)
		wrong("out of memory");
	if (rc && (!error || !strstr(r.rig.err.msg, error)))
		wrong("%s", r.rig.err.msg);
}

/* ---- names of blocks ------------------------------------------------------------------------ */

struct names {
	char at[RIG_SLOTS][sizeof((struct name){ 0 }.text)];
	size_t count;
};

/* "a", or "b0..b7" for eight of them */
static void add_names(const char *word, struct names *names)
{
	unsigned from = 0, to = 0;
	int stem = 0, end = 0;
	bool range = sscanf(word, "%*[a-z]%n%u..%*[a-z]%u%n", &stem, &from, &to, &end) == 2 &&
		     end && !word[end];

	if (!range && (!*word || word[strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789")]))
		wrong("'%s' is no name of a block", word);
	if (!range)
		from = to = 0;
	if (to < from || names->count + to - from >= RIG_SLOTS || strlen(word) > 15)
		wrong("'%s': too many blocks, or too long a name", word);
	for (unsigned i = from; i <= to; i++)
		snprintf(names->at[names->count++], sizeof(names->at[0]), range ? "%.*s%u" : "%.*s",
			 range ? FRAG_MIN(stem, 8) : 15, word, i);
}

/* Binds a name to the block in the slot. */
static void set_name(const char *text, unsigned slot)
{
	const struct rig_slot *s = &r.rig.slots[slot];
	struct name *name = find_name(text);

	if (!name && r.names_count == FRAG_ARRAY_LEN(r.names))
		wrong("too many names");
	if (!name)
		name = &r.names[r.names_count++];
	*name = (struct name){ .slot = slot, .serial = s->serial, .addr = s->block.addr };
	strcpy(name->text, text);
}

/* The slot of a block that is live, or waited for where that is enough. */
static unsigned slot_of(const char *text, bool live)
{
	const struct name *name = find_name(text);
	const struct rig_slot *s = name ? &r.rig.slots[name->slot] : NULL;

	if (!s || s->serial != name->serial || s->state == RIG_EMPTY ||
	    (live && s->state != RIG_LIVE))
		wrong("no block '%s' is %s", text, live ? "live" : "held");
	return name->slot;
}

/* ---- [NAMES =] alloc SIZES [stream N] [pool N] [-> RESULTS] --------------------------------- */

/* What is wanted of each request, or one for all of them. */
struct wants {
	char *at[WORDS];
	size_t count;
};

/* The requests of a step. */
static struct {
	struct names names;
	struct wants sizes, granted, addresses, classes;
	uint64_t stream, pool;
	bool oom;
	char *error; /* part of its message */
} a;

static char *nth(const struct wants *w, size_t i)
{
	return w->count ? w->at[w->count == 1 ? 0 : i] : NULL;
}

static bool is_class(const char *word)
{
	unsigned i = 0;

	while (i < FRAG_CLASS_COUNT && strcmp(word, frag_class_name((enum frag_class)i)) != 0)
		i++;
	return i < FRAG_CLASS_COUNT;
}

static void parse_results(char **words)
{
	for (; *words; words++) {
		struct wants *list = **words == '@'	? &a.addresses
				     : is_class(*words) ? &a.classes
							: &a.granted;

		if (!strcmp(*words, "oom"))
			a.oom = true;
		else if (!strcmp(*words, "error") && words[1])
			a.error = *++words;
		else
			list->at[list->count++] = *words + (list == &a.addresses);
	}
	if ((a.oom || a.error) && a.granted.count + a.addresses.count + a.classes.count)
		wrong("a request that is refused has no block");
}

static void parse_alloc(char **words)
{
	memset(&a, 0, sizeof(a));
	for (; strcmp(*words, "alloc") != 0; words++)
		if (strcmp(*words, "=") != 0)
			add_names(*words, &a.names);
	for (words++; *words && strcmp(*words, "->") != 0; words++) {
		uint64_t *option = !strcmp(*words, "stream") ? &a.stream
				   : !strcmp(*words, "pool") ? &a.pool
							     : NULL;

		if (!option)
			a.sizes.at[a.sizes.count++] = *words;
		else if (!words[1])
			wrong("which %s?", *words);
		else
			*option = number(*++words);
	}
	if (!a.sizes.count)
		wrong("how many bytes?");
	if (*words)
		parse_results(words + 1);
}

/* "a+64K", or with '!', '<' or '>' in front: not there, below, above */
static void expect_address(const char *want, frag_addr_t got)
{
	size_t relation = strspn(want, "!<>");
	frag_addr_t addr = address(want + relation);
	char text[48], wanted[48];
	bool ok = *want == '!'	 ? got != addr
		  : *want == '<' ? got < addr
		  : *want == '>' ? got > addr
				 : got == addr;

	if (!ok)
		wrong("the block is at %s, expected %.*s%s", address_text(got, text), (int)relation,
		      want, address_text(addr, wanted));
}

static void expect_block(size_t i, const struct frag_block *b)
{
	const char *size = nth(&a.sizes, i), *granted = nth(&a.granted, i);
	const char *at = nth(&a.addresses, i), *cls = nth(&a.classes, i);
	const char *served = frag_class_name((enum frag_class)b->cls);
	char text[48];

	if (granted && b->granted != number(granted))
		wrong("alloc %s: %s granted, expected %s", size, bytes_text(b->granted, text),
		      granted);
	if (cls && strcmp(cls, served) != 0)
		wrong("alloc %s: served by %s, expected %s", size, served, cls);
	if (at)
		expect_address(at, b->addr);
}

static void alloc_one(size_t i)
{
	const char *size = nth(&a.sizes, i);
	const struct frag_block *b;
	uint64_t bytes = number(size);
	unsigned slot = 0;
	int rc;

	while (slot < RIG_SLOTS && r.rig.slots[slot].state != RIG_EMPTY)
		slot++;
	if (slot == RIG_SLOTS)
		wrong("more than %d blocks", RIG_SLOTS);
	rc = rig_alloc(&r.rig, slot, bytes, (uint32_t)a.stream, (uint16_t)a.pool);
	if (a.oom && rc != FRAG_OOM)
		wrong("alloc %s: not refused", size);
	if (!a.oom)
		expect_result(rc, a.error);
	if (rc)
		return;
	b = &r.rig.slots[slot].block;
	if (a.names.count)
		set_name(a.names.at[i], slot);
	expect_block(i, b);
	r.next = b->addr + b->granted;
}

/* Lists are as long as there are requests, or have one that holds for all. */
static void must_fit(const struct wants *w, size_t requests, const char *what)
{
	if (w->count > 1 && w->count != requests)
		wrong("%zu %s for %zu requests", w->count, what, requests);
}

static void step_alloc(char **words)
{
	size_t n;

	parse_alloc(words);
	n = FRAG_MAX(a.names.count, a.sizes.count);
	if (a.names.count && a.names.count != n)
		wrong("%zu names for %zu requests", a.names.count, n);
	must_fit(&a.sizes, n, "sizes");
	must_fit(&a.granted, n, "granted sizes");
	must_fit(&a.addresses, n, "addresses");
	must_fit(&a.classes, n, "classes");
	for (size_t i = 0; i < n; i++)
		alloc_one(i);
}

/* grants 1:512 513:1K …: a request, and what it is granted */
static void step_grants(char **words)
{
	for (; *words; words++) {
		char request[32], granted[32];

		if (sscanf(*words, "%31[^:]:%31s", request, granted) != 2)
			wrong("'%s': request:granted is wanted", *words);
		step_alloc((char *[]){ "alloc", request, "->", granted, NULL });
	}
}

/* free all; free NAMES [-> error TEXT] */
static void step_free(char **words)
{
	static struct names names; /* large: not for the stack */
	const char *error;

	names.count = 0;
	if (*words && !strcmp(*words, "all")) {
		error = error_of(words + 1);
		expect_result(rig_free_all(&r.rig), error);
		return;
	}
	for (; *words && strcmp(*words, "->") != 0; words++)
		add_names(*words, &names);
	error = error_of(words);
	for (size_t i = 0; i < names.count; i++)
		expect_result(rig_free(&r.rig, slot_of(names.at[i], false)), error);
}

static void step_request(char **words)
{
	for (; *words; words++)
		rig_request(&r.rig, slot_of(*words, true));
}

/* ---- expect KEY VALUE … --------------------------------------------------------------------- */

struct counter {
	const char *name;
	int64_t value;
	bool found;
};

static void on_counter(void *ctx, const char *name, int64_t value)
{
	struct counter *c = ctx;

	if (!strcmp(name, c->name))
		*c = (struct counter){ c->name, value, true };
}

/* "cuMemMap": calls that succeeded; "cuMemMap.bytes": the sum of their bytes. */
static bool find_call(const char *key, uint64_t *out)
{
	for (unsigned i = 0; i < FRAG_CALL_COUNT; i++) {
		const char *name = frag_call_name((enum frag_call)i);
		size_t n = strlen(name);

		if (strncmp(key, name, n) != 0 || (key[n] && strcmp(key + n, ".bytes") != 0))
			continue;
		*out = key[n] ? r.rig.dev->stat[i].bytes : r.rig.dev->stat[i].count;
		return true;
	}
	return false;
}

/* As the policy tells it; without `usage`, as a walk finds it. */
static bool find_usage(const char *key, uint64_t *out)
{
	static const struct {
		const char *key;
		size_t at;
	} fields[] = {
		{ "allocated", offsetof(struct frag_usage, allocated_bytes) },
		{ "waiting", offsetof(struct frag_usage, waiting_bytes) },
		{ "free", offsetof(struct frag_usage, free_bytes) },
		{ "releasable", offsetof(struct frag_usage, releasable_bytes) },
		{ "nonreleasable", offsetof(struct frag_usage, non_releasable_bytes) },
		{ "largest", offsetof(struct frag_usage, largest_free_bytes) },
		{ "segments", offsetof(struct frag_usage, segments_count) },
		{ "blocks", offsetof(struct frag_usage, blocks_count) },
	};
	struct frag_usage u = { 0 };
	size_t i = 0;

	while (i < FRAG_ARRAY_LEN(fields) && strcmp(key, fields[i].key) != 0)
		i++;
	if (i == FRAG_ARRAY_LEN(fields))
		return false;
	if (r.rig.ops->usage)
		r.rig.ops->usage(r.rig.policy.self, &u);
	else
		frag_policy_usage_walk(&r.rig.policy, &u);
	memcpy(out, (const char *)&u + fields[i].at, sizeof(*out));
	return true;
}

static uint64_t value_of(const char *key)
{
	struct counter c = { .name = key };
	uint64_t value;

	if (!strcmp(key, "reserved"))
		return r.rig.dev->reserved_bytes;
	if (!strcmp(key, "syncs"))
		return r.rig.syncs;
	if (!strcmp(key, "alignment"))
		return r.rig.alignment; /* of all addresses so far */
	if (!strcmp(key, "calls"))
		return r.rig.dev->driver_calls;
	if (find_usage(key, &value) || find_call(key, &value))
		return value;
	if (r.rig.ops->counters)
		r.rig.ops->counters(r.rig.policy.self, on_counter, &c);
	if (!c.found)
		wrong("there is nothing called '%s'", key);
	return (uint64_t)c.value;
}

/* "5", ">5" or "<5" */
static void expect_one(const char *key, const char *want)
{
	uint64_t got = value_of(key);
	uint64_t bound = number(want + (*want == '<' || *want == '>'));
	bool ok = *want == '<' ? got < bound : *want == '>' ? got > bound : got == bound;
	char text[48];

	if (!ok)
		wrong("%s is %s, expected %s", key, bytes_text(got, text), want);
}

/* PyTorch keeps four counters of a kind: "allocation.all 3/6/9/6". */
static void expect_family(const char *key, const char *want)
{
	static const char *const parts[] = { "current", "peak", "allocated", "freed" };
	char name[80], value[64];

	for (size_t i = 0; i < FRAG_ARRAY_LEN(parts); i++) {
		size_t n = strcspn(want, "/");

		if (!want[n] != (i + 1 == FRAG_ARRAY_LEN(parts)))
			wrong("%s: current/peak/allocated/freed are wanted", key);
		snprintf(name, sizeof(name), "%s.%s", key, parts[i]);
		snprintf(value, sizeof(value), "%.*s", (int)n, want);
		expect_one(name, value);
		want += n + 1;
	}
}

static void step_expect(char **words)
{
	if (!*words)
		wrong("what is expected?");
	for (; *words; words += 2) {
		if (!words[1])
			wrong("%s: a value is wanted", *words);
		(strchr(words[1], '/') ? expect_family : expect_one)(words[0], words[1]);
	}
}

/* ---- what the device was asked, what the journal was told ----------------------------------- */

static void note(struct log *log, char kind, uint64_t bytes, frag_addr_t addr)
{
	if (log->count == LOG)
		return;
	log->at[log->count].kind = kind;
	log->at[log->count].bytes = bytes;
	log->at[log->count++].addr = addr;
}

static void on_call(void *ctx, enum frag_call call, uint64_t bytes, int result)
{
	if (call == FRAG_CALL_MALLOC)
		note(&r.calls, result ? 'r' : 'm', bytes, r.rig.dev->logged_addr);
	else if (call == FRAG_CALL_FREE)
		note(&r.calls, result ? 'x' : 'f', bytes, r.rig.dev->logged_addr);
}

static void on_segment(void *ctx, enum frag_segment_event kind, frag_addr_t addr, uint64_t bytes,
		       uint32_t stream)
{
	note(&r.journal, JOURNAL[kind], bytes, addr);
}

/* "m2M", "m2M@S0" or "m2M..3M": is it event i? */
static bool is_event(const struct log *log, size_t i, const char *word)
{
	char text[64], *at, *dots;
	uint64_t low, high;
	frag_addr_t addr;

	if (i >= log->count)
		return false;
	snprintf(text, sizeof(text), "%s", word + 1);
	at = strchr(text, '@');
	if (at)
		*at = '\0';
	dots = strstr(text, "..");
	if (dots)
		*dots = '\0';
	low = number(text);
	high = number(dots ? dots + 2 : text);
	addr = at ? address(at + 1) : log->at[i].addr;
	return log->at[i].kind == *word && log->at[i].bytes >= low && log->at[i].bytes <= high &&
	       log->at[i].addr == addr;
}

static _Noreturn void differs(const struct log *log)
{
	char text[RULES_MESSAGE] = "", bytes[48], addr[48];
	size_t n = 0;

	for (size_t i = 0; i < log->count && n < sizeof(text) - 120; i++)
		n += (size_t)sprintf(text + n, " %c%s@%s", log->at[i].kind,
				     bytes_text(log->at[i].bytes, bytes),
				     address_text(log->at[i].addr, addr));
	wrong("it was%s", n ? text : " nothing");
}

/* "..." stands for all but the last ones. kinds: the letters that may stand in front. */
static void look_at_log(struct log *log, const char *kinds, char **words)
{
	size_t i = 0, left = 0;

	while (words[left])
		left++;
	for (; *words; words++) {
		left--;
		if (!strcmp(*words, "...")) {
			i = FRAG_MAX(i + left, log->count) - left;
			continue;
		}
		if (!strchr(kinds, **words))
			wrong("'%s' does not begin with one of %s", *words, kinds);
		if (!is_event(log, i++, *words))
			differs(log);
	}
	if (i != log->count)
		differs(log);
	log->count = 0;
}

/* calls m8M f8M@S0 …: m malloc, r refused, f free, x free that failed */
static void step_calls(char **words)
{
	look_at_log(&r.calls, "mrfx", words);
}

/* journal a2M@S0 …: a alloc, f free, m map, u unmap */
static void step_journal(char **words)
{
	look_at_log(&r.journal, JOURNAL, words);
}

/* ---- policy TEXT [card N] [context N] [limit N] [places N …] [release 2.N] ------------------ */

static int place(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr)
{
	if (kind == FRAG_CALL_CREATE || !r.places[r.places_used])
		return -1;
	*addr = r.places[r.places_used++];
	return 0;
}

/* Where the number behind this word goes; NULL: it is no option. */
static uint64_t *option(const char *word, struct rig_options *o)
{
	return !strcmp(word, "card")	  ? &o->total_bytes
	       : !strcmp(word, "context") ? &o->context_bytes
	       : !strcmp(word, "limit")	  ? &o->limit_bytes
	       : !strcmp(word, "places")  ? r.places
					  : NULL;
}

/* Returns what stands behind them. */
static char **policy_options(char **words, struct rig_options *o)
{
	uint64_t *into = NULL, *next;
	unsigned minor;

	for (; *words && strcmp(*words, "->") != 0; words++) {
		next = option(*words, o);
		if (next) {
			into = next;
		} else if (!strcmp(*words, "release") && words[1] &&
			   sscanf(words[1], "2.%u", &minor) == 1) {
			o->source_release = 200 + minor;
			words++;
		} else if (!into || into == r.places + PLACES - 1) {
			wrong("'%s': options are card, context, limit, places, release", *words);
		} else {
			*into = number(*words);
			into = into >= r.places && into < r.places + PLACES ? into + 1 : NULL;
		}
	}
	return words;
}

static void close_policy(void)
{
	if (r.open)
		rig_close(&r.rig);
	r.open = false;
}

static void step_policy(char **words)
{
	struct rig_options o = { .still = true,
				 .total_bytes = 64 * GIB,
				 .watch = { on_call, on_segment, place, NULL } };
	const char *error;
	int rc;

	close_policy();
	r.names_count = r.places_used = r.calls.count = r.journal.count = 0;
	memset(r.places, 0, sizeof(r.places));
	if (!*words)
		wrong("which policy?");
	snprintf(r.text, sizeof(r.text), "%s", *words);
	error = error_of(policy_options(words + 1, &o));
	rc = rig_open(&r.rig, r.text, &o);
	r.rig.where = r.where;
	r.open = !rc;
	expect_result(rc, error);
}

/* ---- other steps ---------------------------------------------------------------------------- */

/* trim [pool N] [-> error TEXT] */
static void step_trim(char **words)
{
	const char *error;
	uint64_t pool = 0;

	if (words[0] && words[1] && !strcmp(words[0], "pool")) {
		pool = number(words[1]);
		words += 2;
	}
	error = error_of(words);
	expect_result(rig_trim(&r.rig, (uint16_t)pool), error);
}

/* sync; sync stream N: the device only, without the policy */
static void step_sync(char **words)
{
	if (!*words) {
		expect_result(rig_synced(&r.rig), NULL);
		return;
	}
	if (strcmp(words[0], "stream") != 0 || !words[1] || words[2])
		wrong("which stream?");
	expect_result(frag_dev_sync(r.rig.dev, (uint32_t)number(words[1]), &r.rig.err), NULL);
}

static uint64_t one_number(char **words)
{
	if (!words[0] || words[1])
		wrong("one number is wanted");
	return number(words[0]);
}

static void step_at(char **words)
{
	r.rig.dev->now_ns = one_number(words);
}

static void step_wait(char **words)
{
	r.rig.dev->now_ns += one_number(words);
}

/* fail N: of the driver calls from now on the N-th fails */
static void step_fail(char **words)
{
	r.rig.dev->fail_call = r.rig.dev->driver_calls + one_number(words);
}

/* soak [steps=N] [slots=N] [max=N] [seed=N] [plain] [failures]: random calls, see script.h */
static void step_soak(char **words)
{
	static const char *const keys[] = {
		"steps=", "slots=", "max=", "seed=", "plain", "failures"
	};
	uint64_t values[] = { 4000, 150, 200 * MIB, 1, 0, 0 };
	struct script s;

	for (; *words; words++) {
		size_t i = 0;

		while (i < FRAG_ARRAY_LEN(keys) && strncmp(*words, keys[i], strlen(keys[i])) != 0)
			i++;
		if (i == FRAG_ARRAY_LEN(keys))
			wrong("'%s': steps=, slots=, max=, seed=, plain or failures", *words);
		values[i] = strchr(keys[i], '=') ? number(*words + strlen(keys[i])) : 1;
	}
	if (values[1] - 1 >= RIG_SLOTS || !values[2])
		wrong("1 to %d slots, of 1 byte at least", RIG_SLOTS);
	script_init(&s, values[3], (unsigned)values[1]);
	s.max_bytes = values[2];
	s.plain = values[4];
	expect_result(script_soak(&s, &r.rig, (unsigned)values[0], values[5]), NULL);
}

/* usage exact: without a walk the policy knows its blocks and the largest free one */
static void step_usage(char **words)
{
	r.rig.usage_exact = *words && !strcmp(*words, "exact");
	if (!r.rig.usage_exact)
		wrong("usage exact?");
}

/* accepted TEXTS; refused TEXTS [says PART]: which options there are */
static void look_at_texts(char **words, bool refused)
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
			wrong("'%s' is accepted", *words);
		if (rc && (!refused || rc != FRAG_EUSAGE || !err.msg[0] || !strstr(err.msg, part)))
			wrong("'%s' is refused by '%s'", *words, err.msg);
	}
}

static void step_refused(char **words)
{
	look_at_texts(words, true);
}

static void step_accepted(char **words)
{
	look_at_texts(words, false);
}

/* ---- lines ---------------------------------------------------------------------------------- */

static const struct {
	const char *word;
	void (*run)(char **words);
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
	{ "expect", step_expect, false },
	{ "calls", step_calls, false },
	{ "journal", step_journal, false },
	{ "alloc", step_alloc, false },
};

static void run_step(char **words)
{
	size_t i = 0, at = 0;

	/* "a b = alloc …": the word is behind the names */
	while (words[at] && strcmp(words[at], "=") != 0)
		at++;
	at = words[at] ? at + 1 : 0;
	while (i < FRAG_ARRAY_LEN(steps) && (!words[at] || strcmp(words[at], steps[i].word) != 0))
		i++;
	if (i == FRAG_ARRAY_LEN(steps) || (at && steps[i].run != step_alloc))
		wrong("there is no step '%s'", words[at] ? words[at] : "=");
	if (!r.open && !steps[i].alone)
		wrong("%s: no policy is open", words[at]);
	steps[i].run(steps[i].run == step_alloc ? words : words + 1);
	if (r.open) {
		rig_check(&r.rig);
		rig_walk(&r.rig, NULL);
	}
}

/* Steps with NULL between them, and one more at the end. */
static void run_steps(char **words)
{
	uint64_t times = 1;

	if (*words && !strcmp(*words, "repeat")) {
		times = words[1] ? number(words[1]) : UINT64_MAX;
		if (times > 10000)
			wrong("repeat up to 10000 times");
		words += 2;
	}
	while (times--) {
		for (char **step = words; *step; step++) {
			run_step(step);
			while (*step)
				step++;
		}
	}
}

/* Cuts a line into words; quoted text is one. NULL stands for ';', and twice for the end. */
static void cut(char *line, char **words)
{
	size_t n = 0;

	for (char *at = line + strspn(line, " \t"); *at; at += strspn(at, " \t")) {
		bool quoted = *at == '"', ends;
		size_t length = quoted ? strcspn(at + 1, "\"") : strcspn(at, " \t;");

		if (n + 3 >= WORDS)
			wrong("too many words");
		if (quoted && !at[1 + length])
			wrong("a quote is not closed");
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
}

/* ---- for $NAMES VALUES: the section once for each row --------------------------------------- */

static struct {
	char line[8192];
	char *words[WORDS];
	size_t names, rows;
} table;

static void read_rows(void)
{
	const char *first = r.section->lines->text;
	size_t values = 0;

	table.names = 0;
	table.rows = 1;
	if (strncmp(first, "for ", 4) != 0)
		return;
	snprintf(table.line, sizeof(table.line), "%s", first + 4);
	cut(table.line, table.words);
	while (table.words[table.names] && *table.words[table.names] == '$')
		table.names++;
	while (table.words[table.names + values])
		values++;
	if (!table.names || !values || values % table.names)
		wrong("for: %zu values for %zu names", values, table.names);
	table.rows = values / table.names;
}

/* A copy of a line with the values of a row in place of the names. */
static void fill_in(char **values, const char *text, char *out, size_t cap)
{
	size_t n = 0;

	while (*text && n + 1 < cap) {
		size_t i = 0;

		while (i < table.names &&
		       strncmp(text, table.words[i], strlen(table.words[i])) != 0)
			i++;
		if (i == table.names) {
			out[n++] = *text++;
			continue;
		}
		n += (size_t)snprintf(out + n, cap - n, "%s", values[i]);
		text += strlen(table.words[i]);
	}
	if (n + 1 >= cap)
		wrong("too long a line");
	out[n] = '\0';
}

static void run_row(size_t row)
{
	const struct rules_section *s = r.section;
	char **values = &table.words[table.names * (row + 1)];
	static char line[8192];
	static char *words[WORDS];

	for (size_t i = table.names != 0; i < s->lines_count; i++) {
		int n = snprintf(r.where, sizeof(r.where), "%s:%u", s->path, s->lines[i].number);

		if (table.names)
			snprintf(r.where + n, sizeof(r.where) - (size_t)n, " (%s %.100s)",
				 table.words[0], *values);
		fill_in(values, s->lines[i].text, line, sizeof(line));
		cut(line, words);
		run_steps(words);
	}
	close_policy();
}

bool rules_run(const struct rules_section *section, char *message)
{
	memset(&r, 0, sizeof(r));
	r.section = section;
	r.message = message;
	snprintf(r.where, sizeof(r.where), "%s:%u", section->path, section->lines[0].number);
	if (setjmp(r.end)) {
		if (r.open)
			rig_close_count_leaks(&r.rig);
		return false;
	}
	read_rows();
	for (size_t row = 0; row < table.rows; row++)
		run_row(row);
	return true;
}
