/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers and writers of traces, driven by the programs in tests/unit/trace: each call is about the
 * file "input" here. What was read is printed (trace_text.h) before "=", the result, its exit
 * status and place, and the message.
 */
#include "test.h"

#include <frag/torch.h>

#include "lines.h"
#include "must.h"
#include "plain_bytes.h"
#include "trace/cft/cft.h"
#include "trace/gen/gen_repeat.h"
#include "trace/whole.h"
#include "trace/strings.h"
#include "trace/torch/torch_parts.h"
#include "trace_text.h"
#include "verify/follow.h"

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

/* ---- from memory ------------------------------------------------------------------------ */

extern const struct frag_reader_ops frag_reader_cft;

static int read_by(const struct frag_reader_ops *reader, const void *at, size_t n,
		   const char *options, struct frag_trace **out, struct frag_err *err)
{
	struct frag_input *in = NULL;
	int rc = frag_input_open_memory("snapshot", at, n, &in, err);

	*out = NULL;
	if (!rc)
		rc = reader->read(in, options, out, err);
	frag_input_close(in);
	assert_true(!rc == !!*out && (!rc || rc == err->code));
	return rc;
}

/* ---- .cft ------------------------------------------------------------------------------- */

static char *image_of(const struct frag_trace *t, size_t *len)
{
	char *image = NULL;
	FILE *to = open_memstream(&image, len);

	assert_non_null(to);
	SUCCEEDS(frag_cft_write_stream(t, to, &test_err));
	fclose(to);
	return image;
}

/* What goes in comes out, and is written again as the same bytes. */
static int round_trip(void)
{
	size_t len, again_len;
	FRAG_AUTO(free_at) char *before = trace_text_of(trace, true), *after = NULL;
	FRAG_AUTO(free_at) char *image = NULL, *again = NULL;
	AUTO_TRACE back = NULL;

	if (!trace->strings)
		SUCCEEDS(frag_strings_create(&trace->strings, &test_err));
	image = image_of(trace, &len);
	SUCCEEDS(read_by(&frag_reader_cft, image, len, NULL, &back, &test_err));
	if (!trace->settings.present && !trace->devs[0].has_evidence) /* no sign of PyTorch */
		frag_trace_set_torch(back, trace->settings.torch_first, trace->settings.torch_last);
	after = trace_text_of(back, true);
	again = image_of(back, &again_len);
	if (strcmp(before, after) || again_len != len || memcmp(again, image, len)) {
		fprintf(stderr, "not as it was:\n%.2000s\n%.2000s", before, after);
		abort();
	}
	return 0;
}

/* OUT */
static int write_cft(void)
{
	return frag_trace_write_cft(trace, line_words[1], &test_err);
}

static int repeat_short_of_memory(void)
{
	FRAG_AUTO(frag_repeat_release) struct frag_repeat r = { 0 };

	FAIL_ALLOCATIONS(frag_repeat_init(&r, trace, &(struct frag_repeat_options){ .times = 3 },
					  &test_err));
	return 0;
}

static int write_short_of_memory(void)
{
	FRAG_AUTO(fclose_at) FILE *to = fopen("/dev/null", "w");

	FAIL_ALLOCATIONS(frag_cft_write_stream(trace, to, &test_err));
	return 0;
}

/* The text that a .cft has of its cards. */
static int read_cards(void)
{
	const char *wrong;

	load();
	wrong = frag_cft_cards_read(bytes_count ? (char *)bytes : NULL, trace);
	puts(wrong ? wrong : trace->devs[1].card.name);
	return 0;
}

/* Makes all checksums of the input good, also those of a .cft that grows. */
static int sign(void)
{
	struct frag_cft_block b;
	FILE *to;

	load();
	for (size_t at = FRAG_CFT_PREAMBLE, n = 0; bytes_count >= at + sizeof(b); n++) {
		memcpy(&b, bytes + at, sizeof(b));
		if (b.payload > bytes_count - at - sizeof(b))
			break;
		b.checksum = frag_cft_checksum(&b, bytes + at + sizeof(b), n);
		memcpy(bytes + at, &b, sizeof(b));
		at += sizeof(b) + b.payload;
	}
	to = fopen("input", "wb");
	assert_true(to && fwrite(bytes, 1, bytes_count, to) == bytes_count);
	fclose(to);
	return 0;
}

/* WHAT INDEX VALUE: of device 0 */
static int set_field(void)
{
	struct frag_trace_dev *d = &trace->devs[0];
	uint64_t i = line_number(2), value = line_number(3);

#define FIELD(name, place) \
	if (!strcmp(line_words[1], name)) \
		return (place) = value, 0;
	FIELD("event.bytes", d->events[i].bytes)
	FIELD("event.flags", d->events[i].flags)
	FIELD("event.kind", d->events[i].kind)
	FIELD("event.pool", d->events[i].pool)
	FIELD("event.slot", d->events[i].slot)
	FIELD("event.stack", d->events[i].stack)
	FIELD("event.stream", d->events[i].stream)
	FIELD("addr", d->addrs[i])
	FIELD("initial.bytes", d->initial_blocks[i].bytes)
	FIELD("initial.slot", d->initial_blocks[i].slot)
	FIELD("initial.blocks", d->initial_segments[i].blocks_count)
	FIELD("seen.before", d->seen[i].before)
	FIELD("seen.kind", d->seen[i].kind)
	FIELD("final.first", d->final_segments[i].first_block)
	FIELD("final.state", d->final_blocks[i].state)
	FIELD("stream", d->streams[i])
	FIELD("pool", d->pools[i].b)
#undef FIELD
	fail_msg("unknown field '%s'", line_words[1]);
	return 0;
}

/* No slot is the one that a reader gives: every number the other way round. */
static int reverse_slots(void)
{
	struct frag_trace_dev *d = &trace->devs[0];

	for (size_t i = 0; i < d->events_count; i++)
		if (d->events[i].kind <= FRAG_EV_FREE_COMPLETED)
			d->events[i].slot = d->slots_count - 1 - d->events[i].slot;
	return 0;
}

/* ---- several traces ---------------------------------------------------------------------- */

static int merge_files(uint64_t fail_after)
{
	struct frag_trace *parts[LINE_WORDS] = { 0 };
	size_t count = 0;
	int rc;

	for (; line_words[count + 1]; count++)
		parts[count] = must_read(line_words[count + 1]);
	frag_trace_destroy(trace);
	trace = NULL;
	frag_host_fail_after(fail_after);
	rc = frag_trace_merge(parts, count, &trace, &test_err);
	frag_host_fail_after(0);
	assert_true(!rc == !!trace);
	for (size_t i = 0; i < count; i++)
		frag_trace_destroy(parts[i]);
	return rc;
}

/* FILE… */
static int merge(void)
{
	int rc = merge_files(0);

	if (rc)
		return rc;
	for (uint64_t n = 1; (rc = merge_files(n)); n++)
		assert_true(rc == FRAG_ENOMEM && n < 1000);
	puts(trace->name);
	trace_text(trace, false, stdout);
	return round_trip();
}

/* ---- bytes -------------------------------------------------------------------------------- */

/* FILE: what the input holds, unpacked, goes to "plain". */
static int unpack(void)
{
	FRAG_AUTO(fclose_at) FILE *to = fopen("plain", "wb");

	if (!line_number(1))
		load();
	return plain_bytes(line_number(1) ? NULL : bytes, bytes_count, to);
}

static int unpack_short_of_memory(void)
{
	load();
	plain_bytes_short_of_memory(bytes, bytes_count);
	return 0;
}

static int pack(void)
{
	FRAG_AUTO(fclose_at) FILE *to = NULL;

	load();
	to = fopen("input", "wb");
	pack_zstd(bytes, bytes_count, to);
	return 0;
}

/* ---- readers ------------------------------------------------------------------------------ */

/* HOW [OPTIONS] */
static int read_trace(void)
{
	bool snapshot = !strcmp(line_words[0], "snapshot");
	int rc;

	frag_trace_destroy(trace);
	trace = NULL;
	load();
	rc = snapshot ? read_by(&frag_reader_torch, bytes, bytes_count, line_words[1], &trace,
				&test_err)
		      : frag_trace_read("input", line_words[1], &trace, &test_err);
	assert_int_equal(rc, test_err.code);
	if (rc)
		return rc;
	assert_true(!snapshot || trace->file_bytes == bytes_count);
	trace_text(trace, false, stdout);
	return bytes_count < 100000 ? round_trip() : 0;
}

/* RELEASE LIMIT [known]: what is settled of device 0, and the device then. A replay of an identical
 * recording that begins as it began reserves as much as it did. */
static int verify(void)
{
	const struct frag_sim_config card = { .context_bytes = UINT64_MAX };
	const uint64_t limit = line_number(2) ? line_number(2) : UINT64_MAX;
	FRAG_AUTO(frag_verify_result_release) struct frag_verify_result r = { 0 };
	struct frag_trace_dev *dev = &trace->devs[0];
	struct frag_run_options opt = default_run();
	char said[600];

	trace->settings.limit_known |= line_words[3] != NULL;
	frag_trace_set_torch(trace, (unsigned)line_number(1), (unsigned)line_number(1));
	SUCCEEDS(frag_settle(trace, &card, limit, limit != UINT64_MAX, &test_err) ||
		 frag_verify(trace, 0, &card, limit, NULL, &r, &test_err));
	assert_int_equal(r.identical, dev->settled.identical);
	assert_int_equal(r.undetermined, dev->settled.undetermined);
	frag_settled_text(&dev->settled, said, sizeof(said));
	assert_int_equal(!strncmp(said, "undetermined from event", 23), r.undetermined);
	puts(said);
	trace_text(trace, false, stdout);
	if (r.identical && dev->initial.segments_count) {
		FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
		FRAG_AUTO(frag_result_release) struct frag_result result = { 0 };

		opt.limit_bytes = dev->settled.limit_bytes;
		opt.restore = true;
		SUCCEEDS(follow_spec(trace, NULL, &spec, NULL));
		SUCCEEDS(frag_replay_sim(spec, &card, dev, &opt, &result, NULL));
		assert_int_equal(result.m.peak_reserved_bytes, dev->settled.peak_bytes);
	}
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
	load();
	return pickle_text(bytes, bytes_count, stdout);
}

static int write_minimalloc(void)
{
	return frag_minimalloc_write(&trace->devs[0], line_words[1], &test_err);
}

static int run(void)
{
	static const struct {
		const char *word;
		int (*run)(void);
	} calls[] = {
		{ "read", read_trace },
		{ "snapshot", read_trace },
		{ "minimalloc", write_minimalloc },
		{ "verify", verify },
		{ "sidecar", sidecar },
		{ "unpickle", unpickle },
		{ "round", round_trip },
		{ "cft", write_cft },
		{ "cft-short", write_short_of_memory },
		{ "repeat-short", repeat_short_of_memory },
		{ "cards", read_cards },
		{ "sign", sign },
		{ "set", set_field },
		{ "reverse", reverse_slots },
		{ "merge", merge },
		{ "zstd", pack },
		{ "unpack", unpack },
		{ "unpack-short", unpack_short_of_memory },
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(calls); i++)
		if (!strcmp(line_words[0], calls[i].word))
			return calls[i].run();
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
	setenv("CMOCKA_MESSAGE_OUTPUT", "STDOUT", 1);
	lines_run(answer);
	frag_trace_destroy(trace);
	free(bytes);
	return 0;
}
