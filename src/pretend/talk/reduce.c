/* SPDX-License-Identifier: Apache-2.0 */
#include "reduce.h"

#include <string.h>

#define KEPT 4096u
static double factors[KEPT];
static _Atomic unsigned made;

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
/* load and store convert between an element and the type that computes; without `from`, ranks > 0:
 * divides by them, else multiplies by the factor */
#define NUMBERS(name, element, computed, load, store) \
	static void step_##name(void *to, const void *from, size_t count, int op, int ranks, \
				double factor) \
	{ \
		for (size_t i = 0; i < count; i++) { \
			computed a = load(((element *)to)[i]), \
				 b = from ? load(((const element *)from)[i]) : (computed)ranks; \
\
			a = from ? COMBINE(a, b) : ranks ? a / b : (computed)((double)a * factor); \
			((element *)to)[i] = (element)store(a); \
		} \
	} \
	static double first_##name(const void *from) \
	{ \
		return (double)load(*(const element *)from); \
	}
#define AS_IT_IS(x) (x)
__extension__ typedef __int128 int128;
/* signed ones wrap, as on the card */
NUMBERS(int8, int8_t, int, (int)(int8_t), (int8_t))
NUMBERS(uint8, uint8_t, int, AS_IT_IS, AS_IT_IS)
NUMBERS(int32, int32_t, int64_t, AS_IT_IS, (int32_t))
NUMBERS(uint32, uint32_t, uint64_t, AS_IT_IS, AS_IT_IS)
NUMBERS(int64, int64_t, int128, AS_IT_IS, (int64_t))
NUMBERS(uint64, uint64_t, uint64_t, AS_IT_IS, AS_IT_IS)
NUMBERS(half, uint16_t, float, half_to_float, float_to_half)
NUMBERS(float, float, float, AS_IT_IS, AS_IT_IS)
NUMBERS(double, double, double, AS_IT_IS, AS_IT_IS)
NUMBERS(bf16, uint16_t, float, bf16_to_float, float_to_bf16)

#define TYPE(name, bytes) \
	{ \
		bytes, step_##name, first_##name \
	}
/* ncclDataType_t; FP8 comes after these */
static const struct {
	size_t bytes;
	void (*step)(void *to, const void *from, size_t count, int op, int ranks, double factor);
	double (*first)(const void *from);
} types[] = { TYPE(int8, 1),   TYPE(uint8, 1), TYPE(int32, 4), TYPE(uint32, 4), TYPE(int64, 8),
	      TYPE(uint64, 8), TYPE(half, 2),  TYPE(float, 4), TYPE(double, 8), TYPE(bf16, 2) };

static bool is_number(int type)
{
	return type >= 0 && type < (int)FRAG_ARRAY_LEN(types);
}

size_t reduce_type_bytes(int type)
{
	return is_number(type) ? types[type].bytes : 1;
}

bool reduce_known(int type, int op)
{
	return is_number(type) && op >= REDUCE_SUM && (unsigned)op < REDUCE_MADE + made;
}

void reduce_with(void *into, const void *from, size_t bytes, int type, int op)
{
	types[type].step(into, from, bytes / types[type].bytes, op, 0, 1);
}

int reduce_make(const void *factor, int type)
{
	unsigned n = made++ % KEPT;

	factors[n] = is_number(type) ? types[type].first(factor) : 1;
	return REDUCE_MADE + (int)n;
}

double reduce_factor(int op)
{
	return op >= REDUCE_MADE && (unsigned)op - REDUCE_MADE < FRAG_MIN(made, KEPT)
		       ? factors[op - REDUCE_MADE]
		       : 1;
}

void reduce_end(void *into, size_t bytes, int type, int op, int ranks, double factor)
{
	if (op == REDUCE_AVG || factor != 1)
		types[type].step(into, NULL, bytes / types[type].bytes, op,
				 op == REDUCE_AVG ? ranks : 0, factor);
}
