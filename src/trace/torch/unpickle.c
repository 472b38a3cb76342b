/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and destroys pickles, and gives access to the values. */
#include "unpickle_internal.h"

#include <string.h>

/* ---- life ------------------------------------------------------------------------ */

static int alloc_parts(struct frag_pickle *p, const char *const *words, size_t words_count)
{
	uint32_t index;

	p->marks = frag_host_alloc(FRAG_PICKLE_MARKS_MAX * sizeof(*p->marks));
	FRAG_CHECK_ALLOC(p->marks, "pickle", p->err);
	p->mark_top = p->marks;
	p->marks_end = p->marks + FRAG_PICKLE_MARKS_MAX;
	FRAG_TRY(frag_pickle_grow_stack(p));
	FRAG_TRY(frag_strings_create(&p->strings, p->err));
	for (size_t i = 0; i < words_count; i++) {
		FRAG_TRY(frag_strings_intern(p->strings, words[i], strlen(words[i]), &index,
					     p->err));
		FRAG_ASSERT(index == i + 1);
	}
	return 0;
}

int frag_pickle_create(const char *const *words, size_t words_count,
		       const struct frag_record_ops *ops, void *ctx, struct frag_pickle **out,
		       struct frag_err *err)
{
	struct frag_pickle *p;
	int rc;

	FRAG_TRY_CALLOC(p, 1, "pickle", err);
	p->ops = ops;
	p->ctx = ctx;
	p->text = "";
	p->err = err;
	rc = alloc_parts(p, words, words_count);
	p->err = NULL;
	if (rc)
		frag_pickle_destroy(p);
	else
		*out = p;
	return rc;
}

static void drop_machine(struct frag_pickle *p)
{
	frag_template_release(p);
	FRAG_FREE(p->stack, p->memo, p->marks);
	p->stack = p->top = p->base = p->stack_end = NULL;
	p->memo = p->memo_top = p->memo_end = NULL;
	p->marks = p->mark_top = p->marks_end = NULL;
}

void frag_pickle_destroy(struct frag_pickle *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->lists_count; i++)
		frag_host_free(p->lists[i].items);
	for (size_t i = 0; i < p->nodes_count; i++)
		frag_host_free(p->nodes[i].pairs);
	FRAG_FREE(p->lists, p->nodes, p->dicts, p->bigs);
	frag_strings_destroy(p->strings);
	drop_machine(p);
	frag_host_free(p);
}

int frag_pickle_read(struct frag_pickle *p, struct frag_input *in, frag_pv *root,
		     struct frag_err *err)
{
	int rc;

	FRAG_ASSERT(!p->in && p->marks);
	p->in = in;
	p->err = err;
	rc = frag_pickle_run(p);
	if (!rc) {
		*root = p->top[-1];
		rc = frag_input_fill(in, 1, err);
		if (!rc && frag_input_left(in))
			rc = frag_fail_at(err, FRAG_EINPUT, frag_input_offset(in),
					  "'%s' has data after the end of its pickle at byte %llu: "
					  "a model, perhaps, but no snapshot",
					  frag_input_name(in),
					  (unsigned long long)frag_input_offset(in));
	}
	drop_machine(p);
	p->in = NULL;
	p->err = NULL;
	return rc;
}

struct frag_pickle_list *frag_pickle_tuple(struct frag_pickle *p, frag_pv v)
{
	return frag_pv_tag(v) == FRAG_PV_TUPLE ? &p->lists[frag_pv_index(v)] : NULL;
}

uint32_t frag_pickle_note(struct frag_pickle *p, frag_pv v, uint32_t note)
{
	uint32_t dict = frag_pv_tag(v) == FRAG_PV_DICT ? p->dicts[frag_pv_index(v)] : 0;
	uint32_t before = 0;

	if (FRAG_DICT_KIND(dict) == FRAG_DICT_NODE) {
		before = p->nodes[FRAG_DICT_INDEX(dict)].note;
		p->nodes[FRAG_DICT_INDEX(dict)].note = note;
	}
	return before;
}

uint32_t frag_pickle_record(const struct frag_pickle *p, frag_pv v)
{
	uint32_t dict;

	if (frag_pv_tag(v) != FRAG_PV_DICT)
		return UINT32_MAX;
	dict = p->dicts[frag_pv_index(v)];
	return FRAG_DICT_KIND(dict) == FRAG_DICT_RECORD ? FRAG_DICT_INDEX(dict) : UINT32_MAX;
}

frag_pv frag_node_get(const struct frag_pickle_node *node, uint32_t key)
{
	for (size_t i = node->count; i-- > 0;)
		if (node->pairs[2 * i] == frag_pv_of(FRAG_PV_STR, key))
			return node->pairs[2 * i + 1];
	return FRAG_PV_HOLE;
}

bool frag_pickle_i64(const struct frag_pickle *p, frag_pv v, int64_t *out)
{
	const struct frag_big *b;

	if (frag_pv_tag(v) == FRAG_PV_INT) {
		*out = (int64_t)v >> 3;
		return true;
	}
	if (v == FRAG_PV_TRUE || v == FRAG_PV_FALSE) {
		*out = v == FRAG_PV_TRUE;
		return true;
	}
	if (frag_pv_tag(v) != FRAG_PV_BIG)
		return false;
	b = &p->bigs[frag_pv_index(v)];
	if (b->kind >= FRAG_BIG_HUGE || (b->kind == FRAG_BIG_POSITIVE && b->value > INT64_MAX))
		return false;
	*out = (int64_t)b->value;
	return true;
}

bool frag_pickle_u64(const struct frag_pickle *p, frag_pv v, uint64_t *out)
{
	int64_t i;

	if (frag_pv_tag(v) == FRAG_PV_BIG && p->bigs[frag_pv_index(v)].kind == FRAG_BIG_POSITIVE) {
		*out = p->bigs[frag_pv_index(v)].value;
		return true;
	}
	if (!frag_pickle_i64(p, v, &i) || i < 0)
		return false;
	*out = (uint64_t)i;
	return true;
}

bool frag_pickle_f64(const struct frag_pickle *p, frag_pv v, double *out)
{
	int64_t i;

	if (frag_pv_tag(v) == FRAG_PV_BIG && p->bigs[frag_pv_index(v)].kind == FRAG_BIG_FLOAT) {
		memcpy(out, &p->bigs[frag_pv_index(v)].value, sizeof(*out));
		return true;
	}
	if (!frag_pickle_i64(p, v, &i))
		return false;
	*out = (double)i;
	return true;
}

const char *frag_pickle_text(const struct frag_pickle *p, frag_pv v, size_t *len)
{
	if (frag_pv_tag(v) != FRAG_PV_STR)
		return NULL;
	if (len)
		*len = frag_strings_len(p->strings, frag_pv_index(v));
	return frag_strings_get(p->strings, frag_pv_index(v));
}
