/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small training, written event by event, so that what each change saves can be computed by hand: four blocks, three steps,
 * Adam with two states. Then recordings from which nothing can be said, and hostile ones.
 */
#include "test.h"

#include <string.h>

#include "pretend/advise/edit.h"
#include "trace/strings.h"

enum { BLOCKS = 4, STEPS = 3 };
#define WEIGHT (20 * FRAG_MIB)
#define SAVED (100 * FRAG_MIB)
#define OUTPUT (10 * FRAG_MIB)
#define TEMP (4 * FRAG_MIB)
#define GRAD WEIGHT

enum { NONE, BLOCK_1, BLOCK_2, OPTIMIZER, LOSS, LOAD, STACKS };

static struct frag_event events[1024];
static size_t count;
static uint32_t slots;
static bool with_stacks;

static struct frag_frame frames[7];
static uint32_t stack_frames[] = { 3, 2, 1, 0, /**/ 4, 2, 1, 0, /**/ 5, 0, /**/ 6, 0, /**/ 0 };
static uint64_t stack_first[] = { 0, 0, 4, 8, 10, 12, 13 };

static uint32_t born(uint64_t bytes, uint32_t stack)
{
	events[count] = (struct frag_event){ .kind = FRAG_EV_ALLOC,
					     .bytes = bytes & FRAG_MAX_REQUEST,
					     .slot = slots,
					     .time_us = count,
					     .stack = with_stacks ? stack : 0 };
	count++;
	return slots++;
}

static void gone(uint32_t slot)
{
	for (size_t i = count; i-- > 0;)
		if (events[i].slot == slot && events[i].kind == FRAG_EV_ALLOC) {
			events[count] = events[i];
			break;
		}
	events[count].kind = FRAG_EV_FREE;
	events[count].time_us = count;
	count++;
}

static void mark(uint8_t flags)
{
	events[count] = (struct frag_event){ .kind = FRAG_EV_MARK,
					     .flags = FRAG_EVF_STEP | flags,
					     .time_us = count };
	count++;
}

static void one_step(bool first)
{
	uint32_t saved[BLOCKS], out[BLOCKS], grad[BLOCKS], temps[BLOCKS], loss;

	for (int i = 0; i < BLOCKS; i++) {
		uint32_t temp;

		saved[i] = born(SAVED, BLOCK_1);
		temp = born(TEMP, BLOCK_2);
		out[i] = born(OUTPUT, BLOCK_2);
		gone(temp);
	}
	loss = born(512, LOSS);
	gone(out[BLOCKS - 1]);
	for (int i = BLOCKS; i-- > 0;) {
		grad[i] = born(GRAD, NONE);
		gone(saved[i]);
		if (i)
			gone(out[i - 1]);
	}
	mark(0);
	for (int i = 0; first && i < 2 * BLOCKS; i++)
		born(WEIGHT, OPTIMIZER);
	for (int i = 0; i < BLOCKS; i++)
		temps[i] = born(WEIGHT, OPTIMIZER);
	for (int i = 0; i < BLOCKS; i++)
		gone(temps[i]);
	mark(FRAG_EVF_END);
	for (int i = 0; i < BLOCKS; i++)
		gone(grad[i]);
	gone(loss);
}

/* Advice from the events that were written. */
struct rig {
	struct frag_trace trace;
	struct frag_trace_dev dev;
	struct frag_unit unit;
	struct frag_recording rec;
	struct frag_advice *list;
	size_t n;
	uint64_t stream;
	struct frag_pool_id pool;
};

static void open_rig(struct rig *r)
{
	static const char *const names[][2] = {
		{ "train.py", "<module>" },
		{ "model.py", "forward" },
		{ "torch/nn/modules/module.py", "_call_impl" },
		{ "block.py", "forward" },
		{ "block.py", "forward" },
		{ "torch/optim/adam.py", "_multi_tensor_adam" },
		{ "torch/nn/functional.py", "cross_entropy" },
	};

	*r = (struct rig){ 0 };
	assert_int_equal(frag_strings_create(&r->trace.strings, NULL), 0);
	for (size_t i = 0; i < FRAG_ARRAY_LEN(names); i++) {
		frag_strings_intern(r->trace.strings, names[i][0], strlen(names[i][0]),
				    &frames[i].file, NULL);
		frag_strings_intern(r->trace.strings, names[i][1], strlen(names[i][1]),
				    &frames[i].name, NULL);
		frames[i].line = (uint32_t)i + 1;
	}
	r->dev = (struct frag_trace_dev){ .events = events,
					  .events_count = count,
					  .slots_count = slots,
					  .streams = &r->stream,
					  .streams_count = 1,
					  .pools = &r->pool,
					  .pools_count = 1 };
	r->trace.devs = &r->dev;
	r->trace.devs_count = 1;
	r->trace.stacks = (struct frag_stacks){ frames,	      FRAG_ARRAY_LEN(frames),
						stack_frames, FRAG_ARRAY_LEN(stack_frames),
						stack_first,  with_stacks ? STACKS : 1 };
	r->unit = (struct frag_unit){ .trace = &r->trace,
				      .dev = &r->dev,
				      .events = { .trace = &r->trace } };
	r->rec = (struct frag_recording){ .trace = &r->trace, .units = &r->unit };
	assert_int_equal(frag_advise_edits(&r->rec, &r->list, &r->n, NULL), 0);
}

static void close_rig(struct rig *r)
{
	frag_advices_release(r->list, r->n);
	frag_strings_destroy(r->trace.strings);
}

static void train(bool stacks)
{
	count = slots = 0;
	with_stacks = stacks;
	for (int i = 0; i < BLOCKS; i++)
		born(WEIGHT, LOAD);
	for (int i = 0; i < STEPS; i++)
		one_step(!i);
}

static const struct frag_advice *find(const struct rig *r, const char *change)
{
	for (size_t i = 0; i < r->n; i++)
		if (!strcmp(r->list[i].change, change))
			return &r->list[i];
	return NULL;
}

static uint64_t after(const struct rig *r, const char *change)
{
	const struct frag_advice *a = find(r, change);

	return a ? a->after.requested : 0;
}

TEST(by_hand)
{
	const uint64_t weights = BLOCKS * WEIGHT, states = 2 * weights;
	FRAG_AUTO(close_rig) struct rig r = { 0 };

	train(true);
	open_rig(&r);
	assert_true(r.n > 4);
	/* after the first step with states, the last block's gradient comes on top of what it saved */
	assert_int_equal(r.list[0].before.requested,
			 weights + states + BLOCKS * (SAVED + OUTPUT) + 512 - OUTPUT + GRAD);
	assert_int_equal(after(&r, "SGD"), r.list[0].before.requested - states);
	assert_int_equal(after(&r, "states on the host"), after(&r, "SGD"));
	assert_int_equal(after(&r, "8-bit states"),
			 r.list[0].before.requested - states + states / 4 + states / 256);
	/* checkpointed, the first block comes back last, beside all gradients */
	assert_int_equal(after(&r, "checkpoint"), weights + states + SAVED + BLOCKS * GRAD + 512);
	assert_string_equal(find(&r, "checkpoint")->where, "model.py:2 forward");
	for (size_t i = 0; i < r.n; i++) {
		assert_false(r.list[i].tried);
		assert_true(strstr(r.list[i].what, "assumed") || r.list[i].change[0] != 'c');
		assert_true(!i || FRAG_MIN(r.list[i].after.reserved, r.list[i].after.expandable) >=
					  FRAG_MIN(r.list[i - 1].after.reserved,
						   r.list[i - 1].after.expandable));
	}
}

TEST(phases_and_blocks)
{
	FRAG_AUTO(frag_story_release) struct frag_story s = { 0 };
	FRAG_AUTO(frag_loops_release) struct frag_loops loops = { 0 };
	FRAG_AUTO(close_rig) struct rig r = { 0 };

	train(true);
	open_rig(&r);
	assert_int_equal(frag_story_make(&s, &r.unit, NULL), 0);
	assert_int_equal(s.steps, STEPS);
	assert_int_equal(s.count, 3 * BLOCKS + STEPS * (5 * BLOCKS + 1));
	assert_int_equal(frag_loops_find(&s, &loops, NULL), 0);
	assert_int_equal(loops.count, 1);
	assert_int_equal(loops.list[0].count, STEPS * BLOCKS);
	for (size_t i = 0; i < s.count; i++) /* saved blocks are back before they are freed */
		if (s.lives[i].back != FRAG_NEVER)
			assert_true(s.lives[i].born < s.lives[i].back &&
				    s.lives[i].back <= s.lives[i].died);
}

/* Without stacks, only the marks are evaluated: no blocks, no losses. */
TEST(without_stacks)
{
	FRAG_AUTO(close_rig) struct rig r = { 0 };

	train(false);
	open_rig(&r);
	assert_non_null(strstr(find(&r, "checkpoint")->left_out, "no stacks"));
	assert_null(find(&r, "chunked loss"));
	assert_non_null(find(&r, "SGD"));
}

/* An edit that changes nothing makes the recorded events; one that removes everything makes none. */
TEST(edits_apply)
{
	struct frag_trace_dev dev;
	FRAG_AUTO(frag_edit_release) struct frag_edit e = { 0 };
	FRAG_AUTO(frag_story_release) struct frag_story s = { 0 };
	FRAG_AUTO(close_rig) struct rig r = { 0 };

	train(true);
	open_rig(&r);
	assert_int_equal(frag_story_make(&s, &r.unit, NULL), 0);
	assert_int_equal(frag_edit_init(&e, &s, NULL), 0);
	assert_int_equal(frag_edit_apply(&e, &dev, NULL), 0);
	assert_int_equal(dev.events_count, count);
	assert_memory_equal(dev.events, events, count * sizeof(*events));
	frag_host_free(dev.events);
	for (size_t i = 0; i < s.count; i++)
		frag_edit_remove(&e, i);
	assert_int_equal(frag_edit_apply(&e, &dev, NULL), 0);
	for (size_t i = 0; i < dev.events_count; i++)
		assert_int_equal(dev.events[i].kind, FRAG_EV_MARK);
	frag_host_free(dev.events);
}

TEST(nothing_to_say)
{
	struct rig r;

	for (int huge = 0; huge < 2; huge++)
		for (int stacks = 0; stacks < 2; stacks++) {
			count = slots = 0;
			with_stacks = stacks;
			born(huge ? 1ull << 36 : 1, BLOCK_1);
			open_rig(&r);
			assert_int_equal(r.n, 0);
			close_rig(&r);
		}
	count = slots = 0; /* only marks, in any order */
	mark(FRAG_EVF_END);
	mark(0);
	mark(0);
	open_rig(&r);
	assert_int_equal(r.n, 0);
	close_rig(&r);
}

/* Any order of anything: no crash, no false saving. */
TEST(hostile)
{
	struct rig r;

	for (unsigned seed = 1; seed <= test_rounds(40); seed++) {
		unsigned x = seed * 2654435761u, live = 0;
		uint32_t list[64];

		count = slots = 0;
		with_stacks = seed & 1;
		while (count < 500) {
			x = x * 1664525u + 1013904223u;
			if (x >> 28 == 0)
				mark(x & 1 << 20 ? FRAG_EVF_END : 0);
			else if (live == 64 || (live && x >> 31))
				gone(list[--live]);
			else
				list[live++] = born((x >> 8 & 0xfff) << (x >> 5 & 15),
						    x >> 24 & 7 ? (x >> 24) % STACKS : 0);
		}
		open_rig(&r);
		r.dev.ending.out_of_memory = true;
		frag_advices_release(r.list, r.n);
		assert_int_equal(frag_advise_edits(&r.rec, &r.list, &r.n, NULL), 0);
		for (size_t i = 0; i < r.n; i++)
			assert_true(r.list[i].after.requested <= r.list[i].before.requested);
		close_rig(&r);
	}
}
