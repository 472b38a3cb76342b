/* SPDX-License-Identifier: Apache-2.0 */
/* What auto_growth_best_fit_allocator.cc asks for of PaddlePaddle: allocations that know their allocator, and a log that is
 * silent. */
#pragma once
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <sstream>

#define VLOG(level) if (true) {} else std::cerr
#define PHI_DEFINE_EXPORTED_READONLY_bool(name, value, help) bool FLAGS_##name = value

namespace phi
{
struct Place {
};
enum class TracerEventType { UserDefined };
struct RecordEvent {
	RecordEvent(const char *, TracerEventType, unsigned) {}
};
class Allocator;
class Allocation
{
      public:
	Allocation(void *ptr, void *base, size_t size, Place) : ptr_(ptr), base_(base), size_(size) {}
	virtual ~Allocation() = default;
	void *ptr() const { return ptr_; }
	void *base_ptr() const { return base_; }
	size_t size() const { return size_; }
	Place place() const { return {}; }
	Allocator *owner = nullptr;

      private:
	void *ptr_, *base_;
	size_t size_;
};
struct GiveBack {
	void operator()(Allocation *) const;
};
using AllocationPtr = std::unique_ptr<Allocation, GiveBack>;
class Allocator
{
      public:
	virtual ~Allocator() = default;
	virtual bool IsAllocThreadSafe() const { return false; }
	AllocationPtr Allocate(size_t size)
	{
		Allocation *a = AllocateImpl(size);
		a->owner = this;
		return AllocationPtr(a);
	}
	void Free(Allocation *a) { FreeImpl(a); }
	uint64_t Release(const Place &place) { return ReleaseImpl(place); }

      protected:
	virtual Allocation *AllocateImpl(size_t size) = 0;
	virtual void FreeImpl(Allocation *a) { delete a; }
	virtual uint64_t ReleaseImpl(const Place &) { return 0; }
};
inline void GiveBack::operator()(Allocation *a) const
{
	a->owner->Free(a);
}
} // namespace phi

namespace paddle::memory::allocation
{
using phi::Allocation;
using phi::Allocator;
using DecoratedAllocationPtr = phi::AllocationPtr;
struct BadAlloc : std::exception {
};
template <typename T> DecoratedAllocationPtr static_unique_ptr_cast(DecoratedAllocationPtr p)
{
	return p;
}
inline size_t AlignedSize(size_t size, size_t alignment)
{
	return (size + alignment - 1) / alignment * alignment;
}
} // namespace paddle::memory::allocation
