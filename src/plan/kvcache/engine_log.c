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

/* What follows: a count of tokens or blocks; bytes, of which the most, the least, those of a half;
 * nothing. */
enum kind { TOKENS, BLOCKS, MOST, LEAST, HALF, IS };
#define AT(member) offsetof(struct frag_engine_log, member)

/* A line with `line` (NULL: any), then `before`, then the number. Both call GiB GB, too. */
static const struct row {
	const char *line, *before;
	enum kind kind;
	size_t at; /* of the member that takes it */
} rows[] = {
	{ NULL, "GPU KV cache size:", TOKENS, AT(tokens) },
	{ NULL, "max_total_num_tokens=", TOKENS, AT(tokens) },
	{ "KV Cache is allocated", "#tokens:", TOKENS, AT(tokens) },
	{ NULL, "# GPU blocks:", BLOCKS, AT(tokens) },
	{ NULL, "# cuda blocks:", BLOCKS, AT(tokens) },
	{ NULL, "# CUDA blocks:", BLOCKS, AT(tokens) },
	{ NULL, "Model loading took ", MOST, AT(weights_bytes) },
	{ NULL, "Loading model weights took ", MOST, AT(weights_bytes) },
	{ "Load weight end", "mem usage=", MOST, AT(weights_bytes) },
	{ NULL, "activation peak memory takes ", MOST, AT(profile_bytes) },
	{ "Graph capturing finished", ", took ", MOST, AT(graphs_bytes) },
	{ "Capture cuda graph end", "mem usage=", MOST, AT(graphs_bytes) },
	{ "CUDA graph end", "mem usage=", MOST, AT(graphs_bytes) },
	{ NULL, "Available KV cache memory:", LEAST, AT(cache_bytes) },
	{ NULL, "reserved for KV Cache is ", LEAST, AT(cache_bytes) },
	{ "KV Cache is allocated", ", K size:", HALF, AT(cache_bytes) },
	{ "KV Cache is allocated", ", KV size:", LEAST, AT(cache_bytes) },
	{ NULL, "Application startup complete", IS, AT(listens) },
	{ NULL, "Uvicorn running on", IS, AT(listens) },
	{ NULL, "No available memory for the cache blocks", IS, AT(too_small) },
	{ NULL, "larger than the maximum number of tokens that can be stored in KV cache", IS,
	  AT(too_small) },
	{ NULL, "larger than the available KV cache memory", IS, AT(too_small) },
	{ NULL, "is less than desired GPU memory utilization", IS, AT(too_small) },
	{ NULL, "Not enough memory. Please try to increase --mem-fraction-static", IS,
	  AT(too_small) },
	{ NULL, "Loaded weights leave no GPU memory for the KV cache", IS, AT(too_small) },
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

static void take(struct frag_engine_log *out, const struct row *r, const char *at, uint64_t block)
{
	void *member = (char *)out + r->at;
	uint64_t *to;
	uint64_t n = r->kind <= BLOCKS ? count_at(at) : bytes_at(at);

	if (r->kind == IS) {
		*(bool *)member = true;
		return;
	}
	to = member;
	if (r->kind == BLOCKS)
		n = n <= FRAG_KVCACHE_TOKENS_MAX / block ? n * block : 0;
	n *= r->kind == HALF ? 2 : 1;
	if (n && (!*to || (r->kind == MOST ? n > *to : n < *to)))
		*to = n;
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
	while (fgets(line, sizeof(line), f) && *line) /* lines have an end */
		for (size_t r = 0; r < FRAG_ARRAY_LEN(rows); r++) {
			const char *at = rows[r].line ? strstr(line, rows[r].line) : line;

			at = at ? strstr(at, rows[r].before) : NULL;
			if (at)
				take(out, &rows[r], at + strlen(rows[r].before), block);
		}
	failed = !feof(f);
	fclose(f);
	return failed ? frag_fail(err, FRAG_EINPUT, "cannot read '%.200s' as text", path) : 0;
}
