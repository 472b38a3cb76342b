/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents of blocks during a replay, on a device made for the test: ordinary host memory
 * behind the null device's calls, with the pattern written and compared by the host. Policies
 * that break the contract on purpose are caught, with both blocks in the message.
 */
#include "test.h"

#include <frag/device.h>

#include "replay/contents.h"

#define ARENA 65536

/* ---- a device with real memory: one arena, addresses are offsets + 4096 --------------- */

static struct {
	uint32_t memory[ARENA / 16][4];
	struct frag_content_fault fault;
	struct frag_device_ops ops;
} card;

static void expected(const struct frag_content *b, uint64_t piece, uint32_t *out)
{
	out[0] = b->id;
	out[1] = b->generation;
	out[2] = (uint32_t)piece;
	out[3] = ~(b->id ^ b->generation ^ (uint32_t)piece);
}

static void compare(const struct frag_content *b, uint64_t piece, const uint32_t *found)
{
	uint32_t want[4];

	expected(b, piece, want);
	if (!memcmp(want, found, sizeof(want)) || card.fault.count++)
		return;
	card.fault.offset = piece * 16;
	card.fault.id = b->id;
	card.fault.generation = b->generation;
	card.fault.foreign = found[3] == ~(found[0] ^ found[1] ^ found[2]);
	card.fault.other_id = found[0];
	card.fault.other_generation = found[1];
	card.fault.other_offset = 16ull * found[2];
	memcpy(card.fault.found, found, sizeof(want));
}

static int content(void *priv, enum frag_content_op op, const struct frag_content *b,
		   struct frag_err *err)
{
	uint64_t first = (b->addr - 4096) / 16;

	for (uint64_t i = 0; i < b->bytes / 16; i++) {
		if (op == FRAG_CONTENT_FILL)
			expected(b, i, card.memory[first + i]);
		else
			compare(b, i, card.memory[first + i]);
	}
	return 0;
}

static int content_fault(void *priv, bool wait, struct frag_content_fault *out,
			 struct frag_err *err)
{
	*out = card.fault;
	return 0;
}

/* ---- the tests --------------------------------------------------------------------------- */

#define CONTENTS FRAG_AUTO(frag_contents_destroy_at) struct frag_contents *

static struct frag_device *open_card(void)
{
	struct frag_device *dev;

	memset(&card, 0, sizeof(card));
	assert_int_equal(frag_null_open(&dev, &test_err), 0);
	card.ops = *dev->ops;
	card.ops.content = content;
	card.ops.content_fault = content_fault;
	dev->ops = &card.ops;
	return dev;
}

static struct frag_contents *open_contents(struct frag_device *dev)
{
	struct frag_run_options opt = { .fill = true };
	struct frag_contents *c;

	assert_int_equal(frag_contents_create(&opt, dev, &c, &test_err), 0);
	assert_non_null(c);
	return c;
}

static struct frag_block block(uint64_t offset, uint64_t bytes)
{
	return (struct frag_block){ .addr = 4096 + offset, .granted = bytes, .requested = bytes };
}

TEST(no_memory_behind)
{
	struct frag_run_options opt = { 0 };
	FRAG_AUTO(frag_dev_close_at) struct frag_device *dev = NULL;
	struct frag_contents *c;

	SUCCEEDS(frag_null_open(&dev, &test_err));
	SUCCEEDS(frag_contents_create(&opt, dev, &c, &test_err));
	assert_null(c); /* nothing is asked for */
	opt.fill = true;
	FAILS(FRAG_ENOTSUP, "--device cuda", frag_contents_create(&opt, dev, &c, &test_err));
}

TEST(sound)
{
	FRAG_AUTO(frag_dev_close_at) struct frag_device *dev = open_card();
	CONTENTS c = open_contents(dev);
	struct frag_block a = block(0, 4096), b = block(4096, 512);

	for (unsigned i = 0; i < 3000; i++) {
		assert_int_equal(frag_contents_alloc(c, 7, &a, 4 * i, &test_err), 0);
		assert_int_equal(frag_contents_alloc(c, 3000 - i, &b, 4 * i + 1, &test_err), 0);
		assert_int_equal(frag_contents_free(c, 7, &a, 4 * i + 2, &test_err), 0);
		assert_int_equal(frag_contents_free(c, 3000 - i, &b, 4 * i + 3, &test_err), 0);
		i += i == 2992; /* slot 7 is taken */
	}
	assert_int_equal(frag_contents_finish(c, &test_err), 0);
}

/* A block that lies over another; the bytes of an earlier one come back, as when pages are
 * exchanged under a live one; what no fill wrote. */
TEST(faults)
{
	static const char *const says[] = {
		"live blocks overlap: block 5 at 0x1000..0x1400 (event 100, freed at event 300) "
		"has at offset 928 the content of offset 0 of block 6 at 0x13a0..0x1440 (event "
		"200, live); 6 pieces of 16 bytes are wrong",
		"lost content: block 5 at 0x1000..0x1400 (event 100, freed at event 300) has at "
		"offset 0 the content of offset 0 of block 1 at 0x1000..0x1400 (event 10, freed at "
		"event 11); 64 pieces of 16 bytes are wrong",
		"abababab abababab abababab abababab at offset 32, which no fill wrote",
	};

	for (unsigned k = 0; k < FRAG_ARRAY_LEN(says); k++) {
		FRAG_AUTO(frag_dev_close_at) struct frag_device *dev = open_card();
		CONTENTS c = open_contents(dev);
		struct frag_block a = block(0, 1024), b = block(928, 160);
		uint32_t old[64][4];

		SUCCEEDS(frag_contents_alloc(c, 1, &a, 10, &test_err));
		memcpy(old, card.memory, sizeof(old));
		SUCCEEDS(frag_contents_free(c, 1, &a, 11, &test_err));
		SUCCEEDS(frag_contents_alloc(c, 5, &a, 100, &test_err));
		if (k == 0)
			SUCCEEDS(frag_contents_alloc(c, 6, &b, 200, &test_err));
		else if (k == 1)
			memcpy(card.memory, old, sizeof(old));
		else
			memset(card.memory[2], 0xab, 16);
		FAILS(FRAG_ECHECK, says[k], frag_contents_free(c, 5, &a, 300, &test_err));
	}
}
