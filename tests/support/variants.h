/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policy texts to test: every registered policy (hidden ones too, adaptors
 * around another one) with its defaults, and once more for every value of each
 * of its switches and word options that its own rules allow, and with options that make it do more.
 */
#ifndef FRAG_TESTS_VARIANTS_H
#define FRAG_TESTS_VARIANTS_H

#include <stdbool.h>
#include <stddef.h>

struct variant {
	char text[256];
	bool plain; /* the defaults */
};

/* All of them, on the heap for the life of the program. */
struct variant *variants_all(size_t *count);

/*
 * A cmocka run of every test over every variant; those not `all` only over plain
 * ones. Returns the number of failures.
 */
struct conformance_test {
	const char *name;
	void (*run)(void **state); /* *state: the text, const char * */
	bool all;
};
int conformance_run(const struct conformance_test *tests, size_t count);

#endif
