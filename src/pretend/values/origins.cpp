// SPDX-License-Identifier: Apache-2.0
/* Where the values of each storage come from, and memory that other processes write. */
#include "values.h"

/* What is known of a storage's values, by its base. */
struct Storage {
	Origin origin = NOTHING;
	std::shared_ptr<const Table> table{}; /* NULL: none */
	Slope slope{};			      /* 0: unknown */
};
static std::unordered_map<const void *, Storage> storages;

/* Values of another origin are other values. pre: mutex is held. */
static void put_origin(const void *base, Origin value)
{
	storages[base] = { value };
}

/* NULL: none. pre: mutex is held. */
static std::shared_ptr<const Table> table_at(const void *base)
{
	auto it = storages.find(base);
	bool valid =
		it != storages.end() && it->second.table && !it->second.table->storage.expired();
	return valid ? it->second.table : nullptr;
}

static std::shared_ptr<const Table> table_of(const Tensor &t)
{
	if (!on_card(t) || !t.numel())
		return nullptr;
	std::lock_guard<std::mutex> g(mutex);
	return table_at(base_of(t));
}

/* Any size. */
static bool holds_zeros(const Tensor &t)
{
	auto table = table_of(t);
	return table && !table->places.numel();
}

static bool is_foreign(const Tensor &t)
{
	return frag_pretend_foreign(t.data_ptr());
}

static Origin origin_of(const Tensor &t)
{
	if (!on_card(t))
		return t.is_cuda() ? NOTHING : COMPUTED;
	if (!t.numel())
		return COMPUTED;
	uint32_t lent;
	if (frag_pretend_lent_origin(t.data_ptr(), span(t), &lent))
		return Origin(lent);
	std::unique_lock<std::mutex> g(mutex);
	const void *base = base_of(t);
	auto it = storages.find(base);
	if (it != storages.end() && it->second.origin != NOTHING)
		return it->second.origin;
	auto table = table_at(base);
	g.unlock();
	/* part of a large tensor of zeros */
	return table && !table->places.numel() && small(t) ? COMPUTED : NOTHING;
}

static void set_origin(const Tensor &t, Origin value)
{
	if (!on_card(t) || !t.numel())
		return;
	frag_pretend_lent_origin_set(t.data_ptr(), span(t), value, false);
	std::lock_guard<std::mutex> g(mutex);
	put_origin(base_of(t), value);
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

static void note_part(const Tensor &t)
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
static void note_arrival(const void *to, const void *from)
{
	std::lock_guard<std::mutex> g(mutex);
	auto it = storages.find(base_of(from));
	if (!from || it != storages.end())
		put_origin(base_of(to), from ? it->second.origin : COMPUTED);
}

static uint32_t origin_at(const void *p)
{
	std::lock_guard<std::mutex> g(mutex);
	auto it = storages.find(base_of(p));
	return it == storages.end() ? NOTHING : it->second.origin;
}

static void set_origin_at(const void *p, uint32_t value, int lower)
{
	std::lock_guard<std::mutex> g(mutex);
	Origin before = storages[base_of(p)].origin;
	put_origin(base_of(p), lower ? std::min(before, Origin(value)) : Origin(value));
}

/* Each origin that starts in [p, p + bytes) reaches to the next. */
static void each_origin(const void *p, uint64_t bytes,
			void (*put)(const void *, uint64_t, uint32_t))
{
	std::map<const char *, Origin> there;
	{
		std::lock_guard<std::mutex> g(mutex);
		for (auto &o : storages)
			if (o.first >= p && o.first < static_cast<const char *>(p) + bytes)
				there.emplace(static_cast<const char *>(o.first), o.second.origin);
	}
	for (auto it = there.begin(); it != there.end(); ++it) {
		auto next = std::next(it);
		put(it->first,
		    (next == there.end() ? static_cast<const char *>(p) + bytes : next->first) -
			    it->first,
		    it->second);
	}
}

/* Drops the host's pages behind a tensor of zeros or unknown values. False: small, or not
 * contiguous. */
static bool drop(const Tensor &t)
{
	bool whole = on_card(t) && span(t) > SMALL && t.is_non_overlapping_and_dense();
	if (whole)
		frag_pretend_clear(t.data_ptr(), span(t));
	return whole;
}

/* Waits for pending messages before values are read. */
static void wait_for(const Tensor &t)
{
	if (on_card(t) && t.numel() && (in_full || span(t) <= INDICES))
		frag_pretend_settle(t.data_ptr(), span(t));
}

/* New memory: messages pending for its former contents are dropped. */
static void forget_awaited(const Tensor &t)
{
	if (*frag_pretend_awaited() && on_card(t) && t.numel())
		frag_pretend_abandon(t.data_ptr(), span(t));
}

/* Fills with 1 (or 0, or random in [0, 1)). c: CPU tensor */
static void invent_all(const Tensor &c)
{
	if (!c.is_floating_point() || mode == Values::zeros)
		c.zero_();
	else if (mode == Values::rules)
		c.fill_(1);
	else
		c.copy_(at::full(c.sizes(), double(generator() >> 11) / 9007199254740992.0,
				 c.options()));
}

static void invent(const Tensor &t, int64_t most = 0)
{
	bool zeros = !t.is_floating_point() || mode == Values::zeros;
	if (on_card(t) && t.numel() && (small(t) || volume(t) <= most) && !(zeros && drop(t)))
		invent_all(cpu_view(t));
}
