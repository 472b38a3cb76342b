/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the program reads; see read_files.c. */
#ifndef FRAG_INSIDE_READ_FILES_H
#define FRAG_INSIDE_READ_FILES_H

/* Notes a descriptor opened for reading. Keeps errno. */
void frag_read_file(int fd);

#endif
