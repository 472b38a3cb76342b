/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and fills. Copies to the host are complete, so that it has defined bytes. Copies to a card
 * are done only if small: decisions of programs depend on small tensors, and the weights of a large
 * model must not need host memory.
 */
#include "card.h"

#include <stdlib.h>
#include <string.h>

/* Until withdrawn, copies of 4 or 8 bytes to the host return this count, as if a kernel had left it
 * (values/run.cpp, data-dependent shapes). Copies of 16 bytes return the result of a search:
 * found, at index 0. Per thread. */
static _Thread_local uint64_t answer;
static _Thread_local bool answering;

void frag_pretend_answer(bool on, uint64_t count)
{
	answering = on;
	answer = count;
}

/* Tracks the origin of values (values/origins.cpp); told of copies to a card from the host (from is
 * NULL) or within cards. NULL: not tracked. */
struct pretend_values {
	void (*arrived)(const void *to, const void *from);
	uint32_t (*origin)(const void *p);
	void (*set_origin)(const void *p, uint32_t origin, int lower);
	void (*each)(const void *p, uint64_t bytes,
		     void (*put)(const void *p, uint64_t bytes, uint32_t origin));
};
static struct pretend_values values;

__attribute__((visibility("default"))) void frag_pretend_values(const struct pretend_values *v);
void frag_pretend_values(const struct pretend_values *v)
{
	values = *v;
}

void frag_pretend_arrived(const void *to, const void *from, uint64_t bytes)
{
	frag_pretend_lent_origin_set(
		to, bytes, from ? frag_pretend_origin(from, bytes) : PRETEND_COMPUTED, false);
	if (values.arrived)
		values.arrived(to, from);
}

uint32_t frag_pretend_origin(const void *p, uint64_t bytes)
{
	uint32_t lent;

	if (frag_pretend_lent_origin(p, bytes, &lent))
		return lent;
	if (values.origin)
		return values.origin(p);
	return frag_pretend_copies(bytes, PRETEND_COPY_MAX) ? PRETEND_COMPUTED : PRETEND_UNKNOWN;
}

void frag_pretend_origin_set(const void *p, uint64_t bytes, uint32_t origin, bool lower)
{
	frag_pretend_lent_origin_set(p, bytes, origin, lower);
	if (values.set_origin && frag_pretend_owner(p) >= 0)
		values.set_origin(p, origin, lower);
}

static void put_origin(const void *p, uint64_t bytes, uint32_t origin)
{
	frag_pretend_lent_origin_set(p, bytes, origin, false);
}

bool frag_pretend_lend(void *p, uint64_t bytes, int fd, uint64_t offset)
{
	if (!lent_give(p, bytes, fd, offset))
		return false;
	if (values.each)
		values.each(p, bytes, put_origin);
	return true;
}

/* What other ranks send to either place is there first. */
static int settle_at(const void *p, uint64_t bytes)
{
	return frag_pretend_ranks.settle ? frag_pretend_ranks.settle(p, bytes) : PRETEND_OK;
}

static int settle(const void *to, const void *from, uint64_t bytes)
{
	return settle_at(from, bytes) ?: settle_at(to, bytes);
}

/* Most of a large tensor was never computed and reads as zeros without pages. Its copy on the host
 * should not get pages either, so equal pages are not written. */
static void copy_out(char *to, const char *from, size_t bytes)
{
	for (size_t at = 0, part; at < bytes; at += part) {
		part = FRAG_MIN(4096 - ((uintptr_t)(to + at) & 4095), bytes - at);
		if (memcmp(to + at, from + at, part) != 0)
			memcpy(to + at, from + at, part);
	}
}

PRETEND_ENTRY(int, cudaMemcpyAsync,
	      (void *to, const void *from, size_t bytes, int kind, void *stream))
{
	static const uint64_t found[] = { 1, 0 };
	bool to_card = frag_pretend_owner(to) >= 0, from_card = frag_pretend_owner(from) >= 0;
	bool asked = answering && from_card && !to_card;
	struct pretend_range pinned;

	if (asked && (bytes == 4 || bytes == 8)) {
		memcpy(to, &answer, bytes); /* little endian: the low part */
	} else if (asked && bytes == sizeof(found)) {
		memcpy(to, found, bytes);
	} else if (!to_card ||
		   frag_pretend_copies(bytes, from_card ? PRETEND_COPY_MAX : PRETEND_UPLOAD_MAX)) {
		int rc = settle(to_card ? to : NULL, from_card ? from : NULL, bytes);

		if (rc)
			return frag_pretend_error(rc);
		if (from_card && !to_card && bytes > PRETEND_COPY_MAX)
			copy_out(to, from, bytes);
		else
			memmove(to, from, bytes);
		if (to_card && !from_card)
			frag_pretend_arrived(to, NULL, bytes);
	}
	if (*frag_pretend_streams() && to_card != from_card)
		frag_pretend_copied(stream, bytes, to_card,
				    frag_pretend_range(to_card ? from : to, &pinned));
	return PRETEND_OK;
}
PRETEND_ENTRY(int, cudaMemcpy2DAsync,
	      (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
	       size_t height, int kind, void *stream))
{
	if (frag_pretend_owner(to) >= 0 && !frag_pretend_copies(width * height, PRETEND_COPY_MAX))
		return PRETEND_OK;
	for (size_t row = 0; row < height; row++)
		frag_pretend_cudaMemcpyAsync((char *)to + row * to_pitch,
					     (const char *)from + row * from_pitch, width, kind,
					     stream);
	return PRETEND_OK;
}
PRETEND_ENTRY(int, cudaMemsetAsync, (void *to, int value, size_t bytes, void *stream))
{
	bool on_card = frag_pretend_owner(to) >= 0;

	if (on_card && (!frag_pretend_copies(bytes, PRETEND_COPY_MAX) || settle_at(to, bytes)))
		return PRETEND_OK;
	if (on_card && !value)
		frag_pretend_clear(to, bytes);
	else
		memset(to, value, bytes);
	return PRETEND_OK;
}
#define DRIVER_FILL(name, type) \
	PRETEND_ENTRY(int, name##Async, (void *to, type value, size_t count, void *stream)) \
	{ \
		type *at = to; \
		size_t done = \
			frag_pretend_copies(count * sizeof(type), PRETEND_COPY_MAX) ? count : 0; \
		for (size_t i = 0; i < done; i++) \
			at[i] = value; \
		return PRETEND_OK; \
	} \
	PRETEND_ENTRY(int, name##_v2, (void *to, type value, size_t count)) \
	{ \
		return frag_pretend_##name##Async(to, value, count, NULL); \
	}
DRIVER_FILL(cuMemsetD8, uint8_t)
DRIVER_FILL(cuMemsetD16, uint16_t)
DRIVER_FILL(cuMemsetD32, uint32_t)
