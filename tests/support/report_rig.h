/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of reports share: CSV taken apart, hostile text. */
#ifndef FRAG_TEST_REPORT_RIG_H
#define FRAG_TEST_REPORT_RIG_H

#include <stddef.h>

#define EVENTS 3000
#define NASTY "<script>alert(\"x\")</script>&'"

/* Splits one CSV line in place by RFC 4180; returns the number of fields. */
size_t rig_split_csv(char *line, char **fields, size_t cap);
/* Index of a column; the test fails if there is none. */
size_t rig_column(char **head, size_t n, const char *name);
/* Checks that all rows are as wide as the head; returns the number of rows. */
size_t rig_check_rows(char *text, size_t columns);
/* The first line, ended; *rest: what follows it. */
char *rig_first_line(char *text, char **rest);

/* Files in a folder, SIZE_MAX if there is no such folder. */
size_t rig_count_files(const char *dir);

#endif
