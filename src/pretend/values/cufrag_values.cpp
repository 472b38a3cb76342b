// SPDX-License-Identifier: Apache-2.0
/*
 * Values of small tensors on the pretended card.
 *
 * A boxed fallback on PyTorch's dispatch key Fake, which no other code uses; it lies below autograd
 * and autocast and above the back-ends. For each operator on tensors of the card: 1. the real
 * operator runs, for its allocations and shapes; 2. if all inputs and outputs are small, it runs
 * again on the CPU, over the same bytes; 3. the results are copied over the real ones, in-place
 * updates happen in place.
 *
 * No allocation is added and no lifetime changes. Other results are invented by fixed rules
 * (docs/pretend.md, "Values"): finite numbers, random valid indices, expected counts. Each storage
 * is flagged as computed or not. Values that reach the program are reported (steer), so that
 * decisions that depend on invented values can be listed.
 *
 * C++, because the dispatcher has no other interface; compiled once for the user's wheel
 * (cufrag_card.py).
 */
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/PyInterpreter.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/library.h>
#include <torch/version.h>

#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <random>
#include <unordered_map>
#include <unordered_set>

namespace torch { namespace autograd
{
__attribute__((weak)) int get_current_graph_task_id(); /* < 0: no backward pass; missing in some releases */
} }

using at::Tensor;
using c10::IValue;
using torch::jit::Stack;

namespace
{
constexpr int64_t SMALL = 64 << 10;	/* limits in bytes: of computed floating-point tensors, */
constexpr int64_t SMALL_INTEGERS = 32 << 20; /* of computed integers and booleans: indices decide shapes; */
constexpr int64_t WIDE_INTEGERS = 256 << 20; /* of those with 4 and 8 bytes per element: edges of graphs, */
constexpr int64_t HELD_INTEGERS = int64_t(2) << 30; /* as long as all large ones together stay below this; */
constexpr int64_t READ = 4 << 20;	/* of inputs, if results are small, */
constexpr double FLOPS = 3e8;	/* or if all inputs were computed and this suffices: small nets; */
constexpr int64_t DATA = 16 << 20;	/* of both without gradients and products: distances, masks */
constexpr int64_t MASKS = 128 << 20;	/* of numbers selected by booleans, as many as of the booleans */
constexpr int64_t HELD = 64 << 20;	/* of all large computed floats on the card: large nets are not computed */
constexpr int64_t HELD_DATA = 1 << 30; /* the same for results of such data: masks of a large net */
constexpr int64_t INDICES = 64 << 20;	/* of invented indices */
constexpr int64_t CODES = 1 << 20;	/* of one-byte integers from invented ones: larger ones are weights */
constexpr int64_t CHECKED = 1 << 20;	/* number of indices to check */
constexpr int DEEP = 6;		/* nesting depth of operators that are computed */
constexpr uint64_t MODE_COPIES = 6; /* to the host, for each row (PyTorch 2.11) */

enum class Values { rules, zeros, random };
bool in_full; /* everything is computed, however large (cufrag_computed.cpp) */
using Steer = int (*)(const char *what, int invented, double *value);

Values mode = Values::rules;
std::mt19937_64 generator(1);
std::mutex mutex; /* protects generator, origins, infos, clock */
void (*answer)(bool, uint64_t);
void (*answer_in_turn)(const uint64_t *, uint64_t, uint64_t);
void (*work)(void *, uint64_t, uint64_t, bool);
const std::atomic<bool> *streams_matter; /* does this process use streams of its own, or other ranks? */
Steer steer;
thread_local int depth;
struct Info;
thread_local const Info *outer; /* the operator that the program called */
thread_local bool suppression; /* inside torchvision's nms, which keeps most */
thread_local bool foreseen; /* the result is already computed, so inner operators need not be */

/* Reports a decision by values of the card that a file of values cannot override. */
void tell_choice(const char *what, bool invented)
{
	double ignored;
	if (steer)
		steer(what, invented, &ignored);
}

/* ---- what an operator is ------------------------------------------------------------------- */

/* How the operator indexes argument 0: by row (argument 1), along dimension 1 (argument 2), by
 * class, or with one index per dimension. */
enum { ROWS = 1, ALONG, CLASSES, LISTED };

/* What it does with a table: writes a value at indices along a dimension, writes at listed indices,
 * takes slices, copies, compares with a number, counts. */
enum { SCATTERS = 1, PUTS, TAKES, COPIES, COMPARES, COUNTS };

/* The loss gradient starts here (over classes, over frames), or passes through unchanged, scaled,
 * divided, or summed over rows. */
enum { CLASSES_BEGIN = 1, FRAMES_BEGIN, PASSED_ON, MULTIPLIED, DIVIDED, ADDED_UP };

struct Info {
	std::string name;
	std::vector<bool> writes; /* which arguments */
	std::vector<bool> given;  /* out= arguments among these: not read */
	bool mutates = false;
	bool skip = false;   /* nothing to compute, such as views */
	bool fresh = false;  /* allocates uninitialized memory */
	bool scalar = false; /* returns a scalar to the program */
	bool shape = false;  /* the result's size depends on values */
	bool rule = false;   /* returns indices: invented if values are unknown */
	bool over = false;   /* does not read its output's old values */
	size_t unread = 0;   /* argument, counted from 1: if it is 0, argument 0 is not read (beta) */
	bool part = false;   /* the same, but writes only at given indices */
	bool like = false;   /* uses only the shape of its first argument */
	bool asks = false;   /* mode: asks the card how many values differ, and where the mode is */
	bool seeded = false; /* draws random numbers */
	bool pointwise = false; /* or copies: its inputs are no indices */
	bool compares = false;
	bool bound = false; /* compares with a bound that nearly every value satisfies */
	bool asks_zero = false; /* tests for zero */
	bool masks = false; /* selects by booleans, or computes booleans from numbers */
	bool both = false;  /* logical and */
	bool either = false; /* logical or */
	bool report = false; /* checks a solver's error code: success */
	bool decides = false; /* branches on values that it computes itself */
	bool zeros = false; /* fills with zeros, which need no pages */
	bool sends = false; /* to other ranks */
	bool resizes = false;
	bool stays = false; /* the gradient scaler's scale, which the CPU lacks up to PyTorch 2.2: unchanged */
	bool finite = false; /* looks for inf and nan: none among invented values */
	bool counts = false; /* on the CPU only for floating point */
	uint64_t dead = 0;   /* bit set of first-argument types that the CPU lacks */
	int slope = 0;	     /* its effect on the loss gradient */
	std::vector<IValue> (*instead)(const Stack &) = nullptr; /* replacement on the CPU */
	int places = 0;      /* which argument indexes the first one; a card checks its range */
	int flops = 0;	     /* formula: 1 product, 2 convolution, 3 attention */
	bool pads = false;   /* copies a tensor into a larger one */
	bool sums = false;   /* a sum or similar: shrinks, and on the card converts booleans to integers first */
	int table = 0;	     /* what it does with a table */
	bool each = false; /* element-wise */
	bool reduces = false; /* a reduction in several passes */
	bool reads_few = false; /* reads little of its first tensor */
	double per_cycle = 0; /* elements per multiprocessor and cycle; 0: limited by memory */
	size_t causal = 0;   /* argument, counted from 1, that makes attention causal */
};

bool one_of(const std::string &name, std::initializer_list<const char *> list)
{
	for (auto item : list)
		if (name == item)
			return true;
	return false;
}

bool begins(const std::string &name, std::initializer_list<const char *> list)
{
	for (auto item : list)
		if (name.rfind(item, 0) == 0)
			return true;
	return false;
}

/* As measured on H200s with 132 multiprocessors at 1.98 GHz [results/nogpu/durations.md]. */
double numbers_per_cycle(const std::string &name)
{
	return begins(name, { "aten::_softmax" })				       ? 1.8 :
	       begins(name, { "aten::_log_softmax" })				       ? 1.05 :
	       name == "aten::native_dropout"					       ? 1.7 :
	       begins(name, { "aten::gelu" })					       ? 2.5 :
	       name == "aten::cat"						       ? 1.25 :
	       name == "aten::native_layer_norm"				       ? 1.2 :
	       name == "aten::native_layer_norm_backward"			       ? 0.55 :
										 0;
}

/* Returns a view of an argument? */
bool gives_view(const c10::FunctionSchema &schema)
{
	bool view = false;

	for (const auto &r : schema.returns())
		view |= r.alias_info() && !r.alias_info()->isWrite();
	return view;
}

std::vector<IValue> (*instead_of(const std::string &name))(const Stack &);

/* Returns no tensor; the operators it calls are computed themselves (allclose,
 * _linalg_check_errors). */
bool gives_no_tensor(const c10::FunctionSchema &schema)
{
	bool tensor = false;

	for (const auto &r : schema.returns())
		tensor |= r.type()->isSubtypeOf(*c10::TensorType::get()) || r.type()->kind() == c10::TypeKind::ListType;
	return !tensor;
}

Info describe(const c10::OperatorHandle &op)
{
	const auto &schema = op.schema();
	const std::string &name = schema.name();
	Info f;

	f.name = name;
	for (const auto &a : schema.arguments()) {
		bool w = a.alias_info() && a.alias_info()->isWrite();
		f.writes.push_back(w);
		f.given.push_back(w && a.kwarg_only());
		f.mutates |= w;
	}
	f.fresh = begins(name, { "aten::empty", "aten::new_empty" });
	f.scalar = one_of(name, { "aten::_local_scalar_dense", "aten::equal" });
	f.skip = (gives_view(schema) && !f.mutates) || begins(name, { "aten::set_", "aten::resize_", "aten::record_stream", "aten::is_pinned",
							"aten::_pin_memory", "c10d", "_c10d", "symm_mem", "_dtensor", "fsdp", "aten::_has_same_storage", "aten::is_same_size" });
	f.skip |= op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) && /* composite, */
		  !op.hasKernelForDispatchKey(c10::DispatchKey::CUDA); /* unlike _fused_rms_norm */
	f.skip |= gives_no_tensor(schema) && !f.scalar && !f.mutates;
	f.shape = one_of(name, { "aten::nonzero", "aten::_unique", "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive", "aten::_coalesce" });
	f.rule = one_of(name, { "aten::topk", "aten::argmax", "aten::argmin", "aten::multinomial", "aten::sort", "aten::argsort" }) ||
		 ((name == "aten::max" || name == "aten::min") && schema.overload_name() == "dim");
	f.over = one_of(name, { "aten::copy_", "aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_", "aten::random_",
				"aten::bernoulli_", "aten::exponential_", "aten::_foreach_copy_", "aten::_foreach_zero_" });
	f.part = name == "aten::index_copy_" || (in_full && one_of(name, { "aten::index_put_", "aten::_index_put_impl_" })) || (name == "aten::scatter_" && !begins(schema.overload_name(), { "reduce", "value_reduce" }));
	f.over |= f.part;
	f.like = name.size() > 5 && (name.compare(name.size() - 5, 5, "_like") == 0 || begins(name, { "aten::new_" }));
	f.asks = name == "aten::mode";
	f.seeded = op.hasTag(at::Tag::nondeterministic_seeded);
	f.bound = name == "aten::ge";
	f.asks_zero = one_of(name, { "aten::any", "aten::all" });
	f.compares = one_of(name, { "aten::ge", "aten::gt", "aten::le", "aten::lt", "aten::eq", "aten::ne" });
	f.stays = name == "aten::_amp_update_scale_";
	f.finite = name == "aten::_amp_foreach_non_finite_check_and_unscale_";
	f.masks = f.compares || one_of(name, { "aten::where", "aten::masked_fill" });
	f.both = one_of(name, { "aten::mul", "aten::logical_and", "aten::bitwise_and" });
	f.either = one_of(name, { "aten::logical_or", "aten::bitwise_or", "aten::bitwise_or_" });
	f.counts = name == "aten::histc";
	f.resizes = name == "aten::resize_";
	f.sends = begins(name, { "c10d", "_c10d" });
	f.report = name == "aten::_linalg_check_errors";
	f.zeros = one_of(name, { "aten::zeros", "aten::zeros_like", "aten::new_zeros", "aten::zero_" });
	f.instead = instead_of(name);
	f.decides = one_of(name, { "aten::bincount", "aten::repeat_interleave", "aten::searchsorted", "aten::segment_reduce", "aten::isin", "aten::histc", "aten::_ctc_loss",
				   "aten::linalg_eig", "aten::_linalg_eigvals", "aten::linalg_matrix_exp" });
	f.pointwise = op.hasTag(at::Tag::pointwise) || one_of(name, { "aten::copy_", "aten::clone", "aten::_to_copy", "aten::cat" });
	f.places = name == "aten::embedding"										 ? ROWS :
		   one_of(name, { "aten::index_select", "aten::gather", "aten::index_add", "aten::index_add_", "aten::scatter",
				  "aten::scatter_", "aten::scatter_add", "aten::scatter_add_" })			 ? ALONG :
		   one_of(name, { "aten::nll_loss_forward", "aten::nll_loss2d_forward" })				 ? CLASSES :
		   one_of(name, { "aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_" }) ? LISTED :
														    0;
	f.slope = one_of(name, { "aten::nll_loss_backward", "aten::nll_loss2d_backward" })					    ? CLASSES_BEGIN :
		  name == "aten::_ctc_loss_backward"									    ? FRAMES_BEGIN :
		  one_of(name, { "aten::_log_softmax_backward_data", "aten::_to_copy", "aten::clone", "aten::_unsafe_view", "aten::slice_backward",
				 "aten::masked_fill", "aten::masked_fill_", "aten::index_put_", "aten::_index_put_impl_" }) ? PASSED_ON :
		  name == "aten::mul"											    ? MULTIPLIED :
		  name == "aten::div"											    ? DIVIDED :
		  name == "aten::sum"											    ? ADDED_UP :
														      0;
	f.flops = begins(name, { "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_scaled_mm", "aten::_grouped_mm" }) ? 1 :
		  begins(name, { "aten::convolution" })									  ? 2 :
		  begins(name, { "aten::_scaled_dot_product" })							  ? 3 :
														    0;
	f.pads = name == "aten::constant_pad_nd";
	f.per_cycle = numbers_per_cycle(name);
	f.each = f.pointwise || name == "aten::masked_fill_"; /* lacks that tag */
	f.reduces = one_of(name, { "aten::sum", "aten::mean", "aten::linalg_vector_norm", "aten::native_layer_norm_backward" });
	f.reads_few = begins(name, { "aten::nll_loss" });
	for (size_t i = 0; i < schema.arguments().size(); i++)
		if (schema.arguments()[i].name() == "is_causal")
			f.causal = i + 1;
		else if (schema.arguments()[i].name() == "beta" && begins(name, { "aten::baddbmm", "aten::addmm" }))
			f.unread = i + 1;
	f.sums = one_of(name, { "aten::sum", "aten::prod" });
	f.table = one_of(name, { "aten::scatter_", "aten::scatter" })	  ? SCATTERS :
		  one_of(name, { "aten::index_put_", "aten::index_put" }) ? PUTS :
		  one_of(name, { "aten::index", "aten::index_select" })	  ? TAKES :
		  one_of(name, { "aten::clone", "aten::_to_copy" })	  ? COPIES :
		  one_of(name, { "aten::gt", "aten::ne", "aten::eq" })	  ? COMPARES :
		  one_of(name, { "aten::sum", "aten::any" })		  ? COUNTS :
									    0;
	return f;
}

Info &info(const c10::OperatorHandle &op)
{
	static std::unordered_map<const void *, Info *> infos;
	thread_local std::unordered_map<const void *, Info *> mine;
	const void *key = &op.schema();
	auto it = mine.find(key);
	if (it != mine.end())
		return *it->second;
	std::lock_guard<std::mutex> g(mutex);
	Info *&entry = infos[key];
	if (!entry)
		entry = new Info(describe(op));
	return *(mine[key] = entry);
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* DTensor, FakeTensor, functional wrappers: their inner tensors are dispatched themselves. */
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
	return t.defined() && !wrapped(t) && !nested(t) && !t.is_quantized() && t.is_cuda() && t.layout() == at::kStrided && t.has_storage() &&
	       !t.unsafeGetTensorImpl()->key_set().has(c10::DispatchKey::Meta) &&
	       !t.unsafeGetTensorImpl()->key_set().has(c10::DispatchKey::ZeroTensor); /* no storage behind it */
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

/* Bytes of distinct elements: less than the span if strided with gaps or expanded. */
int64_t volume(const Tensor &t)
{
	return std::min(span(t), int64_t(t.numel() * t.element_size()));
}

bool integers(const Tensor &t)
{
	return c10::isIntegralType(t.scalar_type(), true);
}

/* Computed values of large tensors, by end address. Entries of reused memory are dropped. */
struct Held {
	struct Piece {
		uintptr_t begin;
		c10::weak_intrusive_ptr<c10::StorageImpl> storage;
	};
	std::map<uintptr_t, Piece> pieces;
	std::atomic<int64_t> bytes{ 0 };

	auto forget(std::map<uintptr_t, Piece>::iterator it)
	{
		bytes -= int64_t(it->first - it->second.begin);
		return pieces.erase(it);
	}
	/* pre: mutex is held. */
	void set(const Tensor &t, bool computed)
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
	/* pre: mutex is not held. */
	bool exceed(int64_t most)
	{
		if (bytes <= most)
			return false;
		std::lock_guard<std::mutex> g(mutex);
		for (auto it = pieces.begin(); it != pieces.end();) /* drops freed storages */
			it = it->second.storage.expired() ? forget(it) : std::next(it);
		return bytes > most;
	}
};
Held held, held_integers;

int64_t most_integers(const Tensor &t)
{
	return t.element_size() >= 4 && !held_integers.exceed(HELD_INTEGERS) ? WIDE_INTEGERS : SMALL_INTEGERS;
}

bool small(const Tensor &t)
{
	return volume(t) <= (integers(t) ? most_integers(t) : SMALL);
}

/* A CPU tensor over the same bytes. */
Tensor cpu_view(const Tensor &t)
{
	if (!t.numel())
		return at::detail::empty_strided_cpu(t.sizes(), t.strides(), t.scalar_type());
	c10::Storage s(c10::Storage::use_byte_size_t(), span(t), c10::DataPtr(t.data_ptr(), c10::Device(c10::kCPU)), nullptr, false);
	auto r = at::detail::make_tensor<c10::TensorImpl>(std::move(s), c10::DispatchKeySet(c10::DispatchKey::CPU), t.dtype());
	r.unsafeGetTensorImpl()->set_sizes_and_strides(t.sizes(), t.strides());
	return r;
}

/* Deleter of a storage that views another one (storage[a:b]); its context is the whole storage. */
c10::DeleterFnPtr lets_go;

const c10::StorageImpl &whole_of(const c10::StorageImpl *s)
{
	while (lets_go && s->data_ptr().get_deleter() == lets_go)
		s = static_cast<const c10::StorageImpl *>(s->data_ptr().get_context());
	return *s;
}

/* Start of the whole storage behind t. */
const void *base_of(const Tensor &t)
{
	return whole_of(t.storage().unsafeGetStorageImpl()).data();
}

/* Origin of a storage's values; a result gets the least of its inputs. */
enum Origin { NOTHING, GUESSED, LIKELY, INVENTED, COMPUTED }; /* GUESSED: computed from unknown values, or invented; */
/* LIKELY: guessed, but true for most: not below a bound (a size, a score), or kept by nms */
std::unordered_map<const void *, Origin> origins; /* by the base of the storage */

/* Non-zero elements of a large tensor of zeros: one_hot of a router's choices takes gigabytes. */
struct Table {
	c10::weak_intrusive_ptr<c10::StorageImpl> storage;
	Origin origin;		     /* of the choices */
	bool ones;		     /* all ones, else other numbers */
	int64_t stride, classes;     /* class of an element: its index / stride % classes */
	std::vector<int64_t> begin;  /* of each class, then the end */
	std::vector<int64_t> places; /* indices into the storage, by class, then ascending */
	Origin then = NOTHING;	     /* of the storage when this was noted; it differs after a write */
};
std::unordered_map<const void *, std::shared_ptr<const Table>> tables;
size_t tables_most = 256; /* more than this: drops those of freed storages */

/* NULL: none, or outdated by a write. pre: mutex is held. */
std::shared_ptr<const Table> table_at(const void *base)
{
	auto it = tables.find(base);
	auto known = origins.find(base);
	bool valid = it != tables.end() && !it->second->storage.expired() && known != origins.end() && known->second == it->second->then;
	return valid ? it->second : nullptr;
}

void (*clear_bytes)(void *, uint64_t); /* drops the pages of zeros */
bool (*foreign)(const void *);	       /* memory of another process, which tracks its values */
void forget_slope(const void *base); /* pre: mutex is held. */

/* Memory shared with other processes; its file has the origins. */
bool (*lent_origin)(const void *, uint64_t, uint32_t *);
void (*set_lent_origin)(const void *, uint64_t, uint32_t, bool);

bool is_foreign(const Tensor &t)
{
	return foreign && foreign(t.data_ptr());
}

Origin origin_of(const Tensor &t)
{
	if (!on_card(t))
		return t.is_cuda() ? NOTHING : COMPUTED;
	if (!t.numel())
		return COMPUTED;
	uint32_t lent;
	if (lent_origin && lent_origin(t.data_ptr(), span(t), &lent))
		return Origin(lent);
	std::unique_lock<std::mutex> g(mutex);
	const void *base = base_of(t);
	auto it = origins.find(base);
	if (it != origins.end() && it->second != NOTHING)
		return it->second;
	auto table = table_at(base);
	g.unlock();
	return table && table->places.empty() && small(t) ? COMPUTED : NOTHING; /* part of a large tensor of zeros */
}

void set_origin(const Tensor &t, Origin value)
{
	if (!on_card(t) || !t.numel())
		return;
	if (set_lent_origin)
		set_lent_origin(t.data_ptr(), span(t), value, false);
	std::lock_guard<std::mutex> g(mutex);
	const void *base = base_of(t);
	origins[base] = value;
	tables.erase(base);
	forget_slope(base);
	if (t.is_floating_point() && span(t) > SMALL)
		held.set(t, value != NOTHING);
	if (integers(t) && span(t) > SMALL_INTEGERS)
		held_integers.set(t, value != NOTHING);
}

std::shared_ptr<const Table> table_of(const Tensor &t)
{
	if (!on_card(t) || !t.numel())
		return nullptr;
	std::lock_guard<std::mutex> g(mutex);
	return table_at(base_of(t));
}

/* Any size. */
bool holds_zeros(const Tensor &t)
{
	auto table = table_of(t);
	return table && table->places.empty();
}

void keep_table(const Tensor &t, Table &&table)
{
	std::lock_guard<std::mutex> g(mutex);
	if (tables.size() >= tables_most) {
		for (auto it = tables.begin(); it != tables.end();)
			it = it->second->storage.expired() ? tables.erase(it) : std::next(it);
		tables_most = 2 * tables.size() + 256;
	}
	const void *base = base_of(t);
	table.then = origins[base];
	tables[base] = std::make_shared<const Table>(std::move(table));
}

/* Tensors recently passed to NCCL, which may be views inside a storage. By end address. */
struct Part {
	uintptr_t begin;
	const void *base;
};
std::map<uintptr_t, Part> parts;

/* pre: mutex is held. */
const void *base_of(const void *p)
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
		tables.erase(base_of(to));
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
	tables.erase(base_of(p));
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
		put(it->first, (next == there.end() ? static_cast<const char *>(p) + bytes : next->first) - it->first, it->second);
	}
}

/* Drops the host's pages behind a tensor of zeros or unknown values. False: small, or not
 * contiguous. */
bool drop(const Tensor &t)
{
	bool whole = clear_bytes && on_card(t) && span(t) > SMALL && t.is_non_overlapping_and_dense();
	if (whole)
		clear_bytes(t.data_ptr(), span(t));
	return whole;
}

/* messages of other ranks (await.h) */
const std::atomic<unsigned> *awaited;
int (*settle)(const void *, uint64_t);
void (*abandon)(const void *, uint64_t);

/* Waits for pending messages before values are read. */
void wait_for(const Tensor &t)
{
	if (on_card(t) && t.numel() && (in_full || span(t) <= INDICES))
		settle(t.data_ptr(), span(t));
}

template <class F> void each(const IValue &v, F f)
{
	if (v.isTensor()) {
		if (v.toTensor().defined())
			f(v.toTensor());
	} else if (v.isTensorList()) {
		for (const Tensor &t : v.toTensorVector())
			if (t.defined())
				f(t);
	} else if (v.isList()) {
		for (const IValue &x : v.toListRef())
			if (x.isTensor() && x.toTensor().defined())
				f(x.toTensor());
	}
}

template <class F> void each(const std::vector<IValue> &values, F f)
{
	for (const IValue &v : values)
		each(v, f);
}

/* ---- invented values -------------------------------------------------------------------------- */

/* Fills with 1 (or 0, or random in [0, 1)). c: CPU tensor */
void invent_all(const Tensor &c)
{
	if (!c.is_floating_point() || mode == Values::zeros)
		c.zero_();
	else if (mode == Values::rules)
		c.fill_(1);
	else
		c.copy_(at::full(c.sizes(), double(generator() >> 11) / 9007199254740992.0, c.options()));
}

void invent(const Tensor &t, int64_t most = 0)
{
	bool zeros = !t.is_floating_point() || mode == Values::zeros;
	if (on_card(t) && t.numel() && (small(t) || volume(t) <= most) && !(zeros && drop(t)))
		invent_all(cpu_view(t));
}

/* Along dim: k different values of [0, n). */
void invent_indices(const Tensor &t, int64_t n, int64_t k, int64_t dim)
{
	auto c = cpu_view(t);
	if (n < 1)
		return;
	std::lock_guard<std::mutex> g(mutex);
	auto rows = at::empty(t.dim() ? c.transpose(dim, -1).sizes() : c.sizes(), c.options());
	auto *p = rows.data_ptr<int64_t>();
	std::vector<int64_t> order(k > 1 ? n : 0);
	for (size_t i = 0; i < order.size(); i++)
		order[i] = i;
	for (int64_t r = 0; r < rows.numel() / std::max<int64_t>(k, 1); r++)
		for (int64_t i = 0; i < k; i++) {
			if (k > 1)
				std::swap(order[i], order[i + generator() % (n - i)]);
			p[r * k + i] = mode == Values::zeros ? i : k > 1 ? order[i] : generator() % n;
		}
	c.copy_(t.dim() ? rows.transpose(dim, -1) : rows);
}

/* A router's choice of few experts for each token: uniform, except that the first expert gets
 * `skew` times as many. */
constexpr int64_t EXPERTS = 1024;
double skew = 1;

bool routes(const Tensor &x, int64_t k, int64_t dim)
{
	int64_t n = x.dim() > 1 ? x.size(-1) : 0;
	return dim == x.dim() - 1 && n > 1 && n <= EXPERTS && k < n && x.is_floating_point() && x.numel() / n >= 4 * n;
}

/* rows: CPU tensor, k choices out of n each */
void route_rows(const Tensor &rows, int64_t n, int64_t k)
{
	auto *p = rows.data_ptr<int64_t>();
	double share = std::min(1.0, skew * double(k) / double(n));
	int64_t next = 0;
	for (int64_t r = 0; r < rows.numel() / k; r++)
		for (int64_t i = 0; i < k; i++) {
			bool hot = skew > 1 && i == 0 && int64_t(double(r + 1) * share) > int64_t(double(r) * share);
			bool worst = skew >= double(n);
			p[r * k + i] = worst ? i : hot ? 0 : skew > 1 ? 1 + next++ % (n - 1) : next++ % n;
		}
}

void route(const Tensor &index, int64_t n, int64_t k)
{
	auto rows = at::empty(index.sizes(), cpu_view(index).options());
	route_rows(rows, n, k);
	cpu_view(index).copy_(rows);
	tell_choice("router", true);
}

int64_t wrap(int64_t dim, const Tensor &x)
{
	return dim < 0 ? dim + x.dim() : dim;
}

void invent_for(const Info &f, const std::vector<IValue> &args, const std::vector<IValue> &outs)
{
	const Tensor &x = args[0].toTensor(), &index = outs.back().toTensor();
	each(outs, [](const Tensor &t) { invent(t); });
	if (!on_card(index) || !index.numel() || index.scalar_type() != at::kLong || span(index) > WIDE_INTEGERS)
		return;
	if (f.name == "aten::topk" && x.dim() && mode == Values::rules &&
	    routes(x, index.size(-1), wrap(args[2].toInt(), x))) {
		route(index, x.size(-1), index.size(-1));
	} else if (span(index) > INDICES) {
		return;
	} else if (f.name == "aten::topk" && x.dim()) {
		int64_t d = wrap(args[2].toInt(), x);
		invent_indices(index, x.size(d), index.size(d), d);
	} else if (f.name == "aten::multinomial") {
		invent_indices(index, x.size(-1), args[2].toBool() ? 1 : args[1].toInt(), index.dim() - 1);
	} else if (begins(f.name, { "aten::arg" }) && f.name != "aten::argsort") {
		int64_t n = args[1].isNone() ? x.numel() : x.dim() ? x.size(wrap(args[1].toInt(), x)) : 1;
		if (mode == Values::rules && !args[1].isNone() && routes(x, 1, wrap(args[1].toInt(), x)))
			route(index, n, 1);
		else
			invent_indices(index, n, 1, 0);
	} else if (begins(f.name, { "aten::max", "aten::min" })) {
		invent_indices(index, x.dim() ? x.size(wrap(args[1].toInt(), x)) : 1, 1, 0);
	} else if (x.dim()) { /* already sorted */
		int64_t d = x.dim() - 1;
		for (const auto &a : args)
			if (a.isInt()) {
				d = wrap(a.toInt(), x);
				break;
			}
		std::vector<int64_t> shape(x.dim(), 1);
		shape[d] = x.size(d);
		auto c = cpu_view(index);
		c.copy_(at::arange(x.size(d), c.options()).view(shape).expand(c.sizes()));
	}
}

/* ---- computing --------------------------------------------------------------------------------- */

extern "C" { /* from the OpenMP library of libtorch_cpu, if any */
int omp_get_max_threads() __attribute__((weak));
void omp_set_num_threads(int) __attribute__((weak));
}

/* One thread: computed tensors are small, and threads would wait longer than they work. */
struct Threads {
	int before = !in_full && omp_get_max_threads && omp_set_num_threads ? omp_get_max_threads() : 1;
	Threads()
	{
		if (before != 1)
			omp_set_num_threads(1);
	}
	~Threads()
	{
		if (before != 1)
			omp_set_num_threads(before);
	}
};

/* Dispatches to the back-ends without re-entering this fallback; also while inventing. */
struct Below {
	Threads threads;
	at::AutoDispatchBelowADInplaceOrView no_grad;
	c10::impl::ExcludeDispatchKeyGuard not_again{ c10::DispatchKey::Fake };
};

IValue to_cpu(const IValue &v)
{
	if (v.isTensor())
		return on_card(v.toTensor()) ? IValue(cpu_view(v.toTensor())) : v;
	if (v.isTensorList()) {
		c10::List<Tensor> list;
		for (const Tensor &t : v.toTensorVector())
			list.push_back(on_card(t) ? cpu_view(t) : t);
		return list;
	}
	if (v.isOptionalTensorList()) {
		using Maybe = decltype(v.toOptionalTensorVector())::value_type; /* c10::optional before 2.4 */
		c10::List<Maybe> list;
		for (const auto &t : v.toOptionalTensorVector())
			list.push_back(t && on_card(*t) ? Maybe(cpu_view(*t)) : t);
		return list;
	}
	if (v.isDevice() && v.toDevice().is_cuda())
		return IValue(c10::Device(c10::kCPU));
	return v;
}

/* A seed for the CPU where a card draws: the same for the same seed and offset of its generator. */
uint64_t seed_of_draw(const IValue &own)
{
	constexpr uint64_t SPREAD = 0x9E3779B97F4A7C15;
	try { /* fails during graph capture */
		c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
		at::Generator g = own.isNone() ? at::globalContext().defaultGenerator(guard.getDevice()) : own.toGenerator();
		std::lock_guard<std::mutex> lock(g.mutex());
		uint64_t mixed = (g.current_seed() ^ (g.get_offset() * SPREAD)) * SPREAD;
		return mode == Values::random ? generator() : mixed ^ mixed >> 32; /* the CPU takes 32 bits */
	} catch (const std::exception &) {
		return generator();
	}
}

/* Preserves the program's random state on the host. */
struct KeepSeed {
	at::Generator cpu;
	Tensor state;
	KeepSeed(bool on, const IValue &own)
	{
		if (!on)
			return;
		cpu = at::detail::getDefaultCPUGenerator();
		uint64_t seed = seed_of_draw(own);
		std::lock_guard<std::mutex> g(cpu.mutex());
		state = cpu.get_state();
		cpu.set_current_seed(seed);
	}
	~KeepSeed()
	{
		if (!state.defined())
			return;
		std::lock_guard<std::mutex> g(cpu.mutex());
		cpu.set_state(state);
	}
};

#include "cufrag_instead.cpp"
#include "cufrag_computed.cpp"
#include "cufrag_overflow.cpp"

bool compute(const c10::OperatorHandle &op, Info &f, const std::vector<IValue> &args, std::vector<IValue> &results)
{
	Stack stack;
	IValue own; /* generator */
	uint64_t type = 1;
	each(args.empty() ? IValue() : args[0], [&](const Tensor &t) { type = uint64_t(1) << (int(t.scalar_type()) & 63); });
	if (f.dead & type)
		return false;
	for (size_t i = 0; i < args.size(); i++) {
		const auto &name = op.schema().arguments()[i].name();
		own = name == "generator" ? args[i] : own;
		stack.push_back(name == "generator" || name == "pin_memory" ? IValue() : to_cpu(args[i]));
	}
	if (f.counts && integers(args[0].toTensor()))
		stack[0] = stack[0].toTensor().to(at::kDouble);
	const Stack kept = stack; /* with several out= arguments, the results refer to these, which the call pops */
	Below below_this;
	KeepSeed seed(f.seeded, own);
	try {
		if (f.instead)
			return results = f.instead(kept), true;
		if (in_full && compute_instead(op, f, kept, results))
			return true;
		op.callBoxed(&stack);
	} catch (const std::exception &wrong) { /* the real operator reports real errors */
		if (in_full && !f.mutates && compute_in_float(op, kept, results))
			return true;
		if (dynamic_cast<const c10::NotImplementedError *>(&wrong))
			f.dead |= type;
		return false;
	}
	results.assign(stack.begin(), stack.end());
	return true;
}

/* Skips results that have another shape on the CPU (internals of the card's backward pass), and
 * returns their tensors. */
std::vector<Tensor> copy_results(const std::vector<IValue> &outs, const std::vector<IValue> &results)
{
	std::vector<std::pair<Tensor, Tensor>> pairs; /* to, from */
	std::vector<Tensor> others;
	for (size_t i = 0; i < outs.size() && i < results.size(); i++) {
		std::vector<Tensor> to, from;
		each(outs[i], [&](const Tensor &t) { to.push_back(t); });
		each(results[i], [&](const Tensor &t) { from.push_back(t); });
		for (size_t k = 0; k < to.size() && k < from.size(); k++)
			if (on_card(to[k]) && to[k].numel())
				pairs.emplace_back(to[k], from[k]);
	}
	for (const auto &[to, from] : pairs)
		if (to.sizes() != from.sizes())
			others.push_back(to);
		else
			cpu_view(to).copy_(from);
	return others;
}

/* ---- the modelled clock ------------------------------------------------------------------------ */

/* Pairs (host time in us, modelled ns), one per operator. */
struct Tick {
	int64_t host_us, model_ns;
};
std::vector<Tick> ticks;
double model_ns, bytes_per_ns, flops_per_ns, cycles_per_ns; /* cycles: of all multiprocessors */

/* Recomputation by checkpoints: operators within a backward pass with gradients enabled. Counted in
 * whole steps, from the first backward pass to the last. */
struct {
	bool outside; /* an operator ran outside of backward passes since the last one inside */
	double ns;
	struct {
		double model_ns, ns;
	} first, last;
	bool begun;
} recomputed = { true, 0, { 0, 0 }, { 0, 0 }, false };

bool in_backward()
{
	return torch::autograd::get_current_graph_task_id && torch::autograd::get_current_graph_task_id() >= 0;
}

/* pre: locked. */
void count_recomputed(double ns)
{
	if (!in_backward()) {
		recomputed.outside = true;
		return;
	}
	if (recomputed.outside) {
		recomputed.last = { model_ns, recomputed.ns };
		if (!recomputed.begun)
			recomputed.first = recomputed.last;
		recomputed.begun = true;
	}
	recomputed.outside = false;
	if (at::GradMode::is_enabled())
		recomputed.ns += ns;
}

double flops_of(const Info &f, const std::vector<IValue> &args, const std::vector<IValue> &outs)
{
	std::vector<Tensor> in, out;
	each(args, [&](const Tensor &t) { in.push_back(t); });
	each(outs, [&](const Tensor &t) { out.push_back(t); });
	if (in.size() < 2 || out.empty())
		return 0;
	if (f.flops == 1) { /* 2 m n k; addmm and baddbmm have the summand first */
		const Tensor &a = in[begins(f.name, { "aten::addmm", "aten::baddbmm" }) ? 1 : 0];
		bool whole = a.dim() < out[0].dim(); /* a group sums over its own rows: weight gradients of experts */
		return a.dim() ? 2.0 * double(out[0].numel()) * double(a.size(-1)) / (whole ? std::max<double>(double(out[0].size(0)), 1) : 1) : 0;
	}
	if (f.flops == 2) { /* each output element meets a filter; backward twice */
		bool backward = f.name == "aten::convolution_backward";
		if (in.size() < (backward ? 3u : 2u) || !in[backward ? 2 : 1].dim())
			return 0;
		const Tensor &w = in[backward ? 2 : 1], &y = backward ? in[0] : out[0];
		return (backward ? 4.0 : 2.0) * double(y.numel()) * double(w.numel()) / double(std::max<int64_t>(w.size(0), 1));
	}
	const Tensor &q = in[0], &k = in[1];
	if (q.dim() != 4 || k.dim() != 4)
		return 0;
	return (f.name.find("backward") == std::string::npos ? 4.0 : 10.0) * double(q.numel()) * double(k.size(2));
}

/* Alignment of rows in half precision, as kernels check it: all at multiples of 16 bytes, of 4, or
 * less. */
enum { ROWS_OF_16, ROWS_OF_4, ROWS_OF_2 };

int rows_begin(const Tensor &t)
{
	if (!on_card(t) || t.dim() < 2 || t.element_size() != 2 || t.size(-1) == 1 || t.size(-2) == 1)
		return ROWS_OF_16;
	int64_t stride = t.stride(-1) == 1 ? t.stride(-2) : t.stride(-1);
	return stride % 8 == 0 ? ROWS_OF_16 : stride % 2 == 0 ? ROWS_OF_4 : ROWS_OF_2;
}

/*
 * Kernel times in ns, fitted to 13 programs on an H200 [results/nogpu/durations.md]. Products reach
 * 0.7 of the tensor cores' peak; with unaligned rows, kernels of older cards run instead, and
 * padding moves single elements (Inductor measures both and chooses) [results/nogpu/products.csv:
 * 731 of 778 choices of an H200]. Other kernels are limited by memory bandwidth, or by a rate per
 * cycle and multiprocessor.
 */
constexpr double PRODUCT = 0.7, PRODUCT_NS = 2500, MEMORY = 0.87, KERNEL_NS = 1200, REDUCTION_NS = 6000;
constexpr double WITH_TF32 = 0.35, FP32_FLOPS = 146; /* of single-precision products, per such cycle */
constexpr double CAUSAL = 0.5, ATTENTION = 0.36;

double product_of_halves(const Info &f, const std::vector<IValue> &args, const std::vector<IValue> &outs, double bytes, double flops)
{
	constexpr double UNEVEN_FLOPS[] = { HUGE_VAL, 340e3, 170e3 }, OLDER_CARD = 1.6, UNEVEN_BYTES = 1.6;
	int rows = ROWS_OF_16;

	for (const auto *some : { &args, &outs })
		each(*some, [&](const Tensor &x) { rows = std::max(rows, rows_begin(x)); });
	if (rows != ROWS_OF_16 && f.flops == 1)
		return flops / std::min(flops_per_ns / OLDER_CARD, UNEVEN_FLOPS[rows]) + UNEVEN_BYTES * bytes / bytes_per_ns;
	return std::max(bytes / bytes_per_ns, flops / flops_per_ns);
}

/* For products and convolutions. */
double product_ns(const Info &f, const std::vector<IValue> &args, const std::vector<IValue> &outs, double bytes)
{
	double flops = flops_of(f, args, outs), single = FP32_FLOPS * cycles_per_ns;
	bool halves = true;

	each(outs, [&](const Tensor &t) { halves &= t.element_size() <= 2; });
	if (halves)
		return PRODUCT_NS + product_of_halves(f, args, outs, bytes, flops) / PRODUCT;
	if (f.flops == 2 ? at::globalContext().allowTF32CuDNN() : at::globalContext().allowTF32CuBLAS())
		single = std::max(single, WITH_TF32 * PRODUCT * flops_per_ns);
	return PRODUCT_NS + std::max(bytes / (PRODUCT * bytes_per_ns), flops / single);
}

double attention_ns(const Info &f, const std::vector<IValue> &args, const std::vector<IValue> &outs, double bytes)
{
	double flops = flops_of(f, args, outs), rate = ATTENTION * flops_per_ns;

	if (args[0].toTensor().element_size() > 2)
		rate = FP32_FLOPS * cycles_per_ns;
	if (f.causal && f.causal <= args.size() && args[f.causal - 1].toBool())
		flops *= CAUSAL;
	return PRODUCT_NS + std::max(bytes / (MEMORY * bytes_per_ns), flops / rate);
}

/* Same layout and no broadcasting, so that a kernel can vectorize? */
bool alike(const std::vector<IValue> &args, const std::vector<IValue> &outs)
{
	const Tensor *first = nullptr;
	bool same = true;

	for (const auto *some : { &outs, &args })
		each(*some, [&](const Tensor &t) {
			if (t.defined() && t.numel() > 1 && !wrapped(t) && !nested(t) && t.layout() == at::kStrided) {
				first = first ? first : &t;
				same &= t.sizes() == first->sizes() && t.strides() == first->strides() && t.is_non_overlapping_and_dense() &&
					(t.element_size() >= first->element_size() || t.scalar_type() == at::kBool);
			}
		});
	return same;
}

double time_of(const Info &f, const std::vector<IValue> &args, const std::vector<IValue> &outs, double bytes)
{
	constexpr double ELEMENTS_OF_2 = 2.6, LARGER_ELEMENTS = 1.6, ACROSS_ROWS = 2.6, ONE_BY_ONE = 1.25;
	double numbers = 0, per_cycle = f.per_cycle;

	if (f.pads) {
		const Tensor &x = args[0].toTensor();
		bool across = x.dim() > 1 && x.stride(-1) != 1 && x.size(-1) > 1;
		double units = bytes / bytes_per_ns * (x.element_size() == 2 ? ELEMENTS_OF_2 : LARGER_ELEMENTS) * (across ? ACROSS_ROWS : 1);
		return PRODUCT_NS + units / PRODUCT;
	}
	if (f.flops)
		return f.flops == 3 ? attention_ns(f, args, outs, bytes) : product_ns(f, args, outs, bytes);
	if (f.reads_few)
		return KERNEL_NS;
	if (f.each && !alike(args, outs))
		per_cycle = ONE_BY_ONE;
	double ns = bytes / (MEMORY * bytes_per_ns);
	if (per_cycle) {
		for (const auto *some : { &args, &outs })
			each(*some, [&](const Tensor &t) { numbers = std::max(numbers, wrapped(t) || nested(t) ? 0 : double(t.numel())); });
		ns = std::max(ns, numbers / (per_cycle * cycles_per_ns));
	}
	return (f.reduces ? REDUCTION_NS : KERNEL_NS) + ns;
}

/* NULL, the default stream, if this PyTorch does not expose it. */
template <class Guard> auto native(const Guard &g, c10::Stream s, int) -> decltype(g.getStreamNativeHandle(s))
{
	return g.getStreamNativeHandle(s);
}
template <class Guard> void *native(const Guard &, c10::Stream, long)
{
	return nullptr;
}

void *current_stream()
{
	c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
	return native(guard, guard.getStream(guard.getDevice()), 0);
}

void tick(const Info &f, const std::vector<IValue> &args, const std::vector<IValue> &outs)
{
	double bytes = 0, ns;
	timespec t;
	if (bytes_per_ns <= 0)
		return;
	auto count = [&](const Tensor &x) { bytes += x.is_cuda() && !wrapped(x) && !nested(x) ? double(x.numel()) * double(x.element_size()) : 0; };
	each(args, count);
	each(outs, count);
	ns = time_of(f, args, outs, bytes);
	clock_gettime(CLOCK_REALTIME, &t);
	std::lock_guard<std::mutex> g(mutex);
	count_recomputed(ns);
	model_ns += ns;
	ticks.push_back({ t.tv_sec * 1000000 + t.tv_nsec / 1000, int64_t(model_ns) });
	if (work)
		work(streams_matter && *streams_matter ? current_stream() : nullptr, uint64_t(ns), uint64_t(model_ns), in_backward() && !at::GradMode::is_enabled());
}

/* Non-zero elements of an unknown mask: evenly spread and distinct. */
void invent_places(const Tensor &x, const Tensor &index)
{
	if (!on_card(index) || index.dim() != 2 || !index.numel() || span(index) > INDICES || !x.numel())
		return;
	auto c = cpu_view(index);
	int64_t count = index.size(0), n = x.numel();
	auto at = at::arange(count, c.options()).mul(n).div(count, "floor");
	for (int64_t d = x.dim() - 1; d >= 0; d--) {
		c.select(1, d).copy_(at.remainder(x.size(d)));
		at = at.div(x.size(d), "floor");
	}
	set_origin(index, INVENTED);
}

/* Sums of known integers or booleans are computed before the operator runs. False: not computed. */
bool foresee(const c10::OperatorHandle &op, Info &f, const std::vector<IValue> &args, int64_t most, std::vector<IValue> &results)
{
	bool done = integers(args[0].toTensor()) && compute(op, f, args, results);
	each(results, [&](const Tensor &t) { done &= small(t) || volume(t) <= most; });
	return done;
}

/* ---- the fallback ------------------------------------------------------------------------------ */

/* New memory: messages pending for its former contents are dropped. */
void forget_awaited(const Tensor &t)
{
	if (awaited && *awaited && on_card(t) && t.numel())
		abandon(t.data_ptr(), span(t));
}

/* Recurses into lists of lists (collectives). */
template <class F> void each_deep(const IValue &v, F f)
{
	if (v.isList() && !v.isTensorList()) {
		for (const IValue &x : v.toListRef())
			each_deep(x, f);
	} else {
		each(v, f);
	}
}

/*
 * Invalid indices end a program on a card later, without a line; here they raise an error: rows of
 * a table, entries along a dimension, classes of scores. Only computed indices are checked.
 */
void check_places(const Info &f, const Tensor &index, int64_t least, int64_t places, const IValue *ignored = nullptr)
{
	if (!on_card(index) || !index.numel() || index.numel() > CHECKED || !integers(index) || origin_of(index) != COMPUTED)
		return;
	auto at = cpu_view(index).to(at::kLong);
	auto wrong = at.lt(least).logical_or_(at.ge(places));
	if (ignored)
		wrong.logical_and_(at.ne(ignored->toInt()));
	if (wrong.any().item<bool>()) { /* no stream: it crashes if libstdc++ is linked statically */
		std::string first = std::to_string(at.masked_select(wrong)[0].item<int64_t>());
		TORCH_CHECK_INDEX(false, f.name + ": index " + first + " is out of range, there are " + std::to_string(places) +
						 " (on a card: CUDA error: device-side assert triggered)");
	}
}

void check_places(const Info &f, const std::vector<IValue> &args)
{
	const Tensor &table = args[0].toTensor();
	if (!table.dim())
		return;
	if (f.places == CLASSES) /* ignore_index */
		return check_places(f, args[1].toTensor(), 0, table.size(table.dim() > 1 ? 1 : 0), &args[4]);
	if (f.places != LISTED)
		return check_places(f, args[f.places].toTensor(), 0, table.size(f.places == ALONG ? args[1].toInt() : 0));
	int64_t d = 0;
	for (const IValue &v : args[1].toListRef()) { /* may be negative; a mask covers its own dimensions */
		bool index = v.isTensor() && v.toTensor().defined();
		bool mask = index && at::isIntegralType(v.toTensor().scalar_type(), true) && v.toTensor().element_size() == 1;
		if (index && !mask)
			check_places(f, v.toTensor(), -table.size(d), table.size(d));
		d += mask ? v.toTensor().dim() : 1;
	}
}

struct Deeper {
	Deeper() { depth++; }
	~Deeper() { depth--; }
};

struct Foreseen {
	bool before = foreseen;
	explicit Foreseen(bool now) { foreseen |= now; }
	~Foreseen() { foreseen = before; }
};

/* Do all inputs fit the limits, and what is their origin? Unknown indices do not fit: some CPU
 * kernels use them unchecked. */
struct Judged {
	bool fits = true;
	int64_t most = 0; /* size limit for each large result */
	Origin origin = COMPUTED;
};
Judged judge(const Info &f, const std::vector<IValue> &args)
{
	Judged j;
	bool data = !f.mutates && !f.flops, known = true, made = true, takes = false;
	bool over = f.over && !(f.places == LISTED && args[3].toBool()); /* unless it accumulates */
	bool unread = f.unread && args[f.unread - 1].toScalar().toDouble() == 0;
	int64_t bytes = 0, data_most = f.masks ? MASKS : DATA;
	for (size_t i = 0; i < args.size(); i++)
		each(args[i], [&](const Tensor &t) {
			if (!t.is_cuda() || (f.like && i == 0))
				return;
			takes = true;
			if (!on_card(t)) {
				j.fits = made = false;
				j.origin = NOTHING;
				return;
			}
			bytes += integers(t) ? 0 : volume(t);
			known &= small(t) || volume(t) <= READ;
			data &= !t.requires_grad() && (small(t) || volume(t) <= data_most);
			if (!small(t) && (f.writes[i] || volume(t) > READ))
				j.fits = false;
			if (f.given[i] || ((over || unread) && i == 0))
				return;
			j.origin = std::min(j.origin, origin_of(t));
			bool codes = integers(t) && t.scalar_type() != at::kBool;
			if (codes && ((!f.pointwise && origin_of(t) <= LIKELY) || (t.element_size() == 1 && volume(t) > CODES && origin_of(t) <= INVENTED)))
				j.fits = made = false;
		});
	made &= j.origin == COMPUTED;
	if (in_full && made)
		return { true, INT64_MAX, COMPUTED };
	j.fits &= bytes <= 4 * READ;
	made &= bytes <= 2 * data_most;
	made &= held.bytes <= (data && takes ? HELD_DATA : HELD);
	j.most = made && data ? data_most : made && known ? READ : 0;
	j.fits |= j.most > 0;
	return j;
}

/* Does nearly every element satisfy the comparison? isfinite(x) is (x == x) * (|x| != inf);
 * isclose(x, y) is x == y or another condition, and two unknown tensors hold the same numbers. Few
 * elements equal a given number (labels != -100), except those that masks hold: for any() and
 * all(), as for nonzero(), no weight is zero unless the program made it so. */
bool nearly_all_meet(const Info &f, const std::vector<IValue> &args)
{
	if (f.asks_zero)
		return mode != Values::zeros && args[0].toTensor().is_floating_point() && !holds_zeros(args[0].toTensor());
	if (f.bound || !f.compares || !args[0].toTensor().is_floating_point())
		return f.bound;
	return args[1].isTensor() ? f.name == "aten::eq" && args[1].toTensor().sizes() == args[0].toTensor().sizes() :
				    f.name == "aten::ne" && std::abs(args[1].toScalar().toDouble()) > 1;
}

/* Logical or with an input that is true for most? */
bool one_is_likely(const Info &f, const std::vector<IValue> &args)
{
	return f.either && args[1].isTensor() && std::max(origin_of(args[0].toTensor()), origin_of(args[1].toTensor())) == LIKELY;
}

/* Fills unknown booleans with true. */
void invent_most(const std::vector<IValue> &outs)
{
	each(outs, [](const Tensor &t) {
		if (on_card(t) && t.numel() && small(t))
			cpu_view(t).fill_(1);
	});
}

/* Are all results scalar floats on the device? */
bool one_number(const std::vector<IValue> &outs)
{
	size_t count = 0;
	bool all = true;
	each(outs, [&](const Tensor &t) {
		count++;
		all &= on_card(t) && t.numel() == 1 && t.is_floating_point();
	});
	return count && all;
}

/* Are all results integers or booleans? */
bool decides(const std::vector<IValue> &outs)
{
	bool all = true;
	each(outs, [&](const Tensor &t) { all &= integers(t); });
	return all;
}

void write_scalar(const Tensor &t, double value)
{
	if (on_card(t) && t.numel() == 1)
		cpu_view(t).fill_(value);
}

/* Reports values that the program reads. */
void tell(const Info &f, const std::vector<IValue> &args)
{
	const Tensor &t = args[f.name == "aten::copy_" ? 1 : 0].toTensor();
	bool invented = origin_of(t) != COMPUTED || (f.name == "aten::equal" && origin_of(args[1].toTensor()) != COMPUTED);
	double value = 0;
	if (on_card(t) && origin_of(t) == NOTHING && span(t) <= SMALL && !is_foreign(t)) /* its memory may be stale */
		invent(t);
	if (steer && steer(f.name.c_str() + 6, invented, &value))
		write_scalar(t, value);
}

/* For equal(): unknown tensors are replaced by a constant, so that a tensor is equal to itself. */
std::vector<IValue> stand_ins(const std::vector<IValue> &args)
{
	std::vector<IValue> seen;
	for (const auto &a : args) {
		const Tensor &t = a.toTensor();
		if (on_card(t) && origin_of(t) == NOTHING) {
			Tensor one = at::detail::empty_strided_cpu({}, {}, t.scalar_type());
			holds_zeros(t) ? (void)one.zero_() : invent_all(one);
			seen.push_back(one.expand(t.sizes()));
		} else {
			seen.push_back(a);
		}
	}
	return seen;
}

/* A tensor was copied to the host: replaces unknown values, whose memory may be stale. Large
 * tensors in pinned memory are mostly offloaded, so they stay zeros, which take no memory. */
void arrived(const Info &f, const Tensor &from, const Tensor &to)
{
	if (to.is_cpu() && span(from) > READ && to.is_pinned())
		return;
	if (to.is_cpu() && on_card(from) && origin_of(from) == NOTHING && !is_foreign(from) && !(f.mutates && span(from) <= SMALL))
		invent_all(cpu_view(to));
}

/* The distinct indices of a sparse tensor, sorted, each flattened to one number. Undefined:
 * unknown. */
Tensor different_places(const Tensor &x)
{
	Below below_this;
	auto indices = x._indices();
	if (indices.size(0) == 0 || !on_card(indices) || !small(indices) || origin_of(indices) != COMPUTED)
		return {};
	auto places = cpu_view(indices)[0].clone();
	for (int64_t d = 1; d < indices.size(0); d++)
		places.mul_(x.size(d)).add_(cpu_view(indices)[d]);
	auto sorted = std::get<0>(places.sort());
	auto *p = sorted.data_ptr<int64_t>();
	return sorted.narrow(0, 0, std::unique(p, p + sorted.numel()) - p);
}

/* Writes what a card's sort produces; here the kernels left the indices unsorted. */
void write_different(const Tensor &x, const Tensor &out)
{
	auto places = different_places(x);
	Below below_this;
	auto indices = out._indices();
	if (!places.defined() || !on_card(indices) || indices.size(1) != places.numel())
		return;
	auto into = cpu_view(indices);
	for (int64_t d = indices.size(0); d-- > 0; places = places.div(x.size(d), "floor"))
		into[d].copy_(places.remainder(x.size(d)));
	set_origin(indices, COMPUTED);
}

/* The dimension along which unique compares slices; -1: single elements. */
int64_t along_dim(const Info &f, const std::vector<IValue> &args)
{
	const IValue none, &dim = f.name == "aten::unique_dim" ? args[1] : f.name == "aten::unique_consecutive" ? args[3] : none;
	return dim.isInt() ? c10::maybe_wrap_dim(dim.toInt(), args[0].toTensor().dim()) : -1;
}

/* The count that nonzero and similar operators read from the card. *known is set if it is more
 * reliable than the inputs. */
uint64_t expected_count(const Info &f, const std::vector<IValue> &args, bool done, const std::vector<IValue> &results, bool *known)
{
	const Tensor &x = args[0].toTensor();
	int64_t along = along_dim(f, args);
	if (done)
		return uint64_t(results[0].toTensor().size(std::max(along, int64_t(0))));
	if (f.name == "aten::_coalesce") {
		auto places = different_places(x);
		*known = places.defined();
		return uint64_t(*known ? places.numel() : x._nnz());
	}
	if (mode == Values::zeros)
		return 0;
	if (along >= 0)
		return uint64_t(x.size(along));
	return uint64_t(f.name == "aten::nonzero" && x.scalar_type() == at::kBool && origin_of(x) != LIKELY && !suppression ? (x.numel() + 1) / 2 : x.numel());
}

/* mode sorts each row and asks how often neighbours differ. Unknown values: as often as the type
 * allows; for bf16, in 32 powers of two. */
std::vector<uint64_t> steps_between(const Tensor &x, int64_t dim, bool known)
{
	int64_t n = x.dim() ? x.size(dim) : 1, rows = n ? x.numel() / n : 0;
	if (n < 2 || !x.element_size() || rows > INDICES / 8)
		return {};
	if (!known || !small(x) || !on_card(x)) {
		int64_t most = x.scalar_type() == at::kBFloat16 ? 1 << 13 : x.element_size() < 4 ? int64_t(1) << (8 * x.element_size()) : n;
		return std::vector<uint64_t>(size_t(rows), uint64_t(std::min(n, most) - 1));
	}
	auto sorted = std::get<0>(cpu_view(x).sort(dim));
	auto count = sorted.narrow(dim, 1, n - 1).ne(sorted.narrow(dim, 0, n - 1)).sum(dim).contiguous();
	auto *p = count.data_ptr<int64_t>();
	return { p, p + count.numel() };
}

/* ---- tables: non-zero elements of large tensors ---------------------------------------------- */

constexpr int64_t MOST_CHOICES = 32 << 20;

/* Calls f with the sum of (index * weight) over the dimensions of t, for each table entry inside
 * the view t. False: its strides are ambiguous. */
template <class F>
bool each_place(const Table &table, const Tensor &t, at::IntArrayRef weights, F f)
{
	struct Step {
		int64_t size, stride, weight;
	};
	std::vector<Step> steps;
	bool same_class = table.stride == 1;
	for (int64_t d = 0; d < t.dim(); d++)
		if (t.size(d) != 1) {
			steps.push_back({ t.size(d), t.stride(d), weights[size_t(d)] });
			same_class &= t.stride(d) % table.classes == 0;
		}
	std::sort(steps.begin(), steps.end(),
		  [](const Step &a, const Step &b) { return a.stride > b.stride; });
	int64_t inner = 0, first = t.storage_offset();
	for (size_t i = steps.size(); i-- > 0; inner += (steps[i].size - 1) * steps[i].stride)
		if (steps[i].stride <= inner)
			return false;
	same_class |= first / table.stride == (first + inner) / table.stride;
	size_t c = same_class ? size_t(first / table.stride % table.classes) : 0;
	int64_t end = table.begin[same_class ? c + 1 : size_t(table.classes)];
	for (int64_t i = table.begin[c]; i < end; i++) {
		int64_t rest = table.places[size_t(i)] - first, sum = 0;
		bool inside = rest >= 0;
		for (size_t k = 0; inside && k < steps.size(); k++) {
			int64_t at = rest / steps[k].stride;
			inside = at < steps[k].size;
			rest -= at * steps[k].stride;
			sum += at * steps[k].weight;
		}
		if (inside && rest == 0)
			f(sum);
	}
	return true;
}

/* places: unsorted, with duplicates */
void note_table(const Tensor &t, const std::vector<int64_t> &places, int64_t stride,
		int64_t classes, Origin origin, bool ones)
{
	Table table{ t.storage().getWeakStorageImpl(), origin, ones, stride, classes, {}, {} };
	std::vector<int64_t> next(size_t(classes) + 1);
	auto class_of = [&](int64_t place) { return size_t(place / stride % classes); };
	for (int64_t place : places)
		next[class_of(place) + 1]++;
	for (size_t c = 0; c < size_t(classes); c++)
		next[c + 1] += next[c];
	std::vector<int64_t> sorted(places.size());
	auto ends = next;
	for (int64_t place : places)
		sorted[size_t(ends[class_of(place)]++)] = place;
	table.places.reserve(places.size());
	for (size_t c = 0; c < size_t(classes); c++) {
		auto from = sorted.begin() + next[c], to = sorted.begin() + next[c + 1];
		std::sort(from, to);
		table.begin.push_back(int64_t(table.places.size()));
		table.places.insert(table.places.end(), from, std::unique(from, to));
	}
	table.begin.push_back(int64_t(table.places.size()));
	keep_table(t, std::move(table));
}

/* Notes a large tensor of zeros, if it is a whole storage. */
void note_zeros(const Tensor &t)
{
	if (t.data_ptr() == base_of(t) && span(t) >= int64_t(whole_of(t.storage().unsafeGetStorageImpl()).nbytes()))
		note_table(t, {}, 1, 1, COMPUTED, true);
}

/* Indices into the storage at which scatter writes. Undefined: unknown. Unknown choices are taken
 * from a router. */
Tensor scattered(const Tensor &t, const std::vector<IValue> &args, Origin *origin)
{
	const Tensor &index = args[2].toTensor();
	int64_t d = wrap(args[1].toInt(), t), n = t.size(d);
	if (t.dim() != index.dim() || !index.numel() || index.numel() > MOST_CHOICES ||
	    (args[3].isScalar() && args[3].toScalar().toDouble() == 0))
		return {};
	*origin = on_card(index) ? origin_of(index) : NOTHING;
	Tensor at;
	if (*origin > LIKELY) {
		at = cpu_view(index).to(at::kLong, false, true, at::MemoryFormat::Contiguous);
	} else {
		at = at::empty(index.sizes(), at::kLong);
		auto rows = at::empty(at.transpose(d, -1).sizes(), at::kLong);
		route_rows(rows, n, index.size(d));
		at.copy_(rows.transpose(d, -1));
		*origin = INVENTED;
	}
	if (at.min().item<int64_t>() < 0 || at.max().item<int64_t>() >= n)
		return {};
	at.mul_(t.stride(d)).add_(t.storage_offset());
	for (int64_t k = 0; k < t.dim(); k++)
		if (k != d) {
			std::vector<int64_t> shape(size_t(t.dim()), 1);
			shape[size_t(k)] = at.size(k);
			at.add_(at::arange(at.size(k), at.options()).mul_(t.stride(k)).view(shape));
		}
	return at;
}

/* The same for x[rows, classes] = v, with an index per dimension. */
Tensor listed_one_by_one(const Tensor &t, const std::vector<IValue> &args, Origin *origin)
{
	auto list = args[1].toListRef();
	const Tensor &value = args[2].toTensor();
	if (int64_t(list.size()) != t.dim() || args[3].toBool() || value.numel() != 1 || origin_of(value) != COMPUTED ||
	    cpu_view(value).item().toDouble() == 0)
		return {};
	Tensor at = at::full({}, t.storage_offset(), at::kLong);
	for (int64_t d = 0; d < t.dim(); d++) {
		Tensor index = list[size_t(d)].isTensor() ? list[size_t(d)].toTensor() : Tensor();
		if (!index.defined() || wrapped(index) || !integers(index) || index.element_size() < 4 || index.numel() > MOST_CHOICES || origin_of(index) <= LIKELY)
			return {};
		*origin = std::min(*origin, origin_of(index));
		auto i = (on_card(index) ? cpu_view(index) : index).to(at::kLong);
		at = at + i.remainder(t.size(d)).mul(t.stride(d)); /* negative indices */
	}
	return at.contiguous();
}

/* before: the table of t before the write. */
void scatter_into(const Info &f, const Tensor &t, const Table &before, const std::vector<IValue> &args)
{
	if (!on_card(t) || !t.is_non_overlapping_and_dense())
		return;
	Origin origin = before.origin;
	bool listed = f.table == PUTS;
	Tensor at = listed ? listed_one_by_one(t, args, &origin) : scattered(t, args, &origin);
	if (!at.defined() || !at.numel() || at.numel() > MOST_CHOICES - int64_t(before.places.size()))
		return;
	auto *p = at.data_ptr<int64_t>();
	std::vector<int64_t> places(p, p + at.numel());
	places.insert(places.end(), before.places.begin(), before.places.end());
	bool one = listed ? cpu_view(args[2].toTensor()).item().toDouble() == 1 : args[3].isScalar() && args[3].toScalar().toDouble() == 1;
	int64_t d = listed ? t.dim() - 1 : wrap(args[1].toInt(), t);
	note_table(t, places, t.stride(d), t.size(d), std::min(origin, before.origin), before.ones && one);
}

/* For each dimension of x, the step of its index in out. Empty: not one of these operators. */
std::vector<int64_t> weights_of(const Info &f, const Table &table, const std::vector<IValue> &args,
				const Tensor &x, const Tensor &out)
{
	std::vector<int64_t> weights;
	if (f.table == COUNTS) {
		std::vector<int64_t> dims; /* empty: all */
		if (args.size() > 2 && args[1].isInt())
			dims = { args[1].toInt() };
		else if (args.size() > 2 && args[1].isIntList())
			dims = args[1].toIntVector();
		std::vector<bool> gone(size_t(x.dim()), dims.empty());
		for (int64_t d : dims)
			gone[size_t(wrap(d, x))] = true;
		bool kept = out.dim() == x.dim();
		for (int64_t d = 0, k = 0; d < x.dim(); d++)
			weights.push_back(gone[size_t(d)] ? 0 : out.stride(kept ? d : k++));
		return table.ones || f.name == "aten::any" ? weights : std::vector<int64_t>();
	}
	if (f.table == COMPARES) {
		double with = args[1].isScalar() ? args[1].toScalar().toDouble() : -1;
		if (with != (f.name == "aten::eq" ? 1 : 0) || (f.name == "aten::eq" && !table.ones))
			return {};
	}
	for (int64_t d = 0; d < x.dim(); d++)
		weights.push_back(out.stride(d));
	return weights;
}

/* Takes slices along a dimension: appends their indices in out. */
bool take_slices(const Table &table, const std::vector<IValue> &args, const Tensor &x,
		 const Tensor &out, std::vector<int64_t> &places)
{
	bool select = args[1].isInt();
	auto list = select ? std::vector<IValue>() : args[1].toListRef().vec();
	if (!select && (list.size() != 1 || !list[0].isTensor()))
		return false;
	const Tensor &index = select ? args[2].toTensor() : list[0].toTensor();
	int64_t d = select ? wrap(args[1].toInt(), x) : 0;
	if (!on_card(index) || !integers(index) || index.element_size() < 4 || index.dim() != 1 ||
	    origin_of(index) <= LIKELY)
		return false;
	auto at = cpu_view(index).to(at::kLong).contiguous();
	for (int64_t i = 0; i < index.numel(); i++) {
		auto slice = x.select(d, at.data_ptr<int64_t>()[i]);
		std::vector<int64_t> weights;
		for (int64_t k = 0; k < out.dim(); k++)
			if (k != d)
				weights.push_back(out.stride(k));
		if (!each_place(table, slice, weights,
				[&](int64_t sum) { places.push_back(sum + i * out.stride(d)); }))
			return false;
	}
	return true;
}

/* The result of an operator on a table: computed if small, else a table. False: the operator is not
 * supported. */
bool from_table(const Info &f, const Table &table, const std::vector<IValue> &args,
		const Tensor &out)
{
	const Tensor &x = args[0].toTensor();
	std::vector<int64_t> places;
	if (!on_card(out) || !out.is_non_overlapping_and_dense())
		return false;
	if (f.table == TAKES) {
		if (!take_slices(table, args, x, out, places))
			return false;
	} else {
		auto weights = weights_of(f, table, args, x, out);
		if (weights.empty() ||
		    !each_place(table, x, weights, [&](int64_t sum) { places.push_back(sum); }))
			return false;
	}
	bool ones = table.ones || f.table == COMPARES || out.scalar_type() == at::kBool;
	if (out.numel() && ones && small(out)) {
		std::vector<int64_t> counts(size_t(out.numel()));
		for (int64_t place : places)
			counts[size_t(place)]++;
		cpu_view(out).as_strided({ out.numel() }, { 1 }).copy_(at::tensor(counts));
		set_origin(out, table.origin);
		return true;
	}
	size_t all = places.size();
	set_origin(out, NOTHING);
	if (!out.numel() || all > size_t(MOST_CHOICES))
		return true;
	note_table(out, places, 1, out.dim() && out.stride(-1) == 1 ? out.size(-1) : 1,
		   table.origin, ones);
	if (f.table == COUNTS && table_of(out)->places.size() != all) /* some counts exceed one */
		note_table(out, places, 1, out.size(-1), table.origin, false);
	return true;
}

/* Indices of non-zero elements, in nonzero's order. */
bool find_places(const Tensor &x, const Table &table, std::vector<int64_t> &places)
{
	std::vector<int64_t> weights(size_t(x.dim()));
	for (int64_t d = x.dim() - 1, weight = 1; d >= 0; weight *= x.size(d--))
		weights[size_t(d)] = weight;
	if (!each_place(table, x, weights, [&](int64_t sum) { places.push_back(sum); }))
		return false;
	std::sort(places.begin(), places.end());
	return true;
}

void write_places(const Tensor &x, const Tensor &index, const std::vector<int64_t> &places,
		  Origin origin)
{
	if (!on_card(index) || !index.numel())
		return;
	auto c = cpu_view(index), at = at::tensor(places);
	for (int64_t d = x.dim() - 1; d >= 0; d--) {
		c.select(1, d).copy_(at.remainder(x.size(d)));
		at = at.div(x.size(d), "floor");
	}
	set_origin(index, origin);
}

/* ---- all operators ------------------------------------------------------------------------------ */

void fallback(const c10::OperatorHandle &op, c10::DispatchKeySet keys, Stack *stack)
{
	auto below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::Fake);
	size_t count = op.schema().arguments().size();
	Info &f = info(op);
	auto keys_here = c10::impl::tls_local_dispatch_key_set();
	bool card = false, wrap_inside = (keys_here.included_ - keys_here.excluded_).has(c10::DispatchKey::Python);

	for (size_t i = stack->size() - count; i < stack->size(); i++) {
		const IValue &v = (*stack)[i];
		if (v.isDevice())
			card |= v.toDevice().is_cuda();
		each(v, [&](const Tensor &t) {
			card |= t.is_cuda();
			wrap_inside |= wrapped(t);
		});
	}
	if (f.report && card && !wrap_inside) {
		const Tensor &errors = (*stack)[stack->size() - count].toTensor();
		if (foreseen) { /* the check follows a computed result */
			stack->resize(stack->size() - count);
			return;
		}
		if (!in_full || origin_of(errors) != COMPUTED)
			invent(errors);
	}
	if (f.sends && !wrap_inside)
		for (size_t i = stack->size() - count; i < stack->size(); i++)
			each_deep((*stack)[i], note_part);
	if (f.resizes && card && !wrap_inside) { /* copies without an operator */
		Origin before = origin_of((*stack)[stack->size() - count].toTensor());
		op.redispatchBoxed(below, stack);
		set_origin(stack->back().toTensor(), before);
		return;
	}
	if (wrap_inside || f.skip || !card || (depth > 0 && ((f.mutates && !in_full) || (foreseen && !f.fresh) || depth > DEEP) && !f.shape && !f.scalar)) {
		op.redispatchBoxed(below, stack);
		return;
	}
	if (awaited && *awaited)
		for (size_t i = stack->size() - count; i < stack->size(); i++)
			each((*stack)[i], wait_for);
	std::vector<IValue> args(stack->end() - count, stack->end()), results;
	size_t outs_count = op.schema().returns().size();
	Deeper deeper;
	if (depth == 1) {
		outer = &f;
		suppression = f.name == "torchvision::nms";
	}
	if (f.fresh) {
		op.redispatchBoxed(below, stack);
		each(stack->back(), [](const Tensor &t) {
			set_origin(t, NOTHING);
			forget_awaited(t);
			drop(t);
		});
		return;
	}
	if (f.scalar || (f.name == "aten::copy_" && !args[0].toTensor().is_cuda()))
		tell(f, args);
	if (f.scalar) {
		if (f.name == "aten::equal") {
			bool done = compute(op, f, stand_ins(args), results);
			op.redispatchBoxed(below, stack);
			if (done)
				stack->back() = results[0];
		} else {
			op.redispatchBoxed(below, stack);
		}
		return;
	}
	if (f.places && depth == 1) { /* only calls of the program */
		Below below_this;
		check_places(f, args);
	}
	auto [fits, most, origin] = judge(f, args);
	bool done = false;
	auto table = !in_full && (f.table || f.name == "aten::nonzero") ? table_of(args[0].toTensor()) : nullptr;
	std::vector<int64_t> places;
	bool listed = f.shape && table && !table->places.empty() &&
		      find_places(args[0].toTensor(), *table, places);
	if (f.shape) {
		done = !listed && !suppression && fits && origin > LIKELY &&
		       compute(op, f, args, results); /* its kernel wrote the count that it reads */
		bool known = listed ? table->origin == COMPUTED : done && origin == COMPUTED;
		uint64_t count =
			listed ? places.size() : expected_count(f, args, done, results, &known);
		if (depth == 1 || !outer->shape) /* x[mask] calls nonzero */
			tell_choice(outer->name.c_str() + outer->name.find("::") + 2, !known);
		if (answer)
			answer(true, count);
	}
	std::vector<uint64_t> steps;
	if (f.asks && answer_in_turn) {
		Below below_this;
		steps = steps_between(args[0].toTensor(), args[1].toInt(), fits && origin > LIKELY);
		answer_in_turn(steps.data(), steps.size(), MODE_COPIES);
	}
	if (f.part && origin_of(args[0].toTensor()) == NOTHING)
		invent(args[0].toTensor());
	bool upload = (f.name == "aten::_to_copy" && !args[0].toTensor().is_cuda()) || (f.name == "aten::copy_" && !args[1].toTensor().is_cuda());
	if (f.sums && !f.mutates && !table && fits && origin > LIKELY)
		done = foresee(op, f, args, most, results);
	Slope slope;
	bool steep = f.slope && !in_full && mode == Values::rules && slope_of(f, args, &slope);
	bool inside_only = in_full && !on_cpu(op, f); /* the CPU only has its inner operators */
	try {
		Foreseen inside(done || (in_full && fits && !inside_only && !f.decides && !goes_to_host(f, args)));
		op.redispatchBoxed(below, stack);
	} catch (...) {
		if (answer)
			answer(false, 0);
		throw;
	}
	if ((f.shape || f.asks) && answer)
		answer(false, 0);
	if (f.name == "aten::_coalesce" && !done)
		write_different(args[0].toTensor(), stack->back().toTensor());
	if (f.name == "aten::nonzero" && !done) {
		if (depth == 1)
			tick(f, args, { stack->back() });
		Below below_this;
		if (listed)
			write_places(args[0].toTensor(), stack->back().toTensor(), places,
				     table->origin);
		else
			invent_places(args[0].toTensor(), stack->back().toTensor());
		return;
	}
	std::vector<IValue> outs(stack->end() - outs_count, stack->end());
	if (!f.mutates)
		each(outs, forget_awaited);
	if (depth == 1)
		tick(f, args, outs);
	if (depth == 1 && f.name == "aten::_to_copy" && outs[0].toTensor().is_cpu())
		tell_choice("copy_", origin != COMPUTED);

	if (inside_only) {
		if (origin == COMPUTED)
			each(outs, [&](const Tensor &t) {
				if (on_card(t) && t.numel() && origin_of(t) == NOTHING)
					tell_missed(f);
			});
		return;
	}
	Below below_this;
	if (f.name == "aten::copy_" || f.name == "aten::_to_copy")
		arrived(f, args[f.mutates ? 1 : 0].toTensor(), outs[0].toTensor());
	if (table && !table->places.empty() && f.table != SCATTERS && f.table != PUTS &&
	    from_table(f, *table, args, outs[0].toTensor()))
		return;
	bool outs_fit = !f.flops || !most || most == INT64_MAX || flops_of(f, args, outs) <= FLOPS;
	each(outs, [&, most = most](const Tensor &t) { outs_fit &= !t.is_cuda() || (on_card(t) && (small(t) || volume(t) <= most)); });
	if (f.rule && !(fits && origin > LIKELY && outs_fit)) {
		invent_for(f, args, outs);
		each(outs, [](const Tensor &t) {
			if (on_card(t))
				set_origin(t, t.scalar_type() == at::kLong ? INVENTED : small(t) ? GUESSED : NOTHING);
		});
		return;
	}
	if (!f.mutates && origin <= LIKELY && one_number(outs)) { /* a loss or norm of unknown values */
		each(outs, [](const Tensor &t) {
			invent(t);
			set_origin(t, INVENTED);
		});
		return;
	}
	if (origin == NOTHING && fits && outs_fit && !f.mutates && decides(outs)) /* not from stale memory */
		each(args, [](const Tensor &t) {
			if (origin_of(t) == NOTHING && t.is_floating_point() && !holds_zeros(t))
				invent(t, READ);
		});
	if (f.finite && !(fits && origin > LIKELY)) {
		each(args[1], [](const Tensor &t) {
			if (overflows)
				write_scalar(t, 1);
			set_origin(t, INVENTED);
		});
		return;
	}
	if (f.stays)
		overflows = false;
	bool cleared = f.zeros && drop(outs[0].toTensor());
	if (cleared && volume(outs[0].toTensor()) <= READ && int64_t(outs[0].toTensor().storage().nbytes()) == span(outs[0].toTensor()))
		outs_fit = true; /* takes no host memory, so any size; tables start so */
	if (!done && !f.shape && fits && outs_fit)
		done = cleared || compute(op, f, args, results);
	if (in_full && !done && fits && origin == COMPUTED && !f.shape)
		tell_missed(f);
	std::vector<Tensor> others;
	if (done && !f.mutates)
		others = copy_results(outs, results);
	if (!done && !f.mutates)
		each(outs, [](const Tensor &t) { invent(t); });
	if (!done && (upload || f.stays))
		return; /* an upload: the copy has already set its origin */
	if (done && origin == NOTHING)
		origin = GUESSED;
	bool likely = nearly_all_meet(f, args) || (!done && (one_is_likely(f, args) || (origin == LIKELY && (f.both || f.name == "aten::all") && decides(outs))));
	if (!done && likely) {
		invent_most(outs);
		origin = f.either || f.asks_zero ? LIKELY : std::min(origin, LIKELY);
	}
	if (f.compares && origin <= GUESSED) /* of integers: unknown ones are zeros */
		origin = integers(args[0].toTensor()) ? (done ? INVENTED : GUESSED) : likely ? LIKELY : origin;
	auto set = [&](const Tensor &t) {
		if (!on_card(t))
			return;
		Origin now = done || likely ? origin : !f.mutates && small(t) ? GUESSED : NOTHING;
		if (now == NOTHING && t.is_floating_point())
			drop(t);
		set_origin(t, now);
	};
	each(outs, set);
	for (const auto &t : others) { /* stale memory could be an invalid index */
		invent(t);
		set_origin(t, small(t) ? GUESSED : NOTHING);
	}
	for (size_t i = 0; f.mutates && i < count; i++)
		if (f.writes[i])
			each(args[i], set);
	if (cleared)
		note_zeros(outs[0].toTensor());
	if (steep)
		note_slope(outs[0].toTensor(), slope);
	if (table && (f.table == SCATTERS || f.table == PUTS))
		scatter_into(f, outs[0].toTensor(), *table, args);
}

/* Views have nothing to compute: with a fallthrough kernel, the dispatcher neither calls the
 * fallback nor boxes their arguments. */
void let_views_pass()
{
	static auto *passing = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::Fake, __FILE__, __LINE__);
	for (const auto &name : c10::Dispatcher::singleton().getAllOpNames()) {
		auto op = c10::Dispatcher::singleton().findSchema(name);
		if (!op || name.name.rfind("aten::", 0) != 0)
			continue;
		if (gives_view(op->schema()) && !describe(*op).mutates)
			passing->impl(c10::toString(name).c_str(), torch::CppFunction::makeFallthrough());
	}
}

/* ---- __torch_dispatch__ ------------------------------------------------------------------------ */

/*
 * Python modes and subclasses call operators with all keys above Python excluded, including this
 * one. So the interpreter's dispatch function is replaced by one that includes it again, in a copy
 * of its virtual table, because the members differ between releases; the offset comes from the
 * pointer to member (Itanium ABI).
 */
using PyTable = c10::impl::PyInterpreterVTable;
constexpr size_t TABLE_SLOTS = 64, TABLE_HEAD = 2; /* upper bound of the entries; offset and type come before them */
struct {
	void **slots;
} table;
const PyTable *python;

void dispatch(const PyTable *, const c10::OperatorHandle &op, Stack *stack)
{
	struct Inside {
		bool before = c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::Fake);
		Inside() { c10::impl::tls_set_dispatch_key_excluded(c10::DispatchKey::Fake, false); }
		~Inside() { c10::impl::tls_set_dispatch_key_excluded(c10::DispatchKey::Fake, before); }
	} inside;
	python->dispatch(op, stack);
}

void enter_python()
{
	static void *copy[TABLE_HEAD + TABLE_SLOTS];
	void *lib = dlopen("libtorch_python.so", RTLD_NOW | RTLD_NOLOAD);
	auto get = reinterpret_cast<c10::impl::PyInterpreter *(*)()>(lib ? dlsym(lib, "_Z16getPyInterpreterv") : nullptr);
	void (PyTable::*member)(const c10::OperatorHandle &, Stack *) const = &PyTable::dispatch;
	uintptr_t offset; /* offset in the table, plus one */

	if (!get || !get())
		return;
	python = get()->vtable_;
	memcpy(&offset, &member, sizeof(offset));
	memcpy(copy, *reinterpret_cast<void *const *const *>(python) - TABLE_HEAD, sizeof(copy));
	table.slots = copy + TABLE_HEAD;
	table.slots[(offset - 1) / sizeof(void *)] = reinterpret_cast<void *>(&dispatch);
	get()->vtable_ = reinterpret_cast<const PyTable *>(&table);
}
} // namespace

TORCH_LIBRARY_IMPL(_, Fake, m)
{
	m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

extern "C" {
/* The card's throughput per ns; 0: no clock. */
void cufrag_values_roof(double bytes, double flops, double cycles)
{
	bytes_per_ns = bytes;
	flops_per_ns = flops;
	cycles_per_ns = cycles;
}

/* core: path of libcufrag_nogpu.so, which is loaded; bytes, flops, cycles: as in
 * cufrag_values_roof. */
void cufrag_values_start(const char *core, const char *values, unsigned long long seed, double bytes, double flops, double cycles, Steer to)
{
	void *lib = dlopen(core, RTLD_NOW | RTLD_NOLOAD);
	if (lib) {
		answer = reinterpret_cast<void (*)(bool, uint64_t)>(dlsym(lib, "frag_nogpu_answer"));
		answer_in_turn = reinterpret_cast<void (*)(const uint64_t *, uint64_t, uint64_t)>(dlsym(lib, "frag_nogpu_answer_in_turn"));
		work = reinterpret_cast<void (*)(void *, uint64_t, uint64_t, bool)>(dlsym(lib, "frag_nogpu_work"));
		auto streams = reinterpret_cast<const std::atomic<bool> *(*)()>(dlsym(lib, "frag_nogpu_streams"));
		streams_matter = streams ? streams() : nullptr;
		static const struct {
			void (*arrived)(const void *, const void *);
			uint32_t (*origin)(const void *);
			void (*set_origin)(const void *, uint32_t, int);
			void (*each)(const void *, uint64_t, void (*)(const void *, uint64_t, uint32_t));
		} mine = { note_arrival, origin_at, set_origin_at, each_origin };
		auto offer = reinterpret_cast<void (*)(const void *)>(dlsym(lib, "frag_nogpu_values"));
		auto count = reinterpret_cast<const std::atomic<unsigned> *(*)()>(dlsym(lib, "frag_nogpu_awaited"));
		settle = reinterpret_cast<int (*)(const void *, uint64_t)>(dlsym(lib, "frag_nogpu_settle"));
		abandon = reinterpret_cast<void (*)(const void *, uint64_t)>(dlsym(lib, "frag_nogpu_abandon"));
		clear_bytes = reinterpret_cast<void (*)(void *, uint64_t)>(dlsym(lib, "frag_nogpu_clear"));
		lent_origin = reinterpret_cast<bool (*)(const void *, uint64_t, uint32_t *)>(dlsym(lib, "frag_nogpu_lent_origin"));
		set_lent_origin = reinterpret_cast<void (*)(const void *, uint64_t, uint32_t, bool)>(dlsym(lib, "frag_nogpu_lent_origin_set"));
		foreign = reinterpret_cast<bool (*)(const void *)>(dlsym(lib, "frag_nogpu_foreign"));
		if (offer && count && settle && abandon) {
			offer(&mine);
			awaited = count();
		}
	}
	mode = std::string(values) == "zeros" ? Values::zeros : std::string(values) == "random" ? Values::random : Values::rules;
	in_full = std::string(values) == "computed";
	skew = std::string(values) == "worst" ? HUGE_VAL : std::string(values).rfind("skewed=", 0) == 0 ? atof(values + 7) : 1;
	generator.seed(seed);
	cufrag_values_roof(bytes, flops, cycles);
	steer = to;
	let_views_pass();
	enter_python();
}

/* For the calling thread. */
void cufrag_values_thread(int on)
{
	c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::Fake, on);
}

/* part: a storage that views another one */
void cufrag_values_parts(const c10::StorageImpl *part)
{
	lets_go = part->data_ptr().get_deleter();
}

/* A kernel outside the dispatcher may have written it. */
void cufrag_values_unknown(const c10::StorageImpl *storage)
{
	const auto &whole = whole_of(storage);
	if (set_lent_origin)
		set_lent_origin(whole.data(), whole.nbytes(), NOTHING, false);
	std::lock_guard<std::mutex> g(mutex);
	origins.erase(whole.data());
}

/* Modelled ns of recomputation, and of everything, in the same steps; 0: fewer than two steps. */
void cufrag_values_recomputed(double out[2])
{
	std::lock_guard<std::mutex> g(mutex);
	out[0] = recomputed.last.ns - recomputed.first.ns;
	out[1] = recomputed.last.model_ns - recomputed.first.model_ns;
}

/* Writes the clock's pairs, 16 bytes each. 0: done. */
int cufrag_values_clock(const char *path)
{
	FILE *f = fopen(path, "wb");
	size_t n = ticks.size();
	if (!f)
		return 1;
	bool ok = fwrite(ticks.data(), sizeof(Tick), n, f) == n;
	return fclose(f) || !ok;
}
}
