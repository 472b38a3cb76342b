/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce.h"

#include <string.h>

/* int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, fp8 … */
enum { INT8, UINT8, INT32, UINT32, INT64, UINT64, HALF, FLOAT, DOUBLE, BFLOAT16, TYPES };

size_t reduce_type_bytes(int type)
{
	static const size_t bytes[TYPES] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2 };

	return type >= 0 && type < TYPES ? bytes[type] : 1;
}

#define KEPT 4096u
static double factors[KEPT];
static _Atomic unsigned made;

bool reduce_known(int type, int op)
{
	return type >= 0 && type < TYPES && op >= REDUCE_SUM && (unsigned)op < REDUCE_MADE + made;
}

/* ---- numbers of 16 bits ------------------------------------------------------------------ */

static float from_bits(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static uint32_t to_bits(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static float half_to_float(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, rest = h & 1023;

	if (exponent == 31)
		return from_bits(sign | 0x7f800000 | rest << 13);
	if (!exponent) /* rest * 2^-24 */
		return (sign ? -1.0f : 1.0f) * (float)rest * 0x1p-24f;
	return from_bits(sign | (exponent + 112) << 23 | rest << 13);
}

/* To the nearest, ties to even. */
static uint32_t rounded(uint32_t bits, unsigned drop)
{
	return (bits + (1u << (drop - 1)) - 1 + (bits >> drop & 1)) >> drop;
}

static uint16_t float_to_half(float f)
{
	uint32_t bits = to_bits(f), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;

	if (size > 0x7f800000)
		return (uint16_t)(sign | 0x7e00);
	if (size >= 0x477ff000) /* rounds to more than 65504, the maximum */
		return (uint16_t)(sign | 0x7c00);
	if (size < 0x38800000) /* below 2^-14: steps of 2^-24, which the addition rounds to */
		return (uint16_t)(sign | (to_bits(from_bits(size) + 0.5f) - to_bits(0.5f)));
	return (uint16_t)(sign | (rounded(size, 13) - (112u << 10)));
}

static float bf16_to_float(uint16_t b)
{
	return from_bits((uint32_t)b << 16);
}

static uint16_t float_to_bf16(float f)
{
	uint32_t bits = to_bits(f);

	return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : rounded(bits, 16));
}

/* ---- combining ----------------------------------------------------------------------------- */

#define COMBINE(a, b) \
	(op == REDUCE_PROD  ? (a) * (b) \
	 : op == REDUCE_MAX ? FRAG_MAX(a, b) \
	 : op == REDUCE_MIN ? FRAG_MIN(a, b) \
			    : (a) + (b))
/* load and store convert between an element and the type that computes */
#define REDUCTION(name, element, computed, load, store) \
	static void reduce_##name(element *into, const element *from, size_t count, int op) \
	{ \
		for (size_t i = 0; i < count; i++) { \
			computed a = load(into[i]), b = load(from[i]); \
\
			into[i] = (element)store(COMBINE(a, b)); \
		} \
	}
#define SCALING(name, element, computed, load, store) \
	static void mean_##name(element *into, size_t count, int ranks) \
	{ \
		for (size_t i = 0; i < count; i++) \
			into[i] = (element)store(load(into[i]) / (computed)ranks); \
	} \
	static double first_##name(const element *from) \
	{ \
		return (double)load(*from); \
	} \
	static void multiply_##name(element *into, size_t count, double factor) \
	{ \
		for (size_t i = 0; i < count; i++) \
			into[i] = (element)store((computed)((double)load(into[i]) * factor)); \
	}
#define AS_IT_IS(x) (x)
#define NUMBERS(...) \
	REDUCTION(__VA_ARGS__) \
	SCALING(__VA_ARGS__)
/* signed ones wrap, as on the card */
NUMBERS(int8, int8_t, int, (int)(int8_t), AS_IT_IS)
NUMBERS(uint8, uint8_t, int, AS_IT_IS, AS_IT_IS)
NUMBERS(int32, int32_t, int64_t, AS_IT_IS, (int32_t))
NUMBERS(uint32, uint32_t, uint64_t, AS_IT_IS, AS_IT_IS)
NUMBERS(half, uint16_t, float, half_to_float, float_to_half)
NUMBERS(float, float, float, AS_IT_IS, AS_IT_IS)
NUMBERS(double, double, double, AS_IT_IS, AS_IT_IS)
NUMBERS(bf16, uint16_t, float, bf16_to_float, float_to_bf16)
NUMBERS(uint64, uint64_t, uint64_t, AS_IT_IS, AS_IT_IS)

static void reduce_int64(int64_t *into, const int64_t *from, size_t count, int op)
{
	for (size_t i = 0; i < count; i++) {
		int64_t a = into[i], b = from[i];

		if (op == REDUCE_MAX || op == REDUCE_MIN)
			into[i] = op == REDUCE_MAX ? FRAG_MAX(a, b) : FRAG_MIN(a, b);
		else
			into[i] = (int64_t)(op == REDUCE_PROD ? (uint64_t)a * (uint64_t)b
							      : (uint64_t)a + (uint64_t)b);
	}
}
SCALING(int64, int64_t, int64_t, AS_IT_IS, AS_IT_IS)

#define EACH_TYPE(DO) \
	DO(INT8, int8) \
	DO(UINT8, uint8) \
	DO(INT32, int32) \
	DO(UINT32, uint32) \
	DO(INT64, int64) \
	DO(UINT64, uint64) \
	DO(HALF, half) \
	DO(FLOAT, float) \
	DO(DOUBLE, double) \
	DO(BFLOAT16, bf16)

void reduce_with(void *into, const void *from, size_t bytes, int type, int op)
{
	size_t count = bytes / reduce_type_bytes(type);

#define CASE(number, name) \
	case number: \
		reduce_##name(into, from, count, op); \
		break;
	switch (type) {
		EACH_TYPE(CASE)
	}
#undef CASE
}

int reduce_make(const void *factor, int type)
{
	unsigned n = made++;
	double value = 1;

#define CASE(number, name) \
	case number: \
		value = first_##name(factor); \
		break;
	switch (type) {
		EACH_TYPE(CASE)
	}
#undef CASE
	factors[n % KEPT] = value;
	return REDUCE_MADE + (int)(n % KEPT);
}

double reduce_factor(int op)
{
	return op >= REDUCE_MADE && (unsigned)op - REDUCE_MADE < FRAG_MIN(made, KEPT)
		       ? factors[op - REDUCE_MADE]
		       : 1;
}

void reduce_end(void *into, size_t bytes, int type, int op, int ranks, double factor)
{
	size_t count = bytes / reduce_type_bytes(type);

#define CASE(number, name) \
	case number: \
		if (op == REDUCE_AVG) \
			mean_##name(into, count, ranks); \
		else if (factor != 1) \
			multiply_##name(into, count, factor); \
		break;
	switch (type) {
		EACH_TYPE(CASE)
	}
}
