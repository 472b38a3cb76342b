/* SPDX-License-Identifier: Apache-2.0 */
/* .cft: whatever is damaged, hostile or unsound is refused, and nothing of it handed out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <frag/trace.h>

#include "trace/cft/cft_parse.h"
#include "trace/cft/cft_write.h"
#include "cft_image.h"
#include "sample_trace.h"

/* ---- damage ----------------------------------------------------------------------- */

static void test_truncated_anywhere(void **state)
{
	struct frag_trace *t = sample_trace_small(), *back;
	struct cft_image im = cft_image_of(t);

	(void)state;
	for (size_t len = 1; len < im.len; len++) {
		struct frag_err err = { 0 };

		assert_int_equal(cft_image_read(im.bytes, len, NULL, &back, &err), FRAG_EINPUT);
		assert_null(back);
		assert_true(err.msg[0] != '\0');
	}
	free(im.bytes);
	frag_trace_destroy(t);
}

static void test_damaged_anywhere(void **state)
{
	static const unsigned char flips[] = { 0x01, 0x80, 0xff, 0x55 };
	struct frag_trace *t = sample_trace_small(), *back;
	struct cft_image im = cft_image_of(t);

	(void)state;
	for (size_t at = 0; at < im.len; at++) {
		for (size_t k = 0; k < sizeof(flips); k++) {
			struct frag_err err = { 0 };

			im.bytes[at] ^= (char)flips[k];
			assert_int_equal(cft_image_read(im.bytes, im.len, NULL, &back, &err),
					 FRAG_EINPUT);
			assert_null(back);
			im.bytes[at] ^= (char)flips[k];
		}
	}
	free(im.bytes);
	frag_trace_destroy(t);
}

static void test_more_behind(void **state)
{
	struct frag_trace *t = sample_trace_small(), *back;
	struct cft_image im = cft_image_of(t);
	char *more = calloc(1, im.len + 1);
	struct frag_err err = { 0 };

	(void)state;
	memcpy(more, im.bytes, im.len);
	assert_int_equal(cft_image_read(more, im.len + 1, NULL, &back, &err), FRAG_EINPUT);
	assert_int_equal(err.offset, im.len);
	free(more);
	free(im.bytes);
	frag_trace_destroy(t);
}

static void test_other_version(void **state)
{
	struct frag_trace *t = sample_trace_small(), *back;
	struct cft_image im = cft_image_of(t);
	struct frag_err err = { 0 };

	(void)state;
	im.bytes[FRAG_CFT_MAGIC_BYTES] = 5;
	assert_int_equal(cft_image_read(im.bytes, im.len, NULL, &back, &err), FRAG_EINPUT);
	assert_non_null(strstr(err.msg, "version 5"));
	/* a recording that grows, whose blocks are others */
	im.bytes[FRAG_CFT_MAGIC_BYTES] = 4;
	assert_int_equal(cft_image_read(im.bytes, im.len, NULL, &back, &err), FRAG_EINPUT);
	assert_non_null(strstr(err.msg, "block 0 at byte 16: no block begins here"));
	free(im.bytes);
	frag_trace_destroy(t);
}

/* ---- hostile files: wrong, but with the right checksums --------------------------------- */

/* Offset of the n-th block (from 0) of this type. */
static size_t find_block(const struct cft_image *im, unsigned type, unsigned n)
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
static void sign(struct cft_image *im)
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
static void splice(struct cft_image *im, size_t at, const void *with, size_t len)
{
	struct frag_cft_block b;
	size_t old;
	char *bytes;

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
static void change_device(struct cft_image *im, unsigned n,
			  void (*change)(struct frag_cft_device_values *))
{
	size_t at = find_block(im, FRAG_CFT_DEVICE, n);
	struct frag_cft_device_values values;
	struct frag_cft_unpacker u;
	struct frag_cft_packer p;
	struct frag_cft_block b;
	size_t rest;
	char *block;

	memcpy(&b, im->bytes + at, sizeof(b));
	assert_int_equal(frag_cft_unpacker_init(&u, NULL), 0);
	assert_int_equal(frag_cft_packer_init(&p, NULL), 0);
	frag_cft_unpacker_set(&u, (unsigned char *)im->bytes + at + sizeof(b), b.payload, 0);
	assert_int_equal(frag_cft_unpack_struct(&frag_cft_device, &values, &u, NULL), 0);
	change(&values);
	assert_int_equal(frag_cft_pack_struct(&frag_cft_device, &values, &p, NULL), 0);
	rest = (size_t)(u.end - u.pos);
	b.payload = (uint32_t)(p.len + rest);
	block = malloc(sizeof(b) + b.payload);
	memcpy(block, &b, sizeof(b));
	memcpy(block + sizeof(b), p.out, p.len);
	memcpy(block + sizeof(b) + p.len, u.pos, rest);
	splice(im, at, block, sizeof(b) + b.payload);
	free(block);
	frag_cft_packer_release(&p);
	frag_cft_unpacker_release(&u);
}

static void no_change(struct frag_cft_device_values *v)
{
	(void)v;
}
static void many_events(struct frag_cft_device_values *v)
{
	v->dev.events_count = SIZE_MAX / 2;
}
static void one_event_less(struct frag_cft_device_values *v)
{
	v->dev.events_count--;
}
static void many_slots(struct frag_cft_device_values *v)
{
	v->dev.slots_count = UINT32_MAX;
}
static void few_slots(struct frag_cft_device_values *v)
{
	v->dev.slots_count = 1;
}
static void many_streams(struct frag_cft_device_values *v)
{
	v->dev.streams_count = 1u << 31;
}
static void many_pools(struct frag_cft_device_values *v)
{
	v->dev.pools_count = 1u << 31;
}
static void many_seen(struct frag_cft_device_values *v)
{
	v->dev.seen_count = SIZE_MAX / 64;
}
static void no_seen(struct frag_cft_device_values *v)
{
	v->dev.seen_count = 0;
}
static void many_finals(struct frag_cft_device_values *v)
{
	v->dev.final_blocks_count = SIZE_MAX / 64;
}
static void many_initial(struct frag_cft_device_values *v)
{
	v->initial_blocks = UINT64_MAX / 64;
}
static void no_initial_state(struct frag_cft_device_values *v)
{
	v->initial_blocks = 0;
}
static void no_addrs(struct frag_cft_device_values *v)
{
	v->has_addrs = false;
}

static void test_hostile_counts(void **state)
{
	static void (*const changes[])(struct frag_cft_device_values *) = {
		many_events,  one_event_less, many_slots,	few_slots,
		many_streams, many_pools,     many_seen,	no_seen,
		many_finals,  many_initial,   no_initial_state, no_addrs,
	};
	struct frag_trace *t = sample_trace_small(), *back;
	struct frag_err err = { 0 };

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(changes); i++) {
		struct cft_image im = cft_image_of(t);

		change_device(&im, 0, no_change);
		assert_int_equal(cft_image_read(im.bytes, im.len, NULL, &back, &err), 0);
		frag_trace_destroy(back);
		change_device(&im, 0, changes[i]);
		assert_int_equal(cft_image_read(im.bytes, im.len, NULL, &back, &err), FRAG_EINPUT);
		assert_non_null(strstr(err.msg, "byte"));
		free(im.bytes);
	}
	frag_trace_destroy(t);
}

static void test_blocks_lost_doubled_swapped(void **state)
{
	static const unsigned types[] = { FRAG_CFT_STRINGS, FRAG_CFT_FRAMES,
					  FRAG_CFT_DEVICE,  FRAG_CFT_INITIAL_BLOCKS,
					  FRAG_CFT_EVENTS,  FRAG_CFT_ADDRS,
					  FRAG_CFT_SEEN,    FRAG_CFT_FINAL_SEGMENTS,
					  FRAG_CFT_END };
	struct frag_trace *t = sample_trace_small(), *back;

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(types); i++) {
		struct cft_image im = cft_image_of(t);
		size_t at = find_block(&im, types[i], 0), len;
		struct frag_cft_block b;
		char *twice;

		memcpy(&b, im.bytes + at, sizeof(b));
		len = sizeof(b) + b.payload;
		twice = malloc(2 * len);
		memcpy(twice, im.bytes + at, len);
		memcpy(twice + len, im.bytes + at, len);
		splice(&im, at, twice, 2 * len);
		assert_int_equal(cft_image_read(im.bytes, im.len, NULL, &back, NULL), FRAG_EINPUT);
		splice(&im, at, NULL, 0);
		assert_int_equal(cft_image_read(im.bytes, im.len, NULL, &back, NULL), 0);
		frag_trace_destroy(back);
		splice(&im, at, NULL, 0);
		assert_int_equal(cft_image_read(im.bytes, im.len, NULL, &back, NULL), FRAG_EINPUT);
		free(twice);
		free(im.bytes);
	}
	frag_trace_destroy(t);
}

/* Events that are right elsewhere: other streams, other slots, frees of what is not live. */
static void test_foreign_events(void **state)
{
	struct frag_trace *a = sample_trace_random(5, 70000, false, false), *back;
	struct frag_trace *b = sample_trace_random(6, 70000, false, false);
	struct cft_image from = cft_image_of(a), to = cft_image_of(b);
	size_t second = find_block(&from, FRAG_CFT_EVENTS, 1), at;
	struct frag_cft_block head;
	struct frag_err err = { 0 };

	(void)state;
	memcpy(&head, from.bytes + second, sizeof(head));
	at = find_block(&to, FRAG_CFT_EVENTS, 1);
	splice(&to, at, from.bytes + second, sizeof(head) + head.payload);
	assert_int_equal(cft_image_read(to.bytes, to.len, NULL, &back, &err), FRAG_EINPUT);
	assert_true(err.offset > at);
	free(from.bytes);
	free(to.bytes);
	frag_trace_destroy(a);
	frag_trace_destroy(b);
}

/* ---- what the writer refuses ---------------------------------------------------------------- */

static void free_twice(struct frag_trace_dev *d)
{
	d->events[11] = d->events[8];
}
static void free_wrong_size(struct frag_trace_dev *d)
{
	d->events[11].bytes++;
}
static void free_never_used(struct frag_trace_dev *d)
{
	d->events[11].slot = 77;
}
static void alloc_nothing(struct frag_trace_dev *d)
{
	d->events[3].bytes = 0;
}
static void alloc_over_live(struct frag_trace_dev *d)
{
	d->events[4].slot = 0;
}
static void alloc_beyond(struct frag_trace_dev *d)
{
	d->events[4].slot = 3;
}
static void wrong_stream(struct frag_trace_dev *d)
{
	d->events[3].stream = 3;
}
static void wrong_pool(struct frag_trace_dev *d)
{
	d->events[9].pool = 3;
}
static void wrong_stack(struct frag_trace_dev *d)
{
	d->events[3].stack = 3;
}
static void wrong_kind(struct frag_trace_dev *d)
{
	d->events[5].kind = FRAG_EV_COUNT;
}
static void wrong_mark(struct frag_trace_dev *d)
{
	d->events[5].slot = 5;
}
static void late_initial(struct frag_trace_dev *d)
{
	d->events[3].flags = FRAG_EVF_INITIAL;
}
static void missing_initial(struct frag_trace_dev *d)
{
	d->events[1].flags = 0;
}
static void other_initial(struct frag_trace_dev *d)
{
	d->initial_blocks[1].slot = 2;
}
static void initial_outside(struct frag_trace_dev *d)
{
	d->initial_blocks[0].bytes = 3 * FRAG_MIB;
}
static void initial_wraps(struct frag_trace_dev *d)
{
	d->initial_blocks[0].bytes = UINT64_MAX;
}
static void seed_segment_blocks(struct frag_trace_dev *d)
{
	d->initial_segments[1].blocks_count = 2;
}
static void stray_addr(struct frag_trace_dev *d)
{
	d->addrs[2] = 0;
}
static void seen_backwards(struct frag_trace_dev *d)
{
	d->seen[1].before = 8;
}
static void seen_beyond(struct frag_trace_dev *d)
{
	d->seen[5].before = 13;
}
static void seen_kind(struct frag_trace_dev *d)
{
	d->seen[0].kind = FRAG_SEEN_SNAPSHOT + 1;
}
static void final_blocks(struct frag_trace_dev *d)
{
	d->final_segments[1].first_block = 4;
}
static void final_state(struct frag_trace_dev *d)
{
	d->final_blocks[0].state = 3;
}
static void streams_unsorted(struct frag_trace_dev *d)
{
	d->streams[1] = 0;
}
static void pool_first(struct frag_trace_dev *d)
{
	d->pools[0].b = 1;
}

static void test_unsound_traces(void **state)
{
	static void (*const changes[])(struct frag_trace_dev *) = {
		free_twice,	     free_wrong_size, free_never_used, alloc_nothing,
		alloc_over_live,     alloc_beyond,    wrong_stream,    wrong_pool,
		wrong_stack,	     wrong_kind,      wrong_mark,      late_initial,
		missing_initial,     other_initial,   initial_outside, initial_wraps,
		seed_segment_blocks, stray_addr,      seen_backwards,  seen_beyond,
		seen_kind,	     final_blocks,    final_state,     streams_unsorted,
		pool_first,
	};

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(changes); i++) {
		struct frag_trace *t = sample_trace_small();
		struct frag_err err = { 0 };
		FILE *to = fopen("/dev/null", "w");

		changes[i](&t->devs[0]);
		assert_non_null(to);
		if (frag_cft_write_stream(t, to, &err) != FRAG_EINPUT)
			fail_msg("change %zu was accepted", i);
		assert_non_null(strstr(err.msg, "cannot be stored"));
		fclose(to);
		frag_trace_destroy(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_truncated_anywhere),
		cmocka_unit_test(test_damaged_anywhere),
		cmocka_unit_test(test_more_behind),
		cmocka_unit_test(test_other_version),
		cmocka_unit_test(test_hostile_counts),
		cmocka_unit_test(test_blocks_lost_doubled_swapped),
		cmocka_unit_test(test_foreign_events),
		cmocka_unit_test(test_unsound_traces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
