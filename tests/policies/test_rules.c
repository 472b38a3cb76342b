/* SPDX-License-Identifier: Apache-2.0 */
/* Runs files of rules, one test for each rule: test_rules FILE.rules … */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "rules.h"

static void run_section(void **state)
{
	char message[RULES_MESSAGE];

	if (!rules_run(*state, message))
		fail_msg("%s", message);
}

static int run_file(const char *path)
{
	char message[RULES_MESSAGE];
	struct CMUnitTest *tests;
	struct rules_file file;
	int failed;

	if (!rules_read(path, &file, message)) {
		rules_release(&file);
		fprintf(stderr, "%s\n", message);
		return 1;
	}
	tests = calloc(file.sections_count, sizeof(*tests));
	if (!tests)
		abort();
	for (size_t i = 0; i < file.sections_count; i++)
		tests[i] = (struct CMUnitTest){ .name = file.sections[i].title,
						.test_func = run_section,
						.initial_state = &file.sections[i] };
	failed = _cmocka_run_group_tests(path, tests, file.sections_count, NULL, NULL);
	free(tests);
	rules_release(&file);
	return failed;
}

int main(int argc, char **argv)
{
	int failed = 0;

	for (int i = 1; i < argc; i++)
		failed += run_file(argv[i]);
	return failed != 0 || argc < 2;
}
