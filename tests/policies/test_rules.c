/* SPDX-License-Identifier: Apache-2.0 */
/* Runs files of rules, one test for each rule: test_rules FILE.rules … */
#include "test.h"

#include "rules.h"

static char message[RULES_MESSAGE];

static void run_section(void **state)
{
	if (!rules_run(*state, message))
		fail_msg("%s", message);
}

static int run_file(const char *path)
{
	static struct rules_file file;
	static struct CMUnitTest tests[RULES_SECTIONS];

	if (!rules_read(path, &file, message)) {
		fprintf(stderr, "%s\n", message);
		return 1;
	}
	for (size_t i = 0; i < file.sections_count; i++)
		tests[i] = (struct CMUnitTest){ .name = file.sections[i].title,
						.test_func = run_section,
						.initial_state = &file.sections[i] };
	return _cmocka_run_group_tests(path, tests, file.sections_count, NULL, NULL);
}

int main(int argc, char **argv)
{
	int failed = 0;

	for (int i = 1; i < argc; i++)
		failed += run_file(argv[i]);
	return failed != 0 || argc < 2;
}
