/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conformance suite of the policies once more, on card 0: the same functions and the
 * same checks, on a part of the real memory, with every block filled and verified.
 * Skipped without a card.
 */
#include "tests/conformance/test_conformance.c"

static void no_card(void **state)
{
	(void)state;
	skip();
}

int main(void)
{
	static const struct CMUnitTest none[] = { cmocka_unit_test(no_card) };

	if (!frag_cuda_count())
		return cmocka_run_group_tests(none, NULL, NULL);
	rig_on_card = true;
	return test_main();
}
