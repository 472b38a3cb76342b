/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of the engines' releases as a table: another line of a new release is a row. */
#include "kvcache.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 4096u
#define GIB_MOST 1e6

enum what { TOKENS, BLOCKS, WEIGHTS, PROFILE, GRAPHS, CACHE, CACHE_HALF, LISTENS, TOO_SMALL };

/* A line with `line` (NULL: any), then `before`, then the number. Both call GiB GB, too. */
static const struct row {
	const char *line, *before;
	enum what what;
} rows[] = {
	{ NULL, "GPU KV cache size:", TOKENS },
	{ NULL, "max_total_num_tokens=", TOKENS },
	{ NULL, "# GPU blocks:", BLOCKS },
	{ NULL, "# cuda blocks:", BLOCKS },
	{ NULL, "# CUDA blocks:", BLOCKS },
	{ NULL, "Model loading took ", WEIGHTS },
	{ NULL, "Loading model weights took ", WEIGHTS },
	{ "Load weight end", "mem usage=", WEIGHTS },
	{ NULL, "activation peak memory takes ", PROFILE },
	{ "Graph capturing finished", ", took ", GRAPHS },
	{ "Capture cuda graph end", "mem usage=", GRAPHS },
	{ "CUDA graph end", "mem usage=", GRAPHS },
	{ NULL, "Available KV cache memory:", CACHE },
	{ NULL, "reserved for KV Cache is ", CACHE },
	{ "KV Cache is allocated", ", K size:", CACHE_HALF },
	{ "KV Cache is allocated", ", KV size:", CACHE },
	{ NULL, "Application startup complete", LISTENS },
	{ NULL, "Uvicorn running on", LISTENS },
	{ NULL, "No available memory for the cache blocks", TOO_SMALL },
	{ NULL, "larger than the maximum number of tokens that can be stored in KV cache",
	  TOO_SMALL },
	{ NULL, "larger than the available KV cache memory", TOO_SMALL },
	{ NULL, "is less than desired GPU memory utilization", TOO_SMALL },
	{ NULL, "Not enough memory. Please try to increase --mem-fraction-static", TOO_SMALL },
	{ NULL, "Loaded weights leave no GPU memory for the KV cache", TOO_SMALL },
};

/* "444,864 tokens", "444864"; 0: no number. */
static uint64_t count_at(const char *at)
{
	uint64_t n = 0;

	for (at += strspn(at, " \t"); isdigit((unsigned char)*at) || *at == ','; at++) {
		if (*at == ',' && !isdigit((unsigned char)at[1]))
			break;
		if (*at != ',')
			n = n * 10 + (uint64_t)(*at - '0');
		if (n > FRAG_KVCACHE_TOKENS_MAX)
			return 0;
	}
	return n;
}

/* "14.96 GiB", "14.9595 GB"; 0: none, or negative. */
static uint64_t bytes_at(const char *at)
{
	double gib = strtod(at, NULL);

	return gib > 0 && gib < GIB_MOST ? (uint64_t)(gib * (double)FRAG_GIB) : 0;
}

static void keep_least(uint64_t *to, uint64_t n)
{
	if (n && (!*to || n < *to))
		*to = n;
}

static void take(struct frag_engine_log *out, enum what what, const char *at, uint64_t block)
{
	uint64_t n = count_at(at);

	switch (what) {
	case TOKENS:
		keep_least(&out->tokens, n);
		break;
	case BLOCKS:
		keep_least(&out->tokens, n <= FRAG_KVCACHE_TOKENS_MAX / block ? n * block : 0);
		break;
	case WEIGHTS:
		out->weights_bytes = FRAG_MAX(out->weights_bytes, bytes_at(at));
		break;
	case PROFILE:
		out->profile_bytes = FRAG_MAX(out->profile_bytes, bytes_at(at));
		break;
	case GRAPHS:
		out->graphs_bytes = FRAG_MAX(out->graphs_bytes, bytes_at(at));
		break;
	case CACHE:
		keep_least(&out->cache_bytes, bytes_at(at));
		break;
	case CACHE_HALF:
		keep_least(&out->cache_bytes, 2 * bytes_at(at));
		break;
	case LISTENS:
		out->listens = true;
		break;
	case TOO_SMALL:
		out->too_small = true;
	}
}

int frag_engine_log_read(const char *path, uint64_t block, struct frag_engine_log *out,
			 struct frag_err *err)
{
	char line[LINE_MAX_BYTES]; /* of longer lines, pieces */
	FILE *f = fopen(path, "re");
	int failed;

	*out = (struct frag_engine_log){ 0 };
	if (!f)
		return frag_fail(err, FRAG_EINPUT, "cannot open '%.200s': %s", path,
				 strerror(errno));
	while (fgets(line, sizeof(line), f))
		for (size_t r = 0; r < FRAG_ARRAY_LEN(rows); r++) {
			const char *at = rows[r].line ? strstr(line, rows[r].line) : line;

			at = at ? strstr(at, rows[r].before) : NULL;
			if (at)
				take(out, rows[r].what, at + strlen(rows[r].before), block);
		}
	failed = ferror(f);
	fclose(f);
	return failed ? frag_fail(err, FRAG_EINPUT, "cannot read '%.200s'", path) : 0;
}
