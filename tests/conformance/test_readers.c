/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every reader promises: whatever the bytes, a trace or an error with a sentence; then nothing
 * was left behind, also when host memory is short. The tests are filled from the registry. A reader
 * has a small file of its format, tests/conformance/samples/NAME; without one they are skipped.
 * That of nsys is what `nsys export --type sqlite` made of a run with --cuda-memory-usage=true, cut
 * to the tables around memory.
 */
#include <frag/trace.h>

#include "test.h"

#include "trace/input/input.h"

#define SAMPLE_MAX (1u << 20)
#define CUTS 400u /* places where a sample is cut */

static unsigned char sample[SAMPLE_MAX], damaged[SAMPLE_MAX + 4096];
static size_t sample_len;

static int read_bytes(const struct frag_reader_ops *ops, const void *bytes, size_t len,
		      struct frag_err *err)
{
	FRAG_AUTO(frag_input_close_at) struct frag_input *in = NULL;
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	int rc = frag_input_open_memory("sample", bytes, len, &in, err);

	if (!rc)
		rc = ops->read(in, NULL, &trace, err);
	if (rc && trace)
		fail_msg("%s: a trace beside the error '%s'", ops->name, err->msg);
	if (!rc && !trace)
		fail_msg("%s: neither trace nor error", ops->name);
	return rc;
}

static void refuse(const struct frag_reader_ops *ops, const void *bytes, size_t len,
		   const char *what)
{
	struct frag_err err = { 0 };
	int rc = read_bytes(ops, bytes, len, &err);

	if (rc != FRAG_EINPUT || err.code != rc || !*err.msg)
		fail_msg("%s: %s (%zu bytes): result %d, '%s'", ops->name, what, len, rc, err.msg);
}

static void load_sample(const struct frag_reader_ops *ops)
{
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "tests/conformance/samples/%s", ops->name);
	sample_len = 0;
	f = fopen(path, "rb");
	if (!f)
		return; /* begin() skips with a word */
	sample_len = fread(sample, 1, sizeof(sample), f);
	fclose(f);
	assert_true(sample_len > 0);
}

static const struct frag_reader_ops *begin(void **state)
{
	const struct frag_reader_ops *ops = *state;

	load_sample(ops);
	if (!sample_len) {
		print_message("# tests/conformance/samples/%s is missing\n", ops->name);
		skip();
	}
	return ops;
}

static bool is_text(void)
{
	for (size_t i = 0; i < sample_len; i++)
		if (sample[i] >= 0x7f || (sample[i] < ' ' && !strchr("\t\r\n", sample[i])))
			return false;
	return true;
}

static void takes_its_sample(void **state)
{
	const struct frag_reader_ops *ops = begin(state);
	const struct frag_reader_ops *const *list;
	struct frag_err err = { 0 };
	size_t count;
	int score = ops->probe(sample, sample_len);

	list = frag_reader_list(&count);
	for (size_t i = 0; i < count; i++)
		if (list[i] != ops && list[i]->probe(sample, sample_len) >= score)
			fail_msg("%s is as sure of it as %s", list[i]->name, ops->name);
	if (read_bytes(ops, sample, sample_len, &err))
		fail_msg("%s: %s", ops->name, err.msg);
}

static void empty_and_one_byte(void **state)
{
	const struct frag_reader_ops *ops = *state;
	unsigned char byte;

	assert_int_equal(ops->probe(sample, 0), 0);
	refuse(ops, "", 0, "nothing");
	for (unsigned i = 0; i < 256; i++) {
		byte = (unsigned char)i;
		refuse(ops, &byte, 1, "one byte");
	}
}

/* A text may end behind any line or digit; bytes that are missing elsewhere are noticed. */
static void truncated(void **state)
{
	const struct frag_reader_ops *ops = begin(state);
	size_t step = FRAG_MAX(sample_len / CUTS, (size_t)1);
	bool text = is_text();
	struct frag_err err;
	int rc;

	for (size_t n = 1; n < sample_len; n += step) {
		err = (struct frag_err){ 0 };
		rc = read_bytes(ops, sample, n, &err);
		if (rc ? rc != FRAG_EINPUT || !*err.msg : !text)
			fail_msg("%s cut to %zu bytes: result %d, '%s'", ops->name, n, rc, err.msg);
	}
}

/* The shortest beginning by which it is known, then noise. */
static void garbage_behind_the_magic(void **state)
{
	const struct frag_reader_ops *ops = begin(state);
	uint64_t x = 0x9e3779b97f4a7c15u;
	size_t magic = 0;

	while (magic < sample_len && !ops->probe(sample, magic))
		magic++;
	memcpy(damaged, sample, magic);
	for (unsigned round = 0; round < 50; round++) {
		for (size_t i = 0; i < 4096; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			damaged[magic + i] = (unsigned char)(x >> 32);
		}
		refuse(ops, damaged, magic + 4096, "garbage behind the magic");
	}
}

static void short_of_memory(void **state)
{
	const struct frag_reader_ops *ops = begin(state);
	struct frag_err err;
	int rc = FRAG_ENOMEM;

	for (uint64_t nth = 1; rc; nth++) {
		err = (struct frag_err){ 0 };
		frag_host_fail_after(nth);
		rc = read_bytes(ops, sample, sample_len, &err);
		frag_host_fail_after(0);
		if (rc && (rc != FRAG_ENOMEM || !*err.msg))
			fail_msg("%s: allocation %llu fails: result %d, '%s'", ops->name, (ull)nth,
				 rc, err.msg);
		if (nth > 100000)
			fail_msg("%s: never enough memory", ops->name);
	}
}

TESTS
{
	static const struct {
		const char *name;
		CMUnitTestFunction run;
	} each[] = {
		{ "takes its sample", takes_its_sample },
		{ "empty and one byte", empty_and_one_byte },
		{ "truncated", truncated },
		{ "garbage behind the magic", garbage_behind_the_magic },
		{ "short of memory", short_of_memory },
	};
	size_t count;
	const struct frag_reader_ops *const *list = frag_reader_list(&count);

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < FRAG_ARRAY_LEN(each); k++)
			test_add(each[k].run, list[i], "%s: %s", list[i]->name, each[k].name);
}
