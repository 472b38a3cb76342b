// SPDX-License-Identifier: Apache-2.0
/* Tensors of the card: which they are, how large, and views of them on the CPU. */
#include "values.h"

namespace card_values
{
/* DTensor, FakeTensor, functional wrappers. */
bool wrapped(const Tensor &t)
{
	return t.unsafeGetTensorImpl()->key_set().has(c10::DispatchKey::Python);
}

/* Nested tensors have no strides. */
bool nested(const Tensor &t)
{
	return t.is_nested();
}

bool on_card(const Tensor &t)
{
	return t.defined() && !wrapped(t) && !nested(t) && !t.is_quantized() && t.is_cuda() &&
	       t.layout() == at::kStrided && t.has_storage() &&
	       !t.unsafeGetTensorImpl()->key_set().has(c10::DispatchKey::Meta) &&
	       !t.unsafeGetTensorImpl()->key_set().has(
		       c10::DispatchKey::ZeroTensor); /* no storage behind it */
}

int64_t span(const Tensor &t)
{
	int64_t n = 1;
	if (!t.numel())
		return 0;
	for (int64_t i = 0; i < t.dim(); i++)
		n += (t.size(i) - 1) * t.stride(i);
	return n * t.element_size();
}

int64_t volume(const Tensor &t)
{
	return std::min(span(t), int64_t(t.numel() * t.element_size()));
}

bool integers(const Tensor &t)
{
	return c10::isIntegralType(t.scalar_type(), true);
}

Held::Pieces::iterator Held::forget(Pieces::iterator it)
{
	bytes -= int64_t(it->first - it->second.begin);
	return pieces.erase(it);
}

void Held::set(const Tensor &t, bool computed)
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

bool Held::exceed(int64_t most)
{
	if (bytes <= most)
		return false;
	std::lock_guard<std::mutex> g(mutex);
	for (auto it = pieces.begin(); it != pieces.end();) /* drops freed storages */
		it = it->second.storage.expired() ? forget(it) : std::next(it);
	return bytes > most;
}

static int64_t most_integers(const Tensor &t)
{
	return t.element_size() >= 4 && !held_integers.exceed(HELD_INTEGERS) ? WIDE_INTEGERS
									     : SMALL_INTEGERS;
}

bool small(const Tensor &t)
{
	return volume(t) <= (integers(t) ? most_integers(t) : SMALL);
}

Tensor cpu_view(const Tensor &t)
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

const c10::StorageImpl &whole_of(const c10::StorageImpl *s)
{
	while (lets_go && s->data_ptr().get_deleter() == lets_go)
		s = static_cast<const c10::StorageImpl *>(s->data_ptr().get_context());
	return *s;
}

const void *base_of(const Tensor &t)
{
	return whole_of(t.storage().unsafeGetStorageImpl()).data();
}

int64_t wrap(int64_t dim, const Tensor &x)
{
	return dim < 0 ? dim + x.dim() : dim;
}
} // namespace card_values
