// SPDX-License-Identifier: Apache-2.0
/*
 * A boxed fallback on PyTorch's dispatch key Fake, which no other code uses; it lies below autograd
 * and autocast and above the back-ends. For each operator on tensors of the card: 1. the real
 * operator runs, for its allocations and shapes; 2. if all inputs and outputs are small, it runs
 * again on the CPU, over the same bytes; 3. the results are copied over the real ones, in-place
 * updates happen in place.
 *
 * No allocation is added and no lifetime changes. Other results are invented by fixed rules
 * (docs/pretend.md, "Values"). Each storage is marked with the origin of its values. Values that
 * reach the program are reported (steer.cpp), so that decisions that depend on invented values can
 * be listed.
 */
#include "values.h"

constexpr int DEEP = 6; /* nesting depth of operators that are computed */

/* What becomes of a call: it passes unchanged, the check of a computed result, a resize (a copy
 * without an operator), new memory, a scalar for the program, or an operator to compute. */
enum Way { PASS, CHECK, RESIZE, ALLOCATE, READ_SCALAR, WHOLE };

/* Recurses into lists of lists (collectives). */
template <class F> static void each_deep(const IValue &v, F f)
{
	if (v.isList() && !v.isTensorList()) {
		for (const IValue &x : v.toListRef())
			each_deep(x, f);
	} else {
		each(v, f);
	}
}

/* The error code of a solver is success, unless it was computed. */
static Way classify_check(const Tensor &errors)
{
	if (foreseen)
		return CHECK;
	if (!in_full || origin_of(errors) != COMPUTED)
		invent(errors);
	return WHOLE;
}

static Way classify(Call &c)
{
	auto keys = c10::impl::tls_local_dispatch_key_set();
	bool card = false;
	bool inner = (keys.included_ - keys.excluded_).has(c10::DispatchKey::Python);
	auto args = c.stack->end() - int64_t(c.count);
	const Info &f = c.f;

	for (auto v = args; v != c.stack->end(); ++v) {
		card |= v->isDevice() && v->toDevice().is_cuda();
		each(*v, [&](const Tensor &t) {
			card |= t.is_cuda();
			inner |= wrapped(t);
		});
	}
	if (inner)
		return PASS;
	for (auto v = args; f.sends && v != c.stack->end(); ++v)
		each_deep(*v, note_part);
	if (!card)
		return PASS;
	if (f.report && classify_check(args->toTensor()) == CHECK)
		return CHECK;
	if (f.resizes)
		return RESIZE;
	bool inside = depth > DEEP || (f.mutates && !in_full) || (foreseen && !f.fresh);
	if (f.skip || (depth > 0 && inside && !f.shape && !f.scalar))
		return PASS;
	return f.fresh ? ALLOCATE : f.scalar ? READ_SCALAR : WHOLE;
}

static void resize(Call &c)
{
	Origin before = origin_of((c.stack->end() - int64_t(c.count))->toTensor());

	c.redispatch();
	set_origin(c.stack->back().toTensor(), before);
}

static void allocate(Call &c)
{
	c.redispatch();
	each(c.stack->back(), [](const Tensor &t) {
		set_origin(t, NOTHING);
		forget_awaited(t);
		drop(t);
	});
}

static void read_scalar(Call &c)
{
	bool equal = c.f.name == "aten::equal";
	if (equal)
		c.args = stand_ins(c.args);
	bool done = equal && compute(c);

	c.redispatch();
	if (done)
		c.stack->back() = c.results[0];
}

static void compute_results(Call &c)
{
	bool may = !c.f.shape && c.fits;

	if (!c.done && may && c.outs_fit)
		c.done = c.cleared || (c.draw.kind && drawn(c)) || compute(c);
	if (in_full && !c.done && may && c.origin == COMPUTED)
		tell_missed(c.f);
}

static void fallback(const c10::OperatorHandle &op, c10::DispatchKeySet keys, Stack *stack)
{
	auto after = c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::Fake);
	Call c{ op, info(op), keys & after, stack, op.schema().arguments().size() };
	Way way = classify(c);

	if (way == PASS)
		return c.redispatch();
	if (way == CHECK)
		return stack->resize(stack->size() - c.count);
	if (way == RESIZE)
		return resize(c);
	c.args.assign(stack->end() - int64_t(c.count), stack->end());
	if (*frag_pretend_awaited())
		each(c.args, wait_for);
	Restored<int> before{ depth };
	depth++;
	if (depth == 1) {
		outer = &c.f;
		suppression = c.f.name == "torchvision::nms";
	}
	if (way == ALLOCATE)
		return allocate(c);
	if (c.f.scalar || (c.f.name == "aten::copy_" && !c.first().is_cuda()))
		tell(c.f, c.args);
	if (way == READ_SCALAR)
		return read_scalar(c);
	judge(c);
	if (!run(c))
		return;
	Below below_this;
	if (!invent(c))
		return;
	compute_results(c);
	mark(c);
}

/*
 * Python modes and subclasses call operators with all keys above Python excluded, including this
 * one. So the interpreter's dispatch function is replaced by one that includes it again, in a copy
 * of its virtual table, because the members differ between releases; the offset comes from the
 * pointer to member (Itanium ABI).
 */
using PyTable = c10::impl::PyInterpreterVTable;
/* upper bound of the entries; offset and type come before them */
constexpr size_t TABLE_SLOTS = 64, TABLE_HEAD = 2;
static const PyTable *python;

static void dispatch(const PyTable *, const c10::OperatorHandle &op, Stack *stack)
{
	auto keys = c10::impl::tls_local_dispatch_key_set();
	keys.excluded_ = keys.excluded_ - c10::DispatchKeySet(c10::DispatchKey::Fake);
	c10::impl::ForceDispatchKeyGuard inside(keys);
	python->dispatch(op, stack);
}

static void enter_python()
{
	static void *copy[TABLE_HEAD + TABLE_SLOTS], **slots;
	void *lib = dlopen("libtorch_python.so", RTLD_NOW | RTLD_NOLOAD);
	auto get = reinterpret_cast<c10::impl::PyInterpreter *(*)()>(
		lib ? dlsym(lib, "_Z16getPyInterpreterv") : nullptr);
	void (PyTable::*member)(const c10::OperatorHandle &, Stack *) const = &PyTable::dispatch;
	uintptr_t offset; /* offset in the table, plus one */

	if (!get || !get())
		return;
	python = get()->vtable_;
	memcpy(&offset, &member, sizeof(offset));
	memcpy(copy, *reinterpret_cast<void *const *const *>(python) - TABLE_HEAD, sizeof(copy));
	slots = copy + TABLE_HEAD;
	slots[(offset - 1) / sizeof(void *)] = reinterpret_cast<void *>(&dispatch);
	get()->vtable_ = reinterpret_cast<const PyTable *>(&slots);
}
