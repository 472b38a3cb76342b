/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the cost of a call grows with the number of blocks:
 *
 *	growth POLICY PATTERN N
 *
 * fills a pool on the simulated card until it has about N free blocks that cannot merge,
 * each between two live ones, then measures: one block is handed out, another one, chosen
 * at random, is freed, and so on. Prints one line of CSV:
 * policy,pattern,n,calls,fill_ns,steady_ns,drain_ns, the times per call. Under
 * `valgrind --tool=callgrind --instr-atstart=no` only the measured part is looked at, so the
 * instructions that it reports are those of `calls` calls.
 *
 * Patterns: what sizes, what streams, in what order.
 *	equal     4 KiB all
 *	mixed     512 B to 4 MiB, every power of two as often as the others
 *	near      holes of 100 KiB, freed from the highest down; requests of half a KiB
 *	          more than any of them holds
 *	streams   512 B to 256 KiB over 1,000 streams
 *	alternate 4 KiB; what is measured are N allocs, then N frees: every other one
 *	          upwards, then the rest downwards
 *	released  20 MiB; the free ones are given back to the driver where that can be
 *	          done; what is measured are requests of 40 MiB, for which no hole is enough
 */
#include <frag/clock.h>
#include <frag/device.h>
#include <frag/policy.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#endif

#define STREAMS 1000u
#define CALLS_MAX 1000000u /* of the measured part */

enum pattern { EQUAL, MIXED, NEAR, STREAM, ALTERNATE, RELEASED, PATTERNS };
/* Of a block, about: the card is four times as big as what is live. */
static const uint64_t pattern_bytes[PATTERNS] = {
	[EQUAL] = 4 * FRAG_KIB,	  [MIXED] = 256 * FRAG_KIB,   [NEAR] = 128 * FRAG_KIB,
	[STREAM] = 12 * FRAG_KIB, [ALTERNATE] = 4 * FRAG_KIB, [RELEASED] = 40 * FRAG_MIB,
};
static const char *const pattern_names[PATTERNS] = { "equal",	"mixed",     "near",
						     "streams", "alternate", "released" };

struct rig {
	struct frag_device *dev;
	struct frag_policy_spec *spec;
	struct frag_policy policy;
	enum pattern pattern;
	struct frag_block *live;
	size_t count;
	uint64_t random, requests;
	struct frag_err err;
};

static uint64_t next_random(struct rig *r)
{
	r->random ^= r->random << 13;
	r->random ^= r->random >> 7;
	r->random ^= r->random << 17;
	return r->random;
}

static struct frag_request next_request(struct rig *r)
{
	uint64_t i = r->requests++, x = next_random(r);
	struct frag_request req = { .bytes = 4096 };

	if (r->pattern == RELEASED)
		req.bytes = (r->count ? 40 : 20) * FRAG_MIB;

	if (r->pattern == MIXED)
		req.bytes = (1ull << (9 + x % 13)) + (x >> 8) % (1ull << (9 + x % 13));
	if (r->pattern == NEAR)
		req.bytes = 100 * FRAG_KIB + (r->count ? 512 : 0);
	if (r->pattern == STREAM) {
		req.bytes = (1ull << (9 + x % 9)) + (x >> 8) % (1ull << (9 + x % 9));
		req.stream = (uint32_t)(i % STREAMS);
	}
	return req;
}

static void stop(const struct rig *r, const char *what)
{
	fprintf(stderr, "growth: %s: %s\n", what, r->err.msg);
	exit(1);
}

static void take(struct rig *r, struct frag_block *b)
{
	struct frag_request req = next_request(r);
	int rc = r->policy.ops->alloc(r->policy.self, &req, b, &r->err);

	if (rc)
		stop(r, rc == FRAG_OOM ? "out of memory" : "alloc");
	b->stream = req.stream;
	b->requested = req.bytes;
}

static void give(struct rig *r, struct frag_block *b)
{
	if (r->policy.ops->free(r->policy.self, b, &r->err))
		stop(r, "free");
}

FRAG_COMPARE(by_addr, struct frag_block, FRAG_ORDER(x->addr, y->addr))

/* Fills with 2n blocks and frees every other one. Returns the calls made. */
static uint64_t fill(struct rig *r, size_t n)
{
	for (size_t i = 0; i < 2 * n; i++)
		take(r, &r->live[i]);
	if (r->pattern == NEAR)
		qsort(r->live, 2 * n, sizeof(*r->live), by_addr);
	for (size_t i = 0; i < n; i++)
		give(r, &r->live[r->pattern == NEAR ? 2 * (n - i) - 1 : 2 * i + 1]);
	for (size_t i = 0; i < n; i++)
		r->live[i] = r->live[2 * i];
	r->count = n;
	return 3 * n;
}

/* The measured part. Returns the calls made. */
static uint64_t steady(struct rig *r, size_t n)
{
	uint64_t pairs = FRAG_MIN(n, CALLS_MAX / 2);

	if (r->pattern == ALTERNATE) {
		for (size_t i = 0; i < n; i++)
			take(r, &r->live[i]);
		for (size_t i = 0; i < n; i += 2)
			give(r, &r->live[i]);
		for (size_t i = n; i-- > 0;)
			if (i & 1)
				give(r, &r->live[i]);
		return 2 * n;
	}
	for (uint64_t i = 0; r->pattern == RELEASED && i < pairs; i++)
		take(r, &r->live[r->count++]);
	if (r->pattern == RELEASED)
		return pairs;
	for (uint64_t i = 0; i < pairs; i++) {
		struct frag_block b, *old = &r->live[next_random(r) % r->count];

		take(r, &b);
		give(r, old);
		*old = b;
	}
	return 2 * pairs;
}

static void drain(struct rig *r)
{
	for (size_t i = 0; i < r->count; i++)
		give(r, &r->live[i]);
}

static void open_rig(struct rig *r, const char *policy, const char *pattern, size_t n)
{
	struct frag_sim_config card = { 0 };
	struct frag_policy_env env;

	*r = (struct rig){ .random = 88172645463325252ull };
	while (r->pattern < PATTERNS && strcmp(pattern, pattern_names[r->pattern]) != 0)
		r->pattern++;
	if (r->pattern == PATTERNS) {
		fprintf(stderr, "growth: unknown pattern '%s'\n", pattern);
		exit(2);
	}
	card.total_bytes = FRAG_MAX(8 * n * pattern_bytes[r->pattern], 64 * FRAG_GIB);
	r->live = frag_host_calloc(2 * n, sizeof(*r->live));
	if (!r->live || frag_sim_open(&card, &r->dev, &r->err) ||
	    frag_policy_spec_parse(policy, &r->spec, &r->err))
		stop(r, "cannot begin");
	env = (struct frag_policy_env){ .dev = r->dev,
					.limit_bytes = UINT64_MAX,
					.device_total_bytes = card.total_bytes,
					.streams_count = STREAMS };
	if (frag_policy_create(r->spec, &env, &r->policy, &r->err))
		stop(r, "cannot create the policy");
}

static void close_rig(struct rig *r)
{
	frag_policy_destroy(&r->policy);
	frag_policy_spec_destroy(r->spec);
	frag_dev_close(r->dev);
	frag_host_free(r->live);
}

static double per(uint64_t from, uint64_t to, uint64_t calls)
{
	return calls ? (double)(to - from) / (double)calls : 0;
}

int main(int argc, char **argv)
{
	uint64_t t0, t1, t2, t3, t4, filled = 0, calls;
	struct rig r;
	size_t n;

	if (argc != 4 || !(n = strtoull(argv[3], NULL, 10))) {
		fputs("usage: growth POLICY PATTERN N\n", stderr);
		return 2;
	}
	open_rig(&r, argv[1], argv[2], n);
	t0 = frag_clock_ns();
	if (r.pattern != ALTERNATE)
		filled = fill(&r, n);
	t1 = frag_clock_ns();
	if (r.pattern == RELEASED && r.policy.ops->trim &&
	    r.policy.ops->trim(r.policy.self, 0, &r.err))
		stop(&r, "trim");
	t2 = frag_clock_ns();
	CALLGRIND_START_INSTRUMENTATION;
	calls = steady(&r, n);
	CALLGRIND_STOP_INSTRUMENTATION;
	t3 = frag_clock_ns();
	n = r.count;
	drain(&r);
	t4 = frag_clock_ns();
	printf("%s,%s,%s,%llu,%.0f,%.0f,%.0f\n", argv[1], argv[2], argv[3],
	       (unsigned long long)calls, per(t0, t1, filled), per(t2, t3, calls), per(t3, t4, n));
	close_rig(&r);
	return 0;
}
