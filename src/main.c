/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag: everything is in the commands, src/cli/cmd_NAME.c. */
#include "cli/cmd.h"

int main(int argc, char **argv)
{
	return frag_cli_main(argc, argv);
}
