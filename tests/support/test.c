/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scratch.h"

#define MOST 100

static struct CMUnitTest *tests;
static size_t tests_count;
static struct {
	const char *file;
	void (*answer)(char *input, FILE *out);
} cases[MOST];
static size_t cases_count;

void test_register(struct CMUnitTest test)
{
	if (tests_count % MOST == 0)
		tests = realloc(tests, (tests_count + MOST) * sizeof(*tests));
	if (!tests)
		abort();
	tests[tests_count++] = test;
}

void test_add(CMUnitTestFunction run, const void *row, const char *name, ...)
{
	va_list ap;
	char *text;

	va_start(ap, name);
	if (vasprintf(&text, name, ap) < 0)
		abort();
	va_end(ap);
	test_register((struct CMUnitTest){
		.name = text, .test_func = run, .initial_state = (void *)(uintptr_t)row });
}

size_t test_add_files(CMUnitTestFunction run, const char *pattern, const char *title)
{
	static glob_t found;
	size_t before = found.gl_pathc;

	glob(pattern, before ? GLOB_APPEND : 0, NULL, &found);
	for (size_t i = before; i < found.gl_pathc; i++)
		test_add(run, found.gl_pathv[i], "%s%s", title, found.gl_pathv[i]);
	return found.gl_pathc - before;
}

void test_register_cases(const char *file, void (*answer)(char *input, FILE *out))
{
	if (cases_count == MOST)
		abort();
	cases[cases_count].file = file;
	cases[cases_count++].answer = answer;
}

/* ---- what tests share ------------------------------------------------------------------ */

_Thread_local struct frag_err test_err;

void test_succeeds(int rc, const char *call, const char *file, int line)
{
	if (!rc)
		return;
	print_error("%s: %d, %s\n", call, rc, rc == test_err.code ? test_err.msg : "");
	_fail(file, line);
}

void test_fails_with(int rc, int code, const char *part, const char *call, const char *file,
		     int line)
{
	if (rc == code && strstr(test_err.msg, part))
		return;
	print_error("%s: %d, not %d: '%s', not '%s'\n", call, rc, code, test_err.msg, part);
	_fail(file, line);
}

bool test_is_quick(void)
{
	return getenv("FRAG_TEST_QUICK") != NULL;
}

size_t test_rounds(size_t n)
{
	return test_is_quick() && !getenv("FRAG_TEST_NIGHTLY") ? (n + 9) / 10 : n;
}

bool test_fails(int rc, uint64_t nth)
{
	frag_host_fail_after(0);
	if (nth > 5000)
		fail_msg("it fails however much memory there is");
	if (rc && rc != FRAG_ENOMEM)
		fail_msg("%d, not for want of memory", rc);
	return rc == FRAG_ENOMEM;
}

static char folder[] = "/tmp/cufrag-test-XXXXXX";
static bool folder_made;
static char files[MOST][64];
static size_t files_count;

const char *test_path(const char *name)
{
	static char paths[8][64];
	static unsigned next;
	char *path = paths[next++ % 8];

	if (!folder_made && !mkdtemp(folder))
		abort();
	folder_made = true;
	snprintf(path, sizeof(*paths), "%s/%s", folder, name);
	return path;
}

/* Is gone at the end. */
static const char *goes(const char *path)
{
	size_t i = 0;

	while (i < files_count && strcmp(files[i], path) != 0)
		i++;
	if (i == MOST)
		abort();
	strcpy(files[i], path);
	files_count += i == files_count;
	return path;
}

const char *test_folder(const char *name)
{
	const char *path = goes(test_path(name));

	frag_scratch_remove_folder(path);
	if (mkdir(path, 0700))
		abort();
	return path;
}

const char *test_make_file(const char *name, const void *bytes, size_t n)
{
	const char *path = goes(test_path(name));
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(bytes, 1, n, f) != n)
		abort();
	fclose(f);
	return path;
}

static int remove_files(void)
{
	for (size_t i = 0; i < files_count; i++)
		if (unlink(files[i]))
			frag_scratch_remove_folder(files[i]);
	if (!folder_made || !rmdir(folder))
		return 0;
	print_error("something was left in %s\n", folder);
	return 1;
}

int test_main(void)
{
	int failed = 0;

	if (tests_count)
		failed = _cmocka_run_group_tests("tests", tests, tests_count, NULL, NULL);
	return failed + remove_files();
}

/* Each line of the standard input is an input with C's escapes; "=" follows each answer. */
static int answer_cases(const char *file)
{
	char *line = NULL;
	size_t at = 0, room = 0, n;

	setenv("CMOCKA_MESSAGE_OUTPUT", "STDOUT", 1);
	while (at < cases_count && strcmp(cases[at].file, file) != 0)
		at++;
	while (at < cases_count && getline(&line, &room, stdin) > 0) {
		FRAG_AUTO(free_at) char *input = NULL, *said = NULL;
		FILE *out = open_memstream(&said, &n);

		line[strcspn(line, "\n")] = 0;
		input = cases_unescape(line, &n);
		cases[at].answer(input, out);
		fclose(out);
		printf("%s%s=\t0\n", said, n && said[n - 1] != '\n' ? "\n" : "");
		fflush(stdout);
	}
	free(line);
	return at == cases_count || remove_files();
}

__attribute__((weak)) int main(int argc, char **argv)
{
	return argc > 1 ? answer_cases(argv[1]) : test_main();
}
