/* SPDX-License-Identifier: Apache-2.0 */
/* Values set in JSON and YAML: only their bytes change. */

#include "layout/config.h"

#include "test.h"

static void expect(bool yaml, const char *text, const char *key, const char *value,
		   const char *wanted)
{
	struct frag_err err = { 0 };
	char *out = NULL;

	if (frag_config_set(text, yaml, key, value, &out, &err)) {
		assert_string_equal(err.msg, wanted);
		return;
	}
	assert_string_equal(out, wanted);
	frag_host_free(out);
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
	expect(false, "{\"a\": \"x", "a", "2", "{\"a\": 2");
	expect(false, "{\"a\\", "a", "2", "{\"a\": 2, \"a\\");
	expect(false, "{\"a\": [[[", "a", "2", "{\"a\": 2");
}

TEST(values_of_yaml)
{
	expect(true, "a: 1\nb: 2 # two\n", "b", "3", "a: 1\nb: 3\n");
	expect(true, "a:\n  b: x\n\n  # note\n  c: 1\nb: 2\n", "a.c", "y",
	       "a:\n  b: x\n\n  # note\n  c: y\nb: 2\n");
	expect(true, "a:\n    b: x\nb: 2", "b", "3", "a:\n    b: x\nb: 3");
	expect(true, "a: 1", "b", "3", "a: 1\nb: 3\n");
	expect(true, "a:\n  b: 1\nc: 2\n", "a.d", "3", "a:\n  b: 1\n  d: 3\nc: 2\n");
	expect(true, "a: 1\n", "b.c", "3", "a: 1\nb:\n  c: 3\n");
	expect(true, "a:\n  b: 1\n", "a", "3", "'a' is not a single value");
	expect(true, "a: {b: 1}\n", "a.b", "3", "'a.b' is not a single value");
	expect(true, "---\na: \r\n", "a", "3", "---\na: 3\r\n");
	expect(true, "", "a", "3", "a: 3\n");
}
