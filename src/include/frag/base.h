/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types and helpers that every other header builds on.
 *
 * Ownership: the caller owns what frag_host_* returns, and frees it with frag_host_free. Nothing
 * here keeps a pointer.
 */
#ifndef FRAG_BASE_H
#define FRAG_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Device address, never a host pointer: the simulator invents its addresses. */
typedef uint64_t frag_addr_t;

#define FRAG_KIB 1024ull
#define FRAG_MIB (1024ull * FRAG_KIB)
#define FRAG_GIB (1024ull * FRAG_MIB)
#define FRAG_PAGE (2ull * FRAG_MIB) /* physical granule of current data-centre cards */

#define FRAG_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define FRAG_MIN(a, b) ((a) < (b) ? (a) : (b))
#define FRAG_MAX(a, b) ((a) > (b) ? (a) : (b))
#define FRAG_LIKELY(x) __builtin_expect(!!(x), 1)
#define FRAG_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* For qsort: -1, 0 or 1. By a, then by b: FRAG_ORDER(x->a, y->a) ?: FRAG_ORDER(x->b, y->b). */
#define FRAG_ORDER(x, y) (((x) > (y)) - ((x) < (y)))
/* A function for qsort of an array of `type`: by up to five orders of the elements *x and *y. */
#define FRAG_COMPARE(name, type, ...) \
	static int name(const void *x_, const void *y_) \
	{ \
		type const *x = x_; \
		type const *y = y_; \
\
		return FRAG_COMPARE_(__VA_ARGS__, 0, 0, 0, 0, 0); \
	}
#define FRAG_COMPARE_(a, b, c, d, e, ...) (a) ?: (b) ?: (c) ?: (d) ?: (e)

/* For qsort of uint64_t, ascending. */
static inline int frag_compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return FRAG_ORDER(x, y);
}

static inline int frag_compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return FRAG_ORDER(x, y);
}

/* Smallest multiple of `unit` that is not below `n`. pre: unit > 0, no overflow. */
static inline uint64_t frag_round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

static inline uint64_t frag_round_down(uint64_t n, uint64_t unit)
{
	return n / unit * unit;
}

/* floor(log2 n). pre: n > 0. */
static inline unsigned frag_log2(uint64_t n)
{
	return 63u - (unsigned)__builtin_clzll(n);
}

static inline bool frag_is_pow2(uint64_t n)
{
	return n && !(n & (n - 1));
}

/* Reports a broken invariant of cufrag (never bad input) and aborts. */
void frag_bug(const char *file, int line, const char *what) __attribute__((noreturn));
#define FRAG_BUG(what) frag_bug(__FILE__, __LINE__, what)
#define FRAG_ASSERT(cond) \
	do { \
		if (FRAG_UNLIKELY(!(cond))) \
			FRAG_BUG(#cond); \
	} while (0)

/*
 * Host memory. All return NULL if memory is short, if the size overflows, or if a test makes the
 * n-th call fail. On failure, frag_host_realloc leaves the old block unchanged.
 */
void *frag_host_alloc(size_t bytes);
void *frag_host_calloc(size_t count, size_t bytes);
void *frag_host_realloc(void *old, size_t count, size_t bytes);
char *frag_host_strdup(const char *text);
void frag_host_free(void *block);
/* Frees several blocks in this order. Reads all pointers before it frees the first. */
void frag_host_free_list(void *const *blocks, size_t count);
#define FRAG_FREE(...) \
	frag_host_free_list((void *const[]){ __VA_ARGS__ }, \
			    sizeof((void *const[]){ __VA_ARGS__ }) / sizeof(void *))

/*
 * Releases the variable at scope exit. Initialise it at its declaration, with a value that
 * `release` accepts.
 */
#define FRAG_AUTO(release) __attribute__((cleanup(release)))
/* Defines RELEASE_at, for FRAG_AUTO(RELEASE_at), from a function that takes the pointer itself. */
#define FRAG_AUTO_AT(type, release) \
	static inline void release##_at(type *at) \
	{ \
		release(*at); \
	}
void frag_host_free_at(void *at);
#define FRAG_AUTO_FREE FRAG_AUTO(frag_host_free_at) /* host memory, and that of malloc */
/* Words, NULL-terminated, and their list; *words becomes NULL. */
void frag_words_release(char ***words);
void frag_file_close_at(void *at);
#define FRAG_AUTO_FILE FRAG_AUTO(frag_file_close_at) /* a FILE that was read; NULL: none */
/* The pointer, handed over: the variable is NULL then, and its scope releases nothing. */
#define FRAG_GIVE(variable) \
	({ \
		__typeof__(variable) given_ = (variable); \
		(variable) = NULL; \
		given_; \
	})

/* For tests: from the n-th host allocation on, all fail. 0 switches this off. */
void frag_host_fail_after(uint64_t nth);

#endif
