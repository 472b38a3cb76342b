/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests: a program is what stands in its file, no list names it again.
 *
 *	TEST(a_block_is_used_again)
 *	{
 *		assert_int_equal(…);	with cmocka's words; `state` is there, too
 *	}
 *	CASES_IN_LINES("tests/unit/…/x.cases", answer)	a file of cases, see cases.h
 *
 * They run in the order of the file; test.c has the main function. With the name of a file of cases
 * it answers those instead. A program with needs of its own has its own main function.
 */
#ifndef TESTS_SUPPORT_TEST_H
#define TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <frag/base.h>
#include <frag/error.h>

#include "cases.h"

#define KIB FRAG_KIB
#define MIB FRAG_MIB
#define GIB FRAG_GIB

typedef unsigned long long ull; /* for printf */

/* A callback of a test seldom needs all that it gets. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* For FRAG_AUTO, beside FRAG_AUTO_FREE: what libc gave. */
static inline void free_at(void *at)
{
	free(*(void **)at);
}
FRAG_AUTO_AT(FILE *, fclose)

/* What the calls of a test say when they fail. */
extern _Thread_local struct frag_err test_err;
/* The call gives 0, or the test fails with the message in test_err. */
#define SUCCEEDS(call) test_succeeds(call, #call, __FILE__, __LINE__)
void test_succeeds(int rc, const char *call, const char *file, int line);
/* The call gives this code, and the message in test_err contains `part`. */
#define FAILS(code, part, call) \
	test_fails_with((test_err = (struct frag_err){ 0 }, call), code, part, #call, __FILE__, \
			__LINE__)
void test_fails_with(int rc, int code, const char *part, const char *call, const char *file,
		     int line);

void test_register(struct CMUnitTest test);

/* What main does, for a program that has to do something first. */
int test_main(void);

#define TEST_AT_START_(name) __attribute__((constructor)) static void name(void)

#define TEST(name) \
	static void name(void **state); \
	TEST_AT_START_(name##_registers) \
	{ \
		test_register((struct CMUnitTest){ #name, name, NULL, NULL, NULL }); \
	} \
	static void name(void **state)

/* A file of cases with bodies of two parts, an input and its answer in lines begun with "> ", or of
 * lines "call -> answer": answer(input or call, out) writes the answer. */
#define CASES_IN_PARTS(file, answer) \
	TEST_AT_START_(answer##_registers) \
	{ \
		test_register_cases(file, answer); \
	}
#define CASES_IN_LINES(file, answer) CASES_IN_PARTS(file, answer)
void test_register_cases(const char *file, void (*answer)(char *input, FILE *out));

/*
 * A test for each row of a table or file:
 *	TESTS
 *	{
 *		test_add(follow, &rows[0], "follow %s", rows[0].name);
 *		test_add_files(follow, "traces/x.cft", "");
 *	}
 * The row is *state. A test for each file of a glob pattern has its path there, and its name behind
 * `title`; returns how many there are.
 */
#define TESTS TEST_AT_START_(rows_register)
void test_add(CMUnitTestFunction run, const void *row, const char *name, ...)
	__attribute__((format(printf, 3, 4)));
size_t test_add_files(CMUnitTestFunction run, const char *pattern, const char *title);

/* The quick suite and sanitizers leave out what takes long. */
bool test_is_quick(void);
/* Rounds of a test of random input: in the quick suite a tenth of n, one at least. */
size_t test_rounds(size_t n);

/*
 * The expression gives FRAG_ENOMEM when its first allocation fails, or its second, and so on. The
 * statement behind the macro follows each failure. Without one it gives 0.
 */
#define FAIL_ALLOCATIONS(expression) \
	for (uint64_t nth_ = 1; test_fails((frag_host_fail_after(nth_), (expression)), nth_); \
	     nth_++)
bool test_fails(int rc, uint64_t nth);

/* Numbers below 2^31, the same for the same seed. */
static inline uint64_t test_roll(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 33;
}

/* A path in a folder of its own; the last eight stay valid. A file left there is a failure. */
const char *test_path(const char *name);
/* A new folder there; it goes at the end with all that is in it. */
const char *test_folder(const char *name);
/* A file with these bytes; it goes at the end. */
const char *test_make_file(const char *name, const void *bytes, size_t n);

#endif
