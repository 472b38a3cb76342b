/* SPDX-License-Identifier: Apache-2.0 */
/* Trace entries, so many that they are read by template. */
#include "test.h"

#include "pickle_text.h"

/* ---- many entries: templates -------------------------------------------------------------- */

/* How entries are written; all read the same, but for what the last three add. */
enum style { ONE_BY_ONE, REMEMBERED, FAR_REMEMBERED, WITH_FRAMES, WITH_POOLS, WITH_BOTH, STYLES };

#define STACKS 5
#define POOLS 3

struct words {
	uint32_t key[10], action[3], none;
	uint32_t stack[STACKS], pool[POOLS]; /* memo entries of lists and tuples */
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

static void fetch(struct pickle_bytes *b, uint32_t index)
{
	pb_op(b, index < 256 ? 'h' : 'j');
	pb_le(b, index, index < 256 ? 1 : 4);
}

static void pool_tuple(struct pickle_bytes *b, int pool)
{
	pb_int(b, pool);
	pb_int(b, 0);
	pb_op(b, 0x86);
	pb_remember(b);
}

/* Keys by BINGET as Python writes them, some of them in another order now and then. */
static void remembered_entry(struct pickle_bytes *b, struct words *w, const struct entry *e)
{
	static const char *const actions[] = { "alloc", "free_requested", "free_completed" };

	pb_dict(b);
	if (e->turned) {
		pb_text_once(b, "size", &w->key[2]);
		pb_int(b, e->size);
	}
	pb_text_once(b, "action", &w->key[0]);
	pb_text_once(b, actions[e->action], &w->action[e->action]);
	pb_text_once(b, "addr", &w->key[1]);
	pb_int(b, e->addr);
	if (!e->turned) {
		pb_text_once(b, "size", &w->key[2]);
		pb_int(b, e->size);
	}
	pb_text_once(b, "stream", &w->key[3]);
	pb_int(b, e->stream);
	pb_text_once(b, "time_us", &w->key[4]);
	pb_int(b, e->time);
	pb_text_once(b, "compile_context", &w->key[5]);
	pb_text(b, "N/A");
	if (e->pool >= 0) { /* a tuple of its own, or the last one: of the entry before, often */
		pb_text_once(b, "pool_id", &w->key[8]);
		if (random_below(&w->rng, 2)) {
			pool_tuple(b, e->pool);
			w->pool[e->pool] = b->memo - 1;
		} else {
			fetch(b, w->pool[e->pool]);
		}
	}
	pb_text_once(b, "user_metadata", &w->key[6]);
	pb_text_once(b, "", &w->none);
	if (e->stack >= 0) {
		pb_text_once(b, "frames", &w->key[7]);
		fetch(b, w->stack[e->stack]);
	}
	pb_close_dict(b);
}

static void put_entry(struct pickle_bytes *b, enum style style, struct words *w,
		      const struct entry *e)
{
	static const char *const actions[] = { "alloc", "free_requested", "free_completed" };

	if (style == ONE_BY_ONE)
		pb_entry(b, actions[e->action], e->addr, e->size, e->stream, e->time);
	else
		remembered_entry(b, w, e);
}

/* Memo indices that need LONG_BINGET, then what the entries refer to. */
static void put_filler(struct pickle_bytes *b, struct words *w)
{
	pb_text(b, "filler");
	pb_list(b);
	for (int i = 0; i < 300; i++)
		pb_text(b, "x");
	for (int i = 0; i < STACKS; i++) {
		w->stack[i] = b->memo;
		pb_op(b, ']');
		pb_remember(b); /* in all dialects */
		pb_op(b, '(');
		pb_dict(b);
		pb_text_text(b, "filename", "a.py");
		pb_text_int(b, "line", i);
		pb_text_text(b, "name", "f");
		pb_close_dict(b);
		pb_close_list(b);
	}
	for (int i = 0; i < POOLS; i++) {
		pb_int(b, i);
		pb_int(b, 0);
		pb_op(b, 0x86);
		w->pool[i] = b->memo;
		pb_remember(b);
	}
	pb_close_list(b);
}

/* n times an alloc, half of them with a free; the list is left open. */
static void many_entries(struct pickle_bytes *b, enum style style, struct words *w, size_t n)
{
	uint64_t rng = 5;

	pb_begin(b);
	pickle_text(b, "{ segments [ ]");
	if (style >= FAR_REMEMBERED)
		put_filler(b, w);
	pickle_text(b, "device_traces [ [");
	for (size_t i = 0; i < n; i++) {
		struct entry e = { .stack = -1, .pool = -1 };
		bool freed;

		e.size = 1 + (int64_t)random_below(&rng, 1ull << (4 + random_below(&rng, 34)));
		e.addr = random_below(&rng, 3) ? S0 + 512 * (int64_t)i : 512 * (int64_t)(i + 1);
		e.stream = random_below(&rng, 9) ? 0 : 70000;
		freed = random_below(&rng, 2);
		e.turned = !random_below(&rng, 50);
		if (w->uniform) {
			e.addr = S0 + 512 * (int64_t)i;
			e.size = 512 + e.size % 60000;
			e.stream = 0;
			e.turned = false;
		}
		if ((style == WITH_FRAMES || style == WITH_BOTH) && random_below(&w->rng, 3))
			e.stack = (int)random_below(&w->rng, STACKS);
		if (style == WITH_POOLS || style == WITH_BOTH)
			e.pool = (int)random_below(&w->rng, POOLS);
		for (; e.action < (freed ? 3 : 1); e.action++) {
			e.time = T0 + (int64_t)(3 * i) + e.action;
			put_entry(b, style, w, &e);
		}
		if (i % 1000 == 999) {
			pb_close_list(b);
			pb_op(b, '(');
		}
	}
}

static struct frag_trace *read_many(enum style style, bool uniform, enum pickle_dialect dialect)
{
	struct pickle_bytes b = { .dialect = dialect };
	struct words w = { .rng = 1, .uniform = uniform };
	struct frag_trace *t;

	many_entries(&b, style, &w, 6000);
	pickle_text(&b, "] ] } !.");
	t = snapshot_read_good(&b);
	pb_release(&b);
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
	struct frag_trace *first = read_many(ONE_BY_ONE, uniform, PICKLE_PYTHON2);

	assert_true(first->devs[0].events_count > 8000);
	for (int style = 0; style < STYLES; style++) {
		struct frag_trace *plain = read_many((enum style)style, uniform, PICKLE_PYTHON2);

		same_history(plain, first, false);
		for (int dialect = PICKLE_PYTHON; dialect <= PICKLE_LIBTORCH; dialect++) {
			struct frag_trace *t =
				read_many((enum style)style, uniform, (enum pickle_dialect)dialect);

			same_history(t, plain, true);
			frag_trace_destroy(t);
		}
		assert_int_equal(plain->stacks.count,
				 style == WITH_FRAMES || style == WITH_BOTH ? STACKS + 1 : 1);
		assert_int_equal(plain->devs[0].pools_count, style >= WITH_POOLS ? POOLS : 1);
		frag_trace_destroy(plain);
	}
	frag_trace_destroy(first);
}

TEST(test_many_entries)
{
	check_many(false);
	check_many(true);
}

/* ---- entries like the others, but wrong ------------------------------------------------------ */

enum fault {
	NEGATIVE_SIZE,
	OTHER_STREAM,
	NEGATIVE_TIME,
	NEGATIVE_ADDR,
	HUGE_SIZE,
	HUGE_TIME,
	TEXT_ADDR,
	NUMBER_ACTION,
	SIZE_TWICE,
	NO_ADDR,
	UNKNOWN_ACTION,
	NEVER_REMEMBERED,
	FAULTS
};

static void faulty_entry(struct pickle_bytes *b, struct words *w, enum fault fault)
{
	pb_dict(b);
	pb_text_once(b, "action", &w->key[0]);
	if (fault == NUMBER_ACTION)
		pb_int(b, 1);
	else if (fault == NEVER_REMEMBERED)
		fetch(b, 1u << 30);
	else if (fault == UNKNOWN_ACTION)
		fetch(b, w->key[5]);
	else
		fetch(b, w->action[0]);
	if (fault != NO_ADDR) {
		pb_text_once(b, "addr", &w->key[1]);
		if (fault == TEXT_ADDR)
			fetch(b, w->action[0]);
		else
			pb_int(b, fault == NEGATIVE_ADDR ? -S1 : S1);
	}
	pb_text_once(b, "size", &w->key[2]);
	pb_int(b, fault == NEGATIVE_SIZE ? -512 : fault == HUGE_SIZE ? INT64_MAX : 512);
	if (fault == SIZE_TWICE) {
		pb_text_once(b, "size", &w->key[2]);
		pb_int(b, 1024);
	}
	pb_text_once(b, "stream", &w->key[3]);
	pb_int(b, fault == OTHER_STREAM ? 5 : 0);
	pb_text_once(b, "time_us", &w->key[4]);
	pb_int(b, fault == HUGE_TIME ? (1ll << 55) - 1 : fault == NEGATIVE_TIME ? -T0 : T0 + 30000);
	pb_text_once(b, "compile_context", &w->key[5]);
	pb_text(b, "N/A");
	pb_text_once(b, "user_metadata", &w->key[6]);
	pb_text_once(b, "", &w->none);
	pb_close_dict(b);
}

/* With many good ones before and some behind: *out as a text that says all. */
static void read_faulty(enum pickle_dialect dialect, enum fault fault, char *out, size_t n)
{
	struct pickle_bytes b = { .dialect = dialect };
	struct words w = { .rng = 1, .uniform = true };
	struct frag_trace *t = NULL;
	struct frag_err err = { 0 };

	many_entries(&b, REMEMBERED, &w, 3000);
	faulty_entry(&b, &w, fault);
	for (int i = 0; i < 5; i++) {
		struct entry e = { 0, S1 + 4096 * (i + 1), 7, 0, T0 + 40000 + i, false, -1, -1 };

		put_entry(&b, REMEMBERED, &w, &e);
	}
	pickle_text(&b, "] ] } !.");
	if (snapshot_read(b.bytes, b.len, NULL, &t, &err)) {
		char *at = strstr(err.msg, " byte ");

		if (at) /* not the same in both */
			*at = 0;
		snprintf(out, n, "%d: %s", err.code, err.msg);
	} else {
		const struct frag_trace_dev *d = &t->devs[0];
		const struct frag_event *e = &d->events[d->events_count - 6];

		snprintf(out, n, "%zu events, %d of %llu bytes at %llu us", d->events_count,
			 e->kind, (unsigned long long)e->bytes, (unsigned long long)e->time_us);
	}
	frag_trace_destroy(t);
	pb_release(&b);
}

/* With templates and without: the same answer. */
TEST(test_faulty_entries)
{
	for (int fault = 0; fault < FAULTS; fault++) {
		char with[512], without[512];

		read_faulty(PICKLE_PYTHON, (enum fault)fault, with, sizeof(with));
		read_faulty(PICKLE_PYTHON2, (enum fault)fault, without, sizeof(without));
		assert_string_equal(with, without);
		assert_int_equal(strstr(with, " events") != NULL,
				 fault == SIZE_TWICE || fault == NO_ADDR || fault == HUGE_TIME ||
					 fault == UNKNOWN_ACTION || fault == OTHER_STREAM);
	}
}

/* A completion folds into the request right before it only if both are of one block and stream. */
TEST(test_almost_complete)
{
	for (int dialect = PICKLE_PYTHON; dialect <= PICKLE_PYTHON2; dialect++) {
		struct pickle_bytes b = { .dialect = (enum pickle_dialect)dialect };
		struct words w = { .rng = 1, .uniform = true };
		struct frag_trace *t;
		const struct frag_event *e;
		int64_t time = T0 + 30000;

		many_entries(&b, REMEMBERED, &w, 3000);
		for (int k = 0; k < 2; k++) {
			struct entry x = { 0, S1, 512, 0, time++, false, -1, -1 };
			struct entry y = { 0, S1 + 512, 512, 0, time++, false, -1, -1 };

			put_entry(&b, REMEMBERED, &w, &x);
			put_entry(&b, REMEMBERED, &w, &y);
			x.action = y.action = 1;
			put_entry(&b, REMEMBERED, &w, &y);
			put_entry(&b, REMEMBERED, &w, &x);
			x.action = y.action = 2;
			y.stream = 3 * k; /* completed as if it were of another stream */
			put_entry(&b, REMEMBERED, &w, &y);
			put_entry(&b, REMEMBERED, &w, &x);
			y.addr += 4096;
			for (y.action = 0; y.action < 3; y.action++) {
				y.stream = y.action == 2 ? 3 : 0;
				put_entry(&b, REMEMBERED, &w, &y);
			}
		}
		pickle_text(&b, "] ] } !.");
		t = snapshot_read_good(&b);
		e = &t->devs[0].events[t->devs[0].events_count - 18];
		for (int k = 0; k < 2; k++, e += 9) {
			static const uint8_t kinds[] = {
				FRAG_EV_ALLOC,		FRAG_EV_ALLOC,
				FRAG_EV_FREE_REQUESTED, FRAG_EV_FREE_REQUESTED,
				FRAG_EV_FREE_COMPLETED, FRAG_EV_FREE_COMPLETED,
				FRAG_EV_ALLOC,		FRAG_EV_FREE_REQUESTED,
				FRAG_EV_FREE_COMPLETED
			};

			for (int i = 0; i < 9; i++)
				assert_int_equal(e[i].kind, kinds[i]);
		}
		frag_trace_destroy(t);
		pb_release(&b);
	}
}

/* Each entry takes its action from what the one before remembered: rows that are matched together
 * must not do so before that one is done. */
TEST(test_refers_to_the_one_before)
{
	struct pickle_bytes b = { .dialect = PICKLE_PYTHON };
	struct words w = { 0 };
	struct frag_trace *t;

	pb_begin(&b);
	pickle_text(&b, "{ segments [ ]");
	put_filler(&b, &w);
	pickle_text(&b, "device_traces [ [");
	for (int i = 0; i < 500; i++) {
		pb_dict(&b);
		pb_text_once(&b, "action", &w.key[0]);
		pb_text_once(&b, "alloc", &w.action[0]);
		pb_text_once(&b, "addr", &w.key[1]);
		pb_int(&b, S0 + 512 * i);
		pb_text_once(&b, "size", &w.key[2]);
		pb_int(&b, 300);
		pb_text_once(&b, "compile_context", &w.key[5]);
		w.action[0] = b.memo;
		pb_text(&b, "alloc");
		pb_close_dict(&b);
	}
	pickle_text(&b, "] ] } !.");
	t = snapshot_read_good(&b);
	assert_int_equal(t->devs[0].events_count, 500);
	for (int i = 0; i < 500; i++) {
		assert_int_equal(t->devs[0].events[i].kind, FRAG_EV_ALLOC);
		assert_true(t->devs[0].addrs[i] == (frag_addr_t)(S0 + 512 * i));
	}
	frag_trace_destroy(t);
	pb_release(&b);
}
