/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PaddlePaddle's auto-growth best-fit allocator over the pretended device:
 *	drive_paddle OPS SEGMENTS [CHUNK_BYTES [FREE_IDLE_CHUNK [FREE_WHEN_NO_CACHE_HIT]]]
 */
#include "paddle/phi/core/memory/allocation/auto_growth_best_fit_allocator.h"

#include <unordered_map>

#include "drive.h"

extern bool FLAGS_free_idle_chunk, FLAGS_free_when_no_cache_hit;
using namespace paddle::memory::allocation;

namespace
{
struct Device : Allocator {
	Allocation *AllocateImpl(size_t size) override
	{
		void *p = dev_take(size);

		if (!p)
			throw BadAlloc();
		return new Allocation(p, p, size, {});
	}
	void FreeImpl(Allocation *a) override
	{
		dev_give(a->ptr());
		delete a;
	}
};

Allocator *pool;
std::unordered_map<void *, phi::AllocationPtr> live;

void *take(size_t bytes, unsigned)
{
	try {
		phi::AllocationPtr a = pool->Allocate(bytes);
		void *ptr = a->ptr();

		live[ptr] = std::move(a);
		return ptr;
	} catch (const BadAlloc &) {
		return nullptr;
	}
}

void give(void *ptr, size_t, unsigned)
{
	live.erase(ptr);
}

void trim()
{
	pool->Release({});
}
} // namespace

int main(int argc, char **argv)
{
	static const drive_ops ops = { take, give, trim };
	auto number = [&](int i) { return argc > i ? strtoull(argv[i], nullptr, 10) : 0; };

	if (argc < 3)
		return 2;
	dev_load(argv[2]);
	FLAGS_free_idle_chunk = number(4);
	FLAGS_free_when_no_cache_hit = number(5);
	pool = new AutoGrowthBestFitAllocator(std::make_shared<Device>(), 256, number(3));
	return drive(argv[1], &ops);
}
