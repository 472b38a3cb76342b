/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of memory in use; see diagnose.h. */
#include "diagnose.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clean.h"
#include "lib/grow.h"
#include "trace/log/log.h"

#define LINE_MAX_BYTES 8192u
#define COLUMNS_MAX 64u
#define SECONDS_MOST 0x1p62 /* nanoseconds without a unit since 1970 are below */
#define BYTES_MOST 0x1p60   /* what says more is no memory */

#define SWEEP_S 0.005 /* rows of a log without keys that lie closer are of several cards */

/* Keys from the best on. */
enum role { OTHER, TIME, DATE, BYTES, TOTAL, PID, CARD, UUID, BUS, CARD_NAME };

struct reader;

struct layout {
	const char *format;
	int (*take)(struct reader *r, struct frag_err *err); /* a line */
	bool smi;					     /* nvidia-smi wrote it */
	const char *unit;				     /* as in the log */
	const char *part;				     /* see frag_log_cut; blanks: dmon */
	bool keyed; /* a column tells one card or process from another */
	enum role roles[COLUMNS_MAX];
	double units[COLUMNS_MAX]; /* of BYTES and TOTAL where the value says none */
	char names[COLUMNS_MAX][48];
	size_t columns, bytes; /* number, and the first with BYTES */
	size_t bytes_count;    /* columns with BYTES */
};

struct reader {
	struct frag_log_lines lines;
	struct frag_memlog *log;
	struct layout lay;
	double time, sweep;	      /* of the table; of the first row of a sweep */
	unsigned long card;	      /* within a sweep */
	char label[FRAG_MEMLOG_NAME]; /* of the table's card */
	bool unread;		      /* the first line is a row */
	double total;		      /* in -q, of the card; NAN: this is about another memory */
};

/* What a row says: its memory, and of whom. */
struct row {
	double time, day, total, bytes[COLUMNS_MAX];
	const char *key, *card; /* what tells it best from others; the name of the card */
	enum role by;
};

/* ---- fields ----------------------------------------------------------------- */

static bool blanks(const struct layout *lay)
{
	return lay->part[0] == ' ';
}

/* Bytes of a unit at the end of a word: "[MiB]", "_gib", " KiB"; 0 = none. */
static double unit_of(const char *text)
{
	static const struct {
		const char *word;
		double bytes;
	} units[] = { { "KiB", 0x1p10 }, { "MiB", 0x1p20 }, { "GiB", 0x1p30 }, { "bytes", 1 },
		      { "KB", 1e3 },	 { "MB", 1e6 },	    { "GB", 1e9 },     { "B", 1 } };
	size_t n = strlen(text), w;

	while (n && strchr("]) ", text[n - 1]))
		n--;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(units); i++)
		if (n >= (w = strlen(units[i].word)) &&
		    !strncasecmp(text + n - w, units[i].word, w) &&
		    (n == w || !isalpha((unsigned char)text[n - w - 1])))
			return units[i].bytes;
	return 0;
}

static bool has(const char *text, const char *word)
{
	return strcasestr(text, word) != NULL;
}

/* "2026/11/22 01:47:11.433", "2026-11-22T01:47:11Z", "01:47:11", "12.5". NAN = none. */
static double time_of(const char *text)
{
	static const char *const forms[] = { "%Y/%m/%d %T", "%Y-%m-%d %T", "%Y-%m-%dT%T",
					     "%Y/%m/%d",    "%Y-%m-%d",	   "%T" };
	char *end;
	double s = strtod(text, &end);

	if (end == text || !(fabs(s) <= SECONDS_MOST))
		s = NAN;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(forms); i++) {
		struct tm tm = { .tm_year = 70, .tm_mday = 1 };

		end = strptime(text, forms[i], &tm);
		if (end)
			return (double)timegm(&tm) + (*end == '.' ? strtod(end, NULL) : 0);
	}
	/* differences of times are to stay exact enough */
	return s;
}

/* ---- the header --------------------------------------------------------------------------- */

/* Is it one of these words, each between blanks? */
static bool among(const char *word, const char *words)
{
	char text[80];

	snprintf(text, sizeof(text), " %.60s ", word);
	return *word && strcasestr(words, text);
}

static const struct {
	enum role role;
	const char *words;
} role_words[] = {
	{ TIME, " time timestamp t seconds time_s time_ms time_us time_ns elapsed step event "
		"iteration epoch " },
	{ DATE, " date " },
	{ PID, " pid " },
	{ CARD, " index gpu gpu_index rank device " },
	{ UUID, " uuid gpu_uuid serial gpu_serial " },
	{ BUS, " pci.bus_id gpu_bus_id bus_id " },
	{ CARD_NAME, " name gpu_name " },
};

static enum role role_of(const struct layout *lay, const char *name)
{
	char word[64];

	snprintf(word, sizeof(word), "%.*s", (int)strcspn(name, " [("), name);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(role_words); i++)
		if (among(word, role_words[i].words))
			return role_words[i].role == DATE && !blanks(lay) ? TIME
									  : role_words[i].role;
	if (blanks(lay))
		return strcmp(word, "fb") ? OTHER : BYTES;
	if (has(word, "total"))
		return TOTAL;
	if (lay->smi)
		return among(word, " memory.used used_gpu_memory used_memory ") ? BYTES : OTHER;
	if (has(word, "free") && !has(word, "alloc"))
		return OTHER;
	return has(word, "bytes") || has(word, "mem") || has(word, "used") ||
			       has(word, "reserved") || has(word, "allocated") || unit_of(name) > 1
		       ? BYTES
		       : OTHER;
}

static void add_column(struct layout *lay, enum role role, const char *name, double unit)
{
	size_t c = lay->columns++;

	lay->roles[c] = role;
	lay->units[c] = unit;
	snprintf(lay->names[c], sizeof(lay->names[c]), "%.47s", name);
	lay->keyed |= role >= PID && role <= BUS;
	lay->bytes_count += role == BYTES;
	if (role == BYTES && !lay->bytes)
		lay->bytes = c + 1;
}

/* Parses a header; false if the format is unknown. */
static bool read_header(struct layout *lay, const char *text)
{
	bool timed = false;
	char line[LINE_MAX_BYTES + 1], *at = memcpy(line, text, strlen(text) + 1), *field;

	*lay = (struct layout){ .format = "CSV with time and bytes", .part = "," };
	lay->smi = has(text, "memory.used") || has(text, "used_gpu_memory") ||
		   has(text, "used_memory");
	if (lay->smi)
		lay->format = "nvidia-smi CSV";
	if (!strchr(text, ','))
		lay->part = strchr(text, ';') ? ";" : strchr(text, '\t') ? "\t" : ",";
	if (text[0] == '#' && has(text, "gpu") && has(text, "fb")) {
		lay->format = has(text, " pid ") ? "nvidia-smi pmon" : "nvidia-smi dmon";
		lay->smi = true;
		lay->part = " \t";
		at++;
	} else if (frag_log_csv_header(memcpy(line, text, strlen(text) + 1))) {
		return false; /* a trace */
	}
	memcpy(line, text, strlen(text) + 1);
	while (lay->columns < COLUMNS_MAX && (field = frag_log_cut(&at, lay->part))) {
		enum role role = role_of(lay, field);
		double unit = unit_of(field);

		if (role == BYTES && lay->bytes && lay->smi)
			role = OTHER;
		if (role == TIME && !timed)
			lay->unit = has(field, "step") || has(field, "iter") ? "step" : NULL;
		timed |= role == TIME;
		add_column(lay, role, field,
			   unit > 0 || role != BYTES ? unit
			   : lay->smi		     ? 1048576
						     : 1);
	}
	return lay->bytes && (timed || lay->smi);
}

/* nvidia-smi --format=csv,noheader: a date, then what the fields look like. */
static bool guess_header(struct layout *lay, const char *text)
{
	double values[COLUMNS_MAX] = { 0 };
	char line[LINE_MAX_BYTES + 1], *at = memcpy(line, text, strlen(text) + 1), *field, *end;
	size_t numbers = 0, last = 0;

	*lay = (struct layout){ .format = "nvidia-smi CSV without a header",
				.smi = true,
				.part = strchr(text, ',') ? "," : ";" };
	field = frag_log_cut(&at, lay->part);
	if (strspn(field, "0123456789") != 4 || !strchr("/-", field[4]) ||
	    field[strspn(field, "0123456789/-:. T")] || isnan(time_of(field)))
		return false;
	add_column(lay, TIME, "time", 0);
	while (lay->columns < COLUMNS_MAX && (field = frag_log_cut(&at, lay->part))) {
		enum role role = !strncmp(field, "GPU-", 4) ? UUID
				 : strchr(field, ':')	    ? BUS
							    : CARD_NAME;
		double v = strtod(field, &end);

		end += strspn(end, " ");
		if (end != field && (!*end || unit_of(end) > 0) && isfinite(v) && role > BUS) {
			values[lay->columns] = v;
			last = lay->columns;
			role = *end || v >= 64 || numbers ? BYTES : CARD;
			numbers++;
		} else if (end != field && role > BUS) {
			role = OTHER; /* "34 %" */
		}
		add_column(lay, role, "memory.used", 1048576);
	}
	for (size_t c = 1; c < last; c++) /* the larger of the last two is the total */
		if (lay->roles[c] == BYTES)
			lay->roles[values[c] > values[last] ? c : last] = TOTAL;
	if (numbers == 1)
		lay->roles[last] = BYTES;
	return numbers > 0;
}

/* ---- samples -------------------------------------------------------------------------------- */

static int series_of(struct frag_memlog *log, char *name, struct frag_memlog_series **out,
		     struct frag_err *err)
{
	size_t i = 0;

	frag_clean_text(name, strlen(name));
	while (i < log->count && strcmp(log->list[i].name, name) != 0)
		i++;
	*out = i < log->count ? &log->list[i] : NULL;
	if (*out || log->count == FRAG_MEMLOG_SERIES)
		return 0;
	FRAG_TRY(FRAG_GROW(log->list, log->count, log->cap, "log", err));
	*out = &log->list[log->count++];
	**out = (struct frag_memlog_series){ .stride = 1 };
	memcpy((*out)->name, name, sizeof((*out)->name));
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

static int add_value(struct reader *r, char *name, double time, double bytes, double total,
		     struct frag_err *err)
{
	struct frag_memlog_series *s;

	FRAG_TRY(series_of(r->log, name, &s, err));
	if (!s)
		return 0;
	if (isnan(time) && isnan(r->log->first_time))
		r->log->unit = "sample";
	if (isnan(time))
		time = (double)s->seen;
	if (isnan(r->log->first_time))
		r->log->first_time = time;
	if (total > 0)
		s->total = total;
	return add_sample(s, time - r->log->first_time, bytes, err);
}

/* "memory in use of GPU 0 (NVIDIA A100)", "used_mib of 77", "memory.used [MiB], card 2" */
static void name_series(struct reader *r, const struct row *row, size_t column, char *name)
{
	const struct layout *lay = &r->lay;
	const enum role by = row->by;
	const char *words = by == PID ? "process " : by == CARD ? "GPU " : "";
	const bool column_tells = by > CARD_NAME || (!lay->smi && lay->bytes_count > 1);
	int n;

	if (lay->smi && !lay->keyed && !isnan(row->time)) {
		r->card =
			row->time - r->sweep <= SWEEP_S && row->time >= r->sweep ? r->card + 1 : 0;
		r->sweep = r->card ? r->sweep : row->time;
	}
	n = snprintf(name, FRAG_MEMLOG_NAME, "%.30s%s%s%.44s",
		     column_tells ? lay->names[column] : FRAG_MEMLOG_IN_USE,
		     column_tells && by <= CARD_NAME ? " of " : "", words, row->key);
	if (*row->card && by < CARD_NAME)
		snprintf(name + n, FRAG_MEMLOG_NAME - (size_t)n, " (%.30s)", row->card);
	else if (r->card)
		snprintf(name + n, FRAG_MEMLOG_NAME - (size_t)n, ", card %lu", r->card + 1);
}

static void take_field(struct row *row, const struct layout *lay, size_t c, const char *field)
{
	const enum role role = lay->roles[c];
	struct tm tm = { 0 };

	if (role == DATE) /* "20261122" as dmon writes it */
		row->day = strptime(field, "%Y%m%d", &tm) ? (double)timegm(&tm) : NAN;
	else if (role == TIME && isnan(row->time))
		row->time = time_of(field);
	else if (role == BYTES)
		row->bytes[c] = bytes_of(field, lay->units[c]);
	else if (role == TOTAL)
		row->total = bytes_of(field, lay->units[c] > 0 ? lay->units[c]
							       : lay->units[lay->bytes - 1]);
	if (role == CARD_NAME)
		row->card = field;
	if (role >= PID && role < row->by) {
		row->by = role;
		row->key = field;
	}
}

static int take_line(struct reader *r, struct frag_err *err)
{
	struct row row = { .time = NAN, .key = "", .card = "", .by = CARD_NAME + 1 };
	char name[FRAG_MEMLOG_NAME], *at = r->lines.text, *field;

	for (size_t c = 0; c < r->lay.columns; c++) {
		row.bytes[c] = NAN;
		field = frag_log_cut(&at, r->lay.part);
		if (field)
			take_field(&row, &r->lay, c, field);
	}
	for (size_t c = 0; c < r->lay.columns; c++) {
		if (isnan(row.bytes[c]))
			continue;
		name_series(r, &row, c, name);
		FRAG_TRY(add_value(r, name, row.time + row.day, row.bytes[c], row.total, err));
	}
	return 0;
}

/* A line of nvidia-smi -q: a head, or "name : value". */
static int take_query(struct reader *r, struct frag_err *err)
{
	const char *text = r->lines.text + strspn(r->lines.text, " "), *at = strstr(text, " : ");
	const double bytes = bytes_of(at ? at + 3 : "", 1048576);
	struct tm tm = { 0 };
	char name[FRAG_MEMLOG_NAME];

	if (at && strptime(at + 3, "%a %b %d %T %Y", &tm))
		r->time = (double)timegm(&tm);
	if (!at && !strncmp(text, "GPU ", 4))
		snprintf(r->label, sizeof(r->label), FRAG_MEMLOG_IN_USE "%.40s", text);
	if (!at)
		r->total = strncmp(text, "FB Memory", 9) ? NAN : 0;
	else if (!strncmp(text, "Total", 5) && !isnan(r->total))
		r->total = bytes;
	if (!at || strncmp(text, "Used ", 5) || isnan(r->total + bytes))
		return 0;
	memcpy(name, r->label, sizeof(name));
	return add_value(r, name, r->time, bytes, r->total, err);
}

/* A row of the table for people; see docs of nvidia-smi. */
static int take_row(struct reader *r, struct frag_err *err)
{
	const char *text = r->lines.text, *used = strstr(text, "MiB"), *from = used, *type, *what;
	unsigned long card, pid;
	struct tm tm = { 0 };
	char name[FRAG_MEMLOG_NAME], *end;
	int n = 0;

	if (strptime(text, "%a %b %d %T %Y", &tm))
		r->time = (double)timegm(&tm);
	if (sscanf(text, "| %lu %n%*[A-Z]", &card, &n) == 1 && strstr(text, ":")) {
		snprintf(name, 32, "%s", text + n);
		end = strstr(name, "  ") ?: strstr(name, " O"); /* "Off", "On" */
		snprintf(r->label, sizeof(r->label), FRAG_MEMLOG_IN_USE "GPU %lu (%.*s)", card,
			 end ? (int)(end - name) : 30, name);
	}
	if (text[0] != '|' || !used)
		return 0;
	while (isdigit((unsigned char)from[-1]))
		from--;
	if (!strncmp(used, "MiB / ", 6)) {
		memcpy(name, r->label, sizeof(name));
		return add_value(r, name, r->time, bytes_of(from, 1048576),
				 bytes_of(used + 6, 1048576), err);
	}
	type = strstr(text, " C ") ?: strstr(text, " G ") ?: strstr(text, " C+G ");
	what = type ? strchr(type + 1, ' ') : NULL;
	while (type && type[-1] == ' ')
		type--;
	while (type && isdigit((unsigned char)type[-1]))
		type--;
	if (!type || sscanf(type, "%lu", &pid) != 1)
		return 0;
	what += strspn(what, " ");
	snprintf(name, sizeof(name), FRAG_MEMLOG_IN_USE "process %lu (%.*s)", pid,
		 (int)FRAG_MIN(strcspn(what, " "), 40u), what);
	return add_value(r, name, r->time, bytes_of(from, 1048576), 0, err);
}

static int read_lines(struct reader *r, struct frag_err *err)
{
	int rc;

	r->log->unit = r->lay.unit;
	if (r->unread)
		FRAG_TRY(take_line(r, err));
	while ((rc = frag_log_next_line(&r->lines, LINE_MAX_BYTES, err)) == 1) {
		struct layout again;

		if (r->lay.take) {
			FRAG_TRY(r->lay.take(r, err));
			continue;
		}
		if (r->lines.text[0] == '#') /* dmon repeats its head */
			continue;
		if (!blanks(&r->lay) && has(r->lines.text, "memory.used") &&
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
	struct tm tm = { 0 };
	int rc;

	FRAG_TRY(frag_input_open(path, &r->lines.in, err));
	rc = frag_log_next_line(&r->lines, LINE_MAX_BYTES, err);
	r->time = NAN;
	if (rc == 1 && strptime(r->lines.text, "%a %b %d %T %Y", &tm)) {
		r->time = (double)timegm(&tm);
		rc = frag_log_next_line(&r->lines, LINE_MAX_BYTES, err);
	}
	if (rc == 1 && !strncmp(r->lines.text, "+---", 4))
		rc = frag_log_next_line(&r->lines, LINE_MAX_BYTES, err);
	if (rc != 1)
		return FRAG_MIN(rc, 0);
	r->lay = (struct layout){ .format = "nvidia-smi -q", .take = take_query };
	if (strstr(r->lines.text, "=NVSMI LOG="))
		return 1;
	r->lay = (struct layout){ .format = "nvidia-smi's table", .take = take_row };
	if (!strncmp(r->lines.text, "| NVIDIA-SMI ", 13))
		return 1;
	if (read_header(&r->lay, r->lines.text))
		return 1;
	r->unread = guess_header(&r->lay, r->lines.text);
	return r->unread;
}

int frag_memlog_read(const char *path, struct frag_memlog *out, struct frag_err *err)
{
	struct reader r = { .log = out, .label = FRAG_MEMLOG_IN_USE "GPU 0" };
	int rc;

	*out = (struct frag_memlog){ .first_time = NAN };
	rc = begin(&r, path, err);
	if (rc < 0 && r.lines.in)
		rc = 0; /* not text: the reader of traces reports what is wrong */
	if (rc == 1) {
		out->format = r.lay.format;
		rc = read_lines(&r, err) ?: 1;
		if (rc < 0)
			frag_err_prefix(err, "'%.200s'", path);
	}
	frag_log_lines_release(&r.lines);
	frag_input_close(r.lines.in);
	if (rc < 0)
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
