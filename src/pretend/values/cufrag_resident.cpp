// SPDX-License-Identifier: Apache-2.0
/*
 * --values computed in bounded host memory: beyond the limit, the least recently used values are
 * dropped. Values older than the first forward pass go last, because each step starts from the
 * weights; updates that depend on dropped values are skipped. Before that pass, the newest go
 * first: weights are made before an optimizer's copies of them. Included by cufrag_values.cpp.
 */
struct Resident {
	struct Piece {
		uintptr_t begin;
		c10::weak_intrusive_ptr<c10::StorageImpl> storage;
		const void *base;
		uint64_t born, used;
	};
	std::map<uintptr_t, Piece> pieces; /* by end address */
	int64_t bytes = 0, most = 0;
	uint64_t now = 0, begun = 0; /* begun: time of the first forward pass */
	bool told = false;

	auto first(const Tensor &t) { return pieces.upper_bound(uintptr_t(t.data_ptr())); }
	static uintptr_t end_of(const Tensor &t) { return uintptr_t(t.data_ptr()) + uintptr_t(span(t)); }
	auto forget(std::map<uintptr_t, Piece>::iterator it)
	{
		bytes -= int64_t(it->first - it->second.begin);
		return pieces.erase(it);
	}
	/* Reused memory has a new owner; a write to a part of a storage is no reuse. pre: mutex is
	 * held. */
	void set(const Tensor &t, bool computed)
	{
		uintptr_t begin = uintptr_t(t.data_ptr()), end = end_of(t);
		uint64_t born = ++now;
		for (auto it = first(t); it != pieces.end() && it->second.begin < end;) {
			bool mine = it->second.base == base_of(t) && !it->second.storage.expired();
			born = mine ? std::min(born, it->second.born) : born;
			if (mine && computed && it->second.begin <= begin && it->first >= end) {
				it->second.used = now;
				return;
			}
			it = forget(it);
		}
		if (!computed || int64_t(end - begin) <= SMALL)
			return;
		pieces.insert_or_assign(end, Piece{ begin, t.storage().getWeakStorageImpl(), base_of(t), born, now });
		bytes += int64_t(end - begin);
	}
	/* An operator reads or writes it. */
	void touch(const Tensor &t)
	{
		if (!on_card(t) || span(t) <= SMALL)
			return;
		std::lock_guard<std::mutex> g(mutex);
		if (!begun && t.requires_grad() && !t.is_leaf())
			begun = ++now;
		auto known = origins.find(base_of(t));
		if (first(t) == pieces.end() || first(t)->second.begin >= end_of(t))
			set(t, known != origins.end() && known->second == COMPUTED); /* written by compiled code */
		for (auto it = first(t); it != pieces.end() && it->second.begin < end_of(t); it++)
			it->second.used = ++now;
	}
	/* Made before the first forward pass: weights, an optimizer's copies of them,
	 * statistics. */
	bool lasts(const Piece &p) const { return !begun || p.born < begun; }
	/* An unknown update keeps the old values; small tensors have no creation time. */
	bool keeps(const Info &f, const Tensor &t)
	{
		if (on_card(t) && span(t) <= SMALL)
			return !at::GradMode::is_enabled() && begins(f.name, { "aten::_fused_", "aten::_foreach_", "aten::copy_" });
		std::lock_guard<std::mutex> g(mutex);
		auto it = first(t);
		return !at::GradMode::is_enabled() && it != pieces.end() && it->second.begin < end_of(t) && it->second.base == base_of(t) &&
		       lasts(it->second);
	}
	/* Not to be called while an operator runs. */
	void make_room()
	{
		std::lock_guard<std::mutex> g(mutex);
		if (bytes <= most)
			return;
		std::vector<std::pair<std::pair<int, uint64_t>, uintptr_t>> order;
		for (const auto &[end, p] : pieces)
			order.push_back({ { p.storage.expired() ? 0 : lasts(p) ? 2 : 1, begun ? p.used : now - p.born }, end });
		std::sort(order.begin(), order.end());
		for (size_t i = 0; i < order.size() && bytes > most / 4 * 3; i++) {
			auto it = pieces.find(order[i].second);
			if (order[i].first.first)
				tell();
			if (order[i].first.first)
				origins[it->second.base] = NOTHING;
			if (clear_bytes)
				clear_bytes(reinterpret_cast<void *>(it->second.begin), it->first - it->second.begin);
			forget(it);
		}
	}
	void tell()
	{
		if (!told)
			fprintf(stderr, "cufrag record: a process has more computed numbers than its %.1f GB of the host (--memory): those "
					"unused for longest are forgotten, and weights whose updates hang on them stay as they are\n", double(most) / 1e9);
		told = true;
	}
};
Resident resident;
