/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings text of the PyTorch allocator: what PYTORCH_CUDA_ALLOC_CONF takes, with the
 * errors PyTorch raises, and which release knows which key. As in the source, any separator
 * may stand between key and value.
 *
 * Source: pytorch/pytorch c10/core/AllocatorConfig.cpp and c10/cuda/CUDAAllocatorConfig.cpp,
 * all releases of FRAG_TORCH_RANGE.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/trace.h>

#include "pt.h"
#include "pt_words.h"

const struct frag_opt pt_opts[] = {
	FRAG_OPT_STRING("version", struct pt_conf, version_text, "",
			"release of PyTorch, " FRAG_TORCH_RANGE " (default: the one that made the "
			"recording, else the newest)"),
	FRAG_OPT_UINT("max_split_size_mb", struct pt_conf, max_split_mb, UINT64_MAX, 11, UINT64_MAX,
		      "MiB; larger blocks are never split (at least large_segment_size_mb)",
		      .tune = "20,32,64,128,256,512,1024"),
	FRAG_OPT_UINT("max_non_split_rounding_mb", struct pt_conf, max_non_split_round_mb,
		      UINT64_MAX, 11, UINT64_MAX,
		      "MiB; how much larger than the request an unsplit oversize block may be "
		      "(default large_segment_size_mb)",
		      .tune = "64,256,512,1024"),
	FRAG_OPT_UINT("large_segment_size_mb", struct pt_conf, large_segment_mb, 20, 11, 1u << 24,
		      "MiB; segment for requests of 1 to 10 MiB, page of large expandable segments",
		      .tune = "12,20,32,64"),
	FRAG_OPT_STRING("roundup_power2_divisions", struct pt_conf, roundup_text, "",
			"divisions of a power of two to round to: 8, or a list [256:1,512:2,>:8]",
			.tune = "1,2,4,8,16,[256:1,512:2,1024:4,>:8],[64:1,256:4,>:8],"
				"[64:8,256:4,>:1],[16:1,64:4,>:16],[16:16,64:8,>:1]"),
	{ .type = FRAG_OPT_T_DOUBLE,
	  .key = "garbage_collection_threshold",
	  .fmax = 1,
	  .offset = offsetof(struct pt_conf, gc_threshold),
	  .help = "fraction of the limit above which old cached segments are released; 0 = off",
	  /* without a limit the threshold is a fraction of nothing: PyTorch ignores it */
	  .tune_limited = true,
	  .tune = "0.6,0.8" },
	FRAG_OPT_DOUBLE("per_process_memory_fraction", struct pt_conf, memory_fraction, 1, 0, 1,
			"limit as a fraction of the card (--limit overrides it)"),
	FRAG_OPT_BOOL("expandable_segments", struct pt_conf, expandable, 0,
		      "map pages into large reservations instead of cudaMalloc", .tune = "True"),
	FRAG_OPT_STRING("expandable_segments_reserve", struct pt_conf, reserve_text, "",
			"address space per expandable segment: a fraction of the card (0.5) or GiB "
			"(40G); default nine eighths of the card"),
	FRAG_OPT_BOOL("search_again", struct pt_conf, search_again, 0,
		      "not PyTorch: search the free blocks again after a release (upstream issue "
		      "189504)"),
	FRAG_OPT_END
};

/* ---- keys ---- */

enum key_kind {
	KEY_VERSION,
	KEY_MIB,      /* a size in MiB, into the settings */
	KEY_THREADS,  /* a power of two up to 128; no effect on device memory */
	KEY_POSITIVE, /* a number above 0; no effect on device memory */
	KEY_FRACTION,
	KEY_FLAG, /* offset 0: no effect on what is simulated */
	KEY_BACKEND,
	KEY_LIST,
	KEY_CLASSES, /* checked; streams get classes from C++ only */
};

struct pt_key {
	const char *name;
	enum key_kind kind;
	unsigned since; /* release, 0 = all, or none of PyTorch's */
	size_t offset;	/* into struct pt_conf */
};

static const struct pt_key keys[] = {
	{ "version", KEY_VERSION, 0, 0 },
	{ "backend", KEY_BACKEND, 0, 0 },
	{ "search_again", KEY_FLAG, 0, offsetof(struct pt_conf, search_again) },
	{ "max_split_size_mb", KEY_MIB, 0, offsetof(struct pt_conf, max_split_mb) },
	{ "garbage_collection_threshold", KEY_FRACTION, 0, offsetof(struct pt_conf, gc_threshold) },
	{ "roundup_power2_divisions", KEY_LIST, 0, offsetof(struct pt_conf, roundup_text) },
	{ "expandable_segments", KEY_FLAG, 0, offsetof(struct pt_conf, expandable) },
	{ "release_lock_on_cudamalloc", KEY_FLAG, FRAG_TORCH(2, 2), 0 },
	{ "release_lock_on_hipmalloc", KEY_FLAG, FRAG_TORCH(2, 2), 0 },
	{ "pinned_use_cuda_host_register", KEY_FLAG, FRAG_TORCH(2, 2), 0 },
	{ "pinned_use_hip_host_register", KEY_FLAG, FRAG_TORCH(2, 2), 0 },
	{ "pinned_num_register_threads", KEY_THREADS, FRAG_TORCH(2, 2), 0 },
	{ "max_non_split_rounding_mb", KEY_MIB, FRAG_TORCH(2, 6),
	  offsetof(struct pt_conf, max_non_split_round_mb) },
	{ "pinned_use_background_threads", KEY_FLAG, FRAG_TORCH(2, 6), 0 },
	{ "graph_capture_record_stream_reuse", KEY_FLAG, FRAG_TORCH(2, 9), 0 },
	{ "per_process_memory_fraction", KEY_FRACTION, FRAG_TORCH(2, 10),
	  offsetof(struct pt_conf, memory_fraction) },
	{ "pinned_reserve_segment_size_mb", KEY_POSITIVE, FRAG_TORCH(2, 10), 0 },
	{ "large_segment_size_mb", KEY_MIB, FRAG_TORCH(2, 11),
	  offsetof(struct pt_conf, large_segment_mb) },
	{ "throw_on_cudamalloc_oom", KEY_FLAG, FRAG_TORCH(2, 12), 0 },
	{ "pinned_free_catch_all", KEY_FLAG, FRAG_TORCH(2, 12), 0 },
	{ "pinned_max_cached_size_mb", KEY_POSITIVE, FRAG_TORCH(2, 13), 0 },
	{ "pinned_max_round_threshold_mb", KEY_POSITIVE, FRAG_TORCH(2, 13), 0 },
	{ "expandable_segments_reserve", KEY_LIST, FRAG_TORCH(2, 15),
	  offsetof(struct pt_conf, reserve_text) },
	{ "expandable_segments_reserve_by_class", KEY_CLASSES, FRAG_TORCH(2, 15), 0 },
};

static const struct pt_key *find_key(const char *name)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(keys); i++)
		if (!strcmp(keys[i].name, name))
			return &keys[i];
	return NULL;
}

static int unknown_key(const char *key, struct frag_err *err)
{
	const char *names[FRAG_ARRAY_LEN(keys) + 1], *near;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(keys); i++)
		names[i] = keys[i].name;
	names[FRAG_ARRAY_LEN(keys)] = NULL;
	near = frag_nearest(key, names);
	return FRAG_USAGE(err, "unrecognized key '%s' in the allocator config%s%s%s", key,
			  near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int set_backend(const char *word, struct frag_err *err)
{
	if (!strcmp(word, "native"))
		return 0;
	if (!strcmp(word, "cudaMallocAsync"))
		return FRAG_USAGE(err, "backend cudaMallocAsync is another allocator: use policy "
				       "'async'");
	return FRAG_USAGE(err, "unknown allocator backend '%s': native or cudaMallocAsync", word);
}

static int set_number(const struct pt_key *key, const char *word, uint64_t *out,
		      struct frag_err *err)
{
	uint64_t n;

	FRAG_TRY(pt_want_uint(key->name, word, &n, err));
	if (key->kind == KEY_THREADS && (!frag_is_pow2(n) || n > 128))
		return FRAG_USAGE(err, "%s wants a power of two up to 128", key->name);
	if (key->kind == KEY_POSITIVE && !n)
		return FRAG_USAGE(err, "%s wants a positive number", key->name);
	if (key->kind == KEY_MIB)
		*out = FRAG_MIN(n, UINT64_MAX / FRAG_MIB);
	return 0;
}

static int set_fraction(const struct pt_key *key, const char *word, double *out,
			struct frag_err *err)
{
	bool open = key->offset == offsetof(struct pt_conf, gc_threshold);
	double x;

	FRAG_TRY(pt_want_double(key->name, word, &x, err));
	if (open ? !(x > 0 && x < 1) : !(x >= 0 && x <= 1))
		return FRAG_USAGE(err, "%s %s is not in %s", key->name, word,
				  open ? "(0.0, 1.0)" : "[0.0, 1.0]");
	*out = x;
	return 0;
}

/* The value begins with the current word. */
static int set_value(struct pt_conf *c, const struct pt_key *key, struct pt_words *t,
		     struct frag_err *err)
{
	char list[FRAG_OPT_STRING_MAX];
	void *field = (char *)c + key->offset;
	bool flag;

	switch (key->kind) {
	case KEY_VERSION:
		snprintf(c->version_text, sizeof(c->version_text), "%s", t->word);
		return 0;
	case KEY_MIB:
	case KEY_THREADS:
	case KEY_POSITIVE:
		return set_number(key, t->word, field, err);
	case KEY_FRACTION:
		return set_fraction(key, t->word, field, err);
	case KEY_FLAG:
		FRAG_TRY(pt_want_bool(key->name, t->word, &flag, err));
		if (key->offset)
			*(bool *)field = flag;
		return 0;
	case KEY_BACKEND:
		return set_backend(t->word, err);
	case KEY_LIST:
		return pt_list_text(t, key->name, field, FRAG_OPT_STRING_MAX, err);
	default:
		return pt_list_text(t, key->name, list, sizeof(list), err);
	}
}

int pt_conf_parse(const char *text, void *params, struct frag_err *err)
{
	struct pt_words t = { .at = text };
	struct pt_conf *c = params;

	while (pt_next_word(&t)) {
		const struct pt_key *key;

		if (pt_is_mark(t.word[0]))
			continue;
		key = find_key(t.word);
		if (!key)
			return unknown_key(t.word, err);
		if (!pt_next_word(&t) || !pt_next_word(&t))
			return FRAG_USAGE(err, "option '%s' has no value", key->name);
		if (!c->newest || key->since > c->newest->since)
			c->newest = key;
		FRAG_TRY(set_value(c, key, &t, err));
	}
	return 0;
}

/* ---- what a release knows ---- */

/* The key among those given that came last. */
static const struct pt_key *newest_key(const struct pt_conf *c)
{
	const char *name = *c->reserve_text			     ? "expandable_segments_reserve"
			   : c->large_segment_mb != 20		     ? "large_segment_size_mb"
			   : c->memory_fraction != 1		     ? "per_process_memory_fraction"
			   : c->max_non_split_round_mb != UINT64_MAX ? "max_non_split_rounding_mb"
								     : "version";
	const struct pt_key *key = find_key(name);

	return c->newest && c->newest->since > key->since ? c->newest : key;
}

static int check_sizes(const struct pt_conf *c, unsigned release, struct frag_err *err)
{
	/* both have to be larger than the segment, later as large as it */
	uint64_t split = c->large_segment_mb + (release < FRAG_TORCH_SINCE_SPLIT_OF_SEGMENT);
	uint64_t round = c->large_segment_mb + (release < FRAG_TORCH_SINCE_ROUND_OF_SEGMENT);

	if (c->large_segment_mb <= 10)
		return FRAG_USAGE(err, "option large_segment_size_mb must be > 10 MB");
	if (c->max_split_mb < split)
		return FRAG_USAGE(err, "option max_split_size_mb too small, must be >= %llu",
				  (unsigned long long)split);
	if (c->max_non_split_round_mb < round)
		return FRAG_USAGE(err,
				  "option max_non_split_rounding_mb too small, must be >= %llu",
				  (unsigned long long)round);
	return 0;
}

/* "0.5": a fraction of the card; "40G": GiB. *bytes may be NULL. */
static int reserve_value(const char *text, uint64_t total, uint64_t *bytes, struct frag_err *err)
{
	char *end;
	double x = strtod(text, &end);
	bool gib = *end == 'G' && !end[1];

	if (end == text || (*end && !gib) || !(x > 0) || (!gib && x > 1))
		return FRAG_USAGE(err,
				  "expandable_segments_reserve '%s' is neither a fraction of the "
				  "card (0.5) nor GiB (40G)",
				  text);
	x *= gib ? (double)FRAG_GIB : (double)total;
	*bytes = x >= 0x1p63 ? INT64_MAX : (uint64_t)x;
	return 0;
}

int pt_conf_reserve(const struct pt_conf *c, uint64_t total, uint64_t *bytes, struct frag_err *err)
{
	uint64_t value = 0;

	*bytes = total + total / 8;
	if (!*c->reserve_text)
		return 0;
	FRAG_TRY(reserve_value(c->reserve_text, total, &value, err));
	*bytes = FRAG_MIN(*bytes, value);
	return 0;
}

int pt_conf_release(const struct pt_conf *c, unsigned recorded, unsigned *release,
		    struct frag_err *err)
{
	const struct pt_key *key = newest_key(c);
	char has[16], is[16];
	bool given = *c->version_text;

	*release = recorded ? recorded : FRAG_TORCH_NEWEST;
	if (given)
		FRAG_TRY(frag_torch_parse(c->version_text, release, err));
	if (key->since <= *release)
		return check_sizes(c, *release, err);
	frag_torch_format(key->since, has, sizeof(has));
	return FRAG_USAGE(err, "PyTorch %s%s does not know the key '%s', which came with %s%s%s",
			  frag_torch_format(*release, is, sizeof(is)),
			  given ? "" : ", which made the recording,", key->name, has,
			  given ? "" : "; what if: version=", given ? "" : has);
}

unsigned frag_torch_conf_since(const char *conf)
{
	struct pt_conf c = { 0 };

	if (pt_conf_parse(conf, &c, NULL) || !c.newest)
		return FRAG_TORCH_OLDEST;
	return FRAG_MAX(c.newest->since, FRAG_TORCH_OLDEST);
}

int frag_torch_settings(const char *conf, unsigned release, struct frag_trace_settings *out,
			struct frag_err *err)
{
	struct pt_conf c = { 0 };

	frag_opt_defaults(pt_opts, &c);
	FRAG_TRY(pt_conf_parse(conf, &c, err));
	FRAG_TRY(pt_conf_release(&c, release, &release, err));
	FRAG_TRY(pt_conf_roundup(c.roundup_text, release, out->roundup, err));
	out->present = true;
	out->max_split_bytes =
		c.max_split_mb == UINT64_MAX ? UINT64_MAX : c.max_split_mb * FRAG_MIB;
	out->gc_threshold = c.gc_threshold;
	out->expandable = c.expandable;
	return 0;
}

int pt_conf_validate(const void *params, struct frag_err *err)
{
	const struct pt_conf *c = params;
	uint32_t table[PT_ROUNDUPS];
	unsigned release;
	uint64_t bytes;

	FRAG_TRY(pt_conf_release(c, 0, &release, err));
	FRAG_TRY(pt_conf_reserve(c, FRAG_GIB, &bytes, err));
	return pt_conf_roundup(c->roundup_text, release, table, err);
}

/* Options that are not PyTorch's cannot be set there, nor can the installed release. */
size_t pt_conf_text(const void *params, char *buf, size_t cap)
{
	struct pt_conf conf = *(const struct pt_conf *)params;

	*conf.version_text = '\0';
	return conf.search_again ? SIZE_MAX : frag_opt_echo(pt_opts, &conf, ':', buf, cap);
}
