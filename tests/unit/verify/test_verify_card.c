/* SPDX-License-Identifier: Apache-2.0 */
/* verify on a card: here a simulated one, and one whose addresses only grow. */
#include "test.h"

#include <frag/opt.h>
#include <frag/replay.h>
#include <frag/trace.h>

#include "must.h"

static struct frag_sim_config h200 = { .context_bytes = UINT64_MAX };

/* ---- ties that addresses decide ---- */

#define LOW 0x7f0000000000ull
#define HIGH 0x7f0040000000ull
#define NEW 0x7f0080000000ull
#define MIB_8 (8 * MIB)
#define MIB_12 (12 * MIB)
#define MIB_20 (20 * MIB)

/*
 * A request of 12 MiB (event 3) finds two free blocks of that size: a whole segment, and what
 * 8 MiB left of a segment of 20 MiB. The recording took the whole one, at the lower address, so
 * that empty_cache found nothing to give back and the next 12 MiB went into the rest.
 */
static struct frag_trace *tied(void)
{
	static const char rows[] = "action,id,size,time_us\nalloc,1,12582912,0\nalloc,2,8388608,1\n"
				   "free,1,,2\nalloc,3,12582912,3\ntrim,0,,4\n"
				   "alloc,4,12582912,5\nfree,4,,6\nfree,3,,7\n";
	static const frag_addr_t addrs[] = {
		LOW,	      HIGH,	    FRAG_NO_ADDR, LOW,
		FRAG_NO_ADDR, HIGH + MIB_8, FRAG_NO_ADDR, FRAG_NO_ADDR,
	};
	static const struct frag_evidence seen[] = {
		{ .before = 0, .addr = LOW, .bytes = MIB_12, .kind = FRAG_SEEN_SEGMENT_ALLOC },
		{ .before = 1, .addr = HIGH, .bytes = MIB_20, .kind = FRAG_SEEN_SEGMENT_ALLOC },
	};
	struct frag_trace *t = must_read(test_make_file("tied.csv", rows, sizeof(rows) - 1));
	struct frag_trace_dev *dev = &t->devs[0];

	dev->has_evidence = true;
	dev->addrs = memcpy(frag_host_alloc(sizeof(addrs)), addrs, sizeof(addrs));
	dev->seen = memcpy(frag_host_alloc(sizeof(seen)), seen, sizeof(seen));
	dev->seen_count = FRAG_ARRAY_LEN(seen);
	frag_trace_set_torch(t, 211, 211); /* addresses decide */
	return t;
}

/* A card that gives these addresses, one after another, and then its own. */
struct placement {
	frag_addr_t addrs[3];
	size_t given, next;
};

static int place_in_order(void *ctx, enum frag_call kind, uint64_t bytes, frag_addr_t *addr)
{
	struct placement *p = ctx;

	if (kind != FRAG_CALL_MALLOC || p->next == p->given)
		return -1;
	*addr = p->addrs[p->next++];
	return 0;
}

/* ---- as lines ---- */

/* What a card did with the recording. */
static void say(const struct frag_verify_result *r, FILE *out)
{
	static const char *const causes[] = { [FRAG_CAUSE_NONE] = "none",
					      [FRAG_CAUSE_ADDRESSES] = "addresses",
					      [FRAG_CAUSE_INPUT] = "input",
					      [FRAG_CAUSE_UNKNOWN] = "unknown" };

	fprintf(out, "%s: %llu of %llu requests, %llu of %llu segments",
		r->identical ? "identical" : "differs", (ull)r->allocs_same, (ull)r->allocs,
		(ull)r->segments_same, (ull)r->segments);
	if (r->ooms)
		fprintf(out, ", %llu of %llu refusals", (ull)r->ooms_same, (ull)r->ooms);
	if (!r->identical)
		fprintf(out, "; %s; %s: %s", r->first_difference, causes[r->cause], r->cause_text);
	else
		assert_true(!r->first_difference[0] && !r->cause_text[0] &&
			    r->cause == FRAG_CAUSE_NONE);
}

/* "sim PATH conf=TEXT", "growing PATH", "ADDR ADDR ADDR total=SIZE fail=CALL": the trace with a tie
 * on a card that gives these; from that call on it fails, or `once`. */
static void answer(char *call, FILE *out)
{
	struct placement p = { .given = 0 };
	struct frag_sim_config card = { .place = place_in_order, .place_ctx = &p };
	AUTO_TRACE trace = NULL;
	AUTO_DEVICE dev = NULL;
	struct frag_verify_result r;
	const char *conf = NULL, *path = NULL;
	uint64_t failing = 0;
	bool growing = false, once = false;
	char *word;
	int rc = 0;

	while ((word = cases_word(&call))) {
		if (!strcmp(word, "growing"))
			growing = true;
		else if (!strcmp(word, "once"))
			once = true;
		else if (!strncmp(word, "conf=", 5))
			conf = word + 5;
		else if (!strncmp(word, "total=", 6))
			SUCCEEDS(frag_parse_bytes(word + 6, &card.total_bytes, &test_err));
		else if (!strncmp(word, "fail=", 5))
			failing = strtoull(word + 5, NULL, 10);
		else if (!strncmp(word, "traces/", 7))
			path = word;
		else if (strcmp(word, "sim"))
			p.addrs[p.given++] = !strcmp(word, "LOW")    ? LOW
					     : !strcmp(word, "HIGH") ? HIGH
					     : !strcmp(word, "NEW")  ? NEW
								     : strtoull(word, NULL, 16);
	}
	if (path)
		card = h200;
	assert_int_equal(growing ? frag_null_open(&dev, NULL) : frag_sim_open(&card, &dev, NULL),
			 0);
	dev->fail_call = failing;
	dev->fail_all_after = failing && !once;
	if (path)
		rc = frag_trace_read(path, NULL, &trace, &test_err);
	else
		trace = tied();
	if (!rc)
		rc = frag_verify_card(trace, 0, dev, &h200, UINT64_MAX, conf, &r, &test_err);
	if (rc) {
		cases_error(out, &test_err);
	} else {
		say(&r, out);
		frag_verify_result_release(&r);
	}
	assert_null(dev->placed);
}

CASES_IN_LINES("tests/unit/verify/verify_card.cases", answer)

/* Whatever is short, it is told, and nothing is left behind. */
TEST(test_short_of_memory)
{
	int rc = FRAG_ENOMEM;
	unsigned nth;

	for (nth = 1; rc; nth++) {
		struct placement p = { { HIGH, LOW, NEW }, .given = 3 };
		struct frag_sim_config card = { .place = place_in_order, .place_ctx = &p };
		AUTO_TRACE trace = tied();
		struct frag_verify_result r;
		AUTO_DEVICE dev = must_open_sim(&card);

		frag_host_fail_after(nth);
		rc = frag_verify_card(trace, 0, dev, &h200, UINT64_MAX, NULL, &r, NULL);
		frag_host_fail_after(0);
		assert_true(!rc || rc == FRAG_ENOMEM);
		if (!rc) {
			assert_int_equal(r.cause, FRAG_CAUSE_ADDRESSES);
			frag_verify_result_release(&r);
		}
		assert_null(dev->placed);
	}
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

	assert_true(bytes <= GIB || kind != FRAG_CALL_MALLOC);
	if (kind != FRAG_CALL_MALLOC)
		return -1;
	assert_true(s->next < PLACES);
	*addr = 0x400000000000ull + (s->next++ * s->factor + s->offset) % PLACES * GIB;
	return 0;
}

static void verify_shuffled(const char *path, uint32_t dev, unsigned *by_addresses)
{
	for (uint32_t seed = 0; seed < (test_is_quick() ? 4u : 12u); seed++) {
		struct shuffle s = { .factor = 2654435761u + 2 * 40503u * seed,
				     .offset = 977 * seed };
		struct frag_sim_config card = h200;
		AUTO_TRACE trace = NULL;
		FRAG_AUTO(frag_verify_result_release) struct frag_verify_result r = { 0 };
		AUTO_DEVICE device = NULL;

		card.place = place_shuffled;
		card.place_ctx = &s;
		trace = must_read(path);
		device = must_open_sim(&card);
		if (frag_verify_card(trace, dev, device, &h200, UINT64_MAX, NULL, &r, &test_err))
			fail_msg("%s: %s", path, test_err.msg);
		assert_int_equal(r.cause, r.identical ? FRAG_CAUSE_NONE : FRAG_CAUSE_ADDRESSES);
		*by_addresses += !r.identical;
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
