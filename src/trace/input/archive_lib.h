/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libarchive, loaded with the first compressed file: it pulls in a dozen libraries, and loading
 * them takes twice as long as starting the rest of the program.
 */
#ifndef FRAG_TRACE_ARCHIVE_LIB_H
#define FRAG_TRACE_ARCHIVE_LIB_H

#include <archive.h>

#include "base/library.h"

/* What is used of it, by the names it has there. */
#define FRAG_ARCHIVE_FUNCTIONS(X) \
	X(archive_read_new) \
	X(archive_read_free) \
	X(archive_read_support_filter_gzip) \
	X(archive_read_support_filter_xz) \
	X(archive_read_support_filter_zstd) \
	X(archive_read_support_format_raw) \
	X(archive_read_support_format_empty) \
	X(archive_read_open) \
	X(archive_read_next_header) \
	X(archive_read_data) \
	X(archive_filter_code) \
	X(archive_error_string) \
	X(archive_set_error)

struct frag_archive_lib {
	FRAG_ARCHIVE_FUNCTIONS(FRAG_SYMBOL_MEMBER)
};

/* To the end of the process; NULL if it is not installed. Any thread. */
const struct frag_archive_lib *frag_archive_lib(void);
/* Why it returned NULL: the loader's message (no package, memory or files left). */
const char *frag_archive_lib_fault(void);

#endif
