/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policy texts to test: every registered policy (hidden ones too, adaptors
 * around another one) with its defaults, and once more for every value of each
 * of its switches and word options that its own rules allow, and with options that make it do more.
 */
#ifndef FRAG_TESTS_VARIANTS_H
#define FRAG_TESTS_VARIANTS_H

#include "test.h"

/* A test for every variant, or for the defaults only; *state is the text (const char *). */
void conformance_add(const char *name, CMUnitTestFunction run, bool all);

#endif
