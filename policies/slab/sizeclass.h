/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Size classes of the slab policy, and the slots of one slab.
 *
 * A slab is a live piece of the heap (one page), cut into slots of its class. Its record
 * holds a bit per free slot, a summary bit per word of them, and a bit per slot that is let
 * go but not completed. A class has a current slab and a set of the others with free slots;
 * the current one has the lowest address of those with free slots, or none are left in it.
 *
 * Ownership: records belong to their class; frag_sc_end gives one back.
 */
#ifndef FRAG_SLAB_SIZECLASS_H
#define FRAG_SLAB_SIZECLASS_H

#include "bset.h"
#include "lib/bits.h"
#include "segheap.h"

#define FRAG_SC_SLOTS_MAX 4096u /* per slab: one summary word over 64 words of bits */

struct frag_sc_class;

struct frag_sc_slab {
	struct frag_piece *piece;
	struct frag_sc_class *class;
	uint64_t summary; /* bit w: word w of the free bits is not 0 */
	uint32_t free_count;
	uint32_t waiting_count;
	uint64_t bits[]; /* [2 * class->words]: free, then waiting, a bit per slot each */
};

struct frag_sc_class {
	uint64_t bytes;
	uint32_t slots, words;		      /* per slab */
	struct frag_sc_slab *current, *spare; /* spare: a record to use again */
	struct frag_bset partial;	      /* (0, address): not current, with free slots */
};

/* Number of the smallest class that holds n units. pre: n > 0. */
static inline uint32_t frag_sc_index(uint64_t n)
{
	unsigned b;

	if (n <= 4)
		return (uint32_t)n - 1;
	b = frag_log2(n - 1);
	/* fifths to eighths of 2^(b-2) */
	return 4 * (b - 2) + (uint32_t)((n - 1) >> (b - 2));
}

/* Units of class i: 1, 2, 3, 4, then four per doubling. */
static inline uint64_t frag_sc_units(uint32_t i)
{
	return i < 4 ? i + 1 : (uint64_t)(i % 4 + 5) << (i / 4 - 1);
}

/* pre: bytes <= page <= FRAG_SC_SLOTS_MAX * bytes. */
void frag_sc_class_init(struct frag_sc_class *c, uint64_t bytes, uint64_t page,
			struct frag_slab *nodes);

/* A record for a slab, kept in c->spare until frag_sc_begin; NULL: host memory is short. */
struct frag_sc_slab *frag_sc_prepare(struct frag_sc_class *c);
/* The prepared record becomes the slab in this live piece, all slots free. */
struct frag_sc_slab *frag_sc_begin(struct frag_sc_class *c, struct frag_piece *piece);
/* The end of a slab without used slots; its piece is the caller's. pre: it is in no set. */
void frag_sc_end(struct frag_sc_slab *l);

/* A slab of the class with free slots becomes the current one; NULL: there is none. */
struct frag_sc_slab *frag_sc_next(struct frag_sc_class *c);
/* A slot became free. True: the last used one, and the slab is current or left the set. */
bool frag_sc_put_slot(struct frag_sc_slab *l, uint32_t slot);

/* Takes the lowest free slot. pre: there is one. */
static inline uint32_t frag_sc_take_slot(struct frag_sc_slab *l)
{
	uint32_t slot = frag_bits_first(l->bits, l->summary);

	frag_bits_drop(l->bits, &l->summary, slot);
	l->free_count--;
	return slot;
}

static inline uint32_t frag_sc_slot_at(const struct frag_sc_slab *l, frag_addr_t addr)
{
	return (uint32_t)(addr - l->piece->addr) / (uint32_t)l->class->bytes;
}

/* A used slot is let go of, or not waited for any more. False: it was so before. */
bool frag_sc_wait_slot(struct frag_sc_slab *l, uint32_t slot);
bool frag_sc_unwait_slot(struct frag_sc_slab *l, uint32_t slot);

/* Used slots one by one, runs of free ones (and the unused end of the page) as one block each. */
void frag_sc_visit(const struct frag_sc_slab *l, const struct frag_visitor *v);
/* Are its free slots counted, and is it where it belongs? *in_set: adds 1 if in its class's set. */
bool frag_sc_is_sound(const struct frag_sc_slab *l, size_t *in_set);

#endif
