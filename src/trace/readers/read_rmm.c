/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RMM's CSV log (rapidsai/rmm cpp/src/mr/detail/logging_resource_adaptor_impl.cpp), also what the
 * adaptor `log` of cufrag writes:
 *
 *	Thread,Time,Action,Pointer,Size,Stream
 *	31417,10:15:02.104377,allocate,0x7f3a40000000,1000000,0x2
 *
 * Time is local time of day without a date: past midnight it goes on. The log names no device.
 */
#include <ctype.h>
#include <string.h>

#include "trace/log/log.h"

#define HEADER "Thread,Time,Action,Pointer,Size,Stream"
#define LINE_MAX_BYTES 1024u
#define DAY_US 86400000000ull

struct reader {
	struct frag_log log; /* first: see read_lines */
	uint64_t last_us, midnights_us;
};

static bool two_digits(const char *at, unsigned below, uint64_t *out)
{
	if (!isdigit((unsigned char)at[0]) || !isdigit((unsigned char)at[1]))
		return false;
	*out = (uint64_t)(at[0] - '0') * 10 + (uint64_t)(at[1] - '0');
	return *out < below;
}

/* HH:MM:SS.micros; older documents have a colon before the micros. Hours may exceed a day. */
static bool read_time(const char *text, uint64_t *out_us)
{
	uint64_t h = 0, m, s, us = 0;
	const char *at = text;
	int digits = 0;

	for (; isdigit((unsigned char)*at) && at - text < 7; at++)
		h = h * 10 + (uint64_t)(*at - '0');
	if (at == text || strlen(at) < 8 || at[0] != ':' || at[3] != ':' ||
	    !two_digits(at + 1, 60, &m) || !two_digits(at + 4, 61, &s) ||
	    (at[6] != '.' && at[6] != ':'))
		return false;
	for (at += 7; isdigit((unsigned char)*at) && digits < 6; at++, digits++)
		us = us * 10 + (uint64_t)(*at - '0');
	for (; digits < 6; digits++)
		us *= 10;
	while (isdigit((unsigned char)*at)) /* finer than micros */
		at++;
	*out_us = ((h * 60 + m) * 60 + s) * 1000000 + us;
	return !*at;
}

/* A step back of more than half a day is midnight; a small one is another thread. */
static uint64_t without_midnight(struct reader *r, uint64_t us)
{
	us += r->midnights_us;
	if (us + DAY_US / 2 < r->last_us) {
		r->midnights_us += DAY_US;
		us += DAY_US;
	}
	r->last_us = us > r->last_us ? us : r->last_us;
	return us;
}

static int read_entry(struct reader *r, struct frag_err *err)
{
	struct frag_log_entry e = { .line = r->log.lines.line };
	char *at = r->log.lines.text, *field[6];
	unsigned n = 0;

	while (n < 6 && (field[n] = frag_log_next_field(&at)))
		n++;
	if (n < 6 || at || !read_time(field[1], &e.time_us) ||
	    !frag_log_word(field[2], &e.action) || !frag_log_number(field[3], &e.id) ||
	    !frag_log_number(field[4], &e.bytes) || !frag_log_number(field[5], &e.stream))
		return frag_log_fail(err, "line", e.line, "not a line of an RMM log (" HEADER ")");
	if (e.id == FRAG_LOG_UNKNOWN)
		e.id = 0;
	e.time_us = without_midnight(r, e.time_us);
	return frag_log_add(&r->log, &e, err);
}

static int read_lines(struct frag_log *log, struct frag_err *err)
{
	int rc = frag_log_next_line(&log->lines, LINE_MAX_BYTES, err);

	if (rc > 0 && strcmp(log->lines.text, HEADER) != 0)
		return frag_log_fail(err, "line", 1, "not '" HEADER "'");
	while (rc > 0 && (rc = frag_log_next_line(&log->lines, LINE_MAX_BYTES, err)) > 0)
		FRAG_TRY(frag_log_line_read(&log->lines, read_entry((struct reader *)log, err)));
	return rc;
}

static int read_rmm(struct frag_input *in, const char *options, struct frag_trace **out,
		    struct frag_err *err)
{
	struct reader r = { .log.lines.in = in };

	return frag_log_read(&r.log, "rmm", options, read_lines, out, err);
}

static int probe(const unsigned char *bytes, size_t len)
{
	char line[LINE_MAX_BYTES];

	return frag_log_first_line(bytes, len, line, sizeof(line)) && !strcmp(line, HEADER) ? 90
											    : 0;
}

const struct frag_reader_ops frag_reader_rmm = {
	.name = "rmm",
	.summary = "RMM's CSV log, also of the adaptor log: streams, times, refused requests; one "
		   "device",
	.probe = probe,
	.read = read_rmm,
};
