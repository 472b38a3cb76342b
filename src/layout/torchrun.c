/* SPDX-License-Identifier: Apache-2.0 */
/* torchrun and others, read as their own parsers read them; see torchrun.h. */
#include "torchrun.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <frag/base.h>

struct launcher {
	const char *program; /* its file */
	const char *word;    /* that follows it; NULL = none */
	const char *module;  /* python -m this; NULL = cannot be started so */
	const char
		*alone; /* options without a value, with a blank on both sides; others have one */
};

#define MODULE " -m --module --no-python --no_python "

static const struct launcher launchers[] = {
	{ "torchrun", NULL, "torch.distributed.run", MODULE "--standalone --run-path --run_path " },
	{ "accelerate", "launch", NULL,
	  MODULE "--multi_gpu --multi-gpu --use_fsdp --use_deepspeed --use_megatron_lm --cpu --tpu "
		 "--debug --quiet -q " },
	{ "deepspeed", NULL, NULL, MODULE "--no_local_rank --no_ssh --force_multi " },
};

/* Is it a word of a list with a blank on both sides of each? */
static bool is_in(const char *word, const char *list)
{
	const char *at = strstr(list, word);

	return at && at[-1] == ' ' && at[strlen(word)] == ' ';
}

static const char *file_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_python(const char *word)
{
	return !strncmp(file_of(word), "python", 6);
}

/* Words that the launcher itself takes; 0: it is not this launcher. */
static size_t matches(const struct launcher *l, char *const *words)
{
	if (!strcmp(file_of(words[0]), l->program))
		return !l->word ? 1 : words[1] && !strcmp(words[1], l->word) ? 2 : 0;
	if (l->module && is_python(words[0]) && words[1] && !strcmp(words[1], "-m") && words[2] &&
	    !strcmp(words[2], l->module))
		return 3;
	return 0;
}

static int copy(char ***out, size_t at, const char *word, struct frag_err *err)
{
	(*out)[at] = frag_host_strdup(word);
	FRAG_CHECK_ALLOC((*out)[at], "command", err);
	return 0;
}

/* The interpreter beside the launcher: /env/bin/torchrun has /env/bin/python. */
static int put_python(char ***out, char *const *words, struct frag_err *err)
{
	char path[4096] = "python3";
	const char *file = file_of(words[0]);

	if (is_python(words[0]))
		snprintf(path, sizeof(path), "%s", words[0]);
	else if (file != words[0])
		snprintf(path, sizeof(path), "%.*spython", (int)FRAG_MIN(file - words[0], 4000),
			 words[0]);
	return copy(out, 0, path, err);
}

int frag_torchrun_strip(char *const *words, char ***out, struct frag_err *err)
{
	const struct launcher *l = NULL;
	bool module = false, no_python = false;
	size_t count = 0, at = 0, n = 0;

	while (words[count])
		count++;
	for (size_t i = 0; !at && count && i < FRAG_ARRAY_LEN(launchers); i++) {
		l = &launchers[i];
		at = matches(l, words);
	}
	for (; at && at < count && words[at][0] == '-'; at++) {
		module |= !strcmp(words[at], "-m") || !strcmp(words[at], "--module");
		no_python |= !strcmp(words[at], "--no-python") || !strcmp(words[at], "--no_python");
		if (!is_in(words[at], l->alone) && !strchr(words[at], '='))
			at++;
	}
	if (at && at >= count)
		return frag_fail(err, FRAG_EUSAGE, "'%.60s' has no program to start", words[0]);
	FRAG_TRY_CALLOC(*out, count + 3, "command", err);
	if (at && !no_python)
		FRAG_TRY(put_python(out, words, err));
	n += at && !no_python;
	if (at && module && !no_python)
		FRAG_TRY(copy(out, n++, "-m", err));
	for (; at < count; at++)
		FRAG_TRY(copy(out, n++, words[at], err));
	return 0;
}
