/* SPDX-License-Identifier: Apache-2.0 */
/* The sets of free pieces of bestfit.h. */
#include "bestfit.h"

static const struct frag_heap_index index = { frag_best_cut, frag_best_put };

void frag_best_init(struct frag_best *f, const struct frag_policy_env *env,
		    const struct frag_best_rules *rules)
{
	static const struct frag_best_rules plain;

	*f = (struct frag_best){ .rules = rules ? rules : &plain };
	frag_heap_init(&f->heap, env, &index, f);
	frag_bset_nodes_init(&f->nodes);
}

int frag_best_create(const struct frag_policy_env *env, size_t bytes,
		     const struct frag_best_rules *rules, const char *what, void **out,
		     struct frag_err *err)
{
	*out = frag_host_calloc(1, bytes);
	FRAG_CHECK_ALLOC(*out, what, err);
	frag_best_init(*out, env, rules);
	return 0;
}

void frag_best_release(struct frag_best *f)
{
	frag_heap_release(&f->heap);
	frag_slab_release(&f->nodes);
	frag_host_free(f->sets);
}

int frag_best_reserve(struct frag_best *f, uint32_t set, size_t more)
{
	if (FRAG_UNLIKELY(set >= f->sets_count) &&
	    frag_bset_by_stream(&f->sets, &f->sets_count, set, &f->nodes))
		return FRAG_ENOMEM;
	return frag_bset_nodes_reserve(&f->nodes, f->heap.pieces_count + more)
		       ?: frag_heap_reserve(&f->heap, more);
}

static struct frag_bset *set_of(const struct frag_best *f, const struct frag_piece *p)
{
	return &f->sets[f->rules->set ? f->rules->set(f, p) : 0];
}

/* Second part of the key: the free with the highest number comes first. */
static uint64_t rank(const struct frag_best *f, const struct frag_piece *p)
{
	return f->latest ? ~p->stamp : p->addr;
}

void frag_best_put(void *self, struct frag_piece *p)
{
	struct frag_best *f = self;

	if (f->latest)
		p->stamp = f->stamp++;
	p->list = frag_bset_insert(set_of(f, p), p->bytes, rank(f, p), p);
}

void frag_best_cut(void *self, struct frag_piece *p)
{
	frag_bset_erase_at(set_of(self, p), p->list);
}

struct frag_piece *frag_best_find(const void *self, uint64_t bytes)
{
	return frag_best_find_in(self, 0, bytes);
}

int frag_best_grow(struct frag_best *f, uint64_t bytes, uint32_t stream, struct frag_piece **out,
		   struct frag_err *err)
{
	int rc = frag_heap_grow(&f->heap, bytes, stream, out, err);

	if (!rc)
		frag_best_put(f, *out);
	return rc;
}

int frag_best_drop(struct frag_best *f, struct frag_piece *p, struct frag_err *err)
{
	int rc;

	frag_best_cut(f, p);
	rc = frag_heap_drop(&f->heap, p->seg, err);
	if (rc)
		frag_best_put(f, p);
	return rc;
}

void frag_best_take(struct frag_best *f, struct frag_piece *p, uint64_t bytes, uint8_t *cls)
{
	frag_best_cut(f, p);
	if (p->bytes == bytes)
		return;
	frag_best_put(f, frag_heap_split(&f->heap, p, bytes));
	if (*cls == FRAG_CLASS_HIT)
		*cls = FRAG_CLASS_SPLIT;
}

uint64_t frag_best_largest(const struct frag_best *f)
{
	uint64_t largest = 0;

	for (uint32_t i = 0; i < f->sets_count; i++)
		largest = FRAG_MAX(largest, frag_bset_largest(&f->sets[i]));
	return largest;
}

/* ---- hooks ------------------------------------------------------------------------------- */

void frag_best_op_destroy(void *self)
{
	frag_best_release(self);
	frag_host_free(self);
}

int frag_best_op_free(void *self, const struct frag_block *block, struct frag_err *err)
{
	struct frag_best *f = self;

	(void)err;
	frag_best_put(f, frag_heap_give_merged(&f->heap, frag_piece_of(block), frag_best_cut, f));
	return 0;
}

void frag_best_op_usage(void *self, struct frag_usage *out)
{
	const struct frag_best *f = self;

	frag_heap_usage(&f->heap, frag_best_largest(f), out);
}

static bool indexed(void *ctx, const struct frag_piece *p)
{
	const struct frag_best *f = ctx;
	const struct frag_piece *next = frag_piece_free_next(p);

	return !(next && (!f->rules->merges || f->rules->merges(p, next))) &&
	       frag_bset_has(set_of(f, p), p->bytes, rank(f, p), p);
}

int frag_best_op_check(void *self, struct frag_err *err)
{
	struct frag_best *f = self;
	size_t n = 0;

	for (uint32_t i = 0; i < f->sets_count; i++)
		n += frag_bset_count(&f->sets[i]);
	return frag_heap_check(&f->heap, n, indexed, f, err);
}
