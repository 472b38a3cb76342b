/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings text of the PyTorch allocator: what PYTORCH_CUDA_ALLOC_CONF takes,
 * with the errors PyTorch raises. White space is ignored; tokens end at
 * ',' ':' '[' ']' (and at '=', so that "key=value" works too). The kind of a separator
 * between key and value is not checked, as in the source. Parsed integers
 * follow strtoull: "21.7" is 21, a leading minus wraps around.
 *
 * Source: pytorch/pytorch c10/core/AllocatorConfig.cpp, release 2.11.
 */
#include "pt.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct frag_opt pt_opts[] = {
	{ .type = FRAG_OPT_T_UINT,
	  .key = "max_split_size_mb",
	  .def = UINT64_MAX,
	  .offset = offsetof(struct pt_conf, max_split_mb),
	  .min = 11,
	  .max = UINT64_MAX,
	  .help = "MiB; larger blocks are never split (at least large_segment_size_mb)",
	  .tune = "20,32,64,128,256,512,1024" },
	{ .type = FRAG_OPT_T_UINT,
	  .key = "max_non_split_rounding_mb",
	  .def = UINT64_MAX,
	  .offset = offsetof(struct pt_conf, max_non_split_round_mb),
	  .min = 11,
	  .max = UINT64_MAX,
	  .help = "MiB; how much larger than the request an unsplit oversize block may be (default "
		  "large_segment_size_mb)",
	  .tune = "64,256,512,1024" },
	{ .type = FRAG_OPT_T_UINT,
	  .key = "large_segment_size_mb",
	  .def = 20,
	  .offset = offsetof(struct pt_conf, large_segment_mb),
	  .min = 11,
	  .max = 1u << 24,
	  .help = "MiB; segment for requests of 1 to 10 MiB, page of large expandable segments",
	  .tune = "12,20,32,64" },
	{ .type = FRAG_OPT_T_STRING,
	  .key = "roundup_power2_divisions",
	  .sdef = "",
	  .offset = offsetof(struct pt_conf, roundup_text),
	  .help = "divisions of a power of two to round to: 8, or a list [256:1,512:2,>:8]",
	  .tune = "1,2,4,8,16,[256:1,512:2,1024:4,>:8],[64:1,256:4,>:8],[64:8,256:4,>:1],"
		  "[16:1,64:4,>:16],[16:16,64:8,>:1]" },
	{ .type = FRAG_OPT_T_DOUBLE,
	  .key = "garbage_collection_threshold",
	  .fmax = 1,
	  .offset = offsetof(struct pt_conf, gc_threshold),
	  .help = "fraction of the limit above which old cached segments are released; 0 = off",
	  .tune = "0.6,0.8" },
	{ .type = FRAG_OPT_T_DOUBLE,
	  .key = "per_process_memory_fraction",
	  .fdef = 1,
	  .fmax = 1,
	  .offset = offsetof(struct pt_conf, memory_fraction),
	  .help = "limit as a fraction of the card (--limit goes first)" },
	{ .type = FRAG_OPT_T_BOOL,
	  .key = "expandable_segments",
	  .max = 1,
	  .offset = offsetof(struct pt_conf, expandable),
	  .help = "map pages into large reservations instead of cudaMalloc",
	  .tune = "True" },
	{ .type = FRAG_OPT_T_BOOL,
	  .key = "search_again",
	  .max = 1,
	  .offset = offsetof(struct pt_conf, search_again),
	  .help = "not PyTorch: search the free blocks again after a release (upstream issue "
		  "189504)" },
	FRAG_OPT_END
};

struct tokens {
	const char *at;
	char word[FRAG_OPT_STRING_MAX];
};

static bool is_mark(char c)
{
	return c == ',' || c == ':' || c == '[' || c == ']' || c == '=';
}

/* Next token (a word, or one of the marks as a word of its own); false at the end. */
static bool next_token(struct tokens *t)
{
	size_t n = 0;

	while (isspace((unsigned char)*t->at))
		t->at++;
	if (!*t->at)
		return false;
	if (is_mark(*t->at)) {
		t->word[n++] = *t->at++;
	} else {
		for (; *t->at && !is_mark(*t->at); t->at++)
			if (!isspace((unsigned char)*t->at) && n + 1 < sizeof(t->word))
				t->word[n++] = *t->at;
	}
	t->word[n] = 0;
	return true;
}

static int want_uint(const char *key, const char *word, uint64_t *out, struct frag_err *err)
{
	char *end;

	errno = 0;
	*out = strtoull(word, &end, 10);
	if (end == word || errno == ERANGE)
		return frag_fail(err, FRAG_EUSAGE, "option '%s' wants an integer, not '%s'", key,
				 word);
	return 0;
}

static int want_double(const char *key, const char *word, double *out, struct frag_err *err)
{
	char *end;

	*out = strtod(word, &end);
	if (end == word)
		return frag_fail(err, FRAG_EUSAGE, "option '%s' wants a number, not '%s'", key,
				 word);
	return 0;
}

static int want_bool(const char *key, const char *word, bool *out, struct frag_err *err)
{
	*out = !strcmp(word, "True");
	if (!*out && strcmp(word, "False") != 0)
		return frag_fail(err, FRAG_EUSAGE, "option '%s' wants True or False, not '%s'", key,
				 word);
	return 0;
}

/* ---- roundup_power2_divisions ---- */

static unsigned bucket_of(uint64_t mb)
{
	return FRAG_MIN(frag_log2(mb), PT_ROUNDUPS - 1u);
}

static int want_division(const char *word, bool list, uint32_t *out, struct frag_err *err)
{
	uint64_t d;

	FRAG_TRY(want_uint("roundup_power2_divisions", word, &d, err));
	if ((d && !frag_is_pow2(d)) || (!d && !list) || d > UINT32_MAX)
		return frag_fail(err, FRAG_EUSAGE,
				 "roundup_power2_divisions: '%s' is no power of two", word);
	*out = (uint32_t)d;
	return 0;
}

/* One item "M:d" or ">:d" of the list; `first`, `last`: what has been listed before. */
static int roundup_item(struct tokens *t, uint32_t *table, bool *first, unsigned *last,
			struct frag_err *err)
{
	bool rest = !strcmp(t->word, ">");
	uint64_t mb = 0;
	uint32_t d;

	if (!rest) {
		FRAG_TRY(want_uint("roundup_power2_divisions", t->word, &mb, err));
		if (!frag_is_pow2(mb))
			return frag_fail(err, FRAG_EUSAGE,
					 "roundup_power2_divisions: interval '%s' is no power of "
					 "two",
					 t->word);
	}
	if (!next_token(t) || !next_token(t))
		return frag_fail(err, FRAG_EUSAGE, "roundup_power2_divisions: the list ends early");
	FRAG_TRY(want_division(t->word, true, &d, err));
	if (rest) {
		for (unsigned i = *last + 1; i < PT_ROUNDUPS; i++)
			table[i] = d;
		return 0;
	}
	*last = bucket_of(mb);
	/* the first one listed also serves everything below it */
	for (unsigned i = *first ? 0 : *last; i <= *last; i++)
		table[i] = d;
	*first = false;
	return 0;
}

int pt_conf_roundup(const char *text, uint32_t *table, struct frag_err *err)
{
	struct tokens t = { .at = text };
	bool first = true;
	unsigned last = 0;
	uint32_t d;

	memset(table, 0, PT_ROUNDUPS * sizeof(*table));
	if (!next_token(&t))
		return 0;
	if (strcmp(t.word, "[") != 0) {
		FRAG_TRY(want_division(t.word, false, &d, err));
		for (unsigned i = 0; i < PT_ROUNDUPS; i++)
			table[i] = d;
		return 0;
	}
	while (next_token(&t) && strcmp(t.word, "]") != 0)
		if (strcmp(t.word, ",") != 0)
			FRAG_TRY(roundup_item(&t, table, &first, &last, err));
	return 0;
}

/* The value of roundup_power2_divisions as text: one word, or all up to the bracket. */
static int roundup_value(struct tokens *t, struct pt_conf *conf, struct frag_err *err)
{
	uint32_t table[PT_ROUNDUPS];
	const char *from = t->at;
	size_t n;

	if (!strcmp(t->word, "[")) {
		const char *close = strchr(from, ']');

		if (!close)
			return frag_fail(err, FRAG_EUSAGE,
					 "roundup_power2_divisions: ']' is missing");
		n = (size_t)(close - from) + 2;
		if (n >= sizeof(conf->roundup_text))
			return frag_fail(err, FRAG_EUSAGE,
					 "roundup_power2_divisions: list too long");
		snprintf(conf->roundup_text, sizeof(conf->roundup_text), "[%.*s]",
			 (int)(close - from), from);
		t->at = close + 1;
	} else {
		snprintf(conf->roundup_text, sizeof(conf->roundup_text), "%s", t->word);
	}
	return pt_conf_roundup(conf->roundup_text, table, err);
}

/* ---- keys ---- */

static int set_backend(const char *word, struct frag_err *err)
{
	if (!strcmp(word, "native"))
		return 0;
	if (!strcmp(word, "cudaMallocAsync"))
		return frag_fail(err, FRAG_EUSAGE,
				 "backend cudaMallocAsync is another allocator: use policy "
				 "'async'");
	return frag_fail(err, FRAG_EUSAGE,
			 "unknown allocator backend '%s': native or cudaMallocAsync", word);
}

static int set_number(struct pt_conf *c, const char *key, const char *word, struct frag_err *err)
{
	uint64_t n;

	FRAG_TRY(want_uint(key, word, &n, err));
	n = FRAG_MIN(n, UINT64_MAX / FRAG_MIB);
	if (!strcmp(key, "max_split_size_mb"))
		c->max_split_mb = n;
	else if (!strcmp(key, "max_non_split_rounding_mb"))
		c->max_non_split_round_mb = n;
	else if (!strcmp(key, "large_segment_size_mb"))
		c->large_segment_mb = n;
	/* pinned memory is the host's: checked, without effect here */
	else if (!strcmp(key, "pinned_num_register_threads") && (!frag_is_pow2(n) || n > 128))
		return frag_fail(err, FRAG_EUSAGE,
				 "pinned_num_register_threads wants a power of two up to 128");
	else if (!strcmp(key, "pinned_reserve_segment_size_mb") && !n)
		return frag_fail(err, FRAG_EUSAGE,
				 "pinned_reserve_segment_size_mb wants a positive number");
	return 0;
}

static int set_fraction(struct pt_conf *c, const char *key, const char *word, struct frag_err *err)
{
	double x;

	FRAG_TRY(want_double(key, word, &x, err));
	if (!strcmp(key, "garbage_collection_threshold")) {
		if (!(x > 0 && x < 1))
			return frag_fail(err, FRAG_EUSAGE,
					 "garbage_collection_threshold %s is not in (0.0, 1.0)",
					 word);
		c->gc_threshold = x;
	} else {
		if (!(x >= 0 && x <= 1))
			return frag_fail(err, FRAG_EUSAGE,
					 "per_process_memory_fraction %s is not in [0.0, 1.0]",
					 word);
		c->memory_fraction = x;
	}
	return 0;
}

static int set_flag(struct pt_conf *c, const char *key, const char *word, struct frag_err *err)
{
	bool on;

	FRAG_TRY(want_bool(key, word, &on, err));
	if (!strcmp(key, "expandable_segments"))
		c->expandable = on;
	else if (!strcmp(key, "search_again"))
		c->search_again = on;
	return 0;
}

enum key_kind { KEY_NUMBER, KEY_FRACTION, KEY_FLAG, KEY_BACKEND, KEY_ROUNDUP, KEY_COUNT };

static const char *const numbers[] = {
	"max_split_size_mb",	       "max_non_split_rounding_mb",	 "large_segment_size_mb",
	"pinned_num_register_threads", "pinned_reserve_segment_size_mb", NULL
};
static const char *const fractions[] = { "garbage_collection_threshold",
					 "per_process_memory_fraction", NULL };
static const char *const flags[] = { "expandable_segments",
				     "search_again",
				     "release_lock_on_cudamalloc",
				     "release_lock_on_hipmalloc",
				     "graph_capture_record_stream_reuse",
				     "pinned_use_cuda_host_register",
				     "pinned_use_hip_host_register",
				     "pinned_use_background_threads",
				     NULL };
static const char *const backends[] = { "backend", NULL };
static const char *const roundups[] = { "roundup_power2_divisions", NULL };
static const char *const *const keys[KEY_COUNT] = { numbers, fractions, flags, backends, roundups };

static int unknown_key(const char *key, struct frag_err *err)
{
	const char *near = NULL;

	for (unsigned k = 0; k < KEY_COUNT && !near; k++)
		near = frag_nearest(key, keys[k]);
	if (near)
		return frag_fail(err, FRAG_EUSAGE,
				 "unrecognized key '%s' in the allocator config; did you mean "
				 "'%s'?",
				 key, near);
	return frag_fail(err, FRAG_EUSAGE, "unrecognized key '%s' in the allocator config", key);
}

static int set_key(struct pt_conf *c, struct tokens *t, struct frag_err *err)
{
	char key[FRAG_OPT_STRING_MAX];
	unsigned kind;

	snprintf(key, sizeof(key), "%s", t->word);
	for (kind = 0; kind < KEY_COUNT; kind++) {
		const char *const *k = keys[kind];

		while (*k && strcmp(*k, key) != 0)
			k++;
		if (*k)
			break;
	}
	if (kind == KEY_COUNT)
		return unknown_key(key, err);
	if (!next_token(t) || !next_token(t))
		return frag_fail(err, FRAG_EUSAGE, "option '%s' has no value", key);
	switch (kind) {
	case KEY_NUMBER:
		return set_number(c, key, t->word, err);
	case KEY_FRACTION:
		return set_fraction(c, key, t->word, err);
	case KEY_FLAG:
		return set_flag(c, key, t->word, err);
	case KEY_BACKEND:
		return set_backend(t->word, err);
	default:
		return roundup_value(t, c, err);
	}
}

int pt_conf_validate(const void *params, struct frag_err *err)
{
	const struct pt_conf *c = params;
	uint32_t table[PT_ROUNDUPS];

	if (c->large_segment_mb <= 10)
		return frag_fail(err, FRAG_EUSAGE, "option large_segment_size_mb must be > 10 MB");
	if (c->max_split_mb < c->large_segment_mb)
		return frag_fail(err, FRAG_EUSAGE,
				 "option max_split_size_mb too small, must be >= %llu",
				 (unsigned long long)c->large_segment_mb);
	if (c->max_non_split_round_mb < c->large_segment_mb)
		return frag_fail(err, FRAG_EUSAGE,
				 "option max_non_split_rounding_mb too small, must be >= %llu",
				 (unsigned long long)c->large_segment_mb);
	return pt_conf_roundup(c->roundup_text, table, err);
}

int pt_conf_parse(const char *text, void *params, struct frag_err *err)
{
	struct pt_conf *c = params;
	struct tokens t = { .at = text };

	while (next_token(&t)) {
		if (is_mark(t.word[0]))
			continue;
		FRAG_TRY(set_key(c, &t, err));
	}
	return 0;
}
