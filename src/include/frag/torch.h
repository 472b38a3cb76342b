/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Releases of PyTorch as numbers: 2.13 is FRAG_TORCH(2, 13). Patch releases ("2.13.1") are not
 * kept, because none has changed the allocator's rules.
 */
#ifndef FRAG_TORCH_H
#define FRAG_TORCH_H

#include <stddef.h>

#include <frag/error.h>

struct frag_trace_settings;

#define FRAG_TORCH(major, minor) ((major)*100u + (minor))
#define FRAG_TORCH_OLDEST FRAG_TORCH(2, 1)
/* The newest release whose rules are known: the one place where it stands (docs/new-pytorch.md). */
#define FRAG_TORCH_NEWEST_MINOR 15
#define FRAG_TORCH_NEWEST FRAG_TORCH(2, FRAG_TORCH_NEWEST_MINOR)
#define FRAG_TORCH_TEXT_(minor) #minor
#define FRAG_TORCH_TEXT(minor) FRAG_TORCH_TEXT_(minor)
#define FRAG_TORCH_RANGE "2.1 to 2." FRAG_TORCH_TEXT(FRAG_TORCH_NEWEST_MINOR)

/* "2.13", "2.13.0", "2.13.0+cu130". Errors: FRAG_EUSAGE, also for unknown releases. */
int frag_torch_parse(const char *text, unsigned *release, struct frag_err *err);
/* "2.13". buf of at least 16. Returns buf. */
char *frag_torch_format(unsigned release, char *buf, size_t cap);
/* Parses settings (PYTORCH_CUDA_ALLOC_CONF) into *out, except conf and the limit. release: the
 * rules to use, 0 = the newest. Errors: FRAG_EUSAGE. */
int frag_torch_settings(const char *conf, unsigned release, struct frag_trace_settings *out,
			struct frag_err *err);

/* The oldest release that knows every key here; FRAG_TORCH_OLDEST if it cannot be parsed. */
unsigned frag_torch_conf_since(const char *conf);

#endif
