/* SPDX-License-Identifier: Apache-2.0 */
/* Values set in JSON and YAML. Conditions: what they mean, and where they are wrong; too deep and
 * too long ones: tests/cli/cases/layout_hostile.sh. */
#include "test.h"

#include "pretend/layout/config.h"

static const char *value(const void *ctx, const char *name, size_t len)
{
	static const char *const known[][2] = {
		{ "tp", "4" }, { "pp", "2" }, { "world", "8" }, { "ac", "full" }, { "lr", "0.5" }
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(known); i++)
		if (strlen(known[i][0]) == len && !memcmp(known[i][0], name, len))
			return known[i][1];
	return NULL;
}

static const char *const escapes[][2] = { { "\\n", "\n" },
					  { "\\r", "\r" },
					  { "\\ufeff", "\xef\xbb\xbf" } };

/* Texts [from] become texts [!from]. */
static char *swap(const char *text, int from)
{
	char *out = NULL;
	size_t size, k;
	FILE *to = open_memstream(&out, &size);

	while (*text) {
		for (k = 0; k < FRAG_ARRAY_LEN(escapes); k++)
			if (!strncmp(text, escapes[k][from], strlen(escapes[k][from])))
				break;
		fputs(k < FRAG_ARRAY_LEN(escapes) ? escapes[k][!from] : (char[]){ *text, 0 }, to);
		text += k < FRAG_ARRAY_LEN(escapes) ? strlen(escapes[k][from]) : 1;
	}
	fclose(to);
	return out;
}

/* "where CONDITION", "json KEY=VALUE in TEXT" */
static void answer(char *call, FILE *out)
{
	FRAG_AUTO_FREE char *of = NULL, *text = NULL, *made = NULL, *shown = NULL;
	const char *kind = cases_word(&call);
	char *in = strstr(call, " in"), *equals = strchr(call, '=');
	struct frag_err err;
	bool holds;

	if (*kind == 'w') {
		fputs(frag_where_holds(call, value, NULL, &holds, &err)
			      ? strstr(err.msg, "at offset")
		      : holds ? "holds"
			      : "no",
		      out);
		return;
	}
	*in = *equals = '\0';
	of = swap(equals + 1, 0);
	text = swap(in[3] ? in + 4 : "", 0);
	if (frag_config_set(text, *kind == 'y', call, of, &made, &err))
		fputs(err.msg, out);
	else
		fputs(shown = swap(made, 1), out);
}

CASES_IN_LINES("tests/pretend/layout/settings.cases", answer)

TEST(long_keys_and_values)
{
	char of[601], wanted[620];
	FRAG_AUTO_FREE char *key = NULL, *text = NULL;

	memset(of, 'x', sizeof(of) - 1);
	of[sizeof(of) - 1] = '\0';
	SUCCEEDS(frag_config_set("{\"a\": 1}", false, "a", of, &text, NULL));
	snprintf(wanted, sizeof(wanted), "{\"a\": \"%s\"}\n", of);
	assert_string_equal(text, wanted);
	of[300] = '\0'; /* the longest of --set */
	SUCCEEDS(frag_config_set("{}", false, of, "1", &key, NULL));
	snprintf(wanted, sizeof(wanted), "{\"%s\": 1}\n", of);
	assert_string_equal(key, wanted);
}
