/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign text for terminals, pages and shells. */
#include "test.h"

#include <frag/base.h>

#include "base/clean.h"

static void check(const char *in, const char *want)
{
	char s[64];

	snprintf(s, sizeof(s), "%s", in);
	assert_string_equal(frag_clean_text(s, strlen(s)), want);
	assert_true(frag_clean_is(s, strlen(s)));
	assert_int_equal(frag_clean_is(in, strlen(in)), !strcmp(in, want));
}

TEST(test_kept)
{
	check("", "");
	check("max_split_size_mb:64,[a] ~", "max_split_size_mb:64,[a] ~");
	check("na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80", "na\xc3\xafve \xe2\x82\xac "
							    "\xf0\x9f\x98\x80");
	check("\xc2\xa0", "\xc2\xa0"); /* the first behind C1 */
}

TEST(test_controls)
{
	check("a\nb\tc\rd", "a?b?c?d");
	check("\x1b]0;title\x07", "?]0;title?");
	check("\x7f", "?");
	check("\xc2\x9b"
	      "31m",
	      "??31m"); /* C1: a CSI in two bytes */
	check("a\xe2\x80\xaetxt.exe", "a???txt.exe");
	check("\xe2\x81\xa6x\xe2\x81\xa9", "???x???");
}

TEST(test_not_utf8)
{
	check("\xff\xfe", "??");
	check("\x80", "?");
	check("\xc3", "?");
	check("\xe2\x82", "??");
	check("\xc0\xaf", "??");	   /* '/' the long way */
	check("\xe0\x80\xaf", "???");	   /* longer */
	check("\xed\xa0\x80", "???");	   /* a surrogate */
	check("\xf4\x90\x80\x80", "????"); /* behind the last */
	check("\xc3(", "?(");
}

static void check_word(const char *in, const char *want)
{
	FRAG_AUTO_FREE char *word = frag_shell_word(in);

	assert_non_null(word);
	assert_string_equal(word, want);
}

TEST(test_shell)
{
	check_word("max_split_size_mb:64", "max_split_size_mb:64");
	check_word("", "''");
	check_word("a b", "'a b'");
	check_word("';touch x;'", "''\\'';touch x;'\\'''");
	check_word("$(x)`y`", "'$(x)`y`'");
	check_word("~root", "'~root'");
	check_word("a*[b]", "'a*[b]'");
	check_word("a\nb", "$'a\\012b'");
	check_word("\xff'\\9\t", "$'\\377\\'\\\\9\\011'");
	check_word("\xc3\xa4\n", "$'\xc3\xa4\\012'");
}
