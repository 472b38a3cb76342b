/* SPDX-License-Identifier: Apache-2.0 */
/* Which commands there are: make lists the files cmd_NAME.c in gen/cmd_list.inc. */
#include "cmd.h"

#include <string.h>

#include <frag/base.h>

#define FRAG_ENTRY(name) extern const struct frag_cmd frag_cmd_##name;
#include "cmd_list.inc"
#undef FRAG_ENTRY

static const struct frag_cmd *const commands[] = {
#define FRAG_ENTRY(name) &frag_cmd_##name,
#include "cmd_list.inc"
#undef FRAG_ENTRY
	NULL
};

const struct frag_cmd *const *frag_commands(void)
{
	return commands;
}

const struct frag_cmd *frag_commands_find(const char *name)
{
	for (size_t i = 0; commands[i]; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

int frag_commands_fail_unknown(const char *name, struct frag_err *err)
{
	const char *names[FRAG_ARRAY_LEN(commands)];
	size_t n = 0;

	for (; commands[n]; n++)
		names[n] = commands[n]->name;
	names[n] = NULL;
	return frag_fail_unknown(err, "unknown command", name, names, " (cufrag --help)");
}
