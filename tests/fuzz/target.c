/* SPDX-License-Identifier: Apache-2.0 */
/* The target that FUZZ names in the environment. */
#include "fuzz.h"

static const struct target {
	const char *name;
	void (*run)(const uint8_t *data, size_t size);
} targets[] = {
#define ROW(name) { #name, fuzz_##name },
	FUZZ_TARGETS(ROW)
#undef ROW
}, *target;

int LLVMFuzzerInitialize(int *argc, char ***argv) /* libFuzzer calls it first */
{
	const char *name = getenv("FUZZ");

	for (size_t i = 0; name && i < FRAG_ARRAY_LEN(targets); i++)
		if (!strcmp(targets[i].name, name))
			target = &targets[i];
	if (target || !*argc)
		return 0;
	fprintf(stderr, "%s: FUZZ=NAME in the environment, a folder of tests/fuzz/corpus\n",
		**argv);
	exit(2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size <= 65536)
		target->run(data, size);
	return 0;
}
