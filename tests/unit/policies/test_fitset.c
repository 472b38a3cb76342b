/* SPDX-License-Identifier: Apache-2.0 */
/* policies/common/fitset.c against an array in order of address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <fitset.h>

#include "chunk_rig.h"

#define NODES 500

static struct frag_fitset_node node[NODES];
static bool inside[NODES];

/* Nodes are in order of address in the array. */
static struct frag_fitset_node *walk(uint64_t size)
{
	for (unsigned i = 0; i < NODES; i++)
		if (inside[i] && node[i].size >= size)
			return &node[i];
	return NULL;
}

static uint64_t largest(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < NODES; i++)
		if (inside[i])
			n = FRAG_MAX(n, node[i].size);
	return n;
}

static void empty(void **state)
{
	struct frag_fitset s = { 0 };

	(void)state;
	assert_null(frag_fitset_first(&s, 1));
	assert_int_equal(frag_fit_largest(&s), 0);
	assert_null(frag_fit_broken(&s));
}

static void random_changes(void **state)
{
	struct frag_fitset s = { 0 };
	uint64_t seed = 3;

	(void)state;
	memset(inside, 0, sizeof(inside));
	for (unsigned i = 0; i < NODES; i++)
		node[i].addr = 4096 * (i + 1);
	for (unsigned i = 0; i < 20000; i++) {
		unsigned k = crig_random(&seed) % NODES;
		uint64_t size = crig_random(&seed) % 1000 + 1;

		if (!inside[k]) {
			node[k].size = size;
			frag_fitset_insert(&s, &node[k]);
			inside[k] = true;
		} else if (size % 3) {
			frag_fitset_resize(&node[k], size);
		} else {
			frag_fitset_erase(&s, &node[k]);
			inside[k] = false;
		}
		size = crig_random(&seed) % 1010 + 1;
		assert_ptr_equal(frag_fitset_first(&s, size), walk(size));
		assert_int_equal(frag_fit_largest(&s), largest());
		if (i % 64 == 0 && frag_fit_broken(&s))
			fail_msg("%s", frag_fit_broken(&s));
	}
}

/* A size that is out of step with the tree is found. */
static void finds_damage(void **state)
{
	struct frag_fitset s = { 0 };

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		node[i] = (struct frag_fitset_node){ .addr = 256 * i, .size = 100 + i };
		frag_fitset_insert(&s, &node[i]);
	}
	assert_null(frag_fit_broken(&s));
	node[4].size = 1000;
	assert_non_null(frag_fit_broken(&s));
	node[4].size = 104;
	node[4].addr = 256 * 20;
	assert_non_null(frag_fit_broken(&s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty),
		cmocka_unit_test(random_changes),
		cmocka_unit_test(finds_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
