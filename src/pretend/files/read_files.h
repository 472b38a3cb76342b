/* SPDX-License-Identifier: Apache-2.0 */
/* Which files the program reads; see read_files.c. */
#ifndef FRAG_INSIDE_READ_FILES_H
#define FRAG_INSIDE_READ_FILES_H

/* This descriptor was opened for reading. Leaves errno as it is. */
void frag_read_file(int fd);

#endif
