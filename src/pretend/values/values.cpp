// SPDX-License-Identifier: Apache-2.0
/*
 * Values of small tensors on the pretended card: the library that a program loads (cufrag_card.py).
 * The parts are compiled together, because PyTorch's headers take longer than they do.
 */
#include "values.h"

#include <dlfcn.h>

#include "clock.cpp"
#include "compute.cpp"
#include "dispatch.cpp"
#include "draw.cpp"
#include "in_full.cpp"
#include "instead.cpp"
#include "invent.cpp"
#include "judge.cpp"
#include "mark.cpp"
#include "operators.cpp"
#include "origins.cpp"
#include "overflow.cpp"
#include "run.cpp"
#include "steer.cpp"
#include "tables.cpp"
#include "tensors.cpp"

using namespace card_values;

TORCH_LIBRARY_IMPL(_, Fake, m)
{
	m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

template <class F> static void find(void *lib, const char *name, F &to)
{
	to = reinterpret_cast<F>(dlsym(lib, name));
}

/* path: of libcufrag_nogpu.so, which is loaded. */
static void find_core(const char *path)
{
	static const struct {
		void (*arrived)(const void *, const void *);
		uint32_t (*origin)(const void *);
		void (*set_origin)(const void *, uint32_t, int);
		void (*each)(const void *, uint64_t, void (*)(const void *, uint64_t, uint32_t));
	} mine = { note_arrival, origin_at, set_origin_at, each_origin };
	const std::atomic<bool> *(*streams)();
	const std::atomic<unsigned> *(*awaited)();
	void (*offer)(const void *);
	void *lib = dlopen(path, RTLD_NOW | RTLD_NOLOAD);

	if (!lib)
		return;
	find(lib, "frag_nogpu_answer", core.answer);
	find(lib, "frag_nogpu_answer_in_turn", core.answer_in_turn);
	find(lib, "frag_nogpu_work", core.work);
	find(lib, "frag_nogpu_settle", core.settle);
	find(lib, "frag_nogpu_abandon", core.abandon);
	find(lib, "frag_nogpu_clear", core.clear);
	find(lib, "frag_nogpu_lent_origin", core.lent_origin);
	find(lib, "frag_nogpu_lent_origin_set", core.set_lent_origin);
	find(lib, "frag_nogpu_foreign", core.foreign);
	find(lib, "frag_nogpu_cudaDeviceGetAttribute", core.attribute);
	find(lib, "frag_nogpu_streams", streams);
	find(lib, "frag_nogpu_awaited", awaited);
	find(lib, "frag_nogpu_values", offer);
	core.streams = streams ? streams() : nullptr;
	if (offer && awaited && core.settle && core.abandon) {
		offer(&mine);
		core.awaited = awaited();
	}
}

static void set_mode(const std::string &values)
{
	mode = values == "zeros"    ? Values::zeros
	       : values == "random" ? Values::random
				    : Values::rules;
	in_full = values == "computed";
	if (values == "worst")
		skew = HUGE_VAL;
	else if (begins(values, "skewed="))
		skew = atof(values.c_str() + strlen("skewed="));
}

extern "C" {
/* bytes, flops, cycles: the card's throughput per ns; 0: no clock. */
void cufrag_values_roof(double bytes, double flops, double cycles)
{
	set_roof(bytes, flops, cycles);
}

/* library: path of libcufrag_nogpu.so; operators: of operators.csv. False: it cannot be read. */
bool cufrag_values_start(const char *library, const char *operators, const char *values,
			 unsigned long long seed, Steer to)
{
	set_mode(values);
	if (!read_operators(operators))
		return false;
	find_core(library);
	generator.seed(seed);
	steer = to;
	let_views_pass();
	enter_python();
	return true;
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
	set_unknown(storage);
}

void cufrag_values_recomputed(double out[2])
{
	recomputed_ns(out);
}

int cufrag_values_clock(const char *path)
{
	return write_clock(path);
}
}
