/* SPDX-License-Identifier: Apache-2.0 */
/* Values set in JSON and YAML: only their bytes change. */

#include "pretend/layout/config.h"

#include <stdio.h>
#include <string.h>

#include "test.h"

static void expect(bool yaml, const char *text, const char *key, const char *value,
		   const char *wanted)
{
	struct frag_err err = { 0 };
	FRAG_AUTO_FREE char *out = NULL;

	if (frag_config_set(text, yaml, key, value, &out, &err)) {
		assert_string_equal(err.msg, wanted);
		return;
	}
	assert_string_equal(out, wanted);
}

TEST(values_of_json)
{
	expect(false, "{\"a\": 1, \"b\": 2}", "b", "3", "{\"a\": 1, \"b\": 3}");
	expect(false,
	       "{\"s\": \"a}\\\"b\",\n \"z\": {\"x\": [1, {\"stage\": 7}], \"stage\" : 2 } }",
	       "z.stage", "3",
	       "{\"s\": \"a}\\\"b\",\n \"z\": {\"x\": [1, {\"stage\": 7}], \"stage\" : 3 } }");
	expect(false, "{\"a\": {\"b\": 1}}", "a", "auto", "{\"a\": \"auto\"}");
	expect(false, "{\"a\": 1}", "a", "true", "{\"a\": true}");
	expect(false, "{\"a\": 1}", "a", "-1e-4", "{\"a\": -1e-4}");
	expect(false, "{\"a\": 1}", "b.c.d", "2", "{\"b\": {\"c\": {\"d\": 2}}, \"a\": 1}");
	expect(false, "{ }", "b", "2", "{\"b\": 2 }");
	expect(false, "{\"a\": {}}", "a.b", "2", "{\"a\": {\"b\": 2}}");
	expect(false, "{\"a\": 1}", "a.b", "2", "no object holds 'b'");
	expect(false, "", "a", "2", "no object holds 'a'");
	expect(false, "[1]", "a", "2", "no object holds 'a'");
	/* of two of one name the last counts */
	expect(false, "{\"a\": 1, \"a\": 2}", "a", "3", "{\"a\": 1, \"a\": 3}");
	/* comments, as DeepSpeed allows them */
	expect(false, "/* } */{ // \"a\": 5\n\"b\": [1, # ]\n2], \"a\":1# one\n}", "a", "2",
	       "/* } */{ // \"a\": 5\n\"b\": [1, # ]\n2], \"a\":2# one\n}");
	expect(false, "\xef\xbb\xbf{\"\xc3\xa9\":1}", "\xc3\xa9", "\xc3\xbc",
	       "\xef\xbb\xbf{\"\xc3\xa9\":\"\xc3\xbc\"}");
}

TEST(values_that_json_has_not_are_texts)
{
	static const char *const values[][2] = {
		{ "0", "0" },
		{ "-0.5e+3", "-0.5e+3" },
		{ "01", "\"01\"" },
		{ "0x10", "\"0x10\"" },
		{ "1.", "\"1.\"" },
		{ ".5", "\".5\"" },
		{ "-inf", "\"-inf\"" },
		{ "1e", "\"1e\"" },
		{ "a\"b\\c\n", "\"a\\\"b\\\\c\\u000a\"" },
	};
	char wanted[80], long_value[601], long_wanted[620];

	for (size_t i = 0; i < FRAG_ARRAY_LEN(values); i++) {
		snprintf(wanted, sizeof(wanted), "{\"a\":%s}", values[i][1]);
		expect(false, "{\"a\":null}", "a", values[i][0], wanted);
	}
	memset(long_value, 'x', sizeof(long_value) - 1);
	long_value[sizeof(long_value) - 1] = '\0';
	snprintf(long_wanted, sizeof(long_wanted), "{\"%s\": 1}", long_value);
	expect(false, "{}", long_value, "1", long_wanted);
	snprintf(long_wanted, sizeof(long_wanted), "{\"a\":\"%s\"}", long_value);
	expect(false, "{\"a\":1}", "a", long_value, long_wanted);
}

TEST(what_is_no_json_is_refused)
{
	expect(false, "{\"a\": \"x", "a", "2", "cannot be read as JSON at byte 8");
	expect(false, "{\"a\\", "a", "2", "cannot be read as JSON at byte 1");
	expect(false, "{\"a\": [[[", "a", "2", "cannot be read as JSON at byte 9");
	expect(false, "{\"a\": }", "a", "2", "cannot be read as JSON at byte 6");
	expect(false, "{\"a\" 1}", "a", "2", "cannot be read as JSON at byte 1");
	expect(false, "{a: 1}", "a", "2", "cannot be read as JSON at byte 1");
	expect(false, "{\"\\u0061\": 1}", "a", "2", "cannot be read as JSON at byte 1");
	expect(false, "{\"a\": 1 /* ", "a", "2", "cannot be read as JSON at byte 11");
}

TEST(values_of_yaml)
{
	expect(true, "a: 1\nb: 2 # two\n", "b", "3", "a: 1\nb: 3 # two\n");
	expect(true, "a:\n  b: x\n\n  # note\n  c: 1\nb: 2\n", "a.c", "y",
	       "a:\n  b: x\n\n  # note\n  c: y\nb: 2\n");
	expect(true, "a:\n    b: x\nb: 2", "b", "3", "a:\n    b: x\nb: 3");
	expect(true, "a: 1", "b", "3", "a: 1\nb: 3\n");
	expect(true, "a:\n  b: 1\nc: 2\n", "a.d", "3", "a:\n  b: 1\n  d: 3\nc: 2\n");
	expect(true, "a: 1\n", "b.c", "3", "a: 1\nb:\n  c: 3\n");
	expect(true, "\xc3\xa9: \xc3\xbc\nb: 2\n", "b", "3", "\xc3\xa9: \xc3\xbc\nb: 3\n");
	expect(true, "a:\n  b: \xc3\xbc\n\nc: 1", "a.d", "3", "a:\n  b: \xc3\xbc\n\n  d: 3\nc: 1");
	expect(true, "a:\n  b: 1\n", "a", "3", "'a' is not a single value");
	expect(true, "a: {b: 1}\n", "a.b", "3", "'a.b' is not a single value");
	expect(true, "---\na: \r\n", "a", "3", "---\na: 3\r\n");
	expect(true, "", "a", "3", "a: 3\n");
	expect(true, "a: 'it''s # x' # c\n", "a", "3", "a: 3 # c\n");
	expect(true, "a: \"x # \\\"y\" # c\n", "a", "3", "a: 3 # c\n");
	expect(true, "a: u#x\nb:   # two\nc: 1\n", "b", "3", "a: u#x\nb: 3   # two\nc: 1\n");
	expect(true, "\xef\xbb\xbf# one\n%YAML 1.2\n--- \n  \"a\": 1\n  'b' : 2\n", "b", "3",
	       "\xef\xbb\xbf# one\n%YAML 1.2\n--- \n  \"a\": 1\n  'b' : 3\n");
	expect(true, "a: 1\r\nb:\r\n  c: 2\r\n", "b.d.e", "3",
	       "a: 1\r\nb:\r\n  c: 2\r\n  d:\r\n    e: 3\r\n");
	expect(true, "t: |\n  a: 1\na: 1\na: 2\n", "a", "3", "t: |\n  a: 1\na: 1\na: 3\n");
}

TEST(what_is_no_mapping_of_lines_is_refused)
{
	expect(true, "a:\n- 1\n- 2\nb: 1\n", "a", "3", "'a' is not a single value");
	expect(true, "a:\n  - b: 1\n", "a.b", "3", "'b' is not in a mapping of lines");
	expect(true, "{a: 1}\n", "a", "3", "'a' is not in a mapping of lines");
	expect(true, "- a: 1\n", "b", "3", "'b' is not in a mapping of lines");
	expect(true, "a:1\n", "a", "3", "'a' is not in a mapping of lines");
	expect(true, "a: |\n  x\n", "a", "3", "'a' is not a single value");
	expect(true, "a: [1,\n2]\n", "a", "3", "'a' is not a single value");
	expect(true, "a: \"x\ny\"\n", "a", "3", "'a' is not a single value");
	expect(true, "a: 'x\ny'\n", "a", "3", "'a' is not a single value");
	expect(true, "a: &x 1\nb: *x\n", "a", "3", "'a' is not a single value");
	expect(true, "a: &x 1\nb: *x\n", "b", "3", "'b' is an alias of another value");
	expect(true, "a: [1\n", "a", "3",
	       "cannot be read as YAML at line 2: did not find expected ',' or ']'");
	expect(true, "a: 1\n---\na: 2\n", "a", "3", "'a' may be in one of several documents");
}

TEST(values_that_yaml_reads_otherwise_are_quoted)
{
	static const char *const values[][2] = {
		{ "x", "x" },
		{ "-1", "-1" },
		{ "http://x#y", "http://x#y" },
		{ "[1, 2]", "[1, 2]" },
		{ "\"x\"", "\"x\"" },
		{ "x: y", "\"x: y\"" },
		{ "x:", "\"x:\"" },
		{ "x #y", "\"x #y\"" },
		{ "*x", "\"*x\"" },
		{ "[1", "\"[1\"" },
		{ "'x", "\"'x\"" },
		{ "- x", "\"- x\"" },
		{ "-", "\"-\"" },
		{ "a\nb: 1", "\"a\\u000ab: 1\"" },
	};
	char wanted[80];

	for (size_t i = 0; i < FRAG_ARRAY_LEN(values); i++) {
		snprintf(wanted, sizeof(wanted), "a: %s\n", values[i][1]);
		expect(true, "a: 1\n", "a", values[i][0], wanted);
	}
}
