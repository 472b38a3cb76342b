/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the bfc policy share: options, state, sets of free chunks, regions.
 * The rules are at the head of bfc.c.
 *
 * piece->tag: 0 no stream, else stream + 1; piece->stamp: the number of
 * synchronisations when the chunk was given to its stream. Set 0 is of the chunks that every stream
 * may take, the others are of one stream, by tag.
 */
#ifndef FRAG_BFC_REGIONS_H
#define FRAG_BFC_REGIONS_H

#include "bestfit.h"

#define FRAG_BFC_UNIT 256u
#define FRAG_BFC_NO_LIMIT (1ull << 62)

enum frag_bfc_variant { FRAG_BFC_XLA, FRAG_BFC_ORT };
enum frag_bfc_extend { FRAG_BFC_POW2, FRAG_BFC_EXACT };

struct frag_bfc_params {
	uint64_t variant, extend, max_internal, initial, max_extend;
	double fraction, fragmentation_fraction;
	bool growth, gc, retry, streams, cross_stream;
};

struct frag_bfc {
	struct frag_best best; /* first: its hooks are used as they are */
	const struct frag_bfc_params *params;
	bool ort;
	uint64_t max_internal;
	uint64_t limit; /* of the sum of all regions */
	uint64_t region_bytes;
	uint64_t step; /* next region, before it is cut to what is left */
	uint64_t syncs;
};

static inline uint64_t frag_bfc_round(uint64_t bytes)
{
	return (bytes + FRAG_BFC_UNIT - 1) & ~(uint64_t)(FRAG_BFC_UNIT - 1);
}

/* Host memory for anything that one request or free can do. 0 or FRAG_ENOMEM. */
static inline int frag_bfc_reserve(struct frag_bfc *s, uint32_t stream)
{
	return frag_best_reserve(&s->best, s->ort ? stream + 1 : 0, 2);
}

/* The chunk that serves a request, or NULL. *whole: it may not be split. pre: reserved. */
struct frag_piece *frag_bfc_find(struct frag_bfc *s, uint64_t bytes, uint32_t stream, bool *whole);
/* When no chunk fits. 0 and *p (in its set) and how, FRAG_OOM or an error. */
int frag_bfc_make_room(struct frag_bfc *s, uint64_t bytes, uint32_t stream, struct frag_piece **p,
		       uint8_t *cls, struct frag_err *err);
/* Gives every region without live chunks back, lowest first, except a kept one. */
int frag_bfc_give_back(struct frag_bfc *s, struct frag_err *err);

#endif
