/* SPDX-License-Identifier: Apache-2.0 */
/* Cost profiles: the built-in one at and between its columns, files, and hostile files. */
#include "test.h"

#include "device/sim/cost.h"
#include "must.h"

FRAG_AUTO_AT(struct frag_cost *, frag_cost_destroy)

static uint64_t builtin(unsigned item, uint64_t bytes)
{
	return frag_cost_ns(frag_cost_builtin(), item, bytes);
}

/* The built-in profiles are the committed ones; scripts/build/cost_inc.py takes them in. */
static void committed(const char *card)
{
	const struct frag_cost *own = frag_cost_of(card);
	FRAG_AUTO(frag_cost_destroy_at) struct frag_cost *cost = NULL;
	char path[64];

	snprintf(path, sizeof(path), "results/%s/profile.csv", card);
	SUCCEEDS(frag_cost_load(path, &cost, &test_err));
	for (unsigned i = 0; i < FRAG_COST_COUNT; i++) {
		const struct frag_cost_curve *mine = &own->curves[i], *file = &cost->curves[i];

		if (mine->count != file->count)
			fail_msg("%s: %u points built in, %u in the file", frag_cost_name(i),
				 mine->count, file->count);
		assert_ptr_not_equal(mine->points, file->points); /* the file has it */
		for (uint32_t k = 0; k < file->count; k++) {
			uint64_t at = file->points[k].bytes, beyond = at + at / 3 + 1;

			assert_int_equal(frag_cost_ns(own, i, at), frag_cost_ns(cost, i, at));
			assert_int_equal(frag_cost_ns(own, i, beyond),
					 frag_cost_ns(cost, i, beyond));
		}
		assert_int_equal(frag_cost_ns(own, i, 1ull << 45),
				 frag_cost_ns(cost, i, 1ull << 45));
	}
}

TEST(test_committed)
{
	committed("h100");
	committed("h200");
	assert_ptr_equal(frag_cost_of("h200"), frag_cost_builtin());
	assert_ptr_not_equal(frag_cost_of("h100"), frag_cost_builtin());
	assert_null(frag_cost_of("l4")); /* not measured */
	assert_null(frag_cost_of(NULL));
}

/* Every call and part of a call costs something, and never too much. */
TEST(test_all_have_a_price)
{
	for (unsigned i = 0; i < FRAG_COST_COUNT; i++)
		assert_true(builtin(i, 64 * MIB) > 0);
	assert_true(builtin(FRAG_CALL_RELEASE, UINT64_MAX) < 2000000000000000000u);
	assert_string_equal(frag_cost_name(FRAG_COST_COUNT), "?");
}

/* ---- files ------------------------------------------------------------------ */

/* Loads a file with this content. */
static int load(const char *text, size_t bytes, struct frag_cost **out, struct frag_err *err)
{
	return frag_cost_load(test_make_file("profile.csv", text, bytes), out, err);
}

TEST(test_file)
{
	static const char text[] = "# a comment\n"
				   "\n"
				   "call,bytes,ns\n"
				   "cudaMalloc,1000,50\n"
				   "cudaMalloc.hit,0,7\r\n"
				   "cudaMalloc,3000,150\n"
				   "# rows in any order\n"
				   "cudaMalloc,2000,0\n"
				   "cuMemUnmap,64,900\n"
				   "cuMemUnmap,128,100";
	FRAG_AUTO(frag_cost_destroy_at) struct frag_cost *cost = NULL;
	int rc = load(text, strlen(text), &cost, &test_err);

	if (rc)
		fail_msg("%s", test_err.msg);
	assert_int_equal(frag_cost_ns(cost, FRAG_CALL_MALLOC, 1), 50);
	assert_int_equal(frag_cost_ns(cost, FRAG_CALL_MALLOC, 1500), 25);
	assert_int_equal(frag_cost_ns(cost, FRAG_CALL_MALLOC, 2000), 0);
	assert_int_equal(frag_cost_ns(cost, FRAG_CALL_MALLOC, 2500), 75);
	assert_int_equal(frag_cost_ns(cost, FRAG_CALL_MALLOC, 5000), 450);
	assert_int_equal(frag_cost_ns(cost, FRAG_COST_MALLOC_HIT, 12345), 7);
	/* falls, and not below nothing */
	assert_int_equal(frag_cost_ns(cost, FRAG_CALL_UNMAP, 136), 0);
	assert_int_equal(frag_cost_ns(cost, FRAG_CALL_UNMAP, 1 << 20), 0);
	/* not named: as built in */
	assert_int_equal(frag_cost_ns(cost, FRAG_CALL_FREE, 2 * MIB),
			 builtin(FRAG_CALL_FREE, 2 * MIB));
}

TEST(test_file_on_card)
{
	static const char text[] = "call,bytes,ns\ncudaMalloc.page,0,1000000\n";
	struct frag_sim_config cfg = { .context_bytes = UINT64_MAX };
	FRAG_AUTO(frag_cost_destroy_at) struct frag_cost *cost = NULL;
	AUTO_DEVICE d = NULL;
	frag_addr_t a;

	SUCCEEDS(load(text, strlen(text), &cost, NULL));
	cfg.cost = cost;
	d = must_open_sim(&cfg);
	SUCCEEDS(frag_dev_alloc(d, 512, &a, NULL));
	assert_int_equal(d->driver_ns, 1000000);
	frag_cost_destroy(NULL);
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
	static const char text[] = "call,bytes,ns\ncudaMalloc,0,10\ncudaFree,0,20\n"
				   "cudaMalloc.page,0,30\ncudaFree.page,0,40\ncudaMemGetInfo,0,3\n"
				   "pause,1000,0\npause,2000,500\npause,3000,500\n";
	static const uint64_t ns[] = { 0, 2000, 1500, 1000000 };
	static const uint64_t want[] = { 10, 20 + 500, 30 + 250, 40 + 500 };
	struct pauses pauses = { .ns = ns };
	struct frag_sim_config cfg = { .context_bytes = UINT64_MAX };
	FRAG_AUTO(frag_cost_destroy_at) struct frag_cost *cost = NULL;
	AUTO_DEVICE d = NULL;
	uint64_t left, total, before;
	frag_addr_t a;

	SUCCEEDS(load(text, strlen(text), &cost, NULL));
	cfg.cost = cost;
	cfg.pause = next_pause;
	cfg.pause_ctx = &pauses;
	d = must_open_sim(&cfg);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t bytes = i < 2 ? 8 * MIB : 512;

		before = d->driver_ns;
		if (i % 2)
			SUCCEEDS(frag_dev_free(d, a, bytes, NULL));
		else
			SUCCEEDS(frag_dev_alloc(d, bytes, &a, NULL));
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

	assert_int_equal(load(bytes, n, &cost, &test_err), FRAG_EINPUT);
	assert_null(cost);
	fprintf(out, "%llu: %s", (ull)test_err.offset, strstr(test_err.msg, ": ") + 2);
}

CASES_IN_LINES("tests/unit/device/cost.cases", answer)

TEST(test_hostile)
{
	struct frag_cost *cost = NULL;
	char *big = malloc(100000);
	size_t n;

	assert_int_equal(load("", 0, &cost, &test_err), FRAG_EINPUT);
	assert_int_equal(test_err.offset, 1);
	memset(big, 'a', 100000); /* one line without an end */
	FAILS(FRAG_EINPUT, "line too long", load(big, 100000, &cost, &test_err));
	n = (size_t)sprintf(big, "call,bytes,ns\n");
	for (int i = 0; i < 65; i++)
		n += (size_t)sprintf(big + n, "cudaFree,%d,1\n", 1000 - i);
	assert_int_equal(load(big, n, &cost, &test_err), FRAG_EINPUT);
	assert_int_equal(test_err.offset, 66);
	assert_non_null(strstr(test_err.msg, "more than 64 sizes for 'cudaFree'"));
	free(big);
	FAILS(FRAG_EINPUT, "cannot open cost profile /nonexistent/profile.csv",
	      frag_cost_load("/nonexistent/profile.csv", &cost, &test_err));
	assert_int_equal(frag_cost_load("/tmp", &cost, &test_err), FRAG_EINPUT);
}

TEST(test_no_memory)
{
	static const char text[] = "call,bytes,ns\n";
	struct frag_cost *cost = NULL;
	int rc;

	frag_host_fail_after(1);
	rc = load(text, strlen(text), &cost, NULL);
	frag_host_fail_after(0);
	assert_int_equal(rc, FRAG_ENOMEM);
}

static double times(unsigned item, uint64_t bytes)
{
	return frag_cost_host_times(item, bytes, 2);
}

/* Waiting for the card follows the host less than a cudaMalloc, driver work more. */
TEST(test_host_parts)
{
	struct frag_dev_observed seen = { .pair_ns = 40000 };

	assert_true(times(FRAG_CALL_MALLOC, MIB) > 1.999 && times(FRAG_CALL_MALLOC, MIB) < 2.001);
	assert_true(times(FRAG_CALL_SET_ACCESS, MIB) < 1.9);
	assert_true(times(FRAG_CALL_SET_ACCESS, MIB) > 1.5);
	assert_true(times(FRAG_CALL_FENCE, 0) > 2.5);
	assert_true(times(FRAG_CALL_FREE, 512 * MIB) > times(FRAG_CALL_FREE, 511 * MIB) + 1);
	assert_true(times(FRAG_COST_CLEAR, MIB) < 1.001);
	assert_true(times(FRAG_COST_MANAGED_FAULT, MIB) < 1.001);
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
	static const char other[] = "call,bytes,ns\ncudaMalloc,0,7\n";
	uint64_t own = builtin(FRAG_COST_HOST_PAIR, 0);
	struct frag_cost *cost = NULL;
	AUTO_DEVICE dev = NULL;
	frag_addr_t at;

	assert_true(own > 0);
	assert_true(frag_cost_host_ratio(NULL, 2 * own) > 1.999);
	assert_true(frag_cost_host_ratio(NULL, 2 * own) < 2.001);
	assert_true(frag_cost_host_ratio(NULL, 0) < 1.001);
	SUCCEEDS(load(other, strlen(other), &cost, NULL));
	assert_true(frag_cost_host_ratio(cost, 2 * own) < 1.001);
	frag_cost_destroy(cost);
	dev = must_open_sim(&cfg);
	SUCCEEDS(frag_dev_alloc(dev, 20 * MIB, &at, NULL));
	assert_int_equal(dev->driver_ns, 2 * builtin(FRAG_CALL_MALLOC, 20 * MIB));
	SUCCEEDS(frag_dev_free(dev, at, 20 * MIB, NULL));
}
