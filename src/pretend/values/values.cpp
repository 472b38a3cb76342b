// SPDX-License-Identifier: Apache-2.0
/*
 * Values of small tensors on the pretended card: the library that a program loads (cufrag_card.py).
 * The parts are compiled together, because PyTorch's headers take longer than they do; each uses
 * those before it.
 */
#include "values.h"

#include "tensors.cpp"
#include "clock.cpp"
#include "instead.cpp"
#include "operators.cpp"
#include "origins.cpp"
#include "overflow.cpp"
#include "tables.cpp"
#include "judge.cpp"
#include "compute.cpp"
#include "draw.cpp"
#include "steer.cpp"
#include "invent.cpp"
#include "run.cpp"
#include "mark.cpp"
#include "dispatch.cpp"

#pragma GCC visibility pop

TORCH_LIBRARY_IMPL(_, Fake, m)
{
	m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

/* copy.c asks and tells these. */
static const struct {
	void (*arrived)(const void *, const void *);
	uint32_t (*origin)(const void *);
	void (*set_origin)(const void *, uint32_t, int);
	void (*each)(const void *, uint64_t, void (*)(const void *, uint64_t, uint32_t));
} functions = { note_arrival, origin_at, set_origin_at, each_origin };

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
	bytes_per_ns = bytes;
	flops_per_ns = flops;
	cycles_per_ns = cycles;
}

/* operators: path of operators.csv. False: it cannot be read. */
bool cufrag_values_start(const char *operators, const char *values, unsigned long long seed,
			 Steer to)
{
	set_mode(values);
	if (!read_operators(operators))
		return false;
	frag_pretend_values(&functions);
	generator.seed(seed);
	steer = to;
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
