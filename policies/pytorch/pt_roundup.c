/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roundup_power2_divisions: one number, or a list [M:d,M:d,>:d] of divisions by power of two.
 *
 * Source: pytorch/pytorch c10/cuda/CUDAAllocatorConfig.cpp up to release 2.10,
 * c10/core/AllocatorConfig.cpp from 2.11.
 */
#include <string.h>

#include "pt.h"
#include "pt_words.h"

static unsigned bucket_of(uint64_t mb)
{
	return FRAG_MIN(frag_log2(mb), PT_ROUNDUPS - 1u);
}

static int want_division(const char *word, bool list, uint32_t *out, struct frag_err *err)
{
	uint64_t d;

	FRAG_TRY(pt_want_uint("roundup_power2_divisions", word, &d, err));
	if ((d && !frag_is_pow2(d)) || (!d && !list) || d > UINT32_MAX)
		return FRAG_USAGE(err, "roundup_power2_divisions: '%s' is not a power of two",
				  word);
	*out = (uint32_t)d;
	return 0;
}

/* What is known of a list while it is read. */
struct reading {
	uint32_t *table;
	bool first;	 /* nothing has been listed yet */
	bool overwrites; /* up to 2.10: '>' also overwrites what was listed last */
	unsigned last;	 /* place of the last interval */
};

/* One item "M:d" or ">:d" of the list. */
static int roundup_item(struct pt_words *t, struct reading *r, struct frag_err *err)
{
	bool rest = !strcmp(t->word, ">");
	uint64_t mb = 0;
	uint32_t d = 0;

	if (!rest) {
		FRAG_TRY(pt_want_uint("roundup_power2_divisions", t->word, &mb, err));
		if (!frag_is_pow2(mb))
			return FRAG_USAGE(err,
					  "roundup_power2_divisions: interval '%s' is not a power "
					  "of two",
					  t->word);
	}
	if (!pt_next_word(t) || !pt_next_word(t))
		return FRAG_USAGE(err, "roundup_power2_divisions: the list ends early");
	FRAG_TRY(want_division(t->word, true, &d, err));
	if (rest) {
		for (unsigned i = r->last + !r->overwrites; i < PT_ROUNDUPS; i++)
			r->table[i] = d;
		return 0;
	}
	r->last = bucket_of(mb);
	/* the first one listed also serves everything below it */
	for (unsigned i = r->first ? 0 : r->last; i <= r->last; i++)
		r->table[i] = d;
	r->first = false;
	return 0;
}

static int want_end(struct pt_words *t, struct frag_err *err)
{
	return pt_next_word(t)
		       ? FRAG_USAGE(err,
				    "roundup_power2_divisions: unexpected '%s' after the value",
				    t->word)
		       : 0;
}

int pt_conf_roundup(const char *text, unsigned release, uint32_t *table, struct frag_err *err)
{
	struct pt_words t = { .at = text };
	struct reading r = { table, true, release < FRAG_TORCH_SINCE_REST_KEEPS_LAST, 0 };
	uint32_t d = 0;

	memset(table, 0, PT_ROUNDUPS * sizeof(*table));
	if (!pt_next_word(&t))
		return 0;
	if (strcmp(t.word, "[") != 0) {
		if (text[strcspn(text, " \t\n\v\f\r")]) /* the text of all settings would lose it */
			return FRAG_USAGE(err, "roundup_power2_divisions: white space in '%s'",
					  text);
		FRAG_TRY(want_division(t.word, false, &d, err));
		for (unsigned i = 0; i < PT_ROUNDUPS; i++)
			table[i] = d;
		return want_end(&t, err);
	}
	while (pt_next_word(&t) && strcmp(t.word, "]") != 0)
		if (strcmp(t.word, ",") != 0)
			FRAG_TRY(roundup_item(&t, &r, err));
	return want_end(&t, err);
}
