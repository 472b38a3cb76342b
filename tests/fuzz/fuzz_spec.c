/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policy texts and sizes. What parses must read back from its own echo as the
 * same echo. Shared objects are left out: loading a file that was named by
 * chance is no business of a parser.
 */
#include <frag/policy.h>

#include "fuzz.h"

static void parse(const char *text)
{
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL, *again = NULL;
	struct frag_err err = { 0 };
	const char *echo;

	if (frag_policy_spec_parse(text, &spec, &err)) {
		must(err.code == FRAG_EUSAGE && err.msg[0]);
		return;
	}
	echo = frag_policy_spec_echo(spec);
	must(!frag_policy_spec_parse(echo, &again, NULL));
	must(!strcmp(frag_policy_spec_echo(again), echo));
}

static void parse_size(const char *text)
{
	char out[32];
	uint64_t n = 0, again;

	if (frag_parse_bytes(text, &n, NULL))
		return;
	frag_format_bytes(n, out, sizeof(out));
	must(!frag_parse_bytes(out, &again, NULL) || n >= 1023ull << 50);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FRAG_AUTO_FREE char *text = text_of(data, size);

	parse_size(text);
	if (!strstr(text, ".so"))
		parse(text);
	return 0;
}
