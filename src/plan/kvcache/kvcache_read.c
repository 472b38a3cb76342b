/* SPDX-License-Identifier: Apache-2.0 */
/* Requests from a CSV, or at random. */
#include "kvcache.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "lib/grow.h"
#include "lib/random.h"
#include "trace/input/input.h"
#include "trace/log/log.h"

#define LINE_MAX_BYTES 4096u
#define FIELDS_MAX 64u
#define SECONDS_MOST 1e11 /* Unix time is below */

struct reader {
	struct frag_log_lines lines;
	struct frag_kvcache *k;
	uint64_t tokens;	  /* of all */
	char *fields[FIELDS_MAX]; /* of the line */
	unsigned fields_count;
	unsigned columns[3]; /* of the time, the prompt, the output */
	bool named;
};

static int fail(const struct reader *r, const char *what, struct frag_err *err)
{
	return frag_log_fail(err, "line", r->lines.line, "expected %s", what);
}

/* A first line of names says which columns they are, if it has all three, else the first three. */
static void read_names(struct reader *r)
{
	static const char *const words[3][7] = {
		{ "time", "seconds", "arriv" },
		{ "prompt", "context", "input", "prefill", "request tokens", "request_tokens" },
		{ "output", "generated", "decode", "response tokens", "response_tokens" },
	};
	unsigned found[3], seen = 0;

	for (unsigned n = 0; n < r->fields_count; n++)
		for (unsigned k = 0, taken = 0; k < 3 && !taken; k++)
			for (const char *const *w = words[k]; *w && !taken; w++)
				if (!(seen & 1u << k) && strcasestr(r->fields[n], *w)) {
					found[k] = n;
					taken = 1u << k;
					seen |= taken;
				}
	r->named = seen == 7;
	if (r->named)
		memcpy(r->columns, found, sizeof(found));
}

static int read_tokens(const struct reader *r, unsigned column, uint32_t *out, struct frag_err *err)
{
	const char *text = r->fields[r->columns[column]];
	char *end;
	unsigned long long n = strtoull(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end || !n || n > FRAG_KVCACHE_REQUEST_MAX)
		return fail(r, "a number of tokens from 1 to 67108864", err);
	*out = (uint32_t)n;
	return 0;
}

/* A number, or "2023-11-16 18:15:46.6805900", as Azure's trace has it. */
static int read_seconds(const struct reader *r, uint64_t *us, struct frag_err *err)
{
	const char *text = r->fields[r->columns[0]];
	struct tm t = { 0 };
	double s, all;
	char *end;
	int n = 0;

	if (sscanf(text, "%4d-%2d-%2d%*1[T ]%2d:%2d:%lf%n", &t.tm_year, &t.tm_mon, &t.tm_mday,
		   &t.tm_hour, &t.tm_min, &s, &n) == 6 &&
	    n && !text[n] && s >= 0 && s < 61) {
		t.tm_year -= 1900;
		t.tm_mon--;
		all = (double)timegm(&t) + s;
	} else {
		all = strtod(text, &end);
		/* no "nan", "inf" or 0x… */
		if (end == text || *end || text[strspn(text, "0123456789.eE+-")])
			all = -1;
	}
	if (!(all >= 0 && all <= SECONDS_MOST))
		return fail(r, "seconds from 0 on", err);
	*us = (uint64_t)llround(all * 1e6);
	return 0;
}

static int read_request(struct reader *r, struct frag_err *err)
{
	struct frag_kvcache *k = r->k;
	struct frag_kvcache_request q = { .made = (uint32_t)k->count };
	char *at = r->lines.text, *field;

	r->fields_count = 0;
	while (r->fields_count < FIELDS_MAX && (field = frag_log_next_field(&at)))
		r->fields[r->fields_count++] = field;
	if (r->lines.line == 1 && isalpha((unsigned char)*r->fields[0])) {
		read_names(r);
		return 0;
	}
	if (r->named ? r->fields_count <=
			       FRAG_MAX(r->columns[0], FRAG_MAX(r->columns[1], r->columns[2]))
		     : r->fields_count != 3)
		return fail(r, "seconds, prompt tokens, output tokens", err);
	FRAG_TRY(read_seconds(r, &q.arrival_us, err));
	FRAG_TRY(read_tokens(r, 1, &q.prompt, err));
	FRAG_TRY(read_tokens(r, 2, &q.output, err));
	r->tokens += (uint64_t)q.prompt + q.output;
	if (r->tokens > FRAG_KVCACHE_ALL_MAX)
		return fail(r, "at most 4294967296 tokens in all", err);
	if (k->count == FRAG_KVCACHE_REQUESTS_MAX)
		return fail(r, "at most 16777216 requests", err);
	FRAG_TRY(FRAG_GROW(k->list, k->count, k->cap, "requests", err));
	k->list[k->count++] = q;
	return 0;
}

/* By time, then in the order of the file. */
FRAG_COMPARE(by_time, struct frag_kvcache_request, FRAG_ORDER(x->arrival_us, y->arrival_us),
	     FRAG_ORDER(x->made, y->made))

static int read_all(struct reader *r, struct frag_kvcache *k, struct frag_err *err)
{
	uint64_t first;
	int rc;

	while ((rc = frag_log_next_line(&r->lines, LINE_MAX_BYTES, err)) > 0)
		FRAG_TRY(read_request(r, err));
	if (rc)
		return rc;
	if (!k->count)
		return FRAG_INPUT(err, "it has no requests");
	qsort(k->list, k->count, sizeof(*k->list), by_time);
	first = k->list[0].arrival_us;
	for (size_t i = 0; i < k->count; i++) {
		k->list[i].arrival_us -= first;
		k->list[i].made = 0;
	}
	return 0;
}

int frag_kvcache_read(struct frag_kvcache *k, const char *path, struct frag_err *err)
{
	struct reader r = { .k = k, .columns = { 0, 1, 2 } };
	int rc;

	FRAG_TRY(frag_input_open(path, &r.lines.in, err));
	rc = read_all(&r, k, err);
	if (rc == FRAG_EINPUT)
		frag_err_prefix(err, "'%s'", path);
	frag_log_lines_release(&r.lines);
	frag_input_close(r.lines.in);
	return rc;
}

/*
 * ---- requests at random, by published means of their lengths. The paper on vLLM (Kwon et al., SOSP
 * 2023, figure 11) gives those of ShareGPT and Alpaca with histograms that fall from short to long,
 * but no numbers of these; so lengths are exponential, and times between arrivals, too (the paper's
 * arrivals are Poisson's). As in vLLM's benchmark, longer ones than LONGEST in all are drawn again.
 * ----
 */

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

static int find_lengths(const char *text, struct lengths *out, struct frag_err *err)
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
	return FRAG_USAGE(err,
			  "unknown lengths '%.60s': expected sharegpt, alpaca, or the means of "
			  "prompt and output, as 512,128",
			  text);
}

int frag_kvcache_generate(struct frag_kvcache *k, const char *text, double rate, size_t count,
			  uint64_t seed, struct frag_err *err)
{
	struct lengths of = { 0 };
	double now = 0;

	FRAG_TRY(find_lengths(text, &of, err));
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

void frag_kvcache_release(struct frag_kvcache *k)
{
	FRAG_FREE(k->list);
}
