/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives a fuzz target without libFuzzer: feeds every file, and every file of a folder, that the
 * command line names; options of libFuzzer are passed over. Each build but BUILD=fuzz has it.
 */
#include <glob.h>
#include <sys/stat.h>

#include "fuzz.h"

/* The input gets an allocation of its exact size: ASan then sees every overrun. */
static void feed(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	uint8_t *data;

	must(f && !fstat(fileno(f), &st));
	data = malloc(st.st_size ? (size_t)st.st_size : 1);
	must(data && fread(data, 1, (size_t)st.st_size, f) == (size_t)st.st_size);
	fclose(f);
	LLVMFuzzerTestOneInput(data, (size_t)st.st_size);
	free(data);
}

int main(int argc, char **argv)
{
	glob_t files = { 0 };
	char pattern[4096];
	struct stat st;

	LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 1; i < argc; i++) {
		bool folder = !stat(argv[i], &st) && S_ISDIR(st.st_mode);

		snprintf(pattern, sizeof(pattern), "%s%s", argv[i], folder ? "/*" : "");
		if (*argv[i] != '-')
			glob(pattern, files.gl_pathc ? GLOB_APPEND : 0, NULL, &files);
	}
	for (size_t i = 0; i < files.gl_pathc; i++)
		feed(files.gl_pathv[i]);
	printf("%zu inputs\n", files.gl_pathc);
	globfree(&files);
	return files.gl_pathc ? 0 : 2;
}
