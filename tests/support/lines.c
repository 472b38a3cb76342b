/* SPDX-License-Identifier: Apache-2.0 */
#include "lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *line_words[LINE_WORDS + 1];

uint64_t line_number(unsigned i)
{
	return line_words[i] ? strtoull(line_words[i], NULL, 0) : 0;
}

void lines_run(void (*answer)(void))
{
	static char text[8192];

	while (fgets(text, sizeof(text), stdin)) {
		char *line = text;

		line[strcspn(line, "\n")] = '\0';
		memset(line_words, 0, sizeof(line_words));
		for (unsigned n = 0; line && n < LINE_WORDS; n++)
			line_words[n] = strsep(&line, "\t");
		answer();
		fflush(stdout);
	}
}
