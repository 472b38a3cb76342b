/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A .cft that grows while a program runs (version 4 in docs/trace-format.md): the preamble of a
 * .cft, then blocks of lines in the format `csv`. No byte is written twice, so the file can be read
 * at any moment; an incomplete last block is skipped. Shared by its writer (src/inject/live) and
 * its reader (src/trace/input).
 */
#ifndef FRAG_BASE_APPENDED_CFT_H
#define FRAG_BASE_APPENDED_CFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAG_APPENDED_PREAMBLE 16u
#define FRAG_APPENDED_TYPE 15u		  /* type of its blocks; other versions use 1 to 14 */
#define FRAG_APPENDED_TEXT_MAX (1u << 20) /* most bytes of a block's lines */

/* Head of each block, little-endian. */
struct frag_appended_block {
	uint8_t type, zero;
	uint16_t zero2;
	uint32_t lines, bytes;
	uint32_t zero3;
	uint64_t checksum; /* XXH3 of the previous 16 bytes and the lines, seed = number of the
			   * block */
};

/* The first bytes of the file. */
void frag_appended_preamble(unsigned char out[FRAG_APPENDED_PREAMBLE]);
/* Are these `n` bytes the beginning of such a file? */
bool frag_appended_is(const unsigned char *bytes, size_t n);
/* Writes the head of block `number` (from 0), which holds `bytes` bytes of text. pre: 0 < bytes <=
 * FRAG_APPENDED_TEXT_MAX */
struct frag_appended_block frag_appended_head(const char *text, size_t bytes, uint64_t number);
/* NULL, or what is wrong with the head. Checks the head before the text is read. */
const char *frag_appended_check(const struct frag_appended_block *b);

#endif
