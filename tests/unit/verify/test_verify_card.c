/* SPDX-License-Identifier: Apache-2.0 */
/* verify on a card: here a simulated one, and one whose addresses only grow. */
#include "test.h"

#include <frag/replay.h>
#include <frag/trace.h>

#include "sample_trace.h"

static struct frag_sim_config h200 = { .context_bytes = UINT64_MAX };

static int verify_on(const char *path, struct frag_device *dev, const char *conf, uint64_t limit,
		     struct frag_verify_result *r, struct frag_err *err)
{
	struct frag_trace *trace = NULL;
	int rc = frag_trace_read(path, NULL, &trace, err);

	if (!rc)
		rc = frag_verify_card(trace, 0, dev, &h200, limit, conf, r, err);
	frag_trace_destroy(trace);
	frag_dev_close(dev);
	return rc;
}

static struct frag_device *sim(void)
{
	struct frag_device *d = NULL;

	assert_int_equal(frag_sim_open(&h200, &d, NULL), 0);
	return d;
}

TEST(test_same)
{
	struct frag_verify_result r;
	struct frag_err err;

	assert_int_equal(verify_on("traces/gnn.default.cft", sim(), NULL, UINT64_MAX, &r, &err), 0);
	assert_string_equal(r.first_difference, "");
	assert_true(r.identical);
	assert_int_equal(r.cause, FRAG_CAUSE_NONE);
	assert_string_equal(r.cause_text, "");
	assert_int_equal(r.allocs, 9630);
	assert_int_equal(r.allocs_same, r.allocs);
	assert_int_equal(r.segments, 25);
	assert_int_equal(r.segments_same, r.segments);
	assert_true(r.peak_reserved_bytes > FRAG_GIB);
	frag_verify_result_release(&r);
}

/* Other settings make other segments. */
TEST(test_different)
{
	struct frag_verify_result r;
	struct frag_err err;

	assert_int_equal(verify_on("traces/gnn.default.cft", sim(), "max_split_size_mb:128",
				   UINT64_MAX, &r, &err),
			 0);
	assert_false(r.identical);
	assert_non_null(strstr(r.first_difference, "on the card"));
	assert_true(r.segments_same < r.segments);
	assert_int_equal(r.cause, FRAG_CAUSE_INPUT);
	assert_non_null(strstr(r.cause_text, "differs from the recording, too: event 14: "));
	frag_verify_result_release(&r);
}

/* The recording ran out of memory under a limit; without it the card serves everything. */
TEST(test_limit)
{
	struct frag_verify_result r;
	struct frag_err err;

	assert_int_equal(verify_on("traces/oomcap.default.cft", sim(), NULL, UINT64_MAX, &r, &err),
			 0);
	assert_false(r.identical);
	assert_int_equal(r.ooms, 9);
	assert_int_equal(r.ooms_same, 0);
	assert_int_equal(r.cause, FRAG_CAUSE_INPUT);
	assert_non_null(strstr(r.cause_text, "the driver refused memory at event 4965"));
	assert_non_null(strstr(r.cause_text, "give it with --limit"));
	frag_verify_result_release(&r);
}

TEST(test_late)
{
	struct frag_verify_result r;
	struct frag_err err;

	assert_int_equal(verify_on("traces/gnn.late.cft", sim(), NULL, UINT64_MAX, &r, &err),
			 FRAG_ENOTSUP);
	assert_non_null(strstr(err.msg, "began late"));
}

TEST(test_no_conf)
{
	struct frag_verify_result r;
	struct frag_err err;

	assert_int_equal(
		verify_on("traces/gnn.default.cft", sim(), "no_such:1", UINT64_MAX, &r, &err),
		FRAG_EUSAGE);
}

/* ---- ties that addresses decide ---- */

#define LOW 0x7f0000000000ull
#define HIGH 0x7f0040000000ull
#define NEW 0x7f0080000000ull
#define MIB_8 (8 * FRAG_MIB)
#define MIB_12 (12 * FRAG_MIB)
#define MIB_20 (20 * FRAG_MIB)

#define COPY(to, from) \
	do { \
		(to) = frag_host_calloc(FRAG_ARRAY_LEN(from), sizeof((from)[0])); \
		assert_non_null(to); \
		memcpy(to, from, sizeof(from)); \
	} while (0)

/*
 * A request of 12 MiB (event 3) finds two free blocks of that size: a whole segment, and what
 * 8 MiB left of a segment of 20 MiB. The recording took the whole one, at the lower address, so
 * that empty_cache found nothing to give back and the next 12 MiB went into the rest.
 */
static struct frag_trace *tied(void)
{
	static const struct frag_event events[] = {
		{ .kind = FRAG_EV_ALLOC, .bytes = MIB_12, .slot = 0 },
		{ .kind = FRAG_EV_ALLOC, .bytes = MIB_8, .slot = 1, .time_us = 1 },
		{ .kind = FRAG_EV_FREE, .bytes = MIB_12, .slot = 0, .time_us = 2 },
		{ .kind = FRAG_EV_ALLOC, .bytes = MIB_12, .slot = 0, .time_us = 3 },
		{ .kind = FRAG_EV_TRIM, .time_us = 4 },
		{ .kind = FRAG_EV_ALLOC, .bytes = MIB_12, .slot = 2, .time_us = 5 },
		{ .kind = FRAG_EV_FREE, .bytes = MIB_12, .slot = 2, .time_us = 6 },
		{ .kind = FRAG_EV_FREE, .bytes = MIB_12, .slot = 0, .time_us = 7 },
	};
	static const frag_addr_t addrs[] = {
		LOW,	      HIGH,	    FRAG_NO_ADDR, LOW,
		FRAG_NO_ADDR, HIGH + MIB_8, FRAG_NO_ADDR, FRAG_NO_ADDR,
	};
	static const struct frag_evidence seen[] = {
		{ .before = 0, .addr = LOW, .bytes = MIB_12, .kind = FRAG_SEEN_SEGMENT_ALLOC },
		{ .before = 1, .addr = HIGH, .bytes = MIB_20, .kind = FRAG_SEEN_SEGMENT_ALLOC },
	};
	static const uint64_t streams[] = { 0 };
	static const struct frag_pool_id pools[] = { { 0, 0 } };
	struct frag_trace *t = sample_trace_empty();
	struct frag_trace_dev *dev = t->devs = frag_host_calloc(1, sizeof(*t->devs));

	assert_non_null(dev);
	t->devs_count = 1;
	COPY(dev->events, events);
	dev->events_count = FRAG_ARRAY_LEN(events);
	dev->slots_count = 3;
	COPY(dev->streams, streams);
	COPY(dev->pools, pools);
	dev->streams_count = dev->pools_count = 1;
	dev->has_evidence = true;
	COPY(dev->addrs, addrs);
	COPY(dev->seen, seen);
	dev->seen_count = FRAG_ARRAY_LEN(seen);
	frag_trace_set_torch(t, 211, 211); /* addresses decide */
	return t;
}

/* A card that gives three addresses, one after another, and then its own. */
struct placement {
	const frag_addr_t *addrs;
	size_t next;
};

static int place_in_order(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr)
{
	struct placement *p = ctx;

	(void)bytes;
	if (kind != FRAG_CALL_MALLOC || p->next == 3)
		return -1;
	*addr = p->addrs[p->next++];
	return 0;
}

static const frag_addr_t as_recorded[] = { LOW, HIGH, NEW }, exchanged[] = { HIGH, LOW, NEW };

static void verify_tied(const frag_addr_t *addrs, uint64_t total_bytes, uint64_t failing_call,
			struct frag_verify_result *r)
{
	struct placement p = { .addrs = addrs };
	struct frag_sim_config card = { .total_bytes = total_bytes,
					.place = place_in_order,
					.place_ctx = &p };
	struct frag_trace *trace = tied();
	struct frag_err err = { 0 };
	struct frag_device *dev;

	assert_int_equal(frag_sim_open(&card, &dev, NULL), 0);
	dev->fail_call = failing_call;
	dev->fail_all_after = failing_call != 0;
	if (frag_verify_card(trace, 0, dev, &h200, UINT64_MAX, NULL, r, &err))
		fail_msg("%s", err.msg);
	assert_null(dev->placed);
	frag_dev_close(dev);
	frag_trace_destroy(trace);
}

/* The same addresses, and others in the same order. */
TEST(test_tie_same)
{
	static const frag_addr_t elsewhere[] = { LOW / 2, HIGH / 2, NEW / 2 };
	struct frag_verify_result r;

	for (unsigned k = 0; k < 2; k++) {
		verify_tied(k ? elsewhere : as_recorded, 0, 0, &r);
		assert_string_equal(r.first_difference, "");
		assert_true(r.identical);
		assert_int_equal(r.segments_same, 2);
		assert_int_equal(r.cause, FRAG_CAUSE_NONE);
		frag_verify_result_release(&r);
	}
}

TEST(test_tie_exchanged)
{
	struct frag_verify_result r;

	verify_tied(exchanged, 0, 0, &r);
	assert_false(r.identical);
	assert_string_equal(r.first_difference, "event 4: recorded nothing more, on the card "
						"segment_free of 12582912 bytes");
	assert_int_equal(r.cause, FRAG_CAUSE_ADDRESSES);
	assert_string_equal(
		r.cause_text,
		"a tie that addresses decide: with the addresses of this card a simulated card "
		"does "
		"the same in every event, and with the recorded addresses what was recorded; event "
		"3 is the first request served elsewhere: of two free blocks of 12582912 bytes the "
		"recording took the one at 0x7f0000000000, not 0x7f0040800000; here they are at "
		"0x7f0040000000 and 0x7f0000800000, and the replay takes the other one: both times "
		"the lower address");
	frag_verify_result_release(&r);
}

/* A card that refuses what has room is not explained by its addresses, whatever these are. */
TEST(test_tie_failing)
{
	struct frag_verify_result r;

	for (unsigned k = 0; k < 2; k++) {
		verify_tied(k ? exchanged : as_recorded, 0, 2, &r);
		assert_false(r.identical);
		assert_string_equal(r.first_difference, "event 1: recorded as served, on the card "
							"out of memory");
		assert_int_equal(r.cause, FRAG_CAUSE_UNKNOWN);
		assert_non_null(strstr(r.cause_text,
				       "with the addresses of this card does something else: "
				       "event 1: on the card out of memory of 8388608 bytes, "
				       "simulated segment_alloc of 20971520 bytes"));
		frag_verify_result_release(&r);
	}
	/* addresses would explain event 4, but not that the card then refuses the last request */
	verify_tied(exchanged, 0, 4, &r);
	assert_false(r.identical);
	assert_non_null(strstr(r.first_difference, "event 4: "));
	assert_int_equal(r.cause, FRAG_CAUSE_UNKNOWN);
	assert_non_null(strstr(r.cause_text, "event 5: on the card out of memory"));
	frag_verify_result_release(&r);
}

/* A card that is too small: a simulated one of that size fails in the same way, at any address. */
TEST(test_tie_small_card)
{
	struct frag_verify_result r;

	verify_tied(exchanged, 24 * FRAG_MIB, 0, &r);
	assert_false(r.identical);
	assert_int_equal(r.cause, FRAG_CAUSE_INPUT);
	assert_non_null(strstr(r.cause_text, "with the recorded addresses differs from the "
					     "recording, too: event 1: 8388608 bytes were served"));
	frag_verify_result_release(&r);
}

/*
 * A driver that refuses once: what is cached goes back, and the retry is served, often at an
 * address that has just become free. The simulated card refuses nothing, so it holds that address
 * still when the log says that it is given: this is an answer, too.
 */
TEST(test_refused_once)
{
	unsigned unlike = 0, stuck = 0;

	for (uint64_t call = 1; call < 60; call++) {
		struct frag_device *dev = sim();
		struct frag_verify_result r;
		struct frag_err err;

		dev->fail_call = call;
		if (verify_on("traces/streams.default.cft", dev, NULL, UINT64_MAX, &r, &err)) {
			/* it was a cudaFree that failed */
			assert_non_null(strstr(err.msg, "injected failure"));
			continue;
		}
		assert_int_equal(r.cause, r.identical ? FRAG_CAUSE_NONE : FRAG_CAUSE_UNKNOWN);
		unlike += strstr(r.cause_text, "of this card does something else: ") != NULL;
		stuck += strstr(r.cause_text, "of this card fails: ") != NULL;
		frag_verify_result_release(&r);
	}
	assert_true(unlike > 0);
	assert_true(stuck > 0);
}

static void count_placed(void *ctx, enum frag_call call, uint64_t bytes, frag_addr_t addr)
{
	(void)call, (void)bytes, (void)addr;
	++*(unsigned *)ctx;
}

/* Who listens to the device goes on hearing it. */
TEST(test_listener)
{
	struct frag_device *dev = sim();
	struct frag_trace *trace = tied();
	struct frag_verify_result r;
	unsigned heard = 0;

	dev->placed = count_placed;
	dev->placed_ctx = &heard;
	assert_int_equal(frag_verify_card(trace, 0, dev, &h200, UINT64_MAX, NULL, &r, NULL), 0);
	assert_int_equal(heard, dev->stat[FRAG_CALL_MALLOC].count);
	assert_true(heard >= 2);
	assert_true(dev->placed == count_placed && dev->placed_ctx == &heard);
	frag_verify_result_release(&r);
	frag_dev_close(dev);
	frag_trace_destroy(trace);
}

TEST(test_no_evidence)
{
	struct frag_device *dev = sim();
	struct frag_trace *trace = tied();
	struct frag_verify_result r;

	trace->devs[0].has_evidence = false;
	assert_int_equal(frag_verify_card(trace, 0, dev, &h200, UINT64_MAX, NULL, &r, NULL),
			 FRAG_EINPUT);
	frag_dev_close(dev);
	frag_trace_destroy(trace);
}

/* Whatever is short, it is told, and nothing is left behind. */
TEST(test_short_of_memory)
{
	int rc = FRAG_ENOMEM;
	unsigned nth;

	for (nth = 1; rc && nth < 1000; nth++) {
		struct placement p = { .addrs = exchanged };
		struct frag_sim_config card = { .place = place_in_order, .place_ctx = &p };
		struct frag_trace *trace = tied();
		struct frag_verify_result r;
		struct frag_device *dev;

		assert_int_equal(frag_sim_open(&card, &dev, NULL), 0);
		frag_host_fail_after(nth);
		rc = frag_verify_card(trace, 0, dev, &h200, UINT64_MAX, NULL, &r, NULL);
		frag_host_fail_after(0);
		if (rc) {
			assert_int_equal(rc, FRAG_ENOMEM);
		} else {
			assert_int_equal(r.cause, FRAG_CAUSE_ADDRESSES);
			frag_verify_result_release(&r);
		}
		assert_null(dev->placed);
		frag_dev_close(dev);
		frag_trace_destroy(trace);
	}
	assert_int_equal(rc, 0);
	assert_true(nth > 20);
}

/* ---- recordings at other addresses ---- */

#define PLACES 4096u /* a power of two, more than any of these recordings takes */

struct shuffle {
	uint32_t factor, offset, next;
};

/* Every segment in a GiB of its own, in a random order. */
static int place_shuffled(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr)
{
	struct shuffle *s = ctx;

	assert_true(bytes <= FRAG_GIB || kind != FRAG_CALL_MALLOC);
	if (kind != FRAG_CALL_MALLOC)
		return -1;
	assert_true(s->next < PLACES);
	*addr = 0x400000000000ull + (s->next++ * s->factor + s->offset) % PLACES * FRAG_GIB;
	return 0;
}

static void verify_shuffled(const char *path, uint32_t dev, unsigned *by_addresses)
{
	for (uint32_t seed = 0; seed < 12; seed++) {
		struct shuffle s = { .factor = 2654435761u + 2 * 40503u * seed,
				     .offset = 977 * seed };
		struct frag_sim_config card = h200;
		struct frag_trace *trace;
		struct frag_verify_result r;
		struct frag_device *device;
		struct frag_err err = { 0 };

		card.place = place_shuffled;
		card.place_ctx = &s;
		assert_int_equal(frag_trace_read(path, NULL, &trace, NULL), 0);
		assert_int_equal(frag_sim_open(&card, &device, NULL), 0);
		if (frag_verify_card(trace, dev, device, &h200, UINT64_MAX, NULL, &r, &err))
			fail_msg("%s: %s", path, err.msg);
		assert_int_equal(r.cause, r.identical ? FRAG_CAUSE_NONE : FRAG_CAUSE_ADDRESSES);
		if (!r.identical)
			assert_non_null(strstr(r.cause_text, "a tie that addresses decide: "));
		*by_addresses += !r.identical;
		frag_verify_result_release(&r);
		frag_dev_close(device);
		frag_trace_destroy(trace);
	}
}

TEST(test_shuffled)
{
	unsigned differing = 0;

	verify_shuffled("traces/leak.frames.cft", 0, &differing);
	assert_true(differing > 0);
	differing = 0;
	verify_shuffled("traces/modelpar.default.cft", 0, &differing);
	verify_shuffled("traces/modelpar.default.cft", 1, &differing);
	assert_true(differing > 0);
}

/* Addresses that only grow; ranges of expandable segments, too. */
TEST(test_growing)
{
	static const struct {
		const char *path;
		bool identical;
	} rows[] = {
		{ "traces/leak.frames.cft", false },
		{ "traces/gnn.expandable.cft", true },
		{ "traces/mempool.default.cft", true },
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		struct frag_device *dev = NULL;
		struct frag_verify_result r;
		struct frag_err err = { 0 };

		assert_int_equal(frag_null_open(&dev, NULL), 0);
		if (verify_on(rows[i].path, dev, NULL, UINT64_MAX, &r, &err))
			fail_msg("%s: %s", rows[i].path, err.msg);
		assert_int_equal(r.identical, rows[i].identical);
		assert_int_equal(r.cause, r.identical ? FRAG_CAUSE_NONE : FRAG_CAUSE_ADDRESSES);
		frag_verify_result_release(&r);
	}
}
