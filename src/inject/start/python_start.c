/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcufrag_start.so, preloaded under `cufrag record --no-gpu` and `cufrag run`. Python finds
 * cufrag's sitecustomize.py by PYTHONPATH, which a script of the user may replace, and which -E and
 * -I switch off. So, before main begins in a Python,
 *
 *	- cufrag's folder goes in front of PYTHONPATH where it is missing;
 *	- -E and -I become what they mean but for that folder: no other variable of Python's and, with -I, neither
 *	  the user's packages nor (from 3.11 on) the folder of the script.
 *
 * Other programs are left alone. -S, which also takes the installed packages away, stays as it is.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol_list.inc"

static bool is_python(void)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *slash;

	if (n <= 0)
		return false;
	path[n] = '\0';
	slash = strrchr(path, '/');
	return slash && !strncmp(slash + 1, "python", 6);
}

/* Letters of one word of options, -E and -I replaced; -R does nothing without Python's variables.
 * *more: the next word belongs to this one. Returns false at the last word of options. */
static bool take_letters(char *word, bool *without, bool *isolated, bool *more)
{
	for (; *word; word++) {
		if (*word == 'c' || *word == 'm')
			return false;
		if (*word == 'W' || *word == 'X') {
			*more = !word[1];
			return true;
		}
		*isolated |= *word == 'I';
		*without |= *word == 'I' || *word == 'E';
		*word = *word == 'I' ? 's' : *word == 'E' ? 'R' : *word;
	}
	return true;
}

static void take_options(char **argv, bool *without, bool *isolated)
{
	for (size_t i = 1; argv[i] && argv[i][0] == '-' && argv[i][1]; i++) {
		bool more = !strcmp(argv[i], "--check-hash-based-pycs");

		if (argv[i][1] == '-' && !more)
			return;
		if (!more && !take_letters(argv[i] + 1, without, isolated, &more))
			return;
		if (more && !argv[++i])
			return;
	}
}

/* Python's variables are called CUFRAG_KEPT_* until sitecustomize.py gives the names back. */
static void hide_variables(void)
{
	char kept[256];

	for (char **at = environ; *at;) {
		size_t n = strcspn(*at, "=");

		if (!strncmp(*at, "PYTHON", 6) && n < 128) {
			snprintf(kept, sizeof(kept), "CUFRAG_KEPT_%.*s", (int)n, *at);
			setenv(kept, getenv(kept + strlen("CUFRAG_KEPT_")), 1);
			unsetenv(kept + strlen("CUFRAG_KEPT_"));
			at = environ;
		} else {
			at++;
		}
	}
	setenv(CUFRAG_KEPT, "1", 1);
}

static bool is_among(const char *list, const char *folder)
{
	for (size_t n; list; list = list[n] ? list + n + 1 : NULL) {
		n = strcspn(list, ":");
		if (n == strlen(folder) && !strncmp(list, folder, n))
			return true;
	}
	return false;
}

static void __attribute__((constructor)) start(int argc, char **argv, char **envp)
{
	const char *home = getenv(CUFRAG_PRETEND_HOME), *others;
	bool without = false, isolated = false;
	char *path;

	(void)envp;
	if (!home || argc < 1 || !is_python())
		return;
	take_options(argv, &without, &isolated);
	if (without)
		hide_variables();
	if (isolated)
		setenv("PYTHONSAFEPATH", "1", 1);
	others = getenv("PYTHONPATH");
	if (is_among(others, home) ||
	    asprintf(&path, "%s%s%s", home, others && *others ? ":" : "", others ? others : "") < 0)
		return;
	setenv("PYTHONPATH", path, 1);
	free(path);
}
