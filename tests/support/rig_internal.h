/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of a rig: how a broken promise is told, for rig.c and rig_walk.c. */
#ifndef FRAG_TESTS_RIG_INTERNAL_H
#define FRAG_TESTS_RIG_INTERNAL_H

#include "test.h"

#include "rig.h"

/* Fails the running test unless `cond` holds. */
#define PROMISE(r, cond, ...) \
	do { \
		if (!(cond)) { \
			rig_say_where(r); \
			fail_msg(__VA_ARGS__); \
		} \
	} while (0)

#define LL(x) ((unsigned long long)(x))

void rig_say_where(const struct rig *r);
/* First place in by_addr whose block does not lie below addr. */
size_t rig_place_of(const struct rig *r, frag_addr_t addr);

#endif
