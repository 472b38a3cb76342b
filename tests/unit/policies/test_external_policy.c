/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The example of docs/external-policy: builds it with the one line that it names, loads it
 * by its path, and runs it as any other policy. Runs in the root of the repository.
 *
 * A shared object finds the functions of <frag/…> in the program, which must
 * therefore be linked with -rdynamic.
 */
#include "test.h"

#include "rig.h"

#define SOURCE "docs/external-policy/mine.c"

static char object[64];
static struct rig rig; /* large: not for the stack */

/* By the line of the example that begins with "gcc". */
static void build(const char *output, const char *source)
{
	char line[400] = "", command[800];
	FILE *f = fopen(SOURCE, "r");
	char *at;

	if (!f)
		fail_msg("no %s: the test runs in the root of the repository", SOURCE);
	while (fgets(line, sizeof(line), f) && !strstr(line, "gcc -std"))
		;
	fclose(f);
	at = strstr(line, "-o mine.so");
	assert_non_null(at);
	*at = '\0';
	snprintf(command, sizeof(command), "%s -Wall -Wextra -Werror -o %s %s", strstr(line, "gcc"),
		 output, source);
	if (system(command))
		fail_msg("this failed: %s", command);
}

static int build_object(void **state)
{
	if (system("gcc --version > /dev/null 2>&1"))
		return 0; /* each test skips itself */
	snprintf(object, sizeof(object), "%s", test_make_file("mine.so", "", 0));
	build(object, SOURCE);
	return 0;
}

static void open_it(const char *options)
{
	static char text[128];

	if (!*object)
		skip();
	snprintf(text, sizeof(text), "%s%s", object, options);
	must_open_rig(&rig, text, NULL); /* fails if linked without -rdynamic */
}

TEST(rounds_to_powers_of_two)
{
	frag_addr_t at;

	open_it(":smallest=4K");
	assert_string_equal(rig.ops->name, "mine");
	assert_non_null(strstr(frag_policy_spec_echo(rig.spec), "mine.so:smallest=4KiB"));
	assert_int_equal(rig_alloc(&rig, 0, 1, 0, 0), 0);
	assert_int_equal(rig_alloc(&rig, 1, 4097, 0, 0), 0);
	assert_int_equal(rig.slots[0].block.granted, 4096);
	assert_int_equal(rig.slots[1].block.granted, 8192);
	at = rig.slots[1].block.addr;
	assert_int_equal(rig_free(&rig, 1), 0);
	assert_int_equal(rig_alloc(&rig, 2, 5000, 0, 0), 0);
	assert_int_equal(rig.slots[2].block.addr, at);
	assert_int_equal(rig.slots[2].block.cls, FRAG_CLASS_HIT);
	rig_check(&rig);
	rig_walk(&rig, NULL);
	rig_close(&rig);
}

TEST(random_calls)
{
	struct script s;

	open_it("");
	script_init(&s, 11, 150);
	if (script_soak(&s, &rig, 3000, false))
		fail_msg("%s", rig.err.msg);
	assert_int_equal(rig_free_all(&rig), 0);
	rig_close(&rig);
}

TEST(wrapped_in_an_adaptor)
{
	char text[128];

	if (!*object)
		skip();
	snprintf(text, sizeof(text), "check/%s:smallest=1K", object);
	must_open_rig(&rig, text, NULL);
	assert_int_equal(rig_alloc(&rig, 0, 1, 0, 0), 0);
	assert_int_equal(rig.slots[0].block.granted, 1024);
	rig_close(&rig);
}

static void refuses(const char *text, const char *part)
{
	struct frag_policy_spec *spec;

	FAILS(FRAG_EUSAGE, part, frag_policy_spec_parse(text, &spec, &test_err));
}

/* Its options and rules are known like those of any policy; another abi is not loaded. */
TEST(says_what_is_wrong)
{
	static const char wrong[] = "#include <frag/policy.h>\n"
				    "const struct frag_policy_ops frag_policy_external = { .abi = "
				    "77, .name = \"other\" };\n";
	char text[160];
	const char *other;

	if (!*object)
		skip();
	snprintf(text, sizeof(text), "%s:smalest=4K", object);
	refuses(text, "did you mean 'smallest'");
	snprintf(text, sizeof(text), "%s:smallest=5000", object);
	refuses(text, "not a power of two");
	refuses(test_path("no.so"), "cannot load");
	other = test_make_file("other.so", "", 0);
	build(other, test_make_file("other.c", wrong, sizeof(wrong) - 1));
	refuses(other, "ABI 77");
}

TEST_GROUP(build_object, NULL)
