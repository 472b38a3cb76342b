/* SPDX-License-Identifier: Apache-2.0 */
/* Requests from a CSV. */
#include "kvcache.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

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
	unsigned time, prompt, output; /* columns */
	bool named;
};

static int fail_at(const struct reader *r, const char *at, const char *what, struct frag_err *err)
{
	return frag_log_fail(err, "line", r->lines.line, "column %zu: %s",
			     (size_t)(at - r->lines.text) + 1, what);
}

/* The field of that number; NULL: the line ends before it. */
static char *field_at(char *at, unsigned number)
{
	bool quoted = false;

	for (; number && *at; at++) {
		quoted ^= *at == '"';
		number -= *at == ',' && !quoted;
	}
	return number ? NULL : at;
}

/* Behind a value: the end of its field. */
static bool ends(const char **at)
{
	*at += strspn(*at, " \t\"\r");
	return !**at || **at == ',';
}

static int read_tokens(const struct reader *r, unsigned number, uint32_t *out, struct frag_err *err)
{
	char *begin = field_at(r->lines.text, number), *end;
	const char *behind;
	unsigned long long n;

	if (!begin)
		return fail_at(r, strchr(r->lines.text, '\0'),
			       "expected seconds, prompt tokens, output tokens", err);
	begin += strspn(begin, " \t\"");
	n = strtoull(begin, &end, 10);
	behind = end;
	if (!isdigit((unsigned char)*begin) || !n || n > FRAG_KVCACHE_REQUEST_MAX || !ends(&behind))
		return fail_at(r, begin, "expected a number of tokens from 1 to 67108864", err);
	*out = (uint32_t)n;
	return 0;
}

/* "2023-11-16 18:15:46.6805900", as Azure's trace has it. */
static bool read_date(const char *text, double *seconds, const char **end)
{
	struct tm t = { 0 };
	double s;
	int n = 0;

	if (sscanf(text, "%4d-%2d-%2d%*1[T ]%2d:%2d:%lf%n", &t.tm_year, &t.tm_mon, &t.tm_mday,
		   &t.tm_hour, &t.tm_min, &s, &n) != 6 ||
	    !n || !(s >= 0) || !(s < 61))
		return false;
	t.tm_year -= 1900;
	t.tm_mon--;
	*seconds = (double)timegm(&t) + s;
	*end = text + n;
	return true;
}

static int read_seconds(const struct reader *r, double *out, struct frag_err *err)
{
	char *begin = field_at(r->lines.text, r->time), *number;
	const char *end;

	begin = begin ? begin + strspn(begin, " \t\"") : r->lines.text;
	if (!read_date(begin, out, &end)) {
		*out = strtod(begin, &number);
		end = number;
		/* no "nan", "inf" or 0x… */
		if (end == begin || strspn(begin, "0123456789.eE+-") < strcspn(begin, " \t\",\r"))
			*out = -1;
	}
	if (!ends(&end) || *end != ',' || !(*out >= 0) || *out > SECONDS_MOST)
		return fail_at(r, begin, "expected seconds from 0 on, and a comma", err);
	return 0;
}

static bool has_one_of(const char *name, size_t len, const char *const *words)
{
	for (; *words; words++)
		for (size_t i = 0; i + strlen(*words) <= len; i++)
			if (!strncasecmp(name + i, *words, strlen(*words)))
				return true;
	return false;
}

/* A first line of names says which columns they are, if it has all three, else the first three. */
static void read_names(struct reader *r)
{
	static const char *const words[3][7] = {
		{ "time", "seconds", "arriv" },
		{ "prompt", "context", "input", "prefill", "request tokens", "request_tokens" },
		{ "output", "generated", "decode", "response tokens", "response_tokens" },
	};
	unsigned found[3] = { UINT_MAX, UINT_MAX, UINT_MAX };
	char *at;

	for (unsigned n = 0; (at = field_at(r->lines.text, n)); n++)
		for (size_t k = 0; k < FRAG_ARRAY_LEN(found); k++)
			if (found[k] == UINT_MAX && has_one_of(at, strcspn(at, ","), words[k])) {
				found[k] = n;
				break;
			}
	r->named = found[0] != UINT_MAX && found[1] != UINT_MAX && found[2] != UINT_MAX;
	if (r->named) {
		r->time = found[0];
		r->prompt = found[1];
		r->output = found[2];
	}
}

static int read_request(struct reader *r, struct frag_err *err)
{
	char *begin = r->lines.text + strspn(r->lines.text, " \t\""), *behind;
	struct seconds q = { 0 };

	if (r->lines.line == 1 && isalpha((unsigned char)*begin)) {
		read_names(r);
		return 0;
	}
	FRAG_TRY(read_seconds(r, &q.s, err));
	FRAG_TRY(read_tokens(r, r->prompt, &q.request.prompt, err));
	FRAG_TRY(read_tokens(r, r->output, &q.request.output, err));
	behind = r->named ? NULL : field_at(r->lines.text, 3);
	if (behind)
		return fail_at(r, behind - 1, "expected the end of the line", err);
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
	struct reader r = { .prompt = 1, .output = 2 };
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
