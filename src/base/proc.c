/* SPDX-License-Identifier: Apache-2.0 */
/* Files of /proc; see proc.h. */
#include "proc.h"

#include <stdio.h>

size_t frag_proc_read(long pid, const char *name, char *text, size_t cap)
{
	char path[64];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/%s", pid, name);
	f = fopen(path, "re");
	if (f) {
		n = fread(text, 1, cap - 1, f);
		fclose(f);
	}
	text[n] = '\0';
	return n;
}
