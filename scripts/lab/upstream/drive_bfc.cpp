/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XLA's own BFCAllocator, as it is in TensorFlow's wheel (CPU), through its headers:
 *	drive_bfc OPS SEGMENTS LIMIT [GROWTH [GC]]
 * LIMIT: bytes it may hold. Regions come from the pretended device; chunks are never touched.
 */
#include "xla/tsl/framework/bfc_allocator.h"

#include "drive.h"

namespace {

struct Device : tsl::SubAllocator {
	Device() : SubAllocator({}, {}) {}
	void *Alloc(size_t, size_t bytes, size_t *got) override
	{
		*got = bytes;
		return dev_take(bytes);
	}
	void Free(void *ptr, size_t) override { dev_give(ptr); }
	bool SupportsCoalescing() const override { return false; }
};

tsl::BFCAllocator *arena;

void *take(size_t bytes, unsigned)
{
	tsl::AllocationAttributes once(/*retry_on_failure=*/false, /*allocation_will_be_logged=*/false, nullptr);

	return arena->AllocateRaw(256, bytes, once);
}

void give(void *ptr, size_t, unsigned)
{
	arena->DeallocateRaw(ptr);
}

} // namespace

int main(int argc, char **argv)
{
	const drive_ops ops = { take, give, nullptr };
	tsl::BFCAllocator::Options options;

	if (argc < 4)
		return 2;
	dev_load(argv[2]);
	options.allow_growth = argc < 5 || atoi(argv[4]);
	options.garbage_collection = argc > 5 && atoi(argv[5]);
	options.allow_retry_on_failure = false;
	arena = new tsl::BFCAllocator(std::make_unique<Device>(), strtoull(argv[3], nullptr, 10), "bfc", options);
	return drive(argv[1], &ops);
}
