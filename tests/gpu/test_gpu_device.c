/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cuda device itself on card 0: what it counts against cudaMemGetInfo, kernels at odd sizes and
 * places, faults that were planted, streams and fences with work on them, and the limit on managed
 * memory. A part of the card: test_gpu_conformance; what it says of itself: run.sh. Skipped without a card.
 */
#include "test.h"

#include <sched.h>

#include <frag/device.h>

static struct frag_err err;

static void must(int rc)
{
	if (rc)
		fail_msg("result %d: %s", rc, err.msg);
}

static struct frag_device *open_card(const struct frag_cuda_config *cfg)
{
	static const struct frag_cuda_config whole;
	struct frag_device *dev;

	if (!frag_cuda_count())
		skip();
	must(frag_cuda_open_config(cfg ? cfg : &whole, &dev, &err));
	return dev;
}

static void close_card(struct frag_device *dev)
{
	assert_int_equal(frag_dev_leaks(dev), 0);
	assert_true(dev->reserved_bytes == 0);
	frag_dev_close(dev);
}
FRAG_AUTO_AT(struct frag_device *, close_card)

static struct frag_content_fault fault_of(struct frag_device *dev)
{
	struct frag_content_fault f;

	must(frag_dev_content_fault(dev, true, &f, &err));
	return f;
}

TEST(no_such_card)
{
	struct frag_cuda_config cfg = { .ordinal = 4711 };
	struct frag_device *dev;

	assert_int_equal(frag_cuda_open_config(&cfg, &dev, &err), FRAG_EDEVICE);
	assert_non_null(strstr(err.msg, "cannot open cuda:4711"));
}

/* Small segments share pages, large ones do not: the count and the driver agree to the byte. */
TEST(counts_pages)
{
	static const uint64_t sizes[] = { 512,		 4096,	  100000,   1 << 20,
					  (1 << 20) + 1, 3 << 20, 20 << 20, 64 << 20 };
	FRAG_AUTO(close_card_at) struct frag_device *dev = open_card(NULL);
	struct frag_dev_observed w;
	frag_addr_t at[64];

	for (unsigned i = 0; i < 64; i++)
		must(frag_dev_alloc(dev, sizes[i % 8], &at[i], &err));
	assert_true(frag_dev_observed(dev, &w));
	assert_true(w.reserved_bytes == dev->reserved_bytes);
	print_message("counted %llu, cudaMemGetInfo %llu\n", (unsigned long long)w.reserved_bytes,
		      (unsigned long long)w.mem_info_bytes);
	assert_true(w.mem_info_bytes <= w.reserved_bytes + FRAG_PAGE);
	assert_true(w.reserved_bytes <= w.mem_info_bytes + FRAG_PAGE);
	for (unsigned i = 0; i < 64; i++)
		must(frag_dev_free(dev, at[i], sizes[i % 8], &err));
}

/* Every size up to some pieces, at every alignment: all bytes, and not one beyond. */
TEST(kernels_at_odd_places)
{
	FRAG_AUTO(close_card_at) struct frag_device *dev = open_card(NULL);
	frag_addr_t base;

	must(frag_dev_alloc(dev, 1 << 20, &base, &err));
	for (unsigned shift = 0; shift < 17; shift++) {
		for (unsigned bytes = 1; bytes < 70; bytes++) {
			struct frag_content around = {
				.addr = base, .bytes = 256, .id = 1, .generation = 1
			};
			struct frag_content b = { .addr = base + 32 + shift,
						  .bytes = bytes,
						  .id = 2,
						  .generation = bytes };
			struct frag_content low = around;

			low.bytes = 32;
			must(frag_dev_content(dev, FRAG_CONTENT_FILL, &around, &err));
			must(frag_dev_content(dev, FRAG_CONTENT_FILL, &b, &err));
			must(frag_dev_content(dev, FRAG_CONTENT_VERIFY, &b, &err));
			must(frag_dev_content(dev, FRAG_CONTENT_VERIFY, &low, &err));
		}
	}
	assert_true(fault_of(dev).count == 0);
	must(frag_dev_free(dev, base, 1 << 20, &err));
}

/* A block that lies over the end of another: found, with both and the place. */
TEST(planted_overlap)
{
	FRAG_AUTO(close_card_at) struct frag_device *dev = open_card(NULL);
	struct frag_content a = { .bytes = 1 << 20, .id = 11, .generation = 5 };
	struct frag_content b = { .bytes = 4096, .id = 22, .generation = 6 };
	struct frag_content_fault f;

	must(frag_dev_alloc(dev, 2 << 20, &a.addr, &err));
	b.addr = a.addr + a.bytes - 1024;
	must(frag_dev_content(dev, FRAG_CONTENT_FILL, &a, &err));
	must(frag_dev_content(dev, FRAG_CONTENT_FILL, &b, &err));
	must(frag_dev_content(dev, FRAG_CONTENT_VERIFY, &b, &err));
	assert_true(fault_of(dev).count == 0);
	must(frag_dev_content(dev, FRAG_CONTENT_VERIFY, &a, &err));
	f = fault_of(dev);
	assert_true(f.count == 1024 / 16);
	assert_true(f.id == 11 && f.generation == 5 && f.foreign);
	assert_true(f.other_id == 22 && f.other_generation == 6);
	assert_true(f.offset >= a.bytes - 1024 && f.offset - (a.bytes - 1024) == f.other_offset);
	must(frag_dev_free(dev, a.addr, 2 << 20, &err));
}

/* Content stays with the physical memory when that is mapped to another place. */
TEST(content_moves_with_its_handle)
{
	FRAG_AUTO(close_card_at) struct frag_device *dev = open_card(NULL);
	struct frag_content b = { .bytes = FRAG_PAGE, .id = 3, .generation = 1 };
	struct frag_device_info info;
	frag_addr_t at[2];
	uint64_t handle;

	frag_dev_info(dev, &info);
	if (!(info.can & FRAG_CAN_VMM)) {
		frag_dev_close(dev);
		skip();
	}
	must(frag_dev_create(dev, FRAG_PAGE, &handle, &err));
	for (unsigned i = 0; i < 2; i++) {
		must(frag_dev_reserve(dev, FRAG_PAGE, 0, &at[i], &err));
		must(frag_dev_map(dev, at[i], FRAG_PAGE, handle, &err));
		must(frag_dev_set_access(dev, at[i], FRAG_PAGE, &err));
		b.addr = at[i];
		if (!i)
			must(frag_dev_content(dev, FRAG_CONTENT_FILL, &b, &err));
		must(frag_dev_content(dev, FRAG_CONTENT_VERIFY, &b, &err));
		must(frag_dev_unmap(dev, at[i], FRAG_PAGE, &err));
	}
	assert_true(fault_of(dev).count == 0);
	must(frag_dev_release(dev, handle, FRAG_PAGE, &err));
	for (unsigned i = 0; i < 2; i++)
		must(frag_dev_unreserve(dev, at[i], FRAG_PAGE, &err));
}

/* A fence is not done while its stream works, and is after a synchronise. */
TEST(fences_wait_for_work)
{
	FRAG_AUTO(close_card_at) struct frag_device *dev = open_card(NULL);
	struct frag_content work = { .bytes = 50000000, .stream = 3 };
	uint64_t fence[3];
	bool done;

	must(frag_dev_content(dev, FRAG_CONTENT_DELAY, &work, &err));
	must(frag_dev_fence_record(dev, 3, &fence[0], &err));
	must(frag_dev_fence_record(dev, 4, &fence[1], &err));
	must(frag_dev_fence_done(dev, fence[0], 0, &done, &err));
	assert_false(done);
	must(frag_dev_sync(dev, 4, &err));
	must(frag_dev_fence_done(dev, fence[1], 0, &done, &err));
	assert_true(done);
	must(frag_dev_sync(dev, 3, &err));
	must(frag_dev_fence_done(dev, fence[0], 0, &done, &err));
	assert_true(done);
	/* many more than the ring holds at first, none asked for */
	for (unsigned i = 0; i < 1000; i++)
		must(frag_dev_fence_record(dev, 3, &fence[2], &err));
	must(frag_dev_sync_all(dev, &err));
	must(frag_dev_fence_done(dev, fence[2], 0, &done, &err));
	assert_true(done);
}

TEST(managed_is_limited)
{
	FRAG_AUTO(close_card_at) struct frag_device *dev = open_card(NULL);
	uint64_t left, total;
	frag_addr_t at;

	must(frag_dev_mem_info(dev, &left, &total, &err));
	assert_int_equal(frag_dev_managed_alloc(dev, left / 4 + FRAG_GIB, &at, &err), FRAG_ENOTSUP);
	assert_non_null(strstr(err.msg, "--managed-max"));
	must(frag_dev_managed_alloc(dev, 64 * FRAG_MIB, &at, &err));
	assert_true(dev->reserved_bytes == 0);
	must(frag_dev_managed_touch(dev, at, 64 * FRAG_MIB, false, &err));
	assert_true(dev->reserved_bytes == 64 * FRAG_MIB);
	must(frag_dev_managed_free(dev, at, 64 * FRAG_MIB, &err));
}

/* Blocks, tails, small ones that share 2 MiB, partly touched ones: reserved is what is resident. */
TEST(counts_managed)
{
	static const struct {
		uint64_t bytes, touched, resident;
	} mix[] = {
		{ 512, 512, 64 << 10 },
		{ 3 << 19, 3 << 19, 2 << 20 }, /* more than half of what small ones share */
		{ 2 << 20, 2 << 20, 2 << 20 },
		{ (2 << 20) + (4 << 10), (2 << 20) + (4 << 10), (2 << 20) + (64 << 10) },
		{ 7 << 20, 5 << 20, 5 << 20 },
		{ 64 << 20, 1, 64 << 10 },
		{ 256 << 20, 256 << 20, 256 << 20 },
	};
	FRAG_AUTO(close_card_at) struct frag_device *dev = open_card(NULL);
	frag_addr_t at;

	for (unsigned round = 0; round < 3; round++) {
		for (size_t i = 0; i < FRAG_ARRAY_LEN(mix); i++) {
			must(frag_dev_managed_alloc(dev, mix[i].bytes, &at, &err));
			must(frag_dev_managed_touch(dev, at, mix[i].touched, false, &err));
			assert_int_equal(dev->reserved_bytes, mix[i].resident);
			must(frag_dev_managed_free(dev, at, mix[i].bytes, &err));
			assert_true(dev->reserved_bytes == 0);
		}
	}
}

TEST(errors_name_the_call)
{
	FRAG_AUTO(frag_dev_close_at) struct frag_device *dev = open_card(NULL);

	assert_int_equal(frag_dev_unmap(dev, 1ull << 40, FRAG_PAGE, &err), FRAG_EDEVICE);
	assert_non_null(strstr(err.msg, "cuMemUnmap: CUDA_ERROR_"));
	assert_true(err.cuda_code != 0);
}

/* Settling leaves the thread on one core, closing lets it go where it could before. */
TEST(ready_on_a_core)
{
	struct frag_dev_observed w;
	struct frag_device *dev;
	cpu_set_t before, now;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	dev = open_card(NULL);
	if (sched_setaffinity(0, sizeof(before), &before)) {
		frag_dev_close(dev);
		skip(); /* a system that does not allow it */
	}
	for (unsigned i = 0; i < 2; i++) {
		must(frag_dev_make_ready(dev, 0, &err));
		assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
		assert_int_equal(CPU_COUNT(&now), 1);
		assert_true(frag_dev_observed(dev, &w) && w.pair_ns > 0 && w.pair_after_ns > 0);
	}
	assert_true(dev->driver_calls == 0);
	close_card(dev);
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&now, &before));
}
