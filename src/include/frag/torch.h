/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Releases of PyTorch as numbers: 2.13 is FRAG_TORCH(2, 13). What a patch release ("2.13.1")
 * changes has never touched the allocator's rules, and is not kept.
 */
#ifndef FRAG_TORCH_H
#define FRAG_TORCH_H

#include <stddef.h>

#include <frag/error.h>

struct frag_trace_settings;

#define FRAG_TORCH(major, minor) ((major)*100u + (minor))
#define FRAG_TORCH_OLDEST FRAG_TORCH(2, 1)
#define FRAG_TORCH_NEWEST FRAG_TORCH(2, 15)

/* "2.13", "2.13.0", "2.13.0+cu130". Errors: FRAG_EUSAGE for anything else, and for releases
 * whose rules are not known here. */
int frag_torch_parse(const char *text, unsigned *release, struct frag_err *err);
/* "2.13". buf of at least 16. Returns buf. */
char *frag_torch_format(unsigned release, char *buf, size_t cap);
/* Settings as text (PYTORCH_CUDA_ALLOC_CONF) into the fields of *out other than conf and the
 * limit. release: whose rules, 0 = the newest. Errors: FRAG_EUSAGE. */
int frag_torch_settings(const char *conf, unsigned release, struct frag_trace_settings *out,
			struct frag_err *err);

/* The release that brought the newest of the keys in settings as text; FRAG_TORCH_OLDEST: all know them, or
 * the text cannot be read. */
unsigned frag_torch_conf_since(const char *conf);

#endif
