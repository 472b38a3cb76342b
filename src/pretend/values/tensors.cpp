// SPDX-License-Identifier: Apache-2.0
/* Tensors of the card: which they are, how large, and views of them on the CPU. */
#include "values.h"

/* DTensor, FakeTensor, functional wrappers: their inner tensors are dispatched themselves. */
static bool wrapped(const Tensor &t)
{
	return t.unsafeGetTensorImpl()->key_set().has(c10::DispatchKey::Python);
}

/* Nested tensors have no strides. */
static bool nested(const Tensor &t)
{
	return t.is_nested();
}

static bool on_card(const Tensor &t)
{
	return t.defined() && !wrapped(t) && !nested(t) && !t.is_quantized() && t.is_cuda() &&
	       t.layout() == at::kStrided && t.has_storage() &&
	       !t.unsafeGetTensorImpl()->key_set().has(c10::DispatchKey::Meta) &&
	       !t.unsafeGetTensorImpl()->key_set().has(
		       c10::DispatchKey::ZeroTensor); /* no storage behind it */
}

static int64_t span(const Tensor &t)
{
	int64_t n = 1;
	if (!t.numel())
		return 0;
	for (int64_t i = 0; i < t.dim(); i++)
		n += (t.size(i) - 1) * t.stride(i);
	return n * t.element_size();
}

/* Bytes of distinct elements: less than the span if strided with gaps or expanded. */
static int64_t volume(const Tensor &t)
{
	return std::min(span(t), int64_t(t.numel() * t.element_size()));
}

/* Or booleans. */
static bool integers(const Tensor &t)
{
	return c10::isIntegralType(t.scalar_type(), true);
}

/* Computed values of large tensors, by end address. Entries of reused memory are dropped. */
class Held
{
      public:
	std::atomic<int64_t> bytes{ 0 };
	void set(const Tensor &t, bool computed) /* pre: mutex is held */
	{
		uintptr_t begin = uintptr_t(t.data_ptr()), end = begin + uintptr_t(span(t));
		auto it = pieces.upper_bound(begin);

		while (it != pieces.end() && it->second.begin < end)
			it = forget(it);
		if (!computed)
			return;
		pieces.insert_or_assign(end, Piece{ begin, t.storage().getWeakStorageImpl() });
		bytes += int64_t(end - begin);
	}
	bool exceed(int64_t most) /* pre: mutex is not held */
	{
		if (bytes <= most)
			return false;
		std::lock_guard<std::mutex> g(mutex);
		for (auto it = pieces.begin(); it != pieces.end();) /* drops freed storages */
			it = it->second.storage.expired() ? forget(it) : std::next(it);
		return bytes > most;
	}

      private:
	struct Piece {
		uintptr_t begin;
		c10::weak_intrusive_ptr<c10::StorageImpl> storage;
	};
	using Pieces = std::map<uintptr_t, Piece>;
	Pieces pieces;
	Pieces::iterator forget(Pieces::iterator it)
	{
		bytes -= int64_t(it->first - it->second.begin);
		return pieces.erase(it);
	}
};
static Held held, held_integers;

static int64_t most_integers(const Tensor &t)
{
	return t.element_size() >= 4 && !held_integers.exceed(HELD_INTEGERS) ? WIDE_INTEGERS
									     : SMALL_INTEGERS;
}

static bool small(const Tensor &t)
{
	return volume(t) <= (integers(t) ? most_integers(t) : SMALL);
}

/* A CPU tensor over the same bytes. */
static Tensor cpu_view(const Tensor &t)
{
	if (!t.numel())
		return at::detail::empty_strided_cpu(t.sizes(), t.strides(), t.scalar_type());
	c10::Storage s(c10::Storage::use_byte_size_t(), span(t),
		       c10::DataPtr(t.data_ptr(), c10::Device(c10::kCPU)), nullptr, false);
	auto r = at::detail::make_tensor<c10::TensorImpl>(
		std::move(s), c10::DispatchKeySet(c10::DispatchKey::CPU), t.dtype());
	r.unsafeGetTensorImpl()->set_sizes_and_strides(t.sizes(), t.strides());
	return r;
}

static c10::DeleterFnPtr lets_go; /* of a storage that views another one (storage[a:b]) */

static const c10::StorageImpl &whole_of(const c10::StorageImpl *s)
{
	while (lets_go && s->data_ptr().get_deleter() == lets_go)
		s = static_cast<const c10::StorageImpl *>(s->data_ptr().get_context());
	return *s;
}

/* Start of the whole storage. */
static const void *base_of(const Tensor &t)
{
	return whole_of(t.storage().unsafeGetStorageImpl()).data();
}

/* The same value with f of each tensor. */
template <class F> static IValue mapped(const IValue &v, F f)
{
	if (v.isTensor())
		return f(v.toTensor());
	if (v.isTensorList()) {
		c10::List<Tensor> list;
		for (const Tensor &t : v.toTensorVector())
			list.push_back(f(t));
		return list;
	}
	if (v.isOptionalTensorList()) {
		/* c10::optional before 2.4 */
		using Maybe = decltype(v.toOptionalTensorVector())::value_type;
		c10::List<Maybe> list;
		for (const auto &t : v.toOptionalTensorVector())
			list.push_back(t ? Maybe(f(*t)) : t);
		return list;
	}
	return v;
}

static int64_t wrap(int64_t dim, const Tensor &x)
{
	return dim < 0 ? dim + x.dim() : dim;
}

static Tensor tensor_or_none(const IValue &v)
{
	return v.isTensor() ? v.toTensor() : Tensor();
}

/* The argument of this name among these; none: there is no such one. */
static const IValue &argument(const Call &c, const Stack &args, const char *name)
{
	static const IValue none;
	for (size_t i = 0; i < args.size(); i++)
		if (c.op.schema().arguments()[i].name() == name)
			return args[i];
	return none;
}
