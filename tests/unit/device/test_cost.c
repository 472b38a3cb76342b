/* SPDX-License-Identifier: Apache-2.0 */
/* Cost profiles: the built-in ones, files, hostile files (cost.cases), and hosts. */
#include "test.h"

#include "device/sim/cost.h"
#include "must.h"

FRAG_AUTO_AT(struct frag_cost *, frag_cost_destroy)
#define AUTO_COST FRAG_AUTO(frag_cost_destroy_at) struct frag_cost *

static uint64_t builtin(unsigned item, uint64_t bytes)
{
	return frag_cost_ns(frag_cost_builtin(), item, bytes);
}

/* That they are the committed profiles: tests/cli gpu_prices. */
TEST(test_built_in)
{
	assert_ptr_equal(frag_cost_of("h200"), frag_cost_builtin());
	assert_ptr_not_equal(frag_cost_of("h100"), frag_cost_builtin());
	assert_null(frag_cost_of("l4")); /* not measured */
	assert_null(frag_cost_of(NULL));
	/* never too much */
	assert_true(builtin(FRAG_CALL_RELEASE, UINT64_MAX) < 2000000000000000000u);
}

/* ---- files ------------------------------------------------------------------ */

/* Loads a file with this content. */
static int load(const char *text, size_t bytes, struct frag_cost **out)
{
	return frag_cost_load(test_make_file("profile.csv", text, bytes), out, &test_err);
}

static struct frag_cost *must_load(const char *text)
{
	struct frag_cost *cost = NULL;

	SUCCEEDS(load(text, strlen(text), &cost));
	return cost;
}

TEST(test_file)
{
	AUTO_COST cost = must_load("# a comment\n\ncall,bytes,ns\ncudaMalloc,1000,50\n"
				   "cudaMalloc.hit,0,7\r\ncudaMalloc,3000,150\n"
				   "# rows in any order\ncudaMalloc,2000,0\n"
				   "cuMemUnmap,64,900\ncuMemUnmap,128,100");
	static const struct {
		unsigned item;
		uint64_t bytes, ns;
	} rows[] = {
		{ FRAG_CALL_MALLOC, 1, 50 },	 { FRAG_CALL_MALLOC, 1500, 25 },
		{ FRAG_CALL_MALLOC, 2000, 0 },	 { FRAG_CALL_MALLOC, 2500, 75 },
		{ FRAG_CALL_MALLOC, 5000, 450 }, { FRAG_COST_MALLOC_HIT, 12345, 7 },
		{ FRAG_CALL_UNMAP, 136, 0 }, /* falls, and not below nothing */
		{ FRAG_CALL_UNMAP, 1 << 20, 0 },
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++)
		assert_int_equal(frag_cost_ns(cost, rows[i].item, rows[i].bytes), rows[i].ns);
	/* not named: as built in */
	assert_int_equal(frag_cost_ns(cost, FRAG_CALL_FREE, 2 * MIB),
			 builtin(FRAG_CALL_FREE, 2 * MIB));
}

/* What the host did before the call, in turn; the kinds it was asked for. */
struct pauses {
	const uint64_t *ns;
	unsigned asked;
	enum frag_call kinds[8];
};

static uint64_t next_pause(void *ctx, enum frag_call kind)
{
	struct pauses *p = ctx;

	p->kinds[p->asked] = kind;
	return p->ns[p->asked++];
}

/* A cudaMalloc or cudaFree takes longer after a pause, big or small; other calls do not ask. */
TEST(test_pause)
{
	AUTO_COST cost = must_load("call,bytes,ns\ncudaMalloc,0,10\ncudaFree,0,20\n"
				   "cudaMalloc.page,0,30\ncudaFree.page,0,40\ncudaMemGetInfo,0,3\n"
				   "pause,1000,0\npause,2000,500\npause,3000,500\n");
	static const uint64_t ns[] = { 0, 2000, 1500, 1000000 };
	static const uint64_t want[] = { 10, 20 + 500, 30 + 250, 40 + 500 };
	struct pauses pauses = { .ns = ns };
	struct frag_sim_config cfg = {
		.context_bytes = UINT64_MAX, .cost = cost, .pause = next_pause, .pause_ctx = &pauses
	};
	AUTO_DEVICE d = must_open_sim(&cfg);
	uint64_t left, total, before;
	frag_addr_t a = 0;

	for (unsigned i = 0; i < 4; i++) {
		uint64_t bytes = i < 2 ? 8 * MIB : 512;

		before = d->driver_ns;
		SUCCEEDS(i % 2 ? frag_dev_free(d, a, bytes, NULL)
			       : frag_dev_alloc(d, bytes, &a, NULL));
		assert_int_equal(d->driver_ns - before, want[i]);
		assert_int_equal(pauses.kinds[i], i % 2 ? FRAG_CALL_FREE : FRAG_CALL_MALLOC);
	}
	before = d->driver_ns;
	SUCCEEDS(frag_dev_mem_info(d, &left, &total, NULL));
	assert_int_equal(d->driver_ns - before, 3);
	assert_int_equal(pauses.asked, 4);
}

static void answer(char *call, FILE *out)
{
	struct frag_cost *cost = NULL;
	size_t n;
	FRAG_AUTO(free_at) char *bytes = cases_unescape(call, &n);

	assert_int_equal(load(bytes, n, &cost), FRAG_EINPUT);
	assert_null(cost);
	fprintf(out, "%llu: %s", (ull)test_err.offset, strstr(test_err.msg, ": ") + 2);
}

CASES_IN_LINES("tests/unit/device/cost.cases", answer)

TEST(test_hostile)
{
	static char big[100000];
	struct frag_cost *cost = NULL;
	size_t n;

	FAILS(FRAG_EINPUT, "", load("", 0, &cost));
	memset(big, 'a', sizeof(big)); /* one line without an end */
	FAILS(FRAG_EINPUT, "line too long", load(big, sizeof(big), &cost));
	n = (size_t)sprintf(big, "call,bytes,ns\n");
	for (int i = 0; i < 65; i++)
		n += (size_t)sprintf(big + n, "cudaFree,%d,1\n", 1000 - i);
	FAILS(FRAG_EINPUT, "more than 64 sizes for 'cudaFree'", load(big, n, &cost));
	assert_int_equal(test_err.offset, 66);
	FAILS(FRAG_EINPUT, "cannot open cost profile /nonexistent/profile.csv",
	      frag_cost_load("/nonexistent/profile.csv", &cost, &test_err));
	assert_int_equal(frag_cost_load("/tmp", &cost, &test_err), FRAG_EINPUT);
	frag_host_fail_after(1);
	assert_int_equal(load("call,bytes,ns\n", 14, &cost), FRAG_ENOMEM);
	frag_host_fail_after(0);
}

/* ---- hosts ------------------------------------------------------------------ */

/* Waiting for the card follows the host less than a cudaMalloc, driver work more. */
TEST(test_host_parts)
{
	static const struct {
		unsigned item;
		uint64_t bytes;
		double above, below;
	} rows[] = {
		{ FRAG_CALL_MALLOC, MIB, 1.999, 2.001 },
		{ FRAG_CALL_SET_ACCESS, MIB, 1.5, 1.9 },
		{ FRAG_CALL_FENCE, 0, 2.5, 100 },
		{ FRAG_COST_CLEAR, MIB, 0.999, 1.001 },
		{ FRAG_COST_MANAGED_FAULT, MIB, 0.999, 1.001 },
	};
	struct frag_dev_observed seen = { .pair_ns = 40000 };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		double times = frag_cost_host_times(rows[i].item, rows[i].bytes, 2);

		assert_true(times > rows[i].above && times < rows[i].below);
	}
	assert_true(frag_cost_host_times(FRAG_CALL_FREE, 512 * MIB, 2) >
		    frag_cost_host_times(FRAG_CALL_FREE, 511 * MIB, 2) + 1);
	assert_true(frag_cost_host_times(FRAG_CALL_FENCE, 0, 1) < 1.001);
	assert_int_equal(frag_dev_host_pair(&seen), 40000);
	seen.pair_after_ns = 60000;
	assert_int_equal(frag_dev_host_pair(&seen), 50000);
	seen.pair_ns = 0;
	assert_int_equal(frag_dev_host_pair(&seen), 60000);
}

/* A profile may know its host; the card is told how much slower another one is. */
TEST(test_host)
{
	struct frag_sim_config cfg = { .context_bytes = UINT64_MAX, .host_ratio = 2 };
	AUTO_COST cost = must_load("call,bytes,ns\ncudaMalloc,0,7\n");
	AUTO_DEVICE dev = must_open_sim(&cfg);
	uint64_t own = builtin(FRAG_COST_HOST_PAIR, 0);
	frag_addr_t at;

	assert_true(own > 0);
	assert_true(frag_cost_host_ratio(NULL, 2 * own) > 1.999);
	assert_true(frag_cost_host_ratio(NULL, 2 * own) < 2.001);
	assert_true(frag_cost_host_ratio(NULL, 0) < 1.001);
	assert_true(frag_cost_host_ratio(cost, 2 * own) < 1.001);
	SUCCEEDS(frag_dev_alloc(dev, 20 * MIB, &at, NULL));
	assert_int_equal(dev->driver_ns, 2 * builtin(FRAG_CALL_MALLOC, 20 * MIB));
	SUCCEEDS(frag_dev_free(dev, at, 20 * MIB, NULL));
}
