// SPDX-License-Identifier: Apache-2.0
/*
 * Values of small tensors on the pretended card: what the parts of the library share.
 *
 * One library, written against PyTorch's dispatcher, because that has no other interface; compiled
 * once for the user's wheel (cufrag_card.py) as values.cpp, which includes the other parts.
 */
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>
#include <torch/version.h>

#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

extern "C" { /* from the OpenMP library of libtorch_cpu, if any */
int omp_get_max_threads() __attribute__((weak));
void omp_set_num_threads(int) __attribute__((weak));
}

#pragma GCC visibility push(hidden)
namespace card_values
{
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

/* How the operator indexes argument 0: by row (argument 1), along dimension 1 (argument 2), by
 * class, or with one index per dimension. */
enum { ROWS = 1, ALONG, CLASSES, LISTED };

/* What it does with a table: writes a value at indices along a dimension, writes at listed
 * indices, takes slices, copies, compares with a number, counts. */
enum { SCATTERS = 1, PUTS, TAKES, COPIES, COMPARES, COUNTS };

/* The loss gradient starts here (over classes, over frames), or passes through unchanged,
 * scaled, divided, or summed over rows. */
enum { CLASSES_BEGIN = 1, FRAMES_BEGIN, PASSED_ON, MULTIPLIED, DIVIDED, ADDED_UP };

/* The distribution that it draws from: uniform integers, or uniform numbers. */
enum { INTEGERS = 1, EVENLY };

/* Its formula of floating-point operations. */
enum { PRODUCT = 1, CONVOLUTION, ATTENTION };

/* operators.csv says what each means. */
// clang-format off
#define VALUES_FLAGS(F) \
	F(asks) F(asks_zero) F(attends) F(both) F(bound) F(compares) F(copies) F(counts) \
	F(decides) F(each) F(either) F(finite) F(first_added) F(fresh) F(in_float) F(like) \
	F(masks) F(over) F(pads) F(part) F(part_in_full) F(pointwise) F(reads_few) F(reduces) \
	F(report) F(resizes) F(rule) F(scalar) F(sends) F(shape) F(skip) F(stays) F(sums) F(zeros)
// clang-format on

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
	Results (*instead)(const Stack &) = nullptr; /* replacement on the CPU */
#define F(flag) bool flag = false;
	VALUES_FLAGS(F)
#undef F
};

bool begins(const std::string &name, const char *with);
bool mutates(const c10::FunctionSchema &schema);
bool gives_view(const c10::FunctionSchema &schema);
bool read_operators(const char *path); /* false: no such file, or flag */
Info &info(const c10::OperatorHandle &op);

/* ---- the run ---- */

struct Call;

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

inline Values mode = Values::rules;
inline bool in_full;	/* --values computed: every operator is computed, however large */
inline double skew = 1; /* of a router: the first expert gets so many times the mean */
inline std::mt19937_64 generator(1);
inline std::mutex mutex;	       /* protects generator, origins, tables, slopes, the clock */
inline thread_local int depth;	       /* of operators called by operators */
inline thread_local const Info *outer; /* the operator that the program called */
inline thread_local bool suppression;  /* inside torchvision's nms, which keeps most */
inline thread_local bool foreseen;     /* the result is computed; inner operators need not be */

/* Functions of libcufrag_nogpu.so (nogpu.h); NULL: it lacks them. */
inline struct {
	void (*answer)(bool, uint64_t); /* what the next copies to the host bring */
	void (*answer_in_turn)(const uint64_t *, uint64_t, uint64_t);
	void (*work)(void *, uint64_t, uint64_t, bool); /* an operator's time */
	const std::atomic<bool> *streams;     /* has this process streams, or other ranks? */
	const std::atomic<unsigned> *awaited; /* messages of other ranks */
	int (*settle)(const void *, uint64_t);
	void (*abandon)(const void *, uint64_t);
	void (*clear)(void *, uint64_t);		     /* drops the pages of zeros */
	int (*attribute)(int *value, int which, int device); /* cudaDeviceGetAttribute */
	/* memory of another process, which tracks its values; shared with other processes */
	bool (*foreign)(const void *);
	bool (*lent_origin)(const void *, uint64_t, uint32_t *);
	void (*set_lent_origin)(const void *, uint64_t, uint32_t, bool);
} core;

/* ---- tensors (tensors.cpp) ---- */

bool wrapped(const Tensor &t); /* its inner tensors are dispatched themselves */
bool nested(const Tensor &t);
bool on_card(const Tensor &t);
bool integers(const Tensor &t); /* or booleans */
bool small(const Tensor &t);
int64_t span(const Tensor &t);
/* Bytes of distinct elements: less than the span if strided with gaps or expanded. */
int64_t volume(const Tensor &t);
int64_t wrap(int64_t dim, const Tensor &x);
Tensor cpu_view(const Tensor &t); /* a CPU tensor over the same bytes */
const c10::StorageImpl &whole_of(const c10::StorageImpl *s);
const void *base_of(const Tensor &t); /* start of the whole storage */
inline c10::DeleterFnPtr lets_go;     /* of a storage that views another one (storage[a:b]) */

/* Computed values of large tensors, by end address. Entries of reused memory are dropped. */
class Held
{
      public:
	std::atomic<int64_t> bytes{ 0 };
	void set(const Tensor &t, bool computed); /* pre: mutex is held */
	bool exceed(int64_t most);		  /* pre: mutex is not held */

      private:
	struct Piece {
		uintptr_t begin;
		c10::weak_intrusive_ptr<c10::StorageImpl> storage;
	};
	using Pieces = std::map<uintptr_t, Piece>;
	Pieces pieces;
	Pieces::iterator forget(Pieces::iterator it);
};
inline Held held, held_integers;

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

/* ---- where values come from (origins.cpp) ---- */

/* Origin of a storage's values; a result gets the least of its inputs. GUESSED: computed from
 * unknown values, or invented. LIKELY: guessed, but true for most: not below a bound (a size, a
 * score), or kept by nms. */
enum Origin { NOTHING, GUESSED, LIKELY, INVENTED, COMPUTED };
inline std::unordered_map<const void *, Origin> origins; /* by the base of the storage */

bool is_foreign(const Tensor &t);
Origin origin_of(const Tensor &t);
void set_origin(const Tensor &t, Origin value);
void note_part(const Tensor &t); /* it is passed to NCCL */
void note_arrival(const void *to, const void *from);
uint32_t origin_at(const void *p);
void set_origin_at(const void *p, uint32_t value, int lower);
void each_origin(const void *p, uint64_t bytes, void (*put)(const void *, uint64_t, uint32_t));
void set_unknown(const c10::StorageImpl *storage);
bool drop(const Tensor &t);
void wait_for(const Tensor &t);
void forget_awaited(const Tensor &t);

/* ---- computing (compute.cpp, instead.cpp, in_full.cpp) ---- */

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

bool compute(Call &c);
std::vector<Tensor> copy_results(const Stack &outs, const Results &results);
Results (*instead_of(const std::string &name))(const Stack &);
bool on_cpu(const Call &c);
bool compute_in_float(Call &c, const Stack &args);
bool compute_instead(Call &c, const Stack &args);
bool goes_to_host(const Call &c);
void tell_missed(const Info &f);

/* ---- inventing (invent.cpp) ---- */

void invent_all(const Tensor &c); /* c: CPU tensor */
void invent(const Tensor &t, int64_t most = 0);
void invent_most(const Stack &outs);
void invent_places(const Tensor &x, const Tensor &index);
void route_rows(const Tensor &rows, int64_t n, int64_t k);

/* ---- tables: non-zero elements of large tensors (tables.cpp) ---- */

constexpr int64_t MOST_CHOICES = 32 << 20;

struct Table {
	c10::weak_intrusive_ptr<c10::StorageImpl> storage;
	Origin origin;		     /* of the choices */
	bool ones;		     /* all ones, else other numbers */
	int64_t stride, classes;     /* class of an element: its index / stride % classes */
	std::vector<int64_t> begin;  /* of each class, then the end */
	std::vector<int64_t> places; /* in the storage, by class, then ascending */
	Origin then = NOTHING;	     /* of the storage when noted; differs after a write */
};

/* NULL: none. pre: mutex is held. */
std::shared_ptr<const Table> table_at(const void *base);
std::shared_ptr<const Table> table_of(const Tensor &t);
void forget_table(const void *base); /* pre: mutex is held */
bool holds_zeros(const Tensor &t);   /* any size */
void note_zeros(const Tensor &t);
void scatter_into(const Call &c);
bool from_table(const Call &c); /* false: none of its operators */
bool find_places(const Tensor &x, const Table &table, std::vector<int64_t> &places);
void write_places(const Tensor &x, const Tensor &index, const std::vector<int64_t> &places,
		  Origin origin);

/* ---- overflow of gradients (overflow.cpp) ---- */

struct Slope {
	double most, column; /* of an element; of a class summed over rows */
};
inline std::atomic<bool> overflows;  /* since the scaler last changed its scale */
void forget_slope(const void *base); /* pre: mutex is held */
bool slope_of(Call &c);		     /* false: unknown */
void note_slope(const Call &c);

/* ---- the modelled clock (clock.cpp) ---- */

double flops_of(const Call &c);
void tick(const Call &c);
void set_roof(double bytes, double flops, double cycles);
void recomputed_ns(double out[2]);
int write_clock(const char *path);

/* ---- what the program reads (steer.cpp) ---- */

inline Steer steer;
void tell_choice(const char *what, bool invented);
void tell(const Info &f, const Stack &args);
void write_scalar(const Tensor &t, double value);
std::vector<IValue> stand_ins(const Stack &args);
void arrived(const Info &f, const Tensor &from, const Tensor &to);

/* ---- random numbers (draw.cpp) ---- */

struct Draw {
	int kind = 0; /* 0: unknown */
	at::Generator generator{};
	uint64_t seed = 0, offset = 0, range = 0;
	int64_t low = 0;	 /* integers */
	double from = 0, to = 1; /* bounds */
};
Draw draw_of(const Call &c); /* before the card draws */
bool drawn(const Call &c);   /* repeats the draw in the result; false: the scheme is unknown */

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
	std::vector<int64_t> places{}; /* of non-zero elements, if listed */
	bool listed = false;
	std::vector<uint64_t> steps{}; /* of mode's rows: the card reads them while it runs */
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

void judge(Call &c);
bool run(Call &c);    /* false: nothing is left to do */
bool invent(Call &c); /* false: the results are invented and marked */
bool decides(const Stack &outs);
void mark(Call &c);
void fallback(const c10::OperatorHandle &op, c10::DispatchKeySet keys, Stack *stack);
void let_views_pass();
void enter_python();
} // namespace card_values
#pragma GCC visibility pop
