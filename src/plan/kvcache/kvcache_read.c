/* SPDX-License-Identifier: Apache-2.0 */
/* Requests from a CSV. */
#include "kvcache.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/grow.h"
#include "trace/input/input.h"
#include "trace/log/log.h"

#define LINE_MAX_BYTES 4096u
#define SECONDS_MOST 1e11 /* Unix time is below */

struct reader {
	struct frag_log_lines lines;
	struct seconds {
		double s;
		struct frag_kvcache_request request;
	} * list;
	size_t count, cap;
};

static int fail_at(const struct reader *r, const char *at, const char *what, struct frag_err *err)
{
	return frag_log_fail(err, "line", r->lines.line, "column %zu: %s",
			     (size_t)(at - r->lines.text) + 1, what);
}

/* A token count from 1 on; *at goes behind it and its comma. */
static int read_tokens(const struct reader *r, char **at, bool last, uint32_t *out,
		       struct frag_err *err)
{
	char *begin = *at + strspn(*at, " \t\""), *end;
	unsigned long long n = strtoull(begin, &end, 10);

	if (!isdigit((unsigned char)*begin) || !n || n > FRAG_KVCACHE_REQUEST_MAX)
		return fail_at(r, begin, "expected a number of tokens from 1 to 67108864", err);
	end += strspn(end, " \t\"\r");
	if (*end != (last ? '\0' : ','))
		return fail_at(r, end,
			       last ? "expected the end of the line"
				    : "expected seconds, prompt tokens, output tokens",
			       err);
	*out = (uint32_t)n;
	*at = end + !last;
	return 0;
}

static int read_request(struct reader *r, struct frag_err *err)
{
	char *begin = r->lines.text + strspn(r->lines.text, " \t\""), *end;
	struct seconds q = { .s = strtod(begin, &end) };

	end += strspn(end, " \t\"");
	/* no "nan", "inf" or 0x… */
	if (end == begin || strspn(begin, "0123456789.eE+-") < strcspn(begin, " \t\",") ||
	    *end != ',' || !(q.s >= 0) || q.s > SECONDS_MOST) {
		if (!r->count && r->lines.line == 1 && isalpha((unsigned char)*begin))
			return 0; /* names of columns */
		return fail_at(r, begin, "expected seconds from 0 on, and a comma", err);
	}
	end++;
	FRAG_TRY(read_tokens(r, &end, false, &q.request.prompt, err));
	FRAG_TRY(read_tokens(r, &end, true, &q.request.output, err));
	if (r->count == FRAG_KVCACHE_REQUESTS_MAX)
		return fail_at(r, r->lines.text, "more than 16777216 requests", err);
	FRAG_TRY(FRAG_GROW(r->list, r->count, r->cap, "requests", err));
	q.request.next = (uint32_t)r->count;
	r->list[r->count++] = q;
	return 0;
}

/* By time, then in the order of the file. */
FRAG_COMPARE(by_time, struct seconds, FRAG_ORDER(x->s, y->s),
	     FRAG_ORDER(x->request.next, y->request.next))

static int read_all(struct reader *r, struct frag_kvcache *k, struct frag_err *err)
{
	int rc;

	while ((rc = frag_log_next_line(&r->lines, LINE_MAX_BYTES, err)) > 0)
		FRAG_TRY(read_request(r, err));
	if (rc)
		return rc;
	if (!r->count)
		return frag_fail(err, FRAG_EINPUT, "it has no requests");
	qsort(r->list, r->count, sizeof(*r->list), by_time);
	FRAG_TRY_CALLOC(k->list, r->count, "requests", err);
	k->count = r->count;
	for (size_t i = 0; i < r->count; i++) {
		k->list[i] = r->list[i].request;
		k->list[i].arrival_us = (uint64_t)llround((r->list[i].s - r->list[0].s) * 1e6);
	}
	return 0;
}

int frag_kvcache_read(struct frag_kvcache *k, const char *path, struct frag_err *err)
{
	struct reader r = { 0 };
	int rc;

	FRAG_TRY(frag_input_open(path, &r.lines.in, err));
	rc = read_all(&r, k, err);
	if (rc == FRAG_EINPUT)
		frag_err_prefix(err, "'%s'", path);
	frag_log_lines_release(&r.lines);
	frag_input_close(r.lines.in);
	frag_host_free(r.list);
	return rc;
}
