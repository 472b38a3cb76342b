/* SPDX-License-Identifier: Apache-2.0 */
/* `cufrag list`: what cmd_list.c, list_policies.c and list_print.c share. */
#ifndef FRAG_CLI_LIST_H
#define FRAG_CLI_LIST_H

#include "answer/table.h"
#include "cli/common.h"

struct frag_list_options {
	bool all; /* hidden ones too */
	bool markdown;
	const char *only; /* NULL = all */
};

/* An empty table with these columns; bit i of `right`: column i is flush right. */
void frag_list_heads(struct frag_table *t, size_t count, unsigned right, const char *const *names);
/* On standard output. Errors: FRAG_ENOMEM. */
int frag_list_print(const struct frag_table *list, unsigned indent, struct frag_err *err);
int frag_list_markdown(const struct frag_table *t, struct frag_err *err);

/* The policies on stdout: text or Markdown. */
int frag_list_policies(const struct frag_cli *cli, const struct frag_list_options *o,
		       struct frag_err *err);
/* An array of them; NULL if memory is short. */
json_t *frag_list_policies_json(const struct frag_list_options *o);

#endif
