/* SPDX-License-Identifier: Apache-2.0 */
/* Faults in files of rules are reported with file and line; no file breaks the runner. */
#include "test.h"

#include "lib/random.h"
#include "rules.h"

static const char *path;

/* Runs all sections up to the first that does not hold. */
static bool run(const char *text, size_t length, char *message)
{
	static struct rules_file file;
	bool ok;

	path = test_make_file("rules", text, length);
	ok = rules_read(path, &file, message);
	for (size_t i = 0; ok && i < file.sections_count; i++)
		ok = rules_run(&file.sections[i], message);
	return ok;
}

#define P "A title\n\tpolicy buddy:arena=1M\n"

TEST(each_fault_is_reported)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "", ":0: no rules" },
		{ "A title\n", ":1: no rules, or a title without steps" },
		{ "A title\nAnother one\n\tpolicy null\n", ":2: the title above it has no steps" },
		{ "\tpolicy null\n", ":1: this is indented, but there is nothing above it" },
		{ "A title\n    policy null\n", ":2: steps are indented by tabs" },
		{ "A title\n\tpolicy\n", ":2: which policy?" },
		{ "A title\n\tpolicy budy\n", ":2: unknown policy 'budy'" },
		{ "A title\n\tpolicy buddy crad 4G\n", ":2: 'crad': options are card" },
		{ "A title\n\tpolicy buddy card 4X\n", ":2: '4X' is no number" },
		{ "A title\n\talloc 4K\n", ":2: alloc: no policy is open" },
		{ "A title\n\tfor $x 1 2\n\tpolicy $x\n", ":3 ($x 1): unknown policy '1'" },
		{ "A title\n\tfor $x $y 1 2 3\n\tpolicy null\n", ":2: for: 3 values for 2 names" },
		{ P "\talok 4K\n", ":3: there is no step 'alok'" },
		{ P "\n# nothing\n\talloc 512 -> 1K\n", ":5: alloc 512: 512 granted, expected 1K" },
		{ P "\talloc 512 -> @4K\n", ":3: the block is at S0+0, expected S0+4K" },
		{ P "\talloc 512 -> hit\n", ":3: alloc 512: served by grow, expected hit" },
		{ P "\talloc 512 -> oom\n", ":3: alloc 512: not refused" },
		{ P "\talloc 512 -> @b\n", ":3: 'b' is no number, block or segment" },
		{ P "\talloc 65G\n", ":3: out of memory" },
		{ P "\talloc 1 2 3 -> 512 512\n", ":3: 2 granted sizes for 3 requests" },
		{ P "\ta b = alloc 1 2 3\n", ":3: 2 names for 3 requests" },
		{ P "\tb0..b99999 = alloc 1\n", ":3: 'b0..b99999': too many blocks" },
		{ P "\ta = alloc 1; free a; free a\n", ":3: no block 'a' is held" },
		{ P "\ta = alloc 1; request a; request a\n", ":3: no block 'a' is live" },
		{ P "\ta = alloc 1\n\tcalls m1M f1M\n", ":4: it was m1M@S0+0" },
		{ P "\tcalls y1M\n", ":3: 'y1M' does not begin with one of mrfx" },
		{ P "\talloc 1\n\texpect reserved 4M\n", ":4: reserved is 2M, expected 4M" },
		{ P "\texpect colour 1\n", ":3: there is nothing called 'colour'" },
		{ P "\texpect reserved\n", ":3: reserved: a value is wanted" },
		{ P "\trefused \"buddy:arena=3M\" says nothing\n", ":3: 'buddy:arena=3M' is "
								   "refused by" },
		{ P "\trefused buddy\n", ":3: 'buddy' is accepted" },
		{ P "\taccepted buddy:arena=3M\n", ":3: 'buddy:arena=3M' is refused by" },
		{ P "\trefused \"budd\n", ":3: a quote is not closed" },
		{ P "\tsoak slots=5000\n", ":3: 1 to 1024 slots" },
	};
	char message[RULES_MESSAGE];
	bool failed = false;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		if (run(rows[i].text, strlen(rows[i].text), message))
			fail_msg("no error: %s", rows[i].text);
		if (strncmp(message, path, strlen(path)) != 0 ||
		    strncmp(message + strlen(path), rows[i].says, strlen(rows[i].says)) != 0)
			print_error("'%s', not '%s'\n", message, rows[i].says), failed = true;
	}
	assert_false(failed);
}

/* A sound file with bytes changed and lines cut: the rules hold, or a message names the line. */
TEST(random_damage)
{
	static const char sound[] = P
		"\ta b = alloc 257 64K -> 512 64K @0 @64K\n\tfree a; expect blocks 9 free 983552\n"
		"Another\n\tfor $x $y 4K 8K 1M 1M\n\tpolicy tlsf:pool=2M card 1G\n\tc0..c3 = alloc "
		"$x\n"
		"\trepeat 3 a = alloc $y; free a\n\tcalls m2M ... m2M\n";
	static const char letters[] = "\t\n ;:=.@+*-#$\"ab09KMGS>";
	char message[RULES_MESSAGE], text[sizeof(sound)];
	uint64_t seed = 1;

	for (unsigned i = 0; i < 2000; i++) {
		memcpy(text, sound, sizeof(sound));
		for (unsigned k = 0; k < 1 + i % 4; k++)
			text[frag_random(&seed) % (sizeof(sound) - 1)] =
				letters[frag_random(&seed) % (sizeof(letters) - 1)];
		message[0] = '\0';
		if (!run(text,
			 frag_random(&seed) % 8 ? sizeof(sound) - 1 : frag_random(&seed) % 200,
			 message))
			assert_int_equal(strncmp(message, path, strlen(path)), 0);
	}
}
