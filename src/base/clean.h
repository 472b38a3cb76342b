/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that came from a file or from a command line, made fit for a terminal, a
 * page or a shell. What is no well-formed UTF-8, steers a terminal (C0, DEL, C1) or turns
 * the direction of the text that follows (bidirectional controls) becomes '?', byte by
 * byte: lengths and offsets stay.
 */
#ifndef FRAG_BASE_CLEAN_H
#define FRAG_BASE_CLEAN_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the character at s that may be shown, 0 if the byte there may not. pre: left > 0. */
size_t frag_clean_length(const char *s, size_t left);
/* Would frag_clean_text leave these bytes alone? */
bool frag_clean_is(const char *s, size_t len);
/* In place. Returns s. */
char *frag_clean_text(char *s, size_t len);

/*
 * One word of a POSIX shell's, in new memory: as it is where no sign of it means anything to a shell, in
 * single quotes otherwise. NULL when memory is short.
 */
char *frag_shell_word(const char *s);

#endif
