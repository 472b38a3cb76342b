/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of memory in use; see diagnose.h. */
#include "diagnose.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/grow.h"
#include "trace/log/log.h"

#define LINE_MAX_BYTES 8192u
#define COLUMNS_MAX 64u
#define SECONDS_MOST 0x1p62 /* nanoseconds without a unit since 1970 are below */
#define BYTES_MOST 0x1p60   /* what says more is no memory */

enum role { OTHER, TIME, DATE, KEY, BYTES, TOTAL };

struct layout {
	const char *format;
	bool blanks;	/* columns are parted by blanks (dmon), else by commas */
	bool processes; /* keys are processes, else cards */
	enum role roles[COLUMNS_MAX];
	double units[COLUMNS_MAX]; /* of BYTES and TOTAL where the value says none */
	size_t columns, bytes;	   /* number, and the column that is read */
	char name[64];		   /* of the series, where no column is the key */
};

struct reader {
	struct frag_log_lines lines;
	struct frag_memlog *log;
	struct layout lay;
};

/* ---- fields ----------------------------------------------------------------- */

/* Cuts off the next field; NULL after the last. */
static char *next_field(const struct layout *lay, char **at)
{
	char *field = *at, *end;

	if (!field)
		return NULL;
	field += strspn(field, " \t\"");
	if (lay->blanks && !*field)
		return NULL;
	end = field + strcspn(field, lay->blanks ? " \t" : ",");
	*at = *end ? end + 1 : NULL;
	*end = '\0';
	while (end > field && strchr(" \t\"", end[-1]))
		*--end = '\0';
	return field;
}

/* Bytes of a unit at the end of a word: "[MiB]", "_gib", " KiB"; 0 = none. */
static double unit_of(const char *text)
{
	static const struct {
		const char *word;
		double bytes;
	} units[] = { { "KiB", 1024 }, { "MiB", 1048576 }, { "GiB", 1073741824 }, { "bytes", 1 },
		      { "KB", 1000 },  { "MB", 1048576 },  { "GB", 1000000000 },  { "B", 1 } };
	size_t n = strlen(text);

	while (n && strchr("]) ", text[n - 1]))
		n--;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(units); i++) {
		size_t w = strlen(units[i].word);

		if (n >= w && !strncasecmp(text + n - w, units[i].word, w) &&
		    (n == w || !isalpha((unsigned char)text[n - w - 1])))
			return units[i].bytes;
	}
	return 0;
}

static bool has(const char *text, const char *word)
{
	return strcasestr(text, word) != NULL;
}

/* "20261122" as dmon writes it. NAN = none. */
static double date_of(const char *text)
{
	struct tm tm = { 0 };

	return strptime(text, "%Y%m%d", &tm) ? (double)timegm(&tm) : NAN;
}

/* "2026/11/22 01:47:11.433", "2026-11-22T01:47:11Z", "01:47:11", "12.5". NAN = none. */
static double time_of(const char *text)
{
	static const char *const forms[] = { "%Y/%m/%d %T", "%Y-%m-%d %T", "%Y-%m-%dT%T",
					     "%Y/%m/%d", "%Y-%m-%d" };
	double h = 0, min = 0, s = 0;
	char *end;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(forms); i++) {
		struct tm tm = { 0 };

		end = strptime(text, forms[i], &tm);
		if (end)
			return (double)timegm(&tm) + (*end == '.' ? strtod(end, NULL) : 0);
	}
	if (sscanf(text, "%4lf:%2lf:%lf", &h, &min, &s) == 3) {
		s += h * 3600 + min * 60;
	} else {
		s = strtod(text, &end);
		if (end == text)
			return NAN;
	}
	/* differences of times are to stay exact enough */
	return fabs(s) <= SECONDS_MOST ? s : NAN;
}

/* ---- the header --------------------------------------------------------------------------- */

/* Is it one of these words, each between blanks? */
static bool among(const char *word, const char *words)
{
	char text[80];

	snprintf(text, sizeof(text), " %.60s ", word);
	return *word && strcasestr(words, text);
}

static enum role role_of(const char *name, bool smi)
{
	char word[64];

	snprintf(word, sizeof(word), "%.*s", (int)strcspn(name, " [("), name);
	if (among(word, " time timestamp t seconds time_s time_ms time_us time_ns elapsed step "
			"event iteration date epoch "))
		return TIME;
	if (among(word, " index gpu pid gpu_index rank "))
		return KEY;
	if (has(word, "total"))
		return TOTAL;
	if (smi)
		return among(word, " memory.used used_gpu_memory used_memory ") ? BYTES : OTHER;
	if (has(word, "free") && !has(word, "alloc"))
		return OTHER;
	return has(word, "bytes") || has(word, "mem") || has(word, "used") ||
			       has(word, "reserved") || has(word, "allocated") || unit_of(name) > 1
		       ? BYTES
		       : OTHER;
}

/* Parses a header; false if the format is unknown. */
static bool read_header(struct layout *lay, char *text)
{
	bool smi = has(text, "memory.used") || has(text, "used_gpu_memory") ||
		   has(text, "used_memory");
	bool timed = false, found = false;
	char *at = text, *field;

	*lay = (struct layout){ .format = smi ? "nvidia-smi CSV" : "CSV with time and bytes" };
	if (text[0] == '#' && has(text, "gpu") && has(text, "fb")) {
		lay->format = "nvidia-smi dmon";
		lay->blanks = true;
		at = text + 1;
	} else if (has(text, "Action") && has(text, "Pointer")) {
		return false; /* a trace: RMM's log */
	}
	while (lay->columns < COLUMNS_MAX && (field = next_field(lay, &at))) {
		enum role role = lay->blanks ? OTHER : role_of(field, smi);
		size_t c = lay->columns++;

		if (lay->blanks)
			role = !strcasecmp(field, "gpu")    ? KEY
			       : !strcmp(field, "fb")	    ? BYTES
			       : !strcasecmp(field, "Time") ? TIME
			       : !strcasecmp(field, "Date") ? DATE
							    : OTHER;
		if (role == BYTES && found)
			role = OTHER;
		lay->roles[c] = role;
		lay->units[c] = unit_of(field);
		if (role == KEY)
			lay->processes = !strcasecmp(field, "pid");
		timed |= role == TIME;
		if (role != BYTES)
			continue;
		found = true;
		lay->bytes = c;
		snprintf(lay->name, sizeof(lay->name), "%.60s", field);
		if (!lay->units[c])
			lay->units[c] = smi || lay->blanks ? 1048576 : 1;
	}
	return found && (timed || smi || lay->blanks);
}

/* ---- samples -------------------------------------------------------------------------------- */

static int series_of(struct frag_memlog *log, const char *name, struct frag_memlog_series **out,
		     struct frag_err *err)
{
	size_t i = 0;

	while (i < log->count && strcmp(log->list[i].name, name) != 0)
		i++;
	*out = i < log->count ? &log->list[i] : NULL;
	if (*out || log->count == FRAG_MEMLOG_SERIES)
		return 0;
	FRAG_TRY(FRAG_GROW(log->list, log->count, log->cap, "log", err));
	*out = &log->list[log->count++];
	**out = (struct frag_memlog_series){ .stride = 1 };
	snprintf((*out)->name, sizeof((*out)->name), "%.63s", name);
	for (char *p = (*out)->name; *p; p++)
		*p = (unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f ? '?' : *p;
	return 0;
}

static int add_sample(struct frag_memlog_series *s, double time, double bytes, struct frag_err *err)
{
	s->most = FRAG_MAX(s->most, bytes);
	if (s->seen++ % s->stride)
		return 0;
	if (s->count == FRAG_MEMLOG_SAMPLES) {
		for (size_t i = 0; i < s->count / 2; i++)
			s->list[i] = s->list[2 * i];
		s->count /= 2;
		s->stride *= 2;
	}
	FRAG_TRY(FRAG_GROW(s->list, s->count, s->cap, "log", err));
	s->list[s->count++] = (struct frag_memlog_sample){ time, bytes };
	return 0;
}

/* A number with an optional unit; NAN for "[N/A]", "-", more than any machine has and the like. */
static double bytes_of(const char *text, double unit)
{
	char *end;
	double v = strtod(text, &end), own;

	if (end == text || !isfinite(v) || v < 0)
		return NAN;
	end += strspn(end, " ");
	own = *end ? unit_of(end) : 0;
	v *= own > 0 ? own : unit;
	return v <= BYTES_MOST ? v : NAN;
}

static int take_line(struct reader *r, struct frag_err *err)
{
	struct layout *lay = &r->lay;
	double time = NAN, day = 0, bytes = NAN, total = 0;
	char name[sizeof(lay->name) + 16], *at = r->lines.text, *field;
	struct frag_memlog_series *s;

	snprintf(name, sizeof(name), "%s", lay->name);
	for (size_t c = 0; c < lay->columns && (field = next_field(lay, &at)); c++) {
		switch (lay->roles[c]) {
		case DATE:
			day = date_of(field);
			break;
		case TIME:
			time = time_of(field);
			break;
		case KEY:
			snprintf(name, sizeof(name), "%s %.40s", lay->processes ? "process" : "GPU",
				 field);
			break;
		case BYTES:
			bytes = bytes_of(field, lay->units[c]);
			break;
		case TOTAL:
			total = bytes_of(field, lay->units[c] > 0 ? lay->units[c]
								  : lay->units[lay->bytes]);
			break;
		default:
			break;
		}
	}
	if (isnan(bytes))
		return 0;
	FRAG_TRY(series_of(r->log, name, &s, err));
	if (!s)
		return 0;
	if (isnan(time))
		time = (double)s->seen;
	else
		time += day;
	if (!r->log->timed) {
		r->log->first_time = time;
		r->log->timed = true;
	}
	if (total > 0)
		s->total = total;
	return add_sample(s, time - r->log->first_time, bytes, err);
}

static int read_lines(struct reader *r, struct frag_err *err)
{
	int rc;

	while ((rc = frag_log_next_line(&r->lines, LINE_MAX_BYTES, err)) == 1) {
		struct layout again;

		if (r->lines.text[0] == '#') /* dmon repeats its head */
			continue;
		if (!r->lay.blanks && has(r->lines.text, "memory.used") &&
		    read_header(&again, r->lines.text))
			continue; /* so do logs that were appended to */
		FRAG_TRY(take_line(r, err));
	}
	FRAG_TRY(rc);
	if (!r->log->count)
		return frag_fail_at(err, FRAG_EINPUT, r->lines.line, "%s without a single value",
				    r->lay.format);
	return 0;
}

/* ---- the file --------------------------------------------------------------------------- */

/* Opens the file and reads up to its header; 1: it is a log. */
static int begin(struct reader *r, const char *path, struct frag_err *err)
{
	int rc;

	FRAG_TRY(frag_input_open(path, &r->lines.in, err));
	rc = frag_log_next_line(&r->lines, LINE_MAX_BYTES, err);
	if (rc != 1)
		return FRAG_MIN(rc, 0);
	return read_header(&r->lay, r->lines.text);
}

static void end(struct reader *r)
{
	frag_log_lines_release(&r->lines);
	frag_input_close(r->lines.in);
}

int frag_memlog_probe(const char *path, struct frag_err *err)
{
	struct reader r = { 0 };
	struct stat st;
	int rc;

	/* a probe would consume what it reads */
	if (!strcmp(path, "-") || (!stat(path, &st) && S_ISFIFO(st.st_mode)))
		return 0;
	rc = begin(&r, path, err);
	if (rc < 0 && r.lines.in)
		rc = 0; /* not text: the reader of traces reports what is wrong */
	end(&r);
	return rc;
}

int frag_memlog_read(const char *path, struct frag_memlog *out, struct frag_err *err)
{
	struct reader r = { .log = out };
	int rc;

	*out = (struct frag_memlog){ 0 };
	rc = begin(&r, path, err);
	if (!rc)
		rc = frag_fail(err, FRAG_EINPUT, "'%.200s' is not a log of memory in use", path);
	if (rc == 1) {
		out->format = r.lay.format;
		rc = read_lines(&r, err);
		if (rc)
			frag_err_prefix(err, "'%.200s'", path);
	}
	end(&r);
	if (rc)
		frag_memlog_release(out);
	return rc;
}

void frag_memlog_release(struct frag_memlog *log)
{
	for (size_t i = 0; i < log->count; i++)
		frag_host_free(log->list[i].list);
	frag_host_free(log->list);
	*log = (struct frag_memlog){ 0 };
}
