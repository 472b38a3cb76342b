/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launchers of ranks in front of a command. cufrag starts one rank for each role itself, so it removes the launcher;
 * cufrag_launch.py (src/pretend/python) sets the environment that a launcher would.
 */
#ifndef FRAG_LAYOUT_TORCHRUN_H
#define FRAG_LAYOUT_TORCHRUN_H

#include <frag/error.h>

/* The command of each rank, in new memory (frag_words_release): without torchrun, accelerate launch, deepspeed or their modules.
 * Errors: FRAG_EUSAGE, if the launcher has no program to start. */
int frag_torchrun_strip(char *const *words, char ***out, struct frag_err *err);

#endif
