/* SPDX-License-Identifier: Apache-2.0 */
/* See config.h: the files of a command, and copies of them in the user's cache. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <frag/base.h>
#include <frag/opt.h>
#include <xxhash.h>

#include "base/oldest.h"
#include "base/outfile.h"
#include "inject/launch/inject_files.h"

#define FILE_MAX_BYTES (1u << 20)
#define COPIES_BYTES (64u << 20)
#define COPIES_MAX 2048u     /* one for each recording that may be kept (kept.c) */
#define IN_USE_S (24 * 3600) /* copies younger than that may be in use */

/* Not blocked by a pipe without a writer. */
static int read_text(const char *path, struct stat *st, char **out, struct frag_err *err)
{
	FRAG_AUTO_FILE FILE *f = NULL;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	size_t n;

	if (fd < 0 || fstat(fd, st) || !(f = fdopen(fd, "r")))
		return frag_fail(err, FRAG_EINPUT, "cannot read '%.200s': %s", path,
				 strerror(errno));
	if (!S_ISREG(st->st_mode))
		return frag_fail(err, FRAG_EINPUT, "'%.200s' is not a regular file", path);
	if (st->st_size > FILE_MAX_BYTES)
		return frag_fail(err, FRAG_EINPUT,
				 "'%.200s' has %s, and a configuration at most %s", path,
				 FRAG_BYTES((uint64_t)st->st_size), FRAG_BYTES(FILE_MAX_BYTES));
	*out = frag_host_calloc(FILE_MAX_BYTES + 1, 1);
	FRAG_CHECK_ALLOC(*out, "file", err);
	n = fread(*out, 1, FILE_MAX_BYTES, f);
	return strlen(*out) == n
		       ? 0
		       : frag_fail(err, FRAG_EINPUT,
				   "'%.200s' has zero bytes, so it is not a text file", path);
}

/* ---- copies ---------------------------------------------------------------------------- */

/* The access time is the last use. The modification time is constant: a recording stays valid when
 * its copy is removed and written again. */
static void set_dates(const char *path)
{
	utimensat(AT_FDCWD, path, (struct timespec[2]){ { .tv_nsec = UTIME_NOW }, { 0 } }, 0);
}

/* The copy, in the user's cache; its path is new memory. */
static int write_copy(const char *text, bool yaml, char **path, struct frag_err *err)
{
	FRAG_AUTO(frag_inject_files_release) struct frag_inject_files files = { 0 };
	FRAG_AUTO_FREE char *folder = NULL;
	char name[40];

	snprintf(name, sizeof(name), "%016llx.%s",
		 (unsigned long long)XXH3_64bits(text, strlen(text)), yaml ? "yaml" : "json");
	FRAG_TRY(frag_inject_files_open(&files, err));
	folder = frag_path_join(files.root, "configurations");
	FRAG_CHECK_ALLOC(folder, "path", err);
	*path = frag_path_join(folder, name);
	FRAG_CHECK_ALLOC(*path, "path", err);
	FRAG_TRY(frag_make_dirs(folder, err));
	if (access(*path, R_OK)) {
		FRAG_TRY(frag_outfile_put(*path, text, strlen(text), err));
		frag_remove_oldest(folder, COPIES_MAX, COPIES_BYTES, IN_USE_S);
	}
	set_dates(*path);
	return 0;
}

/* ---- settings -------------------------------------------------------------------------- */

/* Finds the name of this file in "FILE" or "--option=FILE"; NULL: another file. */
static char *file_in(char *word, const struct stat *file)
{
	char *equals = *word == '-' ? strchr(word, '=') : NULL;
	struct stat st;

	word = equals ? equals + 1 : word;
	return !stat(word, &st) && st.st_dev == file->st_dev && st.st_ino == file->st_ino ? word
											  : NULL;
}

/* FILE:KEY=VALUE */
struct setting {
	char path[1000], key[304];
	const char *value;
};

static int parse(const char *text, struct setting *s, struct frag_err *err)
{
	const char *key = strchr(text, ':'), *equals = key ? strchr(key, '=') : NULL;
	bool yaml;

	if (!equals || key == text || key - text > 990 || equals - key > 300 || key[1] == '.' ||
	    key[1] == '=' || equals[-1] == '.' || memmem(key, (size_t)(equals - key), "..", 2))
		return frag_fail(err, FRAG_EUSAGE,
				 "invalid --set '%.80s': expected FILE:KEY=VALUE, as "
				 "ds.json:zero_optimization.stage={zero}",
				 text);
	snprintf(s->path, sizeof(s->path), "%.*s", (int)(key - text), text);
	snprintf(s->key, sizeof(s->key), "%.*s", (int)(equals - key - 1), key + 1);
	s->value = equals + 1;
	if (!frag_config_known(s->path, &yaml))
		return frag_fail(err, FRAG_EUSAGE, "--set: '%.200s' is neither .json nor .yaml",
				 s->path);
	return 0;
}

static int put_copy(const struct stat *file, const char *copy, char **words, bool *used,
		    struct frag_err *err)
{
	for (; *words; words++) {
		char *at = file_in(*words, file), *word;
		size_t size = strlen(*words) + strlen(copy) + 1;

		if (!at)
			continue;
		word = frag_host_alloc(size);
		FRAG_CHECK_ALLOC(word, "command", err);
		snprintf(word, size, "%.*s%s", (int)(at - *words), *words, copy);
		frag_host_free(*words);
		*words = word;
		*used = true;
	}
	return 0;
}

/* Applies all settings for the file of the first one. */
static int apply(char *const *settings, char **words, struct frag_err *err)
{
	FRAG_AUTO_FREE char *text = NULL, *copy = NULL;
	struct setting first, s;
	struct stat st;
	bool yaml, used = false;

	FRAG_TRY(parse(*settings, &first, err));
	frag_config_known(first.path, &yaml);
	FRAG_TRY(read_text(first.path, &st, &text, err));
	for (; *settings; settings++) {
		char *changed;

		FRAG_TRY(parse(*settings, &s, err));
		if (strcmp(s.path, first.path) != 0)
			continue;
		if (frag_config_set(text, yaml, s.key, s.value, &changed, err))
			return frag_err_prefix(err, "'%.200s'", s.path);
		frag_host_free(text);
		text = changed;
	}
	FRAG_TRY(write_copy(text, yaml, &copy, err));
	FRAG_TRY(put_copy(&st, copy, words, &used, err));
	return used ? 0
		    : frag_fail(err, FRAG_EUSAGE, "--set: the command has no file '%.200s'",
				first.path);
}

int frag_config_apply(char *const *settings, const struct frag_axes *axes, size_t layout,
		      char **words, struct frag_err *err)
{
	FRAG_AUTO(frag_words_release) char **all = NULL;

	if (!settings || !*settings)
		return 0;
	FRAG_TRY(frag_axes_words(axes, layout, settings, &all, err));
	for (char **at = all; *at; at++) {
		size_t file = strcspn(*at, ":") + 1;
		char **before = all;

		while (before < at && strncmp(*before, *at, file) != 0)
			before++;
		if (before == at)
			FRAG_TRY(apply(at, words, err));
	}
	return 0;
}
