/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated card, call by call: card_*.cases. A line is a call and what came of it: an address
 * or a number, which may be written as a sum of names, or how it failed. Of several calls in a line
 * ("call; call") the last one answers, and those before must succeed. Calls:
 *
 *	card total=SIZE context=SIZE lag=NS idle	another card (else that of an H200; total: without a context)
 *	a = malloc SIZE · free a			3 x a = malloc SIZE makes a1, a2, a3; free a* frees them
 *	r = reserve SIZE HINT · unreserve r SIZE	h = create SIZE · release h SIZE
 *	map ADDR SIZE h · access ADDR SIZE · unmap ADDR SIZE
 *	p = pool THRESHOLD opportunistic wait		a = take p SIZE STREAM · give p a STREAM
 *	trim p SIZE · destroy p · used p
 *	a = managed SIZE · let a · touch ADDR SIZE · prefetch ADDR SIZE · resident
 *	f = fence STREAM · done f LAG			sync STREAM · sync (all) · now NS · local SIZE BEHIND · hold SIZE · mapped SIZE
 *	place ADDR · place oom · place rule · place wish ADDR	what the next call that asks the hook is told; asked: which
 *	a = host SIZE · unhost ADDR SIZE	addresses of the host process
 *	ready SIZE	the card, after so much was given back
 *	reserved · peak · leaks · free_memory · cost	cost: of the calls since the last time
 */
#include "test.h"

#include "device/sim/cost.h"

#define NAMES 100
#define PLACES 16
#define WORDS 6

struct card {
	struct frag_device *dev;
	struct cases_name names[NAMES];
	size_t names_count;
	char texts[NAMES][16]; /* of names that a case gave */
	struct {
		int result;
		frag_addr_t addr;
		enum frag_call kind; /* who asked, and for how much */
		uint64_t bytes;
	} places[PLACES];
	unsigned places_set, places_asked;
	uint64_t cost_seen;
	bool must_succeed;
	FILE *nowhere;
};

/* ---- names and numbers ------------------------------------------------------------------ */

static void name(struct card *c, const char *text, uint64_t value)
{
	size_t i = 0;

	while (i < c->names_count && strcmp(c->names[i].name, text))
		i++;
	assert_true(i < NAMES && strlen(text) < sizeof(c->texts[i]));
	if (i == c->names_count) {
		strcpy(c->texts[i], text);
		c->names[i].name = c->texts[i];
		c->names_count++;
	}
	c->names[i].value = value;
}

static uint64_t number(const struct card *c, const char *text)
{
	return cases_must_number(text, c->names, c->names_count);
}

/* What is expected stays as it is written if it is the same. */
static void say_number(const struct card *c, uint64_t value, const char *expected, FILE *out)
{
	uint64_t same;

	if (cases_number(expected, c->names, c->names_count, &same) && same == value)
		fputs(expected, out);
	else if (value >> 32)
		fprintf(out, "0x%llx", (ull)value);
	else if (value && value % MIB == 0)
		fprintf(out, "%lluM", (ull)value / MIB);
	else
		fprintf(out, "%llu", (ull)value);
}

static void begin_names(struct card *c)
{
	static const struct {
		const char *name;
		unsigned item;
		uint64_t pages; /* of 2 MiB */
	} prices[] = {
		{ "CREATE", FRAG_CALL_CREATE, 1 },
		{ "MAP", FRAG_CALL_MAP, 1 },
		{ "ACCESS", FRAG_CALL_SET_ACCESS, 1 },
		{ "ACCESS_NEXT", FRAG_COST_SET_ACCESS_NEXT, 1 },
		{ "UNMAP", FRAG_CALL_UNMAP, 1 },
		{ "UNMAP_NEXT", FRAG_COST_UNMAP_NEXT, 1 },
		{ "RELEASE", FRAG_CALL_RELEASE, 1 },
		{ "RELEASE_MAPPED", FRAG_COST_RELEASE_MAPPED, 1 },
		/* pages of pools have 32 MiB */
		{ "TAKE", FRAG_CALL_ASYNC_MALLOC, 0 },
		{ "REMAP_2", FRAG_COST_ASYNC_REMAP, 32 },
		{ "REMAP_14", FRAG_COST_ASYNC_REMAP, 224 },
		{ "NEW_18", FRAG_COST_ASYNC_NEW, 288 },
	};

	name(c, "CONTEXT", 0x7f0000000000); /* where the card has it */
	name(c, "RANGES", 0x302000000);	    /* the first reservation, or pool */
	name(c, "LOW", 0x7eff00000000);
	name(c, "FAR", 0x7fb400000000);
	name(c, "MAX", UINT64_MAX);
	name(c, "PAGE", 32 * MIB); /* of pools */
	for (size_t i = 0; i < FRAG_ARRAY_LEN(prices); i++)
		name(c, prices[i].name,
		     frag_cost_ns(frag_cost_builtin(), prices[i].item,
				  prices[i].pages * FRAG_PAGE));
}

/* ---- the card ----------------------------------------------------------------------------- */

static int place(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr)
{
	struct card *c = ctx;
	unsigned i = c->places_asked;

	if (i == c->places_set)
		return -1;
	c->places_asked++;
	c->places[i].kind = kind;
	c->places[i].bytes = bytes;
	if (kind != FRAG_CALL_CREATE &&
	    (!c->places[i].result || c->places[i].result == FRAG_PLACE_WISH))
		*addr = c->places[i].addr;
	return c->places[i].result;
}

static void set_place(struct card *c, char *const *w)
{
	unsigned i = c->places_set++;
	bool wish = !strcmp(w[1], "wish");

	assert_true(i < PLACES);
	if (!strcmp(w[1], "oom"))
		c->places[i].result = FRAG_OOM;
	else if (!strcmp(w[1], "rule"))
		c->places[i].result = -1;
	else
		c->places[i].addr = number(c, w[wish ? 2 : 1]);
	if (wish)
		c->places[i].result = FRAG_PLACE_WISH;
}

static int open_card(struct card *c, char *const *w, struct frag_err *err)
{
	struct frag_sim_config cfg = { .context_bytes = UINT64_MAX,
				       .place = place,
				       .place_ctx = c };

	frag_dev_close(c->dev);
	c->dev = NULL;
	for (unsigned i = 1; i < WORDS && w[i]; i++) {
		const char *value = strchr(w[i], '=');

		if (!strncmp(w[i], "total=", 6)) {
			cfg.total_bytes = number(c, value + 1);
			cfg.context_bytes = 0;
		}
		if (!strncmp(w[i], "context=", 8))
			cfg.context_bytes = number(c, value + 1);
		else if (!strncmp(w[i], "lag=", 4))
			cfg.work_lag_ns = number(c, value + 1);
		else if (!strcmp(w[i], "idle"))
			cfg.work_idle = true;
	}
	return frag_sim_open(&cfg, &c->dev, err);
}

static int make_pool(struct card *c, char *const *w, uint64_t *value, struct frag_err *err)
{
	struct frag_mempool_attr attr = { .release_threshold = number(c, w[1]) };

	for (unsigned i = 2; i < WORDS && w[i]; i++) {
		attr.reuse_allow_opportunistic |= !strcmp(w[i], "opportunistic");
		attr.reuse_allow_internal_dependencies |= !strcmp(w[i], "wait");
	}
	return frag_dev_mempool_create(c->dev, &attr, value, err);
}

/* ---- calls -------------------------------------------------------------------------------- */

#define N(i) number(c, w[i])

#define ON_CALL(word, call) \
	if (!strcmp(w[0], word)) { \
		*rc = (call); \
		return true; \
	}

/* Calls with a result. False: not one of them. */
static bool makes(struct card *c, char *const *w, uint64_t *value, int *rc, struct frag_err *err)
{
	struct frag_device *d = c->dev;

	ON_CALL("malloc", frag_dev_alloc(d, N(1), value, err))
	ON_CALL("reserve", frag_dev_reserve(d, N(1), w[2] ? N(2) : 0, value, err))
	ON_CALL("create", frag_dev_create(d, N(1), value, err))
	ON_CALL("pool", make_pool(c, w, value, err))
	ON_CALL("take", frag_dev_mempool_alloc(d, N(1), N(2), (uint32_t)N(3), value, err))
	ON_CALL("managed", frag_dev_managed_alloc(d, N(1), value, err))
	ON_CALL("host", (*value = frag_sim_host_take(d, N(1)), 0))
	ON_CALL("fence", frag_dev_fence_record(d, (uint32_t)N(1), value, err))
	return false;
}

static bool does(struct card *c, char *const *w, int *rc, struct frag_err *err)
{
	struct frag_device *d = c->dev;

	ON_CALL("card", open_card(c, w, err))
	ON_CALL("place", (set_place(c, w), 0))
	ON_CALL("free", frag_dev_free(d, N(1), 1, err))
	ON_CALL("unreserve", frag_dev_unreserve(d, N(1), N(2), err))
	ON_CALL("release", frag_dev_release(d, N(1), N(2), err))
	ON_CALL("map", frag_dev_map(d, N(1), N(2), N(3), err))
	ON_CALL("access", frag_dev_set_access(d, N(1), N(2), err))
	ON_CALL("unmap", frag_dev_unmap(d, N(1), N(2), err))
	ON_CALL("give", frag_dev_mempool_free(d, N(1), N(2), 1, (uint32_t)N(3), err))
	ON_CALL("trim", frag_dev_mempool_trim(d, N(1), N(2), err))
	ON_CALL("destroy", frag_dev_mempool_destroy(d, N(1), err))
	ON_CALL("let", frag_dev_managed_free(d, N(1), 1, err))
	ON_CALL("touch", frag_dev_managed_touch(d, N(1), N(2), false, err))
	ON_CALL("prefetch", frag_dev_managed_touch(d, N(1), N(2), true, err))
	ON_CALL("sync", w[1] ? frag_dev_sync(d, (uint32_t)N(1), err) : frag_dev_sync_all(d, err))
	ON_CALL("now", (d->now_ns = *w[1] == '+' ? d->now_ns + number(c, w[1] + 1) : N(1), 0))
	ON_CALL("local", (frag_sim_local(d, N(1), N(2)), 0))
	ON_CALL("mapped", (frag_sim_hold_mapped(d, N(1)), 0))
	ON_CALL("hold", (frag_sim_hold(d, N(1)), 0))
	ON_CALL("unhost", (frag_sim_host_give(d, N(1), N(2)), 0))
	ON_CALL("ready", frag_dev_make_ready(d, N(1), err))
	return false;
}

static void say_pool(struct card *c, uint64_t pool, FILE *out)
{
	struct frag_mempool_usage u;

	frag_dev_mempool_usage(c->dev, pool, &u);
	fprintf(out, "used %llu peak %llu, reserved %lluM peak %lluM", (ull)u.used_bytes,
		(ull)u.used_peak_bytes, (ull)u.reserved_bytes / MIB,
		(ull)u.reserved_peak_bytes / MIB);
}

static void say_managed(struct card *c, FILE *out)
{
	struct frag_managed_usage u;

	frag_dev_managed_usage(c->dev, &u);
	assert_true(u.resident_bytes <= c->dev->reserved_bytes);
	fprintf(out,
		"%lluK peak %lluK, faults %llu, in %lluM, out %lluM, evictions %llu, moving %llu "
		"ns",
		(ull)u.resident_bytes / KIB, (ull)u.resident_peak_bytes / KIB, (ull)u.faults,
		(ull)u.moved_in_bytes / MIB, (ull)u.moved_out_bytes / MIB, (ull)u.evictions,
		(ull)u.moved_ns);
}

static void asks(struct card *c, char *const *w, const char *expected, FILE *out)
{
	uint64_t free_bytes, total;
	bool done = false;

	if (!strcmp(w[0], "reserved")) {
		say_number(c, c->dev->reserved_bytes, expected, out);
	} else if (!strcmp(w[0], "peak")) {
		say_number(c, c->dev->reserved_peak_bytes, expected, out);
	} else if (!strcmp(w[0], "leaks")) {
		say_number(c, frag_dev_leaks(c->dev), expected, out);
	} else if (!strcmp(w[0], "cost")) {
		say_number(c, c->dev->driver_ns - c->cost_seen, expected, out);
		c->cost_seen = c->dev->driver_ns;
	} else if (!strcmp(w[0], "free_memory")) {
		assert_int_equal(frag_dev_mem_info(c->dev, &free_bytes, &total, NULL), 0);
		fprintf(out, "%llu of %llu", (ull)free_bytes, (ull)total);
	} else if (!strcmp(w[0], "asked")) {
		for (unsigned i = 0; i < c->places_asked; i++)
			fprintf(out, "%s%s %lluM", i ? ", " : "", frag_call_name(c->places[i].kind),
				(ull)c->places[i].bytes / MIB);
	} else if (!strcmp(w[0], "used")) {
		say_pool(c, N(1), out);
	} else if (!strcmp(w[0], "resident")) {
		say_managed(c, out);
	} else if (!strcmp(w[0], "done")) {
		assert_int_equal(frag_dev_fence_done(c->dev, N(1), N(2), &done, NULL), 0);
		fputs(done ? "yes" : "no", out);
	} else {
		fail_msg("unknown call '%s'", w[0]);
	}
}

/* One call, `to` = the name of its result, or NULL. */
static void call_once(struct card *c, const char *to, char *const *w, const char *expected,
		      FILE *out)
{
	struct frag_err err = { 0 };
	uint64_t value = 0;
	bool gives;
	int rc;

	if (!c->dev && strcmp(w[0], "card") != 0) {
		char *const default_card[] = { (char *)"card", NULL };

		assert_int_equal(open_card(c, default_card, &err), 0);
	}
	gives = makes(c, w, &value, &rc, &err);
	if (!gives && !does(c, w, &rc, &err)) {
		asks(c, w, expected, out);
	} else if (rc && c->must_succeed) {
		fail_msg("%s: %s", w[0], rc == FRAG_OOM ? "oom" : err.msg);
	} else if (rc == FRAG_OOM) {
		fputs("oom", out);
	} else if (rc) {
		assert_int_equal(rc, err.code);
		fputs(err.msg, out);
	} else if (gives) {
		say_number(c, value, expected, out);
		if (to)
			name(c, to, value);
	}
}

/* "3 x a = malloc 2M": the last answer counts. */
static void call_times(struct card *c, unsigned times, const char *to, char *const *w,
		       const char *expected, FILE *out)
{
	for (unsigned i = 1; i <= times; i++) {
		char *answer = NULL, numbered[16];
		FILE *one = open_memstream(&answer, &(size_t){ 0 });

		snprintf(numbered, sizeof(numbered), "%s%u", to, i);
		call_once(c, numbered, w, expected, one);
		fclose(one);
		if (i == times)
			fputs(answer, out);
		free(answer);
	}
}

/* "free a*" */
static void call_each(struct card *c, char **w, FILE *out)
{
	size_t n = strlen(w[1]) - 1;
	char *star = w[1];

	star[n] = 0;
	for (size_t i = 0; i < c->names_count; i++) {
		if (strncmp(c->texts[i], star, n) || c->texts[i][n] < '0' || c->texts[i][n] > '9')
			continue;
		w[1] = c->texts[i];
		call_once(c, NULL, w, "", out);
	}
}

static void answer_one(struct card *c, char *call, const char *expected, FILE *out)
{
	char *w[WORDS + 4] = { NULL }, **words = w;
	unsigned times = 0, n = 0;
	const char *to = NULL;

	while (n < WORDS + 3 && (w[n] = cases_word(&call)))
		n++;
	if (n > 2 && !strcmp(w[1], "x")) {
		times = (unsigned)strtoul(w[0], NULL, 10);
		words += 2;
	}
	if (words[1] && !strcmp(words[1], "=")) {
		to = words[0];
		words += 2;
	}
	if (times)
		call_times(c, times, to ? to : "unnamed", words, expected, out);
	else if (words[1] && words[1][strlen(words[1]) - 1] == '*')
		call_each(c, words, out);
	else
		call_once(c, to, words, expected, out);
}

/* Several calls in a line: those before the last prepare it, they must succeed. */
static void answer(void *ctx, char *call, const char *expected, FILE *out)
{
	struct card *c = ctx;
	char *copy = strdup(call), *left = copy, *one;

	while ((one = strsep(&left, ";"))) {
		c->must_succeed = left != NULL;
		answer_one(c, one, left ? "" : expected, left ? c->nowhere : out);
	}
	free(copy);
}

static void run(const char *body, FILE *out)
{
	struct card c = { .nowhere = fopen("/dev/null", "w") };

	assert_non_null(c.nowhere);
	begin_names(&c);
	cases_lines(body, out, &c, answer);
	frag_dev_close(c.dev);
	fclose(c.nowhere);
}

CASES("tests/unit/device/card_malloc.cases", run)
CASES("tests/unit/device/card_place.cases", run)
CASES("tests/unit/device/card_vmm.cases", run)
CASES("tests/unit/device/card_pool.cases", run)
CASES("tests/unit/device/card_managed.cases", run)
CASES("tests/unit/device/card_fence.cases", run)
