/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#define MOST 100

static struct CMUnitTest tests[MOST];
static size_t tests_count;
static struct {
	const char *file;
	cases_fn run;
} cases[MOST];
static size_t cases_count;
static CMFixtureFunction group_setup, group_teardown;

void test_register(struct CMUnitTest test)
{
	if (tests_count == MOST)
		abort();
	tests[tests_count++] = test;
}

void test_register_cases(const char *file, cases_fn run)
{
	if (cases_count == MOST)
		abort();
	cases[cases_count].file = file;
	cases[cases_count++].run = run;
}

void test_register_group(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	group_setup = setup;
	group_teardown = teardown;
}

__attribute__((weak)) int main(void)
{
	int failed = 0;

	for (size_t i = 0; i < cases_count; i++)
		failed += cases_run(cases[i].file, cases[i].run);
	if (tests_count)
		failed += _cmocka_run_group_tests("tests", tests, tests_count, group_setup,
						  group_teardown);
	return failed;
}
