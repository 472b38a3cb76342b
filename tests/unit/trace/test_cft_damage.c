/* SPDX-License-Identifier: Apache-2.0 */
/* .cft: whatever is damaged, hostile or unsound is refused, and nothing of it handed out. */
#include "test.h"

#include <frag/trace.h>

#include "trace/cft/cft_parse.h"
#include "trace/cft/cft_write.h"
#include "packed.h"
#include "sample_trace.h"

/* ---- damage ----------------------------------------------------------------------- */

static struct blob small_image(void)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *t = sample_trace_small();
	struct blob im = cft_image_of(t);

	return im;
}

/* It is, and why. */
static struct frag_err refused(const void *bytes, size_t len)
{
	struct frag_trace *back;

	assert_int_equal(cft_image_read(bytes, len, NULL, &back, &test_err), FRAG_EINPUT);
	assert_null(back);
	assert_true(test_err.msg[0] != '\0');
	return test_err;
}

static void accepted(const struct blob *im)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *back = NULL;

	SUCCEEDS(cft_image_read(im->bytes, im->len, NULL, &back, NULL));
}

TEST(test_truncated_anywhere)
{
	FRAG_AUTO(blob_release) struct blob im = small_image();

	for (size_t len = 1; len < im.len; len++)
		refused(im.bytes, len);
}

TEST(test_damaged_anywhere)
{
	static const unsigned char flips[] = { 0x01, 0x80, 0xff, 0x55 };
	FRAG_AUTO(blob_release) struct blob im = small_image();

	for (size_t at = 0; at < im.len; at++) {
		for (size_t k = 0; k < sizeof(flips); k++) {
			im.bytes[at] ^= flips[k];
			refused(im.bytes, im.len);
			im.bytes[at] ^= flips[k];
		}
	}
}

TEST(test_more_behind)
{
	FRAG_AUTO(blob_release) struct blob im = small_image();
	char *more = calloc(1, im.len + 1);

	memcpy(more, im.bytes, im.len);
	assert_int_equal(refused(more, im.len + 1).offset, im.len);
	free(more);
}

TEST(test_cards_that_are_none)
{
	static const char *const bad[] = {
		"",
		"-",
		"-\n",
		"-\n-\n-\n",
		"-\n1 2 3\n",
		"-\n1 2 3 0.5\n",
		"-\n1 2 3 1.5 x\n",
		"-\n1 2 3 nan x\n",
		"-\n-1 2 3 0.5 x\n",
		"-\n99999999999999999999 2 3 0.5 x\n",
		"-\n 1 2 3 0.5 x\n",
		"-\n1 2 3 0.5 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
	};
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *t = sample_trace_small();

	for (size_t i = 0; i < FRAG_ARRAY_LEN(bad); i++)
		assert_non_null(frag_cft_cards_read(bad[i], t));
	assert_non_null(frag_cft_cards_read(NULL, t));
	assert_null(frag_cft_cards_read("-\n1 2 3 0.5 a card\n", t));
	assert_string_equal(t->devs[1].card.name, "a card");
}

TEST(test_other_version)
{
	FRAG_AUTO(blob_release) struct blob im = small_image();

	im.bytes[FRAG_CFT_MAGIC_BYTES] = 6;
	assert_non_null(strstr(refused(im.bytes, im.len).msg, "version 6"));
	/* a recording that grows, whose blocks are others */
	im.bytes[FRAG_CFT_MAGIC_BYTES] = 4;
	assert_non_null(strstr(refused(im.bytes, im.len).msg, "block 0 at byte 16: no block begins "
							      "here"));
}

/* ---- hostile files: wrong, but with the right checksums --------------------------------- */

/* Offset of the n-th block (from 0) of this type. */
static size_t find_block(const struct blob *im, unsigned type, unsigned n)
{
	size_t at = FRAG_CFT_PREAMBLE;

	while (at < im->len) {
		struct frag_cft_block b;

		memcpy(&b, im->bytes + at, sizeof(b));
		if (b.type == type && !n--)
			return at;
		at += sizeof(b) + b.payload;
	}
	fail_msg("no block of type %u", type);
	return 0;
}

/* All checksums anew; leaves the rest as it is. */
static void sign(struct blob *im)
{
	size_t at = FRAG_CFT_PREAMBLE;

	for (uint64_t n = 0; at < im->len; n++) {
		struct frag_cft_block b;

		memcpy(&b, im->bytes + at, sizeof(b));
		b.checksum = frag_cft_checksum(&b, im->bytes + at + sizeof(b), n);
		memcpy(im->bytes + at, &b, sizeof(b));
		at += sizeof(b) + b.payload;
	}
}

/* Replaces the block at `at` by these bytes (a head and its payload, or nothing). */
static void splice(struct blob *im, size_t at, const void *with, size_t len)
{
	struct frag_cft_block b;
	size_t old;
	unsigned char *bytes;

	memcpy(&b, im->bytes + at, sizeof(b));
	old = sizeof(b) + b.payload;
	bytes = malloc(im->len - old + len);
	memcpy(bytes, im->bytes, at);
	if (len)
		memcpy(bytes + at, with, len);
	memcpy(bytes + at + len, im->bytes + at + old, im->len - at - old);
	free(im->bytes);
	im->bytes = bytes;
	im->len = im->len - old + len;
	sign(im);
}

/* Rewrites the numbers of the n-th device. */
static void change_device(struct blob *im, unsigned n,
			  void (*change)(struct frag_cft_device_values *))
{
	size_t at = find_block(im, FRAG_CFT_DEVICE, n);
	struct frag_cft_device_values values;
	FRAG_AUTO(frag_cft_unpacker_release) struct frag_cft_unpacker u = { 0 };
	FRAG_AUTO(frag_cft_packer_release) struct frag_cft_packer p = { 0 };
	struct frag_cft_block b;
	size_t rest;
	FRAG_AUTO(free_at) char *block = NULL;

	memcpy(&b, im->bytes + at, sizeof(b));
	SUCCEEDS(frag_cft_unpacker_init(&u, NULL));
	SUCCEEDS(frag_cft_packer_init(&p, NULL));
	frag_cft_unpacker_set(&u, im->bytes + at + sizeof(b), b.payload, 0);
	SUCCEEDS(frag_cft_unpack_struct(&frag_cft_device, &values, &u, NULL));
	change(&values);
	SUCCEEDS(frag_cft_pack_struct(&frag_cft_device, &values, &p, NULL));
	rest = (size_t)(u.end - u.pos);
	b.payload = (uint32_t)(p.len + rest);
	block = malloc(sizeof(b) + b.payload);
	memcpy(block, &b, sizeof(b));
	memcpy(block + sizeof(b), p.out, p.len);
	memcpy(block + sizeof(b) + p.len, u.pos, rest);
	splice(im, at, block, sizeof(b) + b.payload);
}

/* One function for each row. */
#define HOSTILE_COUNTS(X) \
	X(many_events, v->dev.events_count = SIZE_MAX / 2) \
	X(one_event_less, v->dev.events_count--) \
	X(many_slots, v->dev.slots_count = UINT32_MAX) \
	X(few_slots, v->dev.slots_count = 1) \
	X(many_streams, v->dev.streams_count = 1u << 31) \
	X(many_pools, v->dev.pools_count = 1u << 31) \
	X(many_seen, v->dev.seen_count = SIZE_MAX / 64) \
	X(no_seen, v->dev.seen_count = 0) \
	X(many_finals, v->dev.final_blocks_count = SIZE_MAX / 64) \
	X(many_initial, v->initial_blocks = UINT64_MAX / 64) \
	X(no_initial_state, v->initial_blocks = 0) \
	X(no_addrs, v->has_addrs = false)
#define X(name, change) \
	static void name(struct frag_cft_device_values *v) \
	{ \
		change; \
	}
HOSTILE_COUNTS(X)
X(no_change, (void)v)
#undef X

TEST(test_hostile_counts)
{
	static void (*const changes[])(struct frag_cft_device_values *) = {
#define X(name, change) name,
		HOSTILE_COUNTS(X)
#undef X
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(changes); i++) {
		FRAG_AUTO(blob_release) struct blob im = small_image();

		change_device(&im, 0, no_change);
		accepted(&im);
		change_device(&im, 0, changes[i]);
		assert_non_null(strstr(refused(im.bytes, im.len).msg, "byte"));
	}
}

TEST(test_blocks_lost_doubled_swapped)
{
	static const unsigned types[] = { FRAG_CFT_STRINGS, FRAG_CFT_FRAMES,
					  FRAG_CFT_DEVICE,  FRAG_CFT_INITIAL_BLOCKS,
					  FRAG_CFT_EVENTS,  FRAG_CFT_ADDRS,
					  FRAG_CFT_SEEN,    FRAG_CFT_FINAL_SEGMENTS,
					  FRAG_CFT_END };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(types); i++) {
		FRAG_AUTO(blob_release) struct blob im = small_image();
		size_t at = find_block(&im, types[i], 0), len;
		struct frag_cft_block b;
		char *twice;

		memcpy(&b, im.bytes + at, sizeof(b));
		len = sizeof(b) + b.payload;
		twice = malloc(2 * len);
		memcpy(twice, im.bytes + at, len);
		memcpy(twice + len, im.bytes + at, len);
		splice(&im, at, twice, 2 * len);
		refused(im.bytes, im.len);
		splice(&im, at, NULL, 0);
		accepted(&im);
		splice(&im, at, NULL, 0);
		refused(im.bytes, im.len);
		free(twice);
	}
}

/* Events that are right elsewhere: other streams, other slots, frees of what is not live. */
TEST(test_foreign_events)
{
	FRAG_AUTO(frag_trace_destroy_at)
	struct frag_trace *a = sample_trace_random(5, 70000, false, false);
	FRAG_AUTO(frag_trace_destroy_at)
	struct frag_trace *b = sample_trace_random(6, 70000, false, false);
	FRAG_AUTO(blob_release) struct blob from = cft_image_of(a), to = cft_image_of(b);
	size_t second = find_block(&from, FRAG_CFT_EVENTS, 1), at;
	struct frag_cft_block head;

	memcpy(&head, from.bytes + second, sizeof(head));
	at = find_block(&to, FRAG_CFT_EVENTS, 1);
	splice(&to, at, from.bytes + second, sizeof(head) + head.payload);
	assert_true(refused(to.bytes, to.len).offset > at);
}

/* ---- what the writer refuses ---------------------------------------------------------------- */

#define UNSOUND_TRACES(X) \
	X(free_twice, d->events[11] = d->events[8]) \
	X(free_wrong_size, d->events[11].bytes++) \
	X(free_never_used, d->events[11].slot = 77) \
	X(alloc_nothing, d->events[3].bytes = 0) \
	X(alloc_over_live, d->events[4].slot = 0) \
	X(alloc_beyond, d->events[4].slot = 3) \
	X(wrong_stream, d->events[3].stream = 3) \
	X(wrong_pool, d->events[9].pool = 3) \
	X(wrong_stack, d->events[3].stack = 3) \
	X(wrong_kind, d->events[5].kind = FRAG_EV_COUNT) \
	X(wrong_mark, d->events[5].slot = 5) \
	X(late_initial, d->events[3].flags = FRAG_EVF_INITIAL) \
	X(missing_initial, d->events[1].flags = 0) \
	X(other_initial, d->initial_blocks[1].slot = 2) \
	X(initial_outside, d->initial_blocks[0].bytes = 3 * MIB) \
	X(initial_wraps, d->initial_blocks[0].bytes = UINT64_MAX) \
	X(seed_segment_blocks, d->initial_segments[1].blocks_count = 2) \
	X(stray_addr, d->addrs[2] = 0) \
	X(seen_backwards, d->seen[1].before = 8) \
	X(seen_beyond, d->seen[5].before = 13) \
	X(seen_kind, d->seen[0].kind = FRAG_SEEN_SNAPSHOT + 1) \
	X(final_blocks, d->final_segments[1].first_block = 4) \
	X(final_state, d->final_blocks[0].state = 3) \
	X(streams_unsorted, d->streams[1] = 0) \
	X(pool_first, d->pools[0].b = 1)
#define X(name, change) \
	static void name(struct frag_trace_dev *d) \
	{ \
		change; \
	}
UNSOUND_TRACES(X)
#undef X

TEST(test_unsound_traces)
{
	static const struct {
		const char *name;
		void (*make)(struct frag_trace_dev *d);
	} changes[] = {
#define X(name, change) { #name, name },
		UNSOUND_TRACES(X)
#undef X
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(changes); i++) {
		FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *t = sample_trace_small();
		FRAG_AUTO(fclose_at) FILE *to = fopen("/dev/null", "w");

		changes[i].make(&t->devs[0]);
		assert_non_null(to);
		if (frag_cft_write_stream(t, to, &test_err) != FRAG_EINPUT)
			fail_msg("%s was accepted", changes[i].name);
		assert_non_null(strstr(test_err.msg, "cannot be stored"));
	}
}
