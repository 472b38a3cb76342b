/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies behind PyTorch's hooks, over a driver that knows which work is ordered: streams, captures, retries, faults,
 * threads, fork.
 */
#include "must.h"
#include "test.h"

#include <pthread.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <frag/trace.h>

#include "fake_driver.h"
#include "inside/live/live_core.h"

#define BLOCKS 400
#define STEPS 6000

/* Every registered policy that a running program can have, and these settings beside. */
static const char *const settings[] = {
	"pytorch:expandable_segments:True",
	"limit:bytes=1G/tlsf",
};
/* Their defaults take most of the card at the first request. */
static const char *const small[] = { "rmm-arena:size=512M", "rmm-pool:initial=64M",
				     "umpire-fixed:objects-per-pool=64" };

static const char *policies[64];
static size_t policies_count;

static int list_policies(void **state)
{
	size_t count;
	const struct frag_policy_ops *const *list = frag_policy_list(&count);
	const uint32_t never = FRAG_POLICY_HIDDEN | FRAG_POLICY_ADAPTOR | FRAG_POLICY_STACK |
			       FRAG_POLICY_NO_MEMORY | FRAG_POLICY_PLANNED;

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(settings); i++)
		policies[policies_count++] = settings[i];
	for (size_t i = 0; i < count; i++) {
		const char *text = list[i]->name;

		if (list[i]->flags & never ||
		    list[i]->needs & FRAG_CAN_ASYNC) /* the fake has no pools */
			continue;
		for (size_t k = 0; k < FRAG_ARRAY_LEN(small); k++)
			if (!strncmp(small[k], text, strlen(text)) && small[k][strlen(text)] == ':')
				text = small[k];
		if (policies_count == FRAG_ARRAY_LEN(policies))
			return -1;
		policies[policies_count++] = text;
	}
	return 0;
}

static uint64_t seed;

static unsigned draw(unsigned below)
{
	return (unsigned)test_roll(&seed) % below;
}

static void close_all(void)
{
	pthread_mutex_lock(&frag_live.opening);
	for (int i = 0; i < FRAG_LIVE_DEVICES_MAX; i++)
		if (frag_live.devs[i])
			frag_live_dev_close(frag_live.devs[i]);
	frag_policy_spec_destroy(frag_live.spec);
	frag_policy_spec_destroy(frag_live.aside);
	memset(frag_live.devs, 0, sizeof(frag_live.devs));
	memset(frag_live.fractions, 0, sizeof(frag_live.fractions));
	frag_live.spec = frag_live.aside = NULL;
	frag_live.pid = 0;
	frag_live.on_oom = NULL;
	pthread_mutex_unlock(&frag_live.opening);
}

static void start(const char *policy, uint64_t capacity, uint64_t limit)
{
	struct frag_live_options o = { .size = sizeof(o), .policy = policy, .limit_bytes = limit };
	char text[400] = "";

	close_all();
	fake_reset(capacity);
	seed = 7;
	if (frag_live_start(&o, text, sizeof(text)))
		fail_msg("%s", text);
}

static void sound(const char *policy)
{
	if (fake.races || fake.faults)
		fail_msg("%s: %s", policy, fake.first);
}

static struct frag_live_dev *device(int ordinal)
{
	struct frag_live_dev *d = NULL;
	struct frag_err err = { 0 };

	if (frag_live_dev_get(ordinal, &d, &err))
		fail_msg("%s", err.msg);
	return d;
}

static int take(uint64_t bytes, unsigned stream, uint64_t *addr)
{
	int rc = 0;

	FRAG_LIVE_WITH (d, device(0))
		rc = frag_live_take(d, bytes, fake_stream(stream), addr, NULL);
	return rc;
}

/* ---- a program on several streams ----------------------------------------------------------- */

struct program {
	struct {
		uint64_t addr, bytes;
		unsigned stream;
	} b[BLOCKS];
	unsigned streams;
	uint64_t refused, errors;
};

static void alloc_one(struct program *p, unsigned i, unsigned stream)
{
	int rc;

	p->b[i].bytes = 4096ull << draw(9);
	p->b[i].stream = stream;
	rc = take(p->b[i].bytes, stream, &p->b[i].addr);
	p->refused += rc > 0;
	p->errors += rc < 0;
	if (rc)
		p->b[i].addr = 0;
	else
		fake_work(stream, p->b[i].addr, p->b[i].bytes, true);
}

static void use_one(struct program *p, unsigned i)
{
	unsigned other = draw(p->streams);

	if (draw(3))
		return;
	/* as PyTorch wants it: the other stream waits for the owner, and is named */
	if (other != p->b[i].stream) {
		const struct frag_cu *cu = frag_cu_open(NULL);
		void *event;

		cu->cuEventCreate(&event, 0);
		cu->cuEventRecord(event, fake_stream(p->b[i].stream));
		cu->cuStreamWaitEvent(fake_stream(other), event, 0);
		frag_live_record_stream((void *)(uintptr_t)p->b[i].addr, fake_stream(other));
	}
	fake_work(other, p->b[i].addr, p->b[i].bytes, false);
}

static void free_one(struct program *p, unsigned i)
{
	frag_live_free((void *)(uintptr_t)p->b[i].addr, (ptrdiff_t)p->b[i].bytes, 0,
		       fake_stream(p->b[i].stream));
	p->b[i].addr = 0;
}

static void run_program(struct program *p, unsigned steps)
{
	for (unsigned n = 0; n < steps; n++) {
		unsigned i = draw(BLOCKS);

		fake_ready(draw(256));
		if (!p->b[i].addr)
			alloc_one(p, i, draw(p->streams));
		else if (draw(2))
			use_one(p, i);
		else
			free_one(p, i);
		if (!draw(1000))
			frag_live_reset();
	}
}

static void free_all(struct program *p)
{
	for (unsigned i = 0; i < BLOCKS; i++)
		if (p->b[i].addr)
			free_one(p, i);
}

TEST(test_streams_are_waited_for)
{
	for (size_t k = 0; k < policies_count; k++) {
		struct program p = { .streams = 4 };
		struct frag_live_stats st = { .size = sizeof(st) };

		start(policies[k], 2 * FRAG_GIB, 0);
		run_program(&p, STEPS);
		free_all(&p);
		sound(policies[k]);
		assert_int_equal(p.errors + p.refused, 0);
		assert_int_equal(frag_live_stats(0, &st), 0);
		assert_int_equal(st.allocated_bytes[0].current, 0);
		assert_int_equal(st.requested_bytes[0].allocated, st.requested_bytes[0].freed);
		FRAG_LIVE_WITH (d, device(0))
			frag_live_settle(d, true);
		frag_live_stats(0, &st);
		assert_int_equal(st.active_bytes[0].current, 0);
		assert_int_equal(st.waiting_blocks, 0);
		close_all();
		assert_int_equal(fake.held_bytes, 0);
		assert_int_equal(fake_held(), 0);
	}
}

/* The check itself: without the waits the same program races. */
TEST(test_races_are_seen)
{
	struct program p = { .streams = 4 };

	start("tlsf", 2 * FRAG_GIB, 0);
	device(0)->handed = false;
	run_program(&p, STEPS);
	assert_true(fake.races > 0);
	close_all();
}

/* ---- captures ---------------------------------------------------------------------------------- */

static bool is_stream_two(const struct frag_live_filter *self, void **stream)
{
	(void)self;
	return *stream == fake_stream(2);
}

static int clones;
static bool manage(struct frag_live_filter *to, const struct frag_live_filter *from, int op)
{
	if (op == 2)
		*to = *from;
	clones += op == 2 ? 1 : op == 3 ? -1 : 0;
	return false;
}

#define GRAPH_BLOCKS 20

static void capture(const struct frag_live_pool_id *id, uint64_t *addrs)
{
	struct frag_live_filter filter = { .manager = manage, .invoker = is_stream_two };
	struct program p = { .streams = 2 }; /* others go on meanwhile */

	frag_live_begin_pool(0, *id, &filter);
	fake_capture(2, true);
	for (unsigned i = 0; i < GRAPH_BLOCKS; i++) {
		assert_int_equal(take(300000, 2, &addrs[i]), 0);
		if (i % 2) /* a temporary of the graph */
			frag_live_free((void *)(uintptr_t)addrs[i], 300000, 0, fake_stream(2));
		run_program(&p, 50);
	}
	free_all(&p);
	fake_capture(2, false);
	frag_live_end_pool(0, *id);
}

/* Eager requests never touch what a graph uses, freed in it or not. */
static void eager_stays_out(const uint64_t *addrs)
{
	struct program p = { .streams = 4 };

	run_program(&p, 2000);
	for (unsigned i = 0; i < BLOCKS; i++)
		for (unsigned k = 0; k < GRAPH_BLOCKS; k++)
			assert_true(!p.b[i].addr || p.b[i].addr + p.b[i].bytes <= addrs[k] ||
				    addrs[k] + 300000 <= p.b[i].addr);
	free_all(&p);
}

TEST(test_memory_of_graphs_stays)
{
	for (size_t k = 0; k < policies_count; k++) {
		const struct frag_live_pool_id id = { 5, 0 };
		uint64_t first[GRAPH_BLOCKS], second[GRAPH_BLOCKS], held;
		struct program p = { .streams = 4 };

		start(policies[k], 2 * FRAG_GIB, 0);
		run_program(&p, 1000);
		frag_live_reset();
		capture(&id, first);
		frag_live_reset();
		eager_stays_out(first);
		capture(&id, second); /* a second graph of the same pool */
		frag_live_release_pool(0, id);
		frag_live_reset();
		eager_stays_out(first);
		sound(policies[k]);
		for (unsigned i = 0; i < GRAPH_BLOCKS; i += 2) {
			frag_live_free((void *)(uintptr_t)first[i], 300000, 0, fake_stream(2));
			frag_live_free((void *)(uintptr_t)second[i], 300000, 0, fake_stream(2));
		}
		frag_live_release_pool(0, id);
		frag_live_release_pool(0, id); /* 2.1 does it twice */
		held = fake.held_bytes;
		frag_live_reset();
		assert_true(fake.held_bytes <= held);
		assert_false(device(0)->pools[0].used);
		free_all(&p);
		sound(policies[k]);
		assert_int_equal(clones, 0);
		close_all();
		assert_int_equal(fake.held_bytes, 0);
	}
}

TEST(test_captures_by_stream)
{
	const struct frag_live_pool_id id = { 1, 0 };
	struct frag_live_dev *d;

	start("tlsf", FRAG_GIB, 0);
	frag_live_begin_stream(0, fake_stream(3), id);
	d = device(0);
	assert_int_equal(frag_live_pool_of(d, fake_stream(3)), 1);
	assert_int_equal(frag_live_pool_of(d, fake_stream(1)), 0);
	frag_live_end_stream(0, fake_stream(3));
	assert_int_equal(d->captures_count, 0);
	close_all();
}

/* ---- out of memory --------------------------------------------------------------------------------- */

TEST(test_retry)
{
	struct frag_live_stats st = { .size = sizeof(st) };
	uint64_t a, b;

	for (unsigned k = 0; k < 2; k++) {
		start(k ? "bfc:growth=true" : "pytorch", FRAG_GIB, 512 * FRAG_MIB);
		assert_int_equal(take(400 * FRAG_MIB, 1, &a), 0);
		fake_work(1, a, 400 * FRAG_MIB, true);
		frag_live_record_stream((void *)(uintptr_t)a, fake_stream(2));
		fake_work(2, a, 400 * FRAG_MIB, false);
		fake_ready(0);
		frag_live_free((void *)(uintptr_t)a, 400 << 20, 0, fake_stream(1));
		frag_live_stats(0, &st);
		assert_int_equal(st.waiting_blocks, 1);
		assert_true(st.active_bytes[0].current >= 400 * (int64_t)FRAG_MIB);
		/* waits for the event, gives the segment back, and is served */
		assert_int_equal(take(300 * FRAG_MIB, 3, &b), 0);
		frag_live_stats(0, &st);
		assert_int_equal(st.waiting_blocks, 0);
		assert_int_equal(st.num_alloc_retries, 1);
		assert_true(st.reserved_bytes[0].peak <= 512 * (int64_t)FRAG_MIB);
		assert_int_equal(take(300 * FRAG_MIB, 3, &a), FRAG_OOM);
		frag_live_stats(0, &st);
		assert_int_equal(st.num_ooms, 1);
		close_all();
	}
}

TEST(test_limits)
{
	struct frag_live_stats st = { .size = sizeof(st) };
	uint64_t a;

	/* a policy that knows no limit of the process */
	start("native", FRAG_GIB, 64 * FRAG_MIB);
	assert_int_equal(take(65 * FRAG_MIB, 0, &a), FRAG_OOM);
	assert_int_equal(take(64 * FRAG_MIB, 0, &a), 0);
	close_all();
	start("pytorch", FRAG_GIB, 0);
	frag_live_fraction(0.25, 0); /* before the card is opened */
	assert_int_equal(take(1000, 0, &a), 0);
	frag_live_stats(0, &st);
	assert_true(st.fraction == 0.25);
	assert_int_equal(take(300 * FRAG_MIB, 0, &a), FRAG_OOM);
	frag_live_fraction(0.5, 0);
	assert_int_equal(take(200 * FRAG_MIB, 0, &a), 0);
	frag_live_stats(0, &st);
	assert_int_equal(st.limit_bytes, FRAG_GIB / 2);
	assert_true(st.fraction == 0.5);
	close_all();
}

/* ---- faults -------------------------------------------------------------------------------------------- */

TEST(test_every_nth_call_fails)
{
	for (size_t k = 0; k < policies_count; k++) {
		for (unsigned every = 1; every < 12; every += 2) {
			struct program p = { .streams = 3 };
			char text[16];

			snprintf(text, sizeof(text), "%u", every);
			setenv("CUFRAG_FAIL_EVERY", text, 1);
			start(policies[k], FRAG_GIB, 0);
			unsetenv("CUFRAG_FAIL_EVERY");
			run_program(&p, 500);
			device(0)->dev->fail_call = 0;
			device(0)->fail_every = 0;
			free_all(&p);
			/* and it works again */
			alloc_one(&p, 0, 1);
			if (!p.b[0].addr)
				fail_msg("%s: refused after call %u failed", policies[k], every);
			free_one(&p, 0);
			sound(policies[k]);
			close_all();
			assert_int_equal(fake.held_bytes, 0);
		}
	}
}

/* ---- threads, processes ----------------------------------------------------------------------------------- */

static void *thread(void *ctx)
{
	unsigned n = *(unsigned *)ctx;
	void *mine[64] = { NULL };

	for (unsigned i = 0; i < 3000; i++) {
		unsigned at = (i * 37 + n) % 64;
		ptrdiff_t bytes = 512 + (ptrdiff_t)(i * 7919 % 100000);

		if (mine[at])
			frag_live_free(mine[at], bytes, 0, fake_stream(n));
		mine[at] = mine[at] ? NULL : frag_live_alloc(bytes, 0, fake_stream(n));
		if (mine[at] && i % 5 == 0)
			frag_live_record_stream(mine[at], fake_stream((n + 1) % 4));
		if (i % 500 == 0)
			frag_live_reset();
	}
	for (unsigned at = 0; at < 64; at++)
		frag_live_free(mine[at], 0, 0, NULL);
	return NULL;
}

TEST(test_threads)
{
	static const char *const three[] = { "pytorch", "vmm", "tlsf" };
	unsigned numbers[4] = { 0, 1, 2, 3 };
	struct frag_live_stats st = { .size = sizeof(st) };
	pthread_t threads[4];

	for (unsigned k = 0; k < 3; k++) {
		start(three[k], 4 * FRAG_GIB, 0);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, thread, &numbers[i]), 0);
		for (unsigned i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
		sound(three[k]);
		frag_live_stats(0, &st);
		assert_int_equal(st.allocation[0].current, 0);
		assert_int_equal(st.allocation[0].allocated, st.allocation[0].freed);
		close_all();
	}
}

TEST(test_child_does_nothing)
{
	void *p;
	pid_t child;
	int status;

	start("pytorch", FRAG_GIB, 0);
	p = frag_live_alloc(5000, 0, NULL);
	child = fork();
	if (!child) {
		uint64_t calls = fake.calls;

		frag_live_free(p, 5000, 0, NULL);
		frag_live_reset();
		_exit(fake.calls == calls && !frag_live_alloc(100, 0, NULL) ? 0 : 1);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	frag_live_free(p, 5000, 0, NULL);
	close_all();
}

TEST(test_odd_requests)
{
	struct frag_live_stats st = { .size = sizeof(st) };
	struct frag_live_part parts[64];
	size_t bytes = 0, n, live = 0;
	char *p, *q;

	start("pytorch", FRAG_GIB, 0);
	assert_null(frag_live_alloc(0, 0, NULL));
	frag_live_free(NULL, 0, 0, NULL);
	p = frag_live_alloc(777, 1, fake_stream(1));
	q = frag_live_alloc(4, 0, NULL);
	frag_live_free(q + 4096, 4, 0, NULL); /* not ours: nothing */
	assert_ptr_equal(frag_live_base(p + 100, &bytes), p);
	assert_int_equal(bytes, 2 * FRAG_MIB);
	assert_int_equal(frag_live_stats(5, &st), -1);
	assert_int_equal(frag_live_stats(1, &st), 0);
	assert_int_equal(st.requested_bytes[FRAG_LIVE_SMALL].current, 777);
	assert_int_equal(st.allocated_bytes[FRAG_LIVE_ALL].current, 1024);
	assert_int_equal(st.reserved_bytes[FRAG_LIVE_ALL].current, 2 * FRAG_MIB);
	n = frag_live_snapshot(1, parts, 64);
	assert_int_equal(n, 3);
	for (size_t i = 0; i < n; i++)
		live += parts[i].kind == 1 && parts[i].state == 0 ? parts[i].requested : 0;
	assert_int_equal(live, 777);
	frag_live_free(p, 777, 1, fake_stream(1));
	frag_live_reset_peak(1);
	frag_live_stats(1, &st);
	assert_int_equal(st.requested_bytes[0].peak, 0);
	frag_live_free(q, 4, 0, NULL);
	close_all();
}

static uint32_t asked;

static uint32_t where(void)
{
	/* no lock is held: the caller may come back in */
	frag_live_history_read(0, NULL, 0);
	return ++asked;
}

TEST(test_history)
{
	static const uint32_t all[] = { FRAG_LIVE_DID_SEGMENT_ALLOC, FRAG_LIVE_DID_ALLOC,
					FRAG_LIVE_DID_REQUEST,	     FRAG_LIVE_DID_COMPLETE,
					FRAG_LIVE_DID_OOM,	     FRAG_LIVE_DID_SEGMENT_FREE };
	struct frag_live_event e[8];
	frag_addr_t addr;
	void *p;

	start("pytorch", FRAG_GIB, 0);
	frag_live_history(6, UINT32_MAX, 1);
	frag_live_on_context(where, NULL);
	asked = 0;
	p = frag_live_alloc(5000, 0, NULL);
	frag_live_free(p, 5000, 0, NULL);
	assert_int_equal(take(4 * FRAG_GIB, 0, &addr), FRAG_OOM);
	frag_live_reset();
	/* the cache was given back for the request: before it was refused */
	assert_int_equal(frag_live_history_read(0, e, 8), 6);
	for (unsigned i = 0, seen = 0; i < 6; i++, seen = 0) {
		for (unsigned k = 0; k < 6; k++)
			seen += e[k].action == all[i];
		assert_int_equal(seen, 1);
	}
	assert_int_equal(e[0].context, 1);
	assert_int_equal(e[3].context,
			 1); /* of a free that nobody was asked about: of its request */
	assert_int_equal(e[1].addr, (uintptr_t)p);
	assert_true(e[0].time_us && e[5].time_us >= e[0].time_us);
	/* the oldest go */
	p = frag_live_alloc(700, 0, NULL);
	assert_int_equal(frag_live_history_read(0, e, 8), 6);
	assert_int_equal(e[5].action, FRAG_LIVE_DID_ALLOC);
	assert_int_equal(e[5].bytes, 700);
	assert_int_equal(e[0].action, FRAG_LIVE_DID_REQUEST);
	frag_live_history(0, 0, 0);
	frag_live_free(p, 700, 0, NULL);
	assert_int_equal(frag_live_history_read(0, e, 8), 6);
	frag_live_history(2, 1u << FRAG_LIVE_DID_ALLOC, 0); /* too small for what is there */
	assert_int_equal(frag_live_history_read(0, e, 8), 0);
	frag_live_free(frag_live_alloc(700, 0, NULL), 700, 0, NULL);
	assert_int_equal(frag_live_history_read(0, e, 8), 1);
	frag_live_history(0, UINT32_MAX, 0);
	frag_live_on_context(NULL, NULL);
	assert_int_equal(frag_live_history_read(0, e, 8), 0);
	assert_int_equal(frag_live_history_read(9, e, 8), 0);
	close_all();
}

static void sum_up(void *ctx, const char *name, int64_t value)
{
	if (!strcmp(name, "active.all.current"))
		*(int64_t *)ctx += value;
	/* without a lock: the program may ask anything meanwhile */
	frag_live_free(frag_live_alloc(512, 0, NULL), 512, 0, NULL);
}

TEST(test_what_python_asks)
{
	struct frag_live_call call;
	int64_t active = 0, calls = 0;
	void *p;

	start("pytorch", FRAG_GIB, 0);
	p = frag_live_alloc(5000, 0, NULL);
	frag_live_counters(0, sum_up, &active);
	assert_int_equal(active, 1);
	for (int i = 0; !frag_live_call(0, i, &call); i++)
		calls += strcmp(call.name, "cudaMalloc") ? 0 : (int64_t)call.count;
	assert_int_equal(calls, 1);
	assert_string_equal(frag_live_policy(), "pytorch");
	frag_live_free(p, 5000, 0, NULL);
	close_all();
}

TEST(test_refused_at_the_start)
{
	struct frag_live_options o = { .size = sizeof(o), .policy = "ggml-vmm" };
	char text[400] = "";

	fake_reset(FRAG_GIB);
	assert_int_equal(frag_live_start(&o, text, sizeof(text)), FRAG_EUSAGE);
	assert_non_null(strstr(text, "reverse order"));
	o.policy = "nosuch";
	assert_int_equal(frag_live_start(&o, text, sizeof(text)), FRAG_EUSAGE);
	o.policy = "pytorch";
	o.record = "/nonexistent/folder/log.csv";
	assert_int_equal(frag_live_start(&o, text, sizeof(text)), FRAG_EOUTPUT);
}

/*
 * A recording can be read at any time; what it had before goes only if nobody else writes it. The last test: it goes on
 * recording.
 */
TEST(test_recording)
{
	char path[] = "/tmp/live-test-XXXXXX", text[512];
	struct frag_live_options o = { .size = sizeof(o), .policy = "vmm", .record = path };
	struct frag_trace *trace = NULL;
	struct frag_err err = { 0 };
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "keep", 4), 4);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	fake_reset(FRAG_GIB);
	assert_int_equal(frag_live_start(&o, text, sizeof(text)), FRAG_EOUTPUT);
	assert_non_null(strstr(text, "another process records into"));
	assert_int_equal(lseek(fd, 0, SEEK_END), 4);
	close(fd);

	assert_int_equal(frag_live_start(&o, text, sizeof(text)), 0);
	frag_live_flush();
	assert_int_equal(frag_trace_read(path, NULL, &trace, &err), FRAG_EINPUT);
	assert_non_null(strstr(err.msg, "contains no request yet"));
	for (unsigned round = 1; round < 4; round++) {
		uint64_t a = 0;

		assert_int_equal(take(FRAG_MIB * round, 0, &a), 0);
		frag_live_flush();
		trace = must_read(path);
		assert_int_equal(trace->devs[0].events_count, 2 * round - 1);
		frag_trace_destroy(trace);
		frag_live_free((void *)(uintptr_t)a, 0, 0, NULL);
	}
	unlink(path);
	close_all();
}

TEST_GROUP(list_policies, NULL)
