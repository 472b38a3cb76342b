/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests by published means of their lengths. The paper on vLLM (Kwon et al., SOSP 2023, figure
 * 11) gives those of ShareGPT and Alpaca with histograms that fall from short to long, but no
 * numbers of these; so lengths are exponential, and times between arrivals, too (the paper's
 * arrivals are Poisson's). As in vLLM's benchmark, longer ones than LONGEST in all are drawn again.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kvcache.h"
#include "lib/random.h"

#define LONGEST 2048
#define MEAN_MOST 1e6

static const struct lengths {
	const char *name;
	double prompt, output;
	bool capped;
} published[] = {
	{ "sharegpt", 161.31, 337.99, true },
	{ "alpaca", 19.31, 58.45, true },
};

static double draw(double mean, uint64_t *state)
{
	return -mean * log((double)((frag_random(state) >> 11) + 1) * 0x1p-53);
}

/* A length from 1 on, of about this mean. */
static uint32_t length(double mean, uint64_t *state)
{
	return (uint32_t)fmin(1 + draw(fmax(mean - 1, 0) + 0.5, state), FRAG_KVCACHE_REQUEST_MAX);
}

static int find(const char *text, struct lengths *out, struct frag_err *err)
{
	char rest;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(published); i++)
		if (!strcmp(text, published[i].name)) {
			*out = published[i];
			return 0;
		}
	if (sscanf(text, "%lf,%lf%c", &out->prompt, &out->output, &rest) == 2 && out->prompt >= 1 &&
	    out->output >= 1 && out->prompt <= MEAN_MOST && out->output <= MEAN_MOST)
		return 0;
	return frag_fail(err, FRAG_EUSAGE,
			 "unknown lengths '%.60s': expected sharegpt, alpaca, or the means of "
			 "prompt and output, as 512,128",
			 text);
}

int frag_kvcache_generate(struct frag_kvcache *k, const char *text, double rate, size_t count,
			  uint64_t seed, struct frag_err *err)
{
	struct lengths of = { 0 };
	double now = 0;

	FRAG_TRY(find(text, &of, err));
	FRAG_TRY_CALLOC(k->list, count, "requests", err);
	k->count = count;
	for (size_t i = 0; i < count; i++) {
		struct frag_kvcache_request *q = &k->list[i];

		do {
			q->prompt = length(of.prompt, &seed);
			q->output = length(of.output, &seed);
		} while (of.capped && q->prompt + q->output > LONGEST);
		q->arrival_us = (uint64_t)(now * 1e6);
		now += draw(1 / rate, &seed);
	}
	return 0;
}
