/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Umpire's QuickPool, DynamicPoolList, FixedPool and MixedPool over a pretended device:
 *	drive_umpire OPS SEGMENTS quick|dynamic|mixed|fixed [BYTES OBJECTS]
 * Trim is the pool's release(). Of what Umpire's core brings only the strategies are compiled; its resource manager, log and
 * events are stood in for (stub/umpire).
 */
#include "umpire/strategy/DynamicPoolList.hpp"
#include "umpire/strategy/FixedPool.hpp"
#include "umpire/strategy/MixedPool.hpp"
#include "umpire/strategy/QuickPool.hpp"

#include "drive.h"

namespace {
struct device_strategy : umpire::strategy::AllocationStrategy {
	device_strategy() : AllocationStrategy{ "device", 0, nullptr, "device" } {}
	void *allocate(std::size_t bytes) override
	{
		void *p = dev_take(bytes);

		if (!p)
			throw std::runtime_error("device");
		return p;
	}
	void deallocate(void *ptr, std::size_t) override { dev_give(ptr); }
	umpire::Platform getPlatform() noexcept override { return umpire::Platform::host; }
	umpire::MemoryResourceTraits getTraits() const noexcept override { return {}; }
};
} // namespace

static umpire::strategy::AllocationStrategy *pool;
static std::size_t object_bytes;

static void *take(size_t bytes, unsigned)
{
	if (object_bytes && bytes > object_bytes)
		return nullptr;
	try {
		return pool->allocate_internal(object_bytes ? object_bytes : bytes);
	} catch (std::exception const &) {
		return nullptr;
	}
}
static void give(void *ptr, size_t bytes, unsigned) { pool->deallocate_internal(ptr, object_bytes ? object_bytes : bytes); }
static void trim() { pool->release(); }

int main(int argc, char **argv)
{
	static const drive_ops ops = { take, give, trim };
	std::string kind = argc > 3 ? argv[3] : "";
	umpire::Allocator device{ new device_strategy };

	if (argc < 4)
		return 2;
	dev_load(argv[2]);
	if (kind == "quick") {
		pool = new umpire::strategy::QuickPool("p", 1, device);
	} else if (kind == "dynamic") {
		pool = new umpire::strategy::DynamicPoolList("p", 1, device);
	} else if (kind == "mixed") {
		pool = new umpire::strategy::MixedPool("p", 1, device);
	} else if (kind == "fixed" && argc > 5) {
		object_bytes = strtoull(argv[4], nullptr, 0);
		pool = new umpire::strategy::FixedPool("p", 1, device, object_bytes, strtoull(argv[5], nullptr, 0));
	} else {
		return 2;
	}
	exit(drive(argv[1], &ops));
}
