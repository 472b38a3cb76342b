// SPDX-License-Identifier: Apache-2.0
/*
 * Values of small tensors on the pretended card: what the parts of the library share.
 *
 * One library, written against PyTorch's dispatcher, because that has no other interface; compiled
 * once for the user's wheel (cufrag_card.py) as values.cpp, which includes the parts, each behind
 * those that it uses.
 */
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/PyInterpreter.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/library.h>
#include <torch/version.h>

#include <dlfcn.h>
#include <fnmatch.h>
#include <time.h>

#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

extern "C" { /* from the OpenMP library of libtorch_cpu, if any */
int omp_get_max_threads() __attribute__((weak));
void omp_set_num_threads(int) __attribute__((weak));

/* of libcufrag_pretend.so (card.h): what the next copies to the host bring */
void frag_pretend_answer(bool on, uint64_t count);
/* an operator's time; has this process streams, or other ranks; messages that it awaits of them */
void frag_pretend_work(void *stream, uint64_t ns, uint64_t all_ns, bool backward);
const std::atomic<bool> *frag_pretend_streams();
const std::atomic<unsigned> *frag_pretend_awaited();
int frag_pretend_settle(const void *p, uint64_t bytes);
void frag_pretend_abandon(const void *p, uint64_t bytes);
void frag_pretend_clear(void *p, uint64_t bytes); /* drops the pages of zeros */
int frag_pretend_cudaDeviceGetAttribute(int *value, int which, int device);
/* memory of another process, which tracks its values; shared with other processes */
bool frag_pretend_foreign(const void *p);
bool frag_pretend_lent_origin(const void *p, uint64_t bytes, uint32_t *origin);
void frag_pretend_lent_origin_set(const void *p, uint64_t bytes, uint32_t origin, bool lower);
void frag_pretend_values(const void *functions);
}

#pragma GCC visibility push(hidden) /* popped in values.cpp */

using at::Tensor;
using c10::IValue;
using torch::jit::Stack;
using Results = std::vector<IValue>;

/* Limits in bytes: of computed floating-point tensors; of computed integers and booleans, as
 * indices decide shapes; of those with 4 and 8 bytes per element (edges of graphs), while all large
 * ones stay below HELD_INTEGERS; of inputs, if results are small; of invented indices. */
constexpr int64_t SMALL = 64 << 10, SMALL_INTEGERS = 32 << 20, WIDE_INTEGERS = 256 << 20;
constexpr int64_t HELD_INTEGERS = int64_t(2) << 30, READ = 4 << 20, INDICES = 64 << 20;

/* ---- what an operator is (operators.cpp, operators.csv) ---- */

// clang-format off
/* How the operator indexes argument 0: by row (argument 1), along dimension 1 (argument 2), by
 * class, or with one index per dimension. What it does with a table: writes a value at indices
 * along a dimension, or at listed indices, takes slices, copies, compares with a number, counts.
 * Its effect on the loss gradient, which starts here (over classes, over frames), or passes
 * through. The distribution that it draws from, uniform. Its formula of floating-point operations.
 * */
#define VALUES_KINDS(K) \
	K(places, rows) K(places, along) K(places, classes) K(places, listed) \
	K(table, scatters) K(table, puts) K(table, takes) K(table, copies) K(table, compares) \
	K(table, counts) K(slope, classes_begin) K(slope, frames_begin) K(slope, passed_on) \
	K(slope, multiplied) K(slope, divided) K(slope, added_up) K(draws, integers) \
	K(draws, evenly) K(flops, product) K(flops, convolution) K(flops, attention)

enum {
	NO_KIND,
#define K(kind, value) kind##_##value,
	VALUES_KINDS(K)
#undef K
};

/* operators.csv says what each means. */
#define VALUES_FLAGS(F) \
	F(asks) F(asks_zero) F(attends) F(both) F(bound) F(compares) F(copies) F(counts) \
	F(decides) F(each) F(either) F(finite) F(first_added) F(fresh) F(in_float) F(like) \
	F(masks) F(over) F(pads) F(part) F(part_in_full) F(pointwise) F(reads_few) F(reduces) \
	F(report) F(resizes) F(rule) F(scalar) F(sends) F(shape) F(skip) F(stays) F(sums) F(zeros)
// clang-format on

struct Call;
using Instead = Results(const Call &, const Stack &);

struct Info {
	std::string name;
	std::vector<bool> writes; /* which arguments */
	std::vector<bool> given;  /* out= arguments among these: not read */
	bool mutates = false;
	bool seeded = false;  /* draws random numbers */
	size_t beta = 0;      /* argument, counted from 1: if it is 0, argument 0 is not read */
	size_t causal = 0;    /* argument, counted from 1, that makes attention causal */
	uint64_t dead = 0;    /* bit set of first-argument types that the CPU lacks */
	int places = 0;	      /* which argument indexes the first one; a card checks its range */
	int table = 0;	      /* what it does with a table */
	int slope = 0;	      /* its effect on the loss gradient */
	int draws = 0;	      /* distribution, as a card draws it (draw.cpp) */
	int flops = 0;	      /* formula */
	double per_cycle = 0; /* 0: limited by memory */
	Instead *instead = nullptr; /* replacement on the CPU */
#define F(flag) int flag = 0;
	VALUES_FLAGS(F)
#undef F
};

/* ---- the run ---- */

/* Has its old value again at the end of a block. */
template <class T> struct Restored {
	T &it;
	T before = it;
	~Restored()
	{
		it = before;
	}
};

enum class Values { rules, zeros, random };
using Steer = int (*)(const char *what, int invented, double *value);

static Values mode = Values::rules;
static bool in_full;	/* --values computed: every operator is computed, however large */
static double skew = 1; /* of a router: the first expert gets so many times the mean */
static std::mt19937_64 generator(1);
static std::mutex mutex;	       /* protects generator, storages, the clock */
static thread_local int depth;	       /* of operators called by operators */
static thread_local const Info *outer; /* the operator that the program called */
static thread_local bool suppression;  /* inside torchvision's nms, which keeps most */
static thread_local bool foreseen;     /* the result is computed; inner operators need not be */

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

template <class F> void each(const Stack &values, F f)
{
	for (const IValue &v : values)
		each(v, f);
}

/* Origin of a storage's values; a result gets the least of its inputs. GUESSED: computed from
 * unknown values, or invented. LIKELY: guessed, but true for most: not below a bound (a size, a
 * score), or kept by nms. */
enum Origin { NOTHING, GUESSED, LIKELY, INVENTED, COMPUTED };

/* One thread: computed tensors are small, and threads would wait longer than they work. */
struct Threads {
	int before =
		!in_full && omp_get_max_threads && omp_set_num_threads ? omp_get_max_threads() : 1;
	Threads()
	{
		set(1);
	}
	~Threads()
	{
		set(before);
	}
	void set(int n) const
	{
		if (before != 1)
			omp_set_num_threads(n);
	}
};

/* Dispatches to the back-ends without re-entering the fallback; also while inventing. */
struct Below {
	Threads threads;
	at::AutoDispatchBelowADInplaceOrView no_grad;
	c10::impl::ExcludeDispatchKeyGuard not_again{ c10::DispatchKey::Fake };
};

/* ---- what is known of large tensors ---- */

constexpr int64_t MOST_CHOICES = 32 << 20;

/* Non-zero elements (tables.cpp). */
struct Table {
	c10::weak_intrusive_ptr<c10::StorageImpl> storage;
	Origin origin;		    /* of the choices */
	bool ones;		    /* all ones, else other numbers */
	int64_t stride, classes;    /* class of an element: its index / stride % classes */
	std::vector<int64_t> begin; /* of each class, then the end */
	Tensor places;		    /* in the storage, by class, then ascending */
};

/* A gradient's bound (overflow.cpp). */
struct Slope {
	double most, column; /* of an element; of a class summed over rows */
};

/* Random numbers, before the card draws them (draw.cpp). */
struct Draw {
	int kind = 0; /* 0: unknown */
	at::Generator generator{};
	uint64_t seed = 0, offset = 0, range = 0;
	int64_t low = 0;	 /* integers */
	double from = 0, to = 1; /* bounds */
};

/* ---- one call of an operator (dispatch.cpp): classify, judge, run, invent, mark ---- */

struct Call {
	const c10::OperatorHandle &op;
	Info &f;
	c10::DispatchKeySet below; /* keys */
	Stack *stack;
	size_t count; /* of arguments */
	std::vector<IValue> args{}, outs{};
	Results results{};

	/* judge */
	bool fits = true;	  /* do all inputs fit the limits? */
	int64_t most = 0;	  /* size limit for each large result */
	Origin origin = COMPUTED; /* of the inputs */
	std::shared_ptr<const Table> table{};
	Tensor listed{}; /* non-zero elements of the table, for nonzero */
	bool upload = false;
	bool inside_only = false; /* the CPU only has its inner operators */
	bool steep = false;	  /* its slope is known */
	Slope slope{};
	Draw draw{};

	/* run, invent */
	bool done = false;     /* computed */
	bool outs_fit = false; /* do all results fit the limits? */
	bool cleared = false;  /* it is zeros, which take no memory */

	bool known() const
	{
		return fits && origin > LIKELY;
	}
	void redispatch()
	{
		op.redispatchBoxed(below, stack);
	}
	const Tensor &first() const
	{
		return args[0].toTensor();
	}
	const Tensor &result() const
	{
		return outs[0].toTensor();
	}
};
