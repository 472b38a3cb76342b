/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "report_rig.h"

#include <frag/base.h>

#include <dirent.h>

/* Splits one CSV line in place by RFC 4180; returns the number of fields. */
size_t rig_split_csv(char *line, char **fields, size_t cap)
{
	size_t n = 0;

	for (char *p = line;; p++) {
		char *to = p;

		assert_true(n < cap);
		fields[n++] = to;
		if (*p == '"') {
			for (p++; !(p[0] == '"' && p[1] != '"'); p++) {
				assert_int_not_equal(*p, '\0');
				p += *p == '"';
				*to++ = *p;
			}
			p++;
		} else {
			p += strcspn(p, ",");
			to = p;
		}
		assert_true(*p == ',' || *p == '\0');
		if (!*p) {
			*to = '\0';
			return n;
		}
		*to = '\0';
	}
}

size_t rig_column(char **head, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(head[i], name))
			return i;
	}
	fail_msg("no column '%s'", name);
	return 0;
}

/* Checks that all rows are as wide as the head; returns the number of rows. */
size_t rig_check_rows(char *text, size_t columns)
{
	char *fields[64], *save;
	size_t rows = 0;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		assert_int_equal(rig_split_csv(line, fields, 64), columns);
		rows++;
	}
	return rows;
}

char *rig_first_line(char *text, char **rest)
{
	char *end = strchr(text, '\n');

	assert_non_null(end);
	*end = '\0';
	*rest = end + 1;
	return text;
}

size_t rig_count_files(const char *dir)
{
	DIR *d = opendir(dir);
	size_t n = 0;

	if (!d)
		return SIZE_MAX;
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}
