/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the readers make of files: readers/ has small files as text, and beside each what was read,
 * or why it was refused and where (CASES_REWRITE=1 writes that again). Lines that begin with '!' go
 * in front of a file:
 *
 *	!options device=0	the reader's options
 *	!escapes		the file holds C's escapes
 *	!attack			and every cut, flipped byte and failing allocation (pickles)
 */
#include "test.h"

#include <unistd.h>

#include <sqlite3.h>

#include <frag/torch.h>

#include "trace/minimalloc/minimalloc.h"
#include "trace/sidecar.h"
#include "trace/torch/torch_parts.h"
#include "pickle_text.h"
#include "trace_text.h"

struct directives {
	char options[200];
	bool escapes, attack;
};

/* Returns where the file itself begins. */
static const char *take_directives(const char *text, struct directives *d)
{
	*d = (struct directives){ 0 };
	for (; *text == '!'; text = strchr(text, '\n') + 1) {
		sscanf(text, "!options %199[^\n]", d->options);
		d->escapes |= !strncmp(text, "!escapes\n", 9);
		d->attack |= !strncmp(text, "!attack\n", 8);
	}
	return text;
}

static void say(const struct frag_trace *t, const struct frag_err *err, FILE *out)
{
	if (err->code)
		cases_error(out, err);
	else
		trace_text(t, false, out);
}

/* ---- files ----------------------------------------------------------------------- */

/* Within a folder of its own, so that messages have a name that stays the same. */
static void in_folder(void (*make)(const char *path, const void *bytes, size_t n),
		      const void *bytes, size_t n, const char *options, struct frag_trace **t,
		      struct frag_err *err)
{
	FRAG_AUTO(free_at) char *top = get_current_dir_name();
	char folder[] = "/tmp/cufrag-readers-XXXXXX";
	int rc;

	assert_true(top && mkdtemp(folder) && !chdir(folder));
	make("input", bytes, n);
	*err = (struct frag_err){ 0 };
	*t = NULL;
	rc = frag_trace_read("input", options, t, err);
	assert_int_equal(rc, err->code);
	unlink("input");
	assert_true(!chdir(top) && !rmdir(folder));
}

static void make_file(const char *path, const void *bytes, size_t n)
{
	FRAG_AUTO(fclose_at) FILE *f = fopen(path, "wb");

	assert_true(f && fwrite(bytes, 1, n, f) == n);
}

static void make_database(const char *path, const void *sql, size_t n)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void answer_file(const char *text, FILE *out)
{
	struct directives d;
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *t = NULL;
	size_t n = 0;
	const char *body = take_directives(text, &d);
	FRAG_AUTO(free_at) char *bytes = d.escapes ? cases_unescape(body, &n) : strdup(body);

	assert_non_null(bytes);
	/* with escapes, the last line ends only if it says so */
	in_folder(make_file, bytes, d.escapes ? n - 1 : strlen(bytes), d.options, &t, &test_err);
	say(t, &test_err, out);
}

/* Without times: moments that are written are numbered. */
static char *order_of(struct frag_trace *t)
{
	for (size_t i = 0; i < t->devs[0].events_count; i++)
		t->devs[0].events[i].time_us = 0;
	return trace_text_of(t, false);
}

/* MiniMalloc's format is written, too: what was read comes out of that as it was. */
static void answer_minimalloc(const char *text, FILE *out)
{
	FRAG_AUTO(free_at) char *first = NULL, *second = NULL;
	char path[] = "/tmp/buffersXXXXXX.csv";
	size_t n;
	FRAG_AUTO(free_at) char *bytes = cases_unescape(text, &n);
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *t = NULL, *again = NULL;

	in_folder(make_file, bytes, n, NULL, &t, &test_err);
	assert_int_equal(test_err.code, 0);
	close(mkstemps(path, 4));
	SUCCEEDS(frag_minimalloc_write(&t->devs[0], path, NULL));
	SUCCEEDS(frag_trace_read(path, NULL, &again, NULL));
	unlink(path);
	say(t, &test_err, out);
	first = order_of(t);
	second = order_of(again);
	assert_string_equal(first, second);
}

/* One line each, with escapes. */
static void answer_line(char *call, FILE *out)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *t = NULL;
	size_t n;
	FRAG_AUTO(free_at) char *bytes = cases_unescape(call, &n);

	in_folder(make_file, bytes, n, NULL, &t, &test_err);
	say(t, &test_err, out);
}

static void answer_sql(const char *text, FILE *out)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *t = NULL;

	in_folder(make_database, text, 0, NULL, &t, &test_err);
	say(t, &test_err, out);
}

/* ---- the file beside a snapshot ----------------------------------------------------- */

static void answer_sidecar(char *call, FILE *out)
{
	struct frag_trace_dev devs[2] = { { .ordinal = 0 }, { .ordinal = 1 } };
	struct frag_trace t = { .devs = devs, .devs_count = 2 };
	size_t n;
	FRAG_AUTO(free_at) char *bytes = cases_unescape(call, &n);

	t.settings.limit_bytes = UINT64_MAX;
	t.settings.torch_first = FRAG_TORCH(2, 9);
	t.settings.torch_last = FRAG_TORCH(2, 11);
	if (frag_sidecar_parse("x.meta.json", bytes, n, &t, &test_err)) {
		assert_false(t.settings.limit_known);
		cases_error(out, &test_err);
	} else {
		for (int i = 0; i < 2; i++)
			if (devs[i].card.total_bytes)
				fprintf(out, "device %d: '%s' has %llu, beside %llu; ", i,
					devs[i].card.name, (ull)devs[i].card.total_bytes,
					(ull)devs[i].card.beside_bytes);
		if (t.settings.limit_known)
			fprintf(out, "limit %llu; ", (ull)t.settings.limit_bytes);
		fprintf(out, "torch %u to %u", t.settings.torch_first, t.settings.torch_last);
	}
}

/* ---- snapshots of PyTorch ------------------------------------------------------------ */

/* In a block of that size: a reader that looks further is caught by ASan. */
static void cut_everywhere(const struct pickle_bytes *b)
{
	for (size_t n = 1; n < b->len; n++) {
		FRAG_AUTO(free_at) unsigned char *part = malloc(n);
		struct frag_trace *t;

		assert_non_null(part);
		memcpy(part, b->bytes, n);
		FAILS(FRAG_EINPUT, "truncated", snapshot_read(part, n, NULL, &t, &test_err));
	}
}

/* Any byte may be anything: never a crash, a hang or a leak. */
static void flip_everywhere(struct pickle_bytes *b)
{
	static const unsigned char flips[] = { 0x01, 0x80, 0xff, 0x10, 0x74 };

	for (size_t i = 0; i < b->len * sizeof(flips); i++) {
		struct frag_trace *t;

		b->bytes[i / sizeof(flips)] ^= flips[i % sizeof(flips)];
		if (snapshot_read(b->bytes, b->len, NULL, &t, &test_err))
			assert_true(test_err.code == FRAG_EINPUT && test_err.msg[0]);
		frag_trace_destroy(t);
		b->bytes[i / sizeof(flips)] ^= flips[i % sizeof(flips)];
	}
}

static void fail_every_allocation(const struct pickle_bytes *b)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *t = NULL;

	FAIL_ALLOCATIONS(snapshot_read(b->bytes, b->len, NULL, &t, &test_err))
	assert_null(t);
}

static char *snapshot_text(const char *body, const struct directives *d,
			   enum pickle_dialect dialect)
{
	FRAG_AUTO(pb_release) struct pickle_bytes b = pickle_of(dialect, body);
	char *answer = NULL;
	size_t n;
	FILE *out = open_memstream(&answer, &n);
	struct frag_trace *t;

	assert_non_null(out);
	test_err = (struct frag_err){ 0 };
	if (snapshot_read(b.bytes, b.len, d->options, &t, &test_err)) {
		/* where it is differs from dialect to dialect */
		assert_non_null(test_err.code == FRAG_EUSAGE ? test_err.msg
							     : strstr(test_err.msg, "'snapshot'"));
		test_err.offset = 0;
	}
	say(t, &test_err, out);
	fclose(out);
	if (t)
		assert_int_equal(t->file_bytes, b.len);
	frag_trace_destroy(t);
	if (d->attack) {
		assert_true(frag_reader_torch.probe(b.bytes, b.len) > 90);
		cut_everywhere(&b);
		if (dialect == PICKLE_PYTHON) {
			flip_everywhere(&b);
			fail_every_allocation(&b);
		}
	}
	return answer;
}

/* However it is written, it reads the same; libtorch remembers no lists and dicts. */
static void say_snapshot(const char *body, const struct directives *d, FILE *out)
{
	FRAG_AUTO(free_at) char *python = snapshot_text(body, d, PICKLE_PYTHON);
	char *other;

	fputs(python, out);
	for (int dialect = PICKLE_PYTHON2; dialect <= PICKLE_LIBTORCH; dialect++) {
		if (dialect == PICKLE_LIBTORCH && strpbrk(body, "&!"))
			continue;
		other = snapshot_text(body, d, (enum pickle_dialect)dialect);
		assert_string_equal(python, other);
		free(other);
	}
}

static void answer_snapshot(const char *text, FILE *out)
{
	struct directives d;
	const char *body = take_directives(text, &d);

	say_snapshot(body, &d, out);
}

static void answer_snapshot_line(char *call, FILE *out)
{
	char *bar = strstr(call, " | ");
	struct directives d = { 0 };

	if (bar)
		snprintf(d.options, sizeof(d.options), "%.*s", (int)(bar - call), call);
	say_snapshot(bar ? bar + 3 : call, &d, out);
}

#define IN_PARTS(name, answer) CASES_IN_PARTS("tests/unit/trace/readers/" name ".cases", answer)
#define IN_LINES(name, answer) CASES_IN_LINES("tests/unit/trace/readers/" name ".cases", answer)

IN_PARTS("csv", answer_file)
IN_PARTS("jsonl", answer_file)
IN_PARTS("rmm", answer_file)
IN_PARTS("umpire", answer_file)
IN_PARTS("kineto", answer_file)
IN_PARTS("minimalloc", answer_minimalloc)
IN_PARTS("nsys", answer_sql)
IN_LINES("refused", answer_line)
IN_LINES("sidecar", answer_sidecar)
IN_PARTS("torch", answer_snapshot)
IN_LINES("torch_refused", answer_snapshot_line)
