/* SPDX-License-Identifier: Apache-2.0 */
/* What a recorded trace is called. */
#include "launch.h"

#include <string.h>

int frag_launch_name_as_file(struct frag_trace *trace, const char *path, struct frag_err *err)
{
	const char *slash = strrchr(path, '/');
	char *name = frag_host_strdup(slash ? slash + 1 : path), *dot;

	FRAG_CHECK_ALLOC(name, "trace", err);
	dot = strrchr(name, '.');
	if (dot && dot != name)
		*dot = '\0';
	frag_host_free(trace->name);
	trace->name = name;
	return 0;
}

int frag_launch_name_as_program(struct frag_trace *trace, char **program, struct frag_err *err)
{
	const char *word = program[0], *slash;

	for (char **p = program; *p; p++) {
		size_t n = strlen(*p);

		if (n > 3 && !strcmp(*p + n - 3, ".py")) {
			word = *p;
			break;
		}
	}
	slash = strrchr(word, '/');
	frag_host_free(trace->name);
	trace->name = frag_host_strdup(slash ? slash + 1 : word);
	return trace->name ? 0 : frag_fail_nomem(err, "trace");
}
