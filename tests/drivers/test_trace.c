/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers of traces, driven by tests/unit/trace/readers.py: each call is about the file "input" here.
 * What was read is printed (trace_text.h) before "=", the result, its exit status and
 * place, and the message.
 */
#include "test.h"

#include <frag/torch.h>

#include "lines.h"
#include "trace/sidecar.h"
#include "trace/write_trace.h"
#include "trace/torch/torch_parts.h"
#include "trace/torch/unpickle.h"
#include "trace_text.h"

static struct frag_trace *trace; /* read last, or NULL */
static unsigned char *bytes;
static size_t bytes_count;

static void load(void)
{
	FILE *f = fopen("input", "rb");

	free(bytes);
	assert_true(f && !fseek(f, 0, SEEK_END));
	bytes_count = (size_t)ftell(f);
	rewind(f);
	bytes = malloc(bytes_count + 1);
	assert_true(bytes && fread(bytes, 1, bytes_count, f) == bytes_count);
	bytes[bytes_count] = 0;
	fclose(f);
}

/* ---- snapshots of PyTorch, from memory ---------------------------------------------------------- */

static int read_snapshot(const void *at, size_t n, const char *options, struct frag_trace **out,
			 struct frag_err *err)
{
	struct frag_input *in = NULL;
	int rc = frag_input_open_memory("snapshot", at, n, &in, err);

	*out = NULL;
	if (!rc)
		rc = frag_reader_torch.read(in, options, out, err);
	frag_input_close(in);
	assert_true(!rc == !!*out && (!rc || rc == err->code));
	return rc;
}

/* In a block of that size: a reader that looks further is caught by ASan. */
static void cut_everywhere(void)
{
	for (size_t n = 1; n < bytes_count; n++) {
		FRAG_AUTO(free_at) unsigned char *part = malloc(n);
		struct frag_trace *t;

		assert_non_null(part);
		memcpy(part, bytes, n);
		FAILS(FRAG_EINPUT, "truncated", read_snapshot(part, n, NULL, &t, &test_err));
	}
}

/* Any byte may be anything: never a crash, a hang or a leak. */
static void flip_everywhere(void)
{
	static const unsigned char flips[] = { 0x01, 0x80, 0xff, 0x10, 0x74 };

	for (size_t i = 0; i < bytes_count * sizeof(flips); i++) {
		struct frag_trace *t;

		bytes[i / sizeof(flips)] ^= flips[i % sizeof(flips)];
		if (read_snapshot(bytes, bytes_count, NULL, &t, &test_err))
			assert_true(test_err.code == FRAG_EINPUT && test_err.msg[0]);
		frag_trace_destroy(t);
		bytes[i / sizeof(flips)] ^= flips[i % sizeof(flips)];
	}
}

/* FLIPS: and every flipped byte and failing allocation */
static int attack(void)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *t = NULL;

	load();
	assert_true(frag_reader_torch.probe(bytes, bytes_count) > 90);
	cut_everywhere();
	if (!line_number(1))
		return 0;
	flip_everywhere();
	FAIL_ALLOCATIONS(read_snapshot(bytes, bytes_count, NULL, &t, &test_err))
	assert_null(t);
	return 0;
}

/* ---- values as text ------------------------------------------------------------------- */

static void say_value(struct frag_pickle *p, frag_pv v, FILE *out);

static void say_items(struct frag_pickle *p, struct frag_pickle_list *l, const char *ends,
		      uint32_t index, FILE *out)
{
	if (l->note) {
		fprintf(out, "list %u", index);
		return;
	}
	l->note = 1;
	fputc(ends[0], out);
	for (uint32_t i = 0; i < l->count; i++) {
		fputs(i ? ", " : "", out);
		say_value(p, l->items[i], out);
	}
	fputc(ends[1], out);
}

static void say_dict(struct frag_pickle *p, frag_pv v, FILE *out)
{
	const struct frag_pickle_node *n = frag_pickle_node(p, v);

	assert_non_null(n);
	if (frag_pickle_note(p, v, 1)) {
		fprintf(out, "dict %u", frag_pv_index(v));
		return;
	}
	fputc('{', out);
	for (uint32_t i = 0; i < n->count; i++) {
		fputs(i ? ", " : "", out);
		say_value(p, n->pairs[2 * i], out);
		fputs(": ", out);
		say_value(p, frag_node_get(n, frag_pv_index(n->pairs[2 * i])), out);
	}
	assert_int_equal(frag_node_get(n, 12345), FRAG_PV_HOLE);
	fputc('}', out);
}

static void say_number(struct frag_pickle *p, frag_pv v, FILE *out)
{
	int64_t i;
	uint64_t u;
	double d;

	if (frag_pickle_i64(p, v, &i))
		fprintf(out, "%lld%s", (long long)i,
			frag_pickle_u64(p, v, &u) == (i >= 0) ? "" : "?");
	else if (frag_pickle_u64(p, v, &u))
		fprintf(out, "%llu (unsigned)", (ull)u);
	else if (frag_pickle_f64(p, v, &d))
		fprintf(out, "%g", d);
	else
		fputs(v == FRAG_PV_NONE ? "None" : "too wide", out);
}

static void say_value(struct frag_pickle *p, frag_pv v, FILE *out)
{
	const char *text = frag_pickle_text(p, v, NULL);
	struct frag_pickle_list *list = frag_pickle_list(p, v), *tuple = frag_pickle_tuple(p, v);

	assert_true((!!text + !!list + !!tuple) <= 1);
	if (text)
		fprintf(out, "%s (%u)", text, frag_pv_index(v));
	else if (list)
		say_items(p, list, "[]", frag_pv_index(v), out);
	else if (tuple)
		say_items(p, tuple, "()", frag_pv_index(v), out);
	else if (frag_pv_tag(v) == FRAG_PV_DICT)
		say_dict(p, v, out);
	else
		say_number(p, v, out);
}

/* HOW [OPTIONS] */
static int read_trace(bool snapshot)
{
	int rc;

	frag_trace_destroy(trace);
	trace = NULL;
	load();
	rc = snapshot ? read_snapshot(bytes, bytes_count, line_words[1], &trace, &test_err)
		      : frag_trace_read("input", line_words[1], &trace, &test_err);
	assert_int_equal(rc, test_err.code);
	if (rc)
		return rc;
	assert_true(!snapshot || trace->file_bytes == bytes_count);
	trace_text(trace, false, stdout);
	return 0;
}

/* What the file beside a snapshot of 2.9 to 2.11 says. */
static int sidecar(void)
{
	struct frag_trace_dev devs[2] = { { .ordinal = 0 }, { .ordinal = 1 } };
	struct frag_trace t = { .devs = devs, .devs_count = 2 };

	load();
	t.settings.limit_bytes = UINT64_MAX;
	t.settings.torch_first = FRAG_TORCH(2, 9);
	t.settings.torch_last = FRAG_TORCH(2, 11);
	if (frag_sidecar_parse("x.meta.json", (char *)bytes, bytes_count, &t, &test_err)) {
		assert_false(t.settings.limit_known);
		return test_err.code;
	}
	for (int i = 0; i < 2; i++)
		if (devs[i].card.total_bytes)
			printf("device %d: '%s' has %llu, beside %llu; ", i, devs[i].card.name,
			       (ull)devs[i].card.total_bytes, (ull)devs[i].card.beside_bytes);
	if (t.settings.limit_known)
		printf("limit %llu; ", (ull)t.settings.limit_bytes);
	printf("torch %u to %u\n", t.settings.torch_first, t.settings.torch_last);
	return 0;
}

static int unpickle(void)
{
	static const char *const words[] = { "action", "size" };
	struct frag_pickle *p = NULL;
	struct frag_input *in = NULL;
	frag_pv root;
	int rc;

	load();
	rc = frag_input_open_memory("test", bytes, bytes_count, &in, &test_err);
	if (!rc)
		rc = frag_pickle_create(words, 2, NULL, NULL, &p, &test_err);
	if (!rc)
		rc = frag_pickle_read(p, in, &root, &test_err);
	if (!rc) {
		say_value(p, root, stdout);
		puts("");
	}
	frag_pickle_destroy(p);
	frag_input_close(in);
	return rc;
}

#define ON_CALL(word, call) \
	if (!strcmp(line_words[0], word)) \
		return call;

static int run(void)
{
	ON_CALL("read", read_trace(false))
	ON_CALL("snapshot", read_trace(true))
	ON_CALL("attack", attack())
	ON_CALL("minimalloc", frag_minimalloc_write(&trace->devs[0], line_words[1], &test_err))
	ON_CALL("sidecar", sidecar())
	ON_CALL("unpickle", unpickle())
	fail_msg("unknown call '%s'", line_words[0]);
	return 0;
}

static void answer(void)
{
	int rc;

	test_err = (struct frag_err){ 0 };
	rc = run();
	printf("=\t%d", rc);
	if (rc)
		printf("\t%d\t%llu\t%s", frag_code_exit(rc), (ull)test_err.offset, test_err.msg);
	puts("");
}

int main(void)
{
	lines_run(answer);
	frag_trace_destroy(trace);
	free(bytes);
	return 0;
}
