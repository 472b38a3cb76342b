/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the ordered set: bset.c changes, bset_nodes.c, bset_check.c. */
#ifndef FRAG_COMMON_BSET_INTERNAL_H
#define FRAG_COMMON_BSET_INTERNAL_H

#include "bset.h"

#define LEAF FRAG_BSET_LEAF
#define LEAF_MIN FRAG_BSET_LEAF_MIN
#define FAN FRAG_BSET_FAN
#define FAN_MIN FRAG_BSET_FAN_MIN

typedef struct frag_bset_node node;
typedef struct frag_bset_leaf leaf;
typedef struct frag_bset_inner inner;

/* Key of unused places: not below any key that may be looked for. */
static const struct frag_bset_key top_key = { UINT64_MAX, UINT64_MAX };

/* Empty nodes from the pool; pre: reserved. */
leaf *frag_bset_leaf_new(struct frag_bset *s);
inner *frag_bset_inner_new(struct frag_bset *s);
/* And back. */
void frag_bset_leaf_end(struct frag_bset *s, leaf *l);
void frag_bset_inner_end(struct frag_bset *s, inner *n);

#endif
