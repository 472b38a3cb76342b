/* SPDX-License-Identifier: Apache-2.0 */
/* Trace entries, so many that they are read by template. */
#include "test.h"

#include "pickle_text.h"

typedef long long ll;

/* ---- many entries: templates -------------------------------------------------------------- */

/* How entries are written; all read the same, but for what the last three add. */
enum style { ONE_BY_ONE, REMEMBERED, FAR_REMEMBERED, WITH_FRAMES, WITH_POOLS, WITH_BOTH, STYLES };

#define STACKS 5
#define POOLS 3

struct history {
	struct pickle_bytes b;
	enum style style;
	uint64_t rng;
	bool uniform; /* numbers in one width each, as most of a real history has them */
};

struct entry {
	int action;
	int64_t addr, size, stream, time;
	bool turned;
	int stack, pool; /* -1: the entry does not say */
};

static uint64_t random_below(uint64_t *rng, uint64_t below)
{
	return test_roll(rng) % below;
}

/* Keys are fetched from the memo as by Python, now and then in another order. */
static void put_entry(struct history *h, const struct entry *e)
{
	static const char *const actions[] = { "alloc", "free_requested", "free_completed" };
	char size[40], pool[40] = "", stack[30] = "";

	if (h->style == ONE_BY_ONE) {
		pickle_textf(&h->b, "@entry %s %lld %lld %lld %lld", actions[e->action],
			     (ll)e->addr, (ll)e->size, (ll)e->stream, (ll)e->time);
		return;
	}
	snprintf(size, sizeof(size), "$size %lld", (ll)e->size);
	if (e->pool >= 0) /* a tuple of its own, or the last one: of the entry before, often */
		snprintf(pool, sizeof(pool),
			 random_below(&h->rng, 2) ? "$pool_id &p%d ( %d 0 )" : "$pool_id *p%d",
			 e->pool, e->pool);
	if (e->stack >= 0)
		snprintf(stack, sizeof(stack), "$frames *s%d", e->stack);
	pickle_textf(&h->b,
		     "{ %s $action $%s $addr %lld %s $stream %lld $time_us %lld "
		     "$compile_context N/A %s $user_metadata $ %s }",
		     e->turned ? size : "", actions[e->action], (ll)e->addr, e->turned ? "" : size,
		     (ll)e->stream, (ll)e->time, pool, stack);
}

/* Memo indices that need LONG_BINGET, then what the entries refer to. */
static void put_filler(struct pickle_bytes *b)
{
	pickle_text(b, "filler [");
	for (int i = 0; i < 300; i++)
		pickle_text(b, "x");
	for (int i = 0; i < STACKS; i++)
		pickle_textf(b, "&s%d [ { filename a.py line %d name f } ]", i, i);
	for (int i = 0; i < POOLS; i++)
		pickle_textf(b, "&p%d ( %d 0 )", i, i);
	pickle_text(b, "]");
}

/* n times an alloc, half of them with a free; the list is left open. */
static void many_entries(struct history *h, size_t n)
{
	struct pickle_bytes *b = &h->b;
	enum style style = h->style;
	uint64_t rng = 5;

	pb_begin(b);
	pickle_text(b, "{ segments [ ]");
	if (style >= FAR_REMEMBERED)
		put_filler(b);
	pickle_text(b, "device_traces [ [");
	for (size_t i = 0; i < n; i++) {
		struct entry e = { .stack = -1, .pool = -1 };
		bool freed;

		e.size = 1 + (int64_t)random_below(&rng, 1ull << (4 + random_below(&rng, 34)));
		e.addr = random_below(&rng, 3) ? S0 + 512 * (int64_t)i : 512 * (int64_t)(i + 1);
		e.stream = random_below(&rng, 9) ? 0 : 70000;
		freed = random_below(&rng, 2);
		e.turned = !random_below(&rng, 50);
		if (h->uniform) {
			e.addr = S0 + 512 * (int64_t)i;
			e.size = 512 + e.size % 60000;
			e.stream = 0;
			e.turned = false;
		}
		if ((style == WITH_FRAMES || style == WITH_BOTH) && random_below(&h->rng, 3))
			e.stack = (int)random_below(&h->rng, STACKS);
		if (style == WITH_POOLS || style == WITH_BOTH)
			e.pool = (int)random_below(&h->rng, POOLS);
		for (; e.action < (freed ? 3 : 1); e.action++) {
			e.time = T0 + (int64_t)(3 * i) + e.action;
			put_entry(h, &e);
		}
		if (i % 1000 == 999)
			pickle_text(b, "] !(");
	}
}

/* Entries of a history. */
static size_t many(void)
{
	return test_is_quick() ? 2000 : 6000;
}

static struct frag_trace *read_many(enum style style, bool uniform, enum pickle_dialect dialect)
{
	struct history h = { { .dialect = dialect }, style, .rng = 1, .uniform = uniform };
	struct frag_trace *t;

	many_entries(&h, many());
	pickle_text(&h.b, "] ] } !.");
	t = snapshot_read_good(&h.b);
	pb_release(&h.b);
	return t;
}

static bool differs(const struct frag_event *a, const struct frag_event *b)
{
	return a->bytes != b->bytes || a->time_us != b->time_us || a->slot != b->slot ||
	       a->stream != b->stream || a->kind != b->kind || a->flags != b->flags;
}

/* The same events; frames and pools only where both have them. */
static void same_history(const struct frag_trace *x, const struct frag_trace *y, bool exactly)
{
	const struct frag_trace_dev *a = &x->devs[0], *b = &y->devs[0];

	assert_int_equal(a->recorded_count, b->recorded_count);
	assert_int_equal(a->events_count, b->events_count);
	for (size_t i = 0; i < a->events_count; i++)
		if (differs(&a->events[i], &b->events[i]))
			fail_msg("event %zu differs", i);
	assert_memory_equal(a->addrs, b->addrs, a->events_count * sizeof(*a->addrs));
	if (!exactly)
		return;
	assert_int_equal(x->stacks.count, y->stacks.count);
	assert_int_equal(a->pools_count, b->pools_count);
	assert_memory_equal(a->events, b->events, a->events_count * sizeof(*a->events));
}

/* However it is written, it reads the same. Protocol 2 of Python knows no templates. */
static void check_many(bool uniform)
{
	FRAG_AUTO(frag_trace_destroy_at)
	struct frag_trace *first = read_many(ONE_BY_ONE, uniform, PICKLE_PYTHON2);

	assert_true(first->devs[0].events_count > many() * 4 / 3);
	for (int style = 0; style < STYLES; style++) {
		FRAG_AUTO(frag_trace_destroy_at)
		struct frag_trace *plain = read_many((enum style)style, uniform, PICKLE_PYTHON2);

		same_history(plain, first, false);
		for (int dialect = PICKLE_PYTHON; dialect <= PICKLE_LIBTORCH; dialect++) {
			FRAG_AUTO(frag_trace_destroy_at)
			struct frag_trace *t =
				read_many((enum style)style, uniform, (enum pickle_dialect)dialect);

			same_history(t, plain, true);
		}
		assert_int_equal(plain->stacks.count,
				 style == WITH_FRAMES || style == WITH_BOTH ? STACKS + 1 : 1);
		assert_int_equal(plain->devs[0].pools_count, style >= WITH_POOLS ? POOLS : 1);
	}
}

TEST(test_many_entries)
{
	check_many(false);
	check_many(true);
}

/* ---- entries like the others, but wrong ------------------------------------------------------ */

/* With many good ones before and some behind: what is read of it. */
static char *read_spoiled(enum pickle_dialect dialect, const char *entry)
{
	struct history h = { { .dialect = dialect }, REMEMBERED, .rng = 1, .uniform = true };
	struct frag_trace *t = NULL;
	char *said = NULL;
	FILE *out = open_memstream(&said, &(size_t){ 0 });

	many_entries(&h, 3000);
	pickle_text(&h.b, entry);
	for (int i = 0; i < 5; i++)
		put_entry(&h, &(struct entry){ 0, S1 + 4096 * (i + 1), 7, 0, T0 + 40000 + i, false,
					       -1, -1 });
	pickle_text(&h.b, "] ] } !.");
	if (snapshot_read(h.b.bytes, h.b.len, NULL, &t, &test_err)) {
		if (strstr(test_err.msg, " byte ")) /* not the same in all dialects */
			strcpy(strstr(test_err.msg, " byte "), " byte ...");
		fputs(test_err.msg, out);
	} else {
		const struct frag_trace_dev *d = &t->devs[0];
		const struct frag_event *e = &d->events[d->events_count - 6];

		fprintf(out, "%zu events, %d of %llu bytes at %llu us", d->events_count, e->kind,
			(ull)e->bytes, (ull)e->time_us);
	}
	fclose(out);
	frag_trace_destroy(t);
	pb_release(&h.b);
	return said;
}

/* "these words / others": an entry with one thing replaced, with templates and without. */
static void answer(char *call, FILE *out)
{
	static const char good[] =
		"{ $action $alloc $addr S1 $size 512 $stream 0 $time_us T0+30000 "
		"$compile_context N/A $user_metadata $ }";
	FRAG_AUTO(free_at) char *with = NULL, *without = NULL;
	char *others = strstr(call, " / "), entry[300];
	const char *at;

	assert_non_null(others);
	*others = 0;
	others += 3;
	at = strstr(good, call);
	assert_non_null(at);
	snprintf(entry, sizeof(entry), "%.*s%s%s", (int)(at - good), good,
		 strcmp(others, "nothing") ? others : "", at + strlen(call));
	with = read_spoiled(PICKLE_PYTHON, entry);
	without = read_spoiled(PICKLE_PYTHON2, entry);
	assert_string_equal(with, without);
	fputs(with, out);
}

CASES_IN_LINES("tests/unit/trace/entries.cases", answer)

/* A completion folds into the request right before it only if both are of one block and stream. */
TEST(test_almost_complete)
{
	static const char letters[FRAG_EV_COUNT + 1] = "afrctxm"; /* by kind */

	for (int dialect = PICKLE_PYTHON; dialect <= PICKLE_PYTHON2; dialect++) {
		struct history h = { { .dialect = (enum pickle_dialect)dialect },
				     REMEMBERED,
				     .rng = 1,
				     .uniform = true };
		struct frag_trace *t;
		const struct frag_event *e;
		char kinds[19] = "";
		int64_t time = T0 + 30000;

		many_entries(&h, 3000);
		for (int k = 0; k < 2; k++) {
			struct entry x = { 0, S1, 512, 0, time++, false, -1, -1 };
			struct entry y = { 0, S1 + 512, 512, 0, time++, false, -1, -1 };

			put_entry(&h, &x);
			put_entry(&h, &y);
			x.action = y.action = 1;
			put_entry(&h, &y);
			put_entry(&h, &x);
			x.action = y.action = 2;
			y.stream = 3 * k; /* completed as if it were of another stream */
			put_entry(&h, &y);
			put_entry(&h, &x);
			y.addr += 4096;
			for (y.action = 0; y.action < 3; y.action++) {
				y.stream = y.action == 2 ? 3 : 0;
				put_entry(&h, &y);
			}
		}
		pickle_text(&h.b, "] ] } !.");
		t = snapshot_read_good(&h.b);
		e = &t->devs[0].events[t->devs[0].events_count - 18];
		for (int i = 0; i < 18; i++)
			kinds[i] = letters[e[i].kind];
		assert_string_equal(kinds, "aarrccarcaarrccarc");
		frag_trace_destroy(t);
		pb_release(&h.b);
	}
}

/* Each entry takes its action from what the one before remembered: rows that are matched together
 * must not do so before that one is done. */
TEST(test_refers_to_the_one_before)
{
	FRAG_AUTO(pb_release) struct pickle_bytes b = { .dialect = PICKLE_PYTHON };
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *t = NULL;

	pb_begin(&b);
	pickle_text(&b, "{ segments [ ]");
	put_filler(&b);
	pickle_text(&b, "device_traces [ [");
	for (int i = 0; i < 500; i++)
		pickle_textf(
			&b, "{ $action $alloc $addr %lld $size 300 $compile_context &alloc alloc }",
			S0 + 512ll * i);
	pickle_text(&b, "] ] } !.");
	t = snapshot_read_good(&b);
	assert_int_equal(t->devs[0].events_count, 500);
	for (int i = 0; i < 500; i++) {
		assert_int_equal(t->devs[0].events[i].kind, FRAG_EV_ALLOC);
		assert_true(t->devs[0].addrs[i] == (frag_addr_t)(S0 + 512 * i));
	}
}
