/* SPDX-License-Identifier: Apache-2.0 */
/* --values: the names of ways to invent values, and files of lines "train.py:42 0.5 1", as cufrag_card.py reads them. */
#include "pretend_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define VALUES_MAX (16 * FRAG_MIB) /* each process of the program reads it */

static bool is_number(const char *text)
{
	char *end;

	(void)strtod(text, &end);
	return end != text && !*end && !strpbrk(text, "xX("); /* 0x1p3, nan(7): not in Python */
}

static bool is_way(const char *values)
{
	static const char *const ways[] = {
		"rules", "zeros", "random", "none", "worst", "computed"
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(ways); i++)
		if (!strcmp(values, ways[i]))
			return true;
	return false;
}

/* A place and its values; a comment begins with #. */
static int check_line(char *line, const char *path, unsigned number, struct frag_err *err)
{
	char *rest = NULL, *word;

	line[strcspn(line, "#")] = '\0';
	strtok_r(line, " \t\v\f\r\n", &rest);
	while ((word = strtok_r(NULL, " \t\v\f\r\n", &rest)))
		if (!is_number(word))
			return frag_fail(err, FRAG_EINPUT,
					 "'%.200s': line %u: '%.60s' is no number (a line is a "
					 "place and its values, as \"train.py:42 0.5\")",
					 path, number, word);
	return 0;
}

static int check_file(const char *path, struct frag_err *err)
{
	FRAG_AUTO_FREE char *line = NULL;
	FRAG_AUTO_FILE FILE *f = NULL;
	struct stat st;
	size_t cap = 0;
	ssize_t n;
	int rc = 0;

	if (stat(path, &st))
		return frag_fail(err, FRAG_EINPUT,
				 "--values '%.200s' is neither a file nor rules, computed, "
				 "skewed=F, worst, zeros, random or none",
				 path);
	if (!S_ISREG(st.st_mode) || st.st_size > (off_t)VALUES_MAX || !(f = fopen(path, "re")))
		return frag_fail(err, FRAG_EINPUT,
				 "--values '%.200s' is no file of at most %s that can be read",
				 path, FRAG_BYTES(VALUES_MAX));
	for (unsigned number = 1; !rc && (n = getline(&line, &cap, f)) >= 0; number++)
		rc = strlen(line) != (size_t)n
			     ? frag_fail(err, FRAG_EINPUT, "'%.200s': line %u is no text", path,
					 number)
			     : check_line(line, path, number, err);
	return rc;
}

int frag_pretend_check_values(const char *values, struct frag_err *err)
{
	static const char skewed[] = "skewed=";
	const char *factor = values + sizeof(skewed) - 1;

	if (is_way(values))
		return 0;
	if (strncmp(values, skewed, sizeof(skewed) - 1) != 0)
		return check_file(values, err);
	if (!is_number(factor) || !isfinite(strtod(factor, NULL)) || strtod(factor, NULL) <= 0)
		return frag_fail(err, FRAG_EUSAGE,
				 "--values skewed=F: '%.60s' is no number above 0", factor);
	return 0;
}
