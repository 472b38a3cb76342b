/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives a fuzz target without libFuzzer: feeds it every file named on the command line, and every
 * file of a folder named there, in order of name; options of libFuzzer are passed over. Linked
 * instead of libFuzzer's main in all variants but BUILD=fuzz, so that each build replays the
 * corpus.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long files_count;

static _Noreturn void give_up(const char *path)
{
	fprintf(stderr, "cannot read '%s': %s\n", path, strerror(errno));
	exit(2);
}

/* The input gets an allocation of its exact size: ASan then sees every overrun. */
static void feed_file(const char *path, size_t size)
{
	uint8_t *data = malloc(size ? size : 1);
	FILE *f = fopen(path, "rb");

	if (!data || !f || fread(data, 1, size, f) != size)
		give_up(path);
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	files_count++;
}

static void feed(const char *path)
{
	struct dirent **entries;
	struct stat st;
	char inner[4096];
	int n;

	if (stat(path, &st))
		give_up(path);
	if (!S_ISDIR(st.st_mode)) {
		feed_file(path, (size_t)st.st_size);
		return;
	}
	n = scandir(path, &entries, NULL, alphasort);
	if (n < 0)
		give_up(path);
	for (int i = 0; i < n; i++) {
		if (entries[i]->d_name[0] != '.') {
			snprintf(inner, sizeof(inner), "%s/%s", path, entries[i]->d_name);
			feed(inner);
		}
		free(entries[i]);
	}
	free(entries);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (argv[i][0] != '-')
			feed(argv[i]);
	if (!files_count) {
		fprintf(stderr, "%s: no input: name files or folders\n", argv[0]);
		return 2;
	}
	printf("%lu inputs\n", files_count);
	return 0;
}
