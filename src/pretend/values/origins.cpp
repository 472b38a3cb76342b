// SPDX-License-Identifier: Apache-2.0
/* Where the values of each storage come from, and memory that other processes write. */
#include "values.h"

namespace card_values
{
bool is_foreign(const Tensor &t)
{
	return core.foreign && core.foreign(t.data_ptr());
}

Origin origin_of(const Tensor &t)
{
	if (!on_card(t))
		return t.is_cuda() ? NOTHING : COMPUTED;
	if (!t.numel())
		return COMPUTED;
	uint32_t lent;
	if (core.lent_origin && core.lent_origin(t.data_ptr(), span(t), &lent))
		return Origin(lent);
	std::unique_lock<std::mutex> g(mutex);
	const void *base = base_of(t);
	auto it = origins.find(base);
	if (it != origins.end() && it->second != NOTHING)
		return it->second;
	auto table = table_at(base);
	g.unlock();
	/* part of a large tensor of zeros */
	return table && table->places.empty() && small(t) ? COMPUTED : NOTHING;
}

void set_origin(const Tensor &t, Origin value)
{
	if (!on_card(t) || !t.numel())
		return;
	if (core.set_lent_origin)
		core.set_lent_origin(t.data_ptr(), span(t), value, false);
	std::lock_guard<std::mutex> g(mutex);
	const void *base = base_of(t);
	origins[base] = value;
	forget_table(base);
	forget_slope(base);
	if (t.is_floating_point() && span(t) > SMALL)
		held.set(t, value != NOTHING);
	if (integers(t) && span(t) > SMALL_INTEGERS)
		held_integers.set(t, value != NOTHING);
}

/* Tensors recently passed to NCCL, which may be views inside a storage. By end address. */
struct Part {
	uintptr_t begin;
	const void *base;
};
static std::map<uintptr_t, Part> parts;

/* pre: mutex is held. */
static const void *base_of(const void *p)
{
	uintptr_t at = uintptr_t(p);
	auto it = parts.upper_bound(at);
	return it != parts.end() && it->second.begin <= at ? it->second.base : p;
}

void note_part(const Tensor &t)
{
	if (!on_card(t) || !t.numel())
		return;
	uintptr_t begin = uintptr_t(t.data_ptr()), end = begin + span(t);
	std::lock_guard<std::mutex> g(mutex);
	auto it = parts.upper_bound(begin);
	while (it != parts.end() && it->second.begin < end) /* drops outdated entries */
		it = parts.erase(it);
	parts[end] = { begin, base_of(t) };
}

/* Copy from the host (NULL) or another address, without an operator: the library's own copies
 * bypass the dispatcher. */
void note_arrival(const void *to, const void *from)
{
	std::lock_guard<std::mutex> g(mutex);
	auto it = origins.find(base_of(from));
	if (!from || it != origins.end()) {
		forget_table(base_of(to));
		origins[base_of(to)] = from ? it->second : COMPUTED;
	}
}

uint32_t origin_at(const void *p)
{
	std::lock_guard<std::mutex> g(mutex);
	auto it = origins.find(base_of(p));
	return it == origins.end() ? NOTHING : it->second;
}

void set_origin_at(const void *p, uint32_t value, int lower)
{
	std::lock_guard<std::mutex> g(mutex);
	Origin &o = origins[base_of(p)];
	forget_table(base_of(p));
	o = lower ? std::min(o, Origin(value)) : Origin(value);
}

/* Each origin that starts in [p, p + bytes) reaches to the next. */
void each_origin(const void *p, uint64_t bytes, void (*put)(const void *, uint64_t, uint32_t))
{
	std::map<const char *, Origin> there;
	{
		std::lock_guard<std::mutex> g(mutex);
		for (auto &o : origins)
			if (o.first >= p && o.first < static_cast<const char *>(p) + bytes)
				there.emplace(static_cast<const char *>(o.first), o.second);
	}
	for (auto it = there.begin(); it != there.end(); ++it) {
		auto next = std::next(it);
		put(it->first,
		    (next == there.end() ? static_cast<const char *>(p) + bytes : next->first) -
			    it->first,
		    it->second);
	}
}

/* A kernel outside the dispatcher may have written it. */
void set_unknown(const c10::StorageImpl *storage)
{
	const auto &whole = whole_of(storage);

	if (core.set_lent_origin)
		core.set_lent_origin(whole.data(), whole.nbytes(), NOTHING, false);
	std::lock_guard<std::mutex> g(mutex);
	origins.erase(whole.data());
}

/* Drops the host's pages behind a tensor of zeros or unknown values. False: small, or not
 * contiguous. */
bool drop(const Tensor &t)
{
	bool whole =
		core.clear && on_card(t) && span(t) > SMALL && t.is_non_overlapping_and_dense();
	if (whole)
		core.clear(t.data_ptr(), span(t));
	return whole;
}

/* Waits for pending messages before values are read. */
void wait_for(const Tensor &t)
{
	if (on_card(t) && t.numel() && (in_full || span(t) <= INDICES))
		core.settle(t.data_ptr(), span(t));
}

/* New memory: messages pending for its former contents are dropped. */
void forget_awaited(const Tensor &t)
{
	if (core.awaited && *core.awaited && on_card(t) && t.numel())
		core.abandon(t.data_ptr(), span(t));
}
} // namespace card_values
