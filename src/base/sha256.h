/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4), as sha256sum prints it. */
#ifndef FRAG_BASE_SHA256_H
#define FRAG_BASE_SHA256_H

#include <stddef.h>

#include <frag/base.h>
#include <frag/error.h>

#define FRAG_SHA256_TEXT 65 /* 64 hex digits and the zero */

void frag_sha256(const void *bytes, size_t len, char text[FRAG_SHA256_TEXT]);
#define FRAG_SHA256_FILE_MAX (256 * FRAG_MIB)
/* Of a file. Errors: FRAG_EINPUT naming it, FRAG_ENOMEM. */
int frag_sha256_file(const char *path, char text[FRAG_SHA256_TEXT], struct frag_err *err);

#endif
