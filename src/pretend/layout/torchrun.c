/* SPDX-License-Identifier: Apache-2.0 */
/* Removes a launcher from a command, by the rules of its own parser; see axes.h. */
#include "axes.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <frag/base.h>

struct launcher {
	const char *program; /* its file; NULL = none */
	const char *word;    /* that follows it; NULL = none */
	const char *module;  /* python -m this; NULL = cannot be started so */
	/* options without a value, with a blank on both sides; others have one. NULL: it reads its options itself (cufrag_launch.py) */
	const char *alone;
	const char *rank; /* option by which it passes the rank; NULL = none */
};

#define MODULE " -m --module --no-python --no_python "
#define DEEPSPEED \
	MODULE "--no_local_rank --no_ssh --no_ssh_check --force_multi --save_pid " \
	       "--elastic_training --bind_cores_to_rank "

static const struct launcher launchers[] = {
	{ "torchrun", NULL, "torch.distributed.run",
	  MODULE "--standalone --run-path --run_path --virtual-local-rank ", NULL },
	{ NULL, NULL, "torch.distributed.launch",
	  MODULE "--standalone --run-path --run_path --use-env --use_env ", "--local-rank" },
	{ "accelerate", "launch", "accelerate.commands.launch", NULL, NULL },
	{ "accelerate-launch", NULL, NULL, NULL, NULL },
	{ "deepspeed", NULL, "deepspeed.launcher.runner", DEEPSPEED, "--local_rank" },
};

/* Programs that start the launcher in another environment; its python is used then. */
static const char *const wrappers[] = { "uv",	 "poetry", "pixi", "pdm",     "rye",
					"hatch", "conda",  "env",  "numactl", "nice" };

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

/* The number of words that name the launcher; 0: another program. */
static size_t matches(const struct launcher *l, char *const *words)
{
	size_t n = 1;

	if (l->program && !strcmp(file_of(words[0]), l->program))
		return !l->word ? 1 : words[1] && !strcmp(words[1], l->word) ? 2 : 0;
	while (is_python(words[0]) && words[n] && words[n][0] == '-' && strcmp(words[n], "-m") != 0)
		n++;
	return l->module && is_python(words[0]) && words[n] && words[n + 1] &&
			       !strcmp(words[n + 1], l->module)
		       ? n + 2
		       : 0;
}

/* The launcher, at the front or behind a wrapper: its first word, number of words; or NULL. */
static const struct launcher *find(char *const *words, size_t *begin, size_t *taken)
{
	bool wrapped = false;

	for (size_t k = 0; words[0] && k < FRAG_ARRAY_LEN(wrappers); k++)
		wrapped |= !strcmp(file_of(words[0]), wrappers[k]);
	for (*begin = 0; words[*begin]; ++*begin) {
		for (size_t i = 0; i < FRAG_ARRAY_LEN(launchers); i++) {
			*taken = matches(&launchers[i], words + *begin);
			if (*taken)
				return &launchers[i];
		}
		if (!wrapped || is_python(words[*begin]))
			break;
	}
	return NULL;
}

static int add(char ***out, const char *word, struct frag_err *err)
{
	return frag_words_add(out, frag_host_strdup(word), err);
}

/* The folder of a program that the shell would find. False: none. */
static bool folder_of(const char *file, char *path, size_t cap)
{
	const char *next;

	for (const char *at = getenv("PATH"); at; at = next ? next + 1 : NULL) {
		int n = (int)FRAG_MIN(strcspn(at, ":"), 4000u);

		next = strchr(at, ':');
		snprintf(path, cap, "%.*s/%s", n, at, file);
		if (n && !access(path, X_OK)) {
			path[n + 1] = '\0';
			return true;
		}
	}
	return false;
}

/* Adds the interpreter: /env/bin/python for /env/bin/torchrun, python behind a wrapper. */
static int put_python(char ***out, char *const *words, bool wrapped, struct frag_err *err)
{
	char path[4200] = "", whole[4220];
	const char *file = file_of(words[0]);

	for (size_t i = 0; is_python(words[0]) && (!i || strcmp(words[i], "-m") != 0); i++)
		FRAG_TRY(add(out, words[i], err));
	if (is_python(words[0]))
		return 0;
	if (file != words[0])
		snprintf(path, sizeof(path), "%.*s", (int)FRAG_MIN(file - words[0], 4000),
			 words[0]);
	else if (wrapped || !folder_of(file, path, sizeof(path)))
		return add(out, wrapped ? "python" : "python3", err);
	snprintf(whole, sizeof(whole), "%spython", path);
	return add(out, access(whole, X_OK) && file == words[0] ? "python3" : whole, err);
}

/* Adds cufrag_launch.py, which parses the launcher's options or passes the rank as an option. */
static int put_rest(char ***out, const struct launcher *l, bool rank, struct frag_err *err)
{
	if (l->alone && !rank)
		return 0;
	return add(out, "-m", err) ?: add(out, "cufrag_launch", err)
				    ?: add(out, l->alone ? l->rank : "accelerate", err);
}

int frag_torchrun_strip(char *const *words, char ***out, struct frag_err *err)
{
	bool module = false, no_python = false, rank;
	size_t begin, at, taken;
	const struct launcher *l = find(words, &begin, &taken);

	*out = NULL;
	at = l ? begin + taken : 0;
	rank = l && l->rank;
	for (; l && l->alone && words[at] && words[at][0] == '-'; at++) {
		module |= !strcmp(words[at], "-m") || !strcmp(words[at], "--module");
		no_python |= !strcmp(words[at], "--no-python") || !strcmp(words[at], "--no_python");
		rank &= !is_in(words[at], " --no_local_rank --use-env --use_env ");
		if (!is_in(words[at], l->alone) && !strchr(words[at], '=') && words[at + 1])
			at++;
	}
	if (l && !words[at])
		return frag_fail(err, FRAG_EUSAGE, "'%.60s' has no program to start", words[begin]);
	for (size_t i = 0; l && i < begin; i++)
		FRAG_TRY(add(out, words[i], err));
	if (l && !no_python) {
		FRAG_TRY(put_python(out, words + begin, begin > 0, err));
		FRAG_TRY(put_rest(out, l, rank, err));
		if (module)
			FRAG_TRY(add(out, "-m", err));
	}
	for (; words[at]; at++)
		FRAG_TRY(add(out, words[at], err));
	return 0;
}
