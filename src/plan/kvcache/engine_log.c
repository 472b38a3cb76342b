/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of the engines' releases as a table: another line of a new release is a row. */
#include "kvcache.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 4096u
#define NUMBER_MOST 1e6

/* What follows: a count; bytes, of which the most, the least, those of a half; a factor; nothing. */
enum kind { COUNT, MOST, LEAST, HALF, TIMES, IS };
#define AT(member) offsetof(struct frag_engine_log, member)

/* A line with `line` (NULL: any), then `before`, then the number. Both call GiB GB, too. */
static const struct row {
	const char *line, *before;
	enum kind kind;
	size_t at; /* of the member that takes it */
} rows[] = {
	{ NULL, "GPU KV cache size:", COUNT, AT(tokens) },
	{ NULL, "max_total_num_tokens=", COUNT, AT(tokens) },
	{ "KV Cache is allocated", "#tokens:", COUNT, AT(tokens) },
	{ NULL, "full_layer_tokens=", COUNT, AT(full_tokens) },
	{ NULL, "swa_layer_tokens=", COUNT, AT(window_tokens) },
	{ NULL, "max_mamba_cache_size: ", COUNT, AT(slots) },
	{ NULL, "Setting attention block size to ", COUNT, AT(block) },
	{ "Chunked prefill is enabled", "max_num_batched_tokens=", COUNT, AT(batched_tokens) },
	{ NULL, "Maximum concurrency for ", COUNT, AT(request_tokens) },
	{ "Maximum concurrency for ", " tokens per request: ", TIMES, AT(hundredths) },
	{ NULL, "# GPU blocks:", COUNT, AT(blocks) },
	{ NULL, "# cuda blocks:", COUNT, AT(blocks) },
	{ NULL, "# CUDA blocks:", COUNT, AT(blocks) },
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

/* "14.96 GiB", "14.9595 GB", "5.23x", in units of 1/scale; 0: none, or negative. */
static uint64_t number_at(const char *at, double scale)
{
	double n = strtod(at, NULL);

	return n > 0 && n < NUMBER_MOST ? (uint64_t)(n * scale + 0.001) : 0;
}

static void take(struct frag_engine_log *out, const struct row *r, const char *line, const char *at)
{
	void *member = (char *)out + r->at;
	uint64_t *to;
	uint64_t n = r->kind == COUNT ? count_at(at)
				      : number_at(at, r->kind == TIMES ? 100 : (double)FRAG_GIB);

	if (r->kind == IS) {
		*(bool *)member = true;
		at = strstr(line, "Error: ");
		line = at ? at + strlen("Error: ") : line;
		if (r->at == AT(too_small) && !*out->ended)
			snprintf(out->ended, sizeof(out->ended), "%.*s", (int)strcspn(line, "\r\n"),
				 line);
		return;
	}
	to = member;
	n *= r->kind == HALF ? 2 : 1;
	if (n && (!*to || (r->kind == MOST ? n > *to : n < *to)))
		*to = n;
}

int frag_engine_log_read(const char *path, struct frag_engine_log *out, struct frag_err *err)
{
	char line[LINE_MAX_BYTES]; /* of longer lines, pieces */
	FILE *f = fopen(path, "re");
	int failed;

	*out = (struct frag_engine_log){ 0 };
	if (!f)
		return FRAG_INPUT(err, "cannot open '%.200s': %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f) && *line) /* lines have an end */
		for (size_t r = 0; r < FRAG_ARRAY_LEN(rows); r++) {
			const char *at = rows[r].line ? strstr(line, rows[r].line) : line;

			at = at ? strstr(at, rows[r].before) : NULL;
			if (at)
				take(out, &rows[r], line, at + strlen(rows[r].before));
		}
	if (out->full_tokens) /* "#tokens:" may be those of the others */
		out->tokens = out->full_tokens;
	if (!out->request_tokens)
		out->hundredths = 0;
	if (!out->tokens)
		out->tokens = out->blocks * FRAG_KVCACHE_BLOCK;
	failed = !feof(f);
	fclose(f);
	return failed ? FRAG_INPUT(err, "cannot read '%.200s' as text", path) : 0;
}
