/* SPDX-License-Identifier: Apache-2.0 */
/* The front of devices: counting, failures on demand, capabilities, clock, leaks; null, no cuda. */
#include "test.h"

#include <time.h>

#include <frag/device.h>

#include "must.h"

/* ---- a script that makes every kind of call at least once ------------------- */

struct script {
	frag_addr_t segment, range, async, managed;
	uint64_t handle, pool, fence, free_bytes, total_bytes;
	bool done;
};

#define EACH_STEP(X) \
	X(MALLOC, alloc(d, 3 * MIB, &s->segment, err)) \
	X(RESERVE, reserve(d, 4 * MIB, 0, &s->range, err)) \
	X(CREATE, create(d, 4 * MIB, &s->handle, err)) \
	X(MAP, map(d, s->range, 4 * MIB, s->handle, err)) \
	X(SET_ACCESS, set_access(d, s->range, 4 * MIB, err)) \
	X(POOL_CREATE, mempool_create(d, &attr, &s->pool, err)) \
	X(ASYNC_MALLOC, mempool_alloc(d, s->pool, 1000, 0, &s->async, err)) \
	X(MANAGED, managed_alloc(d, 5 * MIB, &s->managed, err)) \
	X(PREFETCH, managed_touch(d, s->managed, 5 * MIB, true, err)) \
	X(FENCE, fence_record(d, 0, &s->fence, err)) \
	X(QUERY, fence_done(d, s->fence, 0, &s->done, err)) \
	X(SYNC, sync(d, 0, err)) \
	X(DEVICE_SYNC, sync_all(d, err)) \
	X(MEM_INFO, mem_info(d, &s->free_bytes, &s->total_bytes, err)) \
	X(MANAGED_FREE, managed_free(d, s->managed, 5 * MIB, err)) \
	X(ASYNC_FREE, mempool_free(d, s->pool, s->async, 1000, 0, err)) \
	X(POOL_TRIM, mempool_trim(d, s->pool, 0, err)) \
	X(POOL_DESTROY, mempool_destroy(d, s->pool, err)) \
	X(UNMAP, unmap(d, s->range, 4 * MIB, err)) \
	X(RELEASE, release(d, s->handle, 4 * MIB, err)) \
	X(UNRESERVE, unreserve(d, s->range, 4 * MIB, err)) \
	X(FREE, free(d, s->segment, 3 * MIB, err))

#define X(kind, call) FRAG_CALL_##kind,
static const enum frag_call step_kind[] = { EACH_STEP(X) };
#undef X
#define STEPS ((unsigned)FRAG_ARRAY_LEN(step_kind))
/* resident managed memory, a pool page, a handle and a segment of two pages */
#define SCRIPT_PEAK (5 * MIB + 32 * MIB + 4 * MIB + 4 * MIB)

static int step(struct frag_device *d, struct script *s, unsigned i, struct frag_err *err)
{
	static const struct frag_mempool_attr attr = { .release_threshold = UINT64_MAX };

	switch (step_kind[i]) {
#define X(kind, call) \
	case FRAG_CALL_##kind: \
		return frag_dev_##call;
		EACH_STEP(X)
#undef X
	default:
		return FRAG_EUSAGE;
	}
}

static void run_script(struct frag_device *d, struct script *s, unsigned from)
{
	for (unsigned i = from; i < STEPS; i++) {
		int rc = step(d, s, i, &test_err);

		if (rc)
			fail_msg("step %u: %d %s", i, rc, test_err.msg);
	}
}

TEST(test_counts)
{
	AUTO_DEVICE d = must_open_sim(NULL);
	struct script s;
	uint64_t ns = 0;

	run_script(d, &s, 0);
	assert_int_equal(d->driver_calls, STEPS);
	for (unsigned k = 0; k < FRAG_CALL_COUNT; k++) {
		/* the script has each kind exactly once, so this also proves it complete */
		assert_int_equal(d->stat[k].count, 1);
		assert_int_equal(d->stat[k].failed, 0);
		ns += d->stat[k].ns;
	}
	assert_int_equal(d->driver_ns, ns);
	assert_true(ns > 0);
	assert_int_equal(d->stat[FRAG_CALL_MALLOC].bytes, 3 * MIB);
	assert_int_equal(d->stat[FRAG_CALL_FREE].bytes, 3 * MIB);
	assert_int_equal(d->stat[FRAG_CALL_MAP].bytes, 4 * MIB);
	assert_int_equal(d->stat[FRAG_CALL_ASYNC_MALLOC].bytes, 1000);
	assert_int_equal(d->reserved_bytes, 0);
	assert_int_equal(d->reserved_peak_bytes, SCRIPT_PEAK);
	assert_int_equal(s.free_bytes, s.total_bytes - 552402944 - SCRIPT_PEAK);
	assert_int_equal(frag_dev_leaks(d), 0);
}

/* ---- failures on demand ----------------------------------------------------- */

static bool takes_memory(enum frag_call k)
{
	return k == FRAG_CALL_MALLOC || k == FRAG_CALL_RESERVE || k == FRAG_CALL_CREATE ||
	       k == FRAG_CALL_ASYNC_MALLOC || k == FRAG_CALL_MANAGED;
}

static void check_injected(enum frag_call kind, unsigned number, int rc, const struct frag_err *err)
{
	char expected[128];

	if (takes_memory(kind)) {
		assert_int_equal(rc, FRAG_OOM);
		assert_string_equal(err->msg, "untouched");
		return;
	}
	assert_int_equal(rc, FRAG_EDEVICE);
	assert_int_equal(err->code, FRAG_EDEVICE);
	snprintf(expected, sizeof(expected), "%s failed (injected failure of call %u)",
		 frag_call_name(kind), number);
	assert_string_equal(err->msg, expected);
}

/* For every n: call n fails, nothing has changed, the same call then works, nothing leaks. */
TEST(test_fail_each)
{
	for (unsigned n = 1; n <= STEPS; n++) {
		AUTO_DEVICE d = must_open_sim(NULL);
		struct frag_err err = { .msg = "untouched" };
		struct script s;
		uint64_t reserved, leaks, ns;
		int rc;

		d->fail_call = n;
		for (unsigned i = 0; i + 1 < n; i++)
			assert_int_equal(step(d, &s, i, &err), 0);
		reserved = d->reserved_bytes;
		leaks = frag_dev_leaks(d);
		ns = d->driver_ns;
		rc = step(d, &s, n - 1, &err);
		check_injected(step_kind[n - 1], n, rc, &err);
		assert_int_equal(d->driver_calls, n);
		assert_int_equal(d->stat[step_kind[n - 1]].failed, 1);
		assert_int_equal(d->stat[step_kind[n - 1]].count, 0);
		assert_int_equal(d->reserved_bytes, reserved);
		assert_int_equal(d->driver_ns, ns);
		assert_int_equal(frag_dev_leaks(d), leaks);
		run_script(d, &s, n - 1);
		assert_int_equal(d->driver_calls, STEPS + 1);
		assert_int_equal(frag_dev_leaks(d), 0);
		assert_int_equal(d->reserved_bytes, 0);
	}
}

/* ---- a back-end of our own: capabilities and the host clock ----------------- */

static uint32_t fake_can;
static bool fake_closed;

static void fake_close(void *priv)
{
	fake_closed = true;
}

static void fake_info(void *priv, struct frag_device_info *out)
{
	*out = (struct frag_device_info){ .can = fake_can };
}

/* Takes two milliseconds and does not say so. */
static int fake_alloc(void *priv, uint64_t bytes, frag_addr_t *out, uint64_t *ns,
		      struct frag_err *err)
{
	struct timespec pause = { .tv_nsec = 2000000 };

	nanosleep(&pause, NULL);
	*out = 1;
	return 0;
}

/* Knows what it took. */
static int fake_free(void *priv, frag_addr_t addr, uint64_t *ns, struct frag_err *err)
{
	*ns = 7;
	return 0;
}

static uint64_t fake_reserved(void *priv)
{
	return 42;
}

static const struct frag_device_ops fake_ops = {
	.name = "fake",
	.close = fake_close,
	.info = fake_info,
	.alloc = fake_alloc,
	.free = fake_free,
	.reserved = fake_reserved,
};

TEST(test_measured)
{
	struct frag_device *d;
	frag_addr_t a;

	fake_can = FRAG_CAN_MALLOC;
	fake_closed = false;
	SUCCEEDS(frag_dev_open(&fake_ops, NULL, &d, NULL));
	SUCCEEDS(frag_dev_alloc(d, 5, &a, NULL));
	assert_true(d->driver_ns >= 2000000);
	assert_int_equal(d->stat[FRAG_CALL_MALLOC].ns, d->driver_ns);
	assert_int_equal(d->reserved_bytes, 42);
	SUCCEEDS(frag_dev_free(d, a, 5, NULL));
	assert_int_equal(d->stat[FRAG_CALL_FREE].ns, 7);
	frag_dev_close(d);
	assert_true(fake_closed);
}

TEST(test_not_able)
{
	struct frag_managed_usage managed = { .faults = 9 };
	struct frag_mempool_usage pool = { .used_bytes = 9 };
	AUTO_DEVICE d = NULL;
	struct script s = { 0 };

	fake_can = 0;
	SUCCEEDS(frag_dev_open(&fake_ops, NULL, &d, NULL));
	for (unsigned i = 0; i < STEPS; i++) {
		if (i >= 9 && i <= 13)
			continue; /* fences and the like need no capability */
		test_err.msg[0] = 0;
		assert_int_equal(step(d, &s, i, &test_err), FRAG_ENOTSUP);
		assert_non_null(strstr(test_err.msg, frag_call_name(step_kind[i])));
		assert_non_null(strstr(test_err.msg, "'fake'"));
	}
	assert_int_equal(d->driver_calls, 0);
	frag_dev_mempool_usage(d, 1, &pool);
	assert_int_equal(pool.used_bytes, 0);
	frag_dev_managed_usage(d, &managed);
	assert_int_equal(managed.faults, 0);
}

/* ---- null, cuda ------------------------------------------------------------- */

TEST(test_null_device)
{
	AUTO_DEVICE d = NULL;
	struct script s;

	SUCCEEDS(frag_null_open(&d, NULL));
	run_script(d, &s, 0);
	assert_int_equal(frag_dev_leaks(d), 0);
	assert_int_equal(d->driver_ns, 0);
	frag_dev_close(NULL);
}

TEST(test_cuda_absent)
{
	struct frag_device *d = NULL;

	if (frag_cuda_built())
		skip();
	FAILS(FRAG_EDEVICE, "this build has no CUDA device (built without nvcc)",
	      frag_cuda_open(0, &d, &test_err));
	assert_null(d);
}
