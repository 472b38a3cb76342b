/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launchers of ranks in front of a command. cufrag starts the ranks itself, one for each role, so it leaves the launcher out; what
 * launchers give their processes besides the rank comes from cufrag_launch.py (src/pretend/python).
 */
#ifndef FRAG_LAYOUT_TORCHRUN_H
#define FRAG_LAYOUT_TORCHRUN_H

#include <frag/error.h>

/*
 * What each rank of this command runs, in new memory (frag_words_release): for torchrun, accelerate launch, deepspeed and their modules the
 * program with its interpreter; else the command. Errors: FRAG_EUSAGE, if the launcher has nothing to start.
 */
int frag_torchrun_strip(char *const *words, char ***out, struct frag_err *err);

#endif
