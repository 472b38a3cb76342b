/* SPDX-License-Identifier: Apache-2.0 */
/* From recorded entries to events, and back to the blocks before: build.cases, rewind.cases. */
#include "test.h"

#include "trace/build/build.h"
#include "raw_text.h"

/* ---- events in short ------------------------------------------------------------------- */

static void say_evidence(const struct frag_evidence *e, FILE *out)
{
	static const char *const kinds[] = { "segment_alloc", "segment_free", "segment_map",
					     "segment_unmap", "oom",	      "snapshot" };

	fprintf(out, "[%s", kinds[e->kind]);
	if (e->kind == FRAG_SEEN_OOM)
		fprintf(out, " %llu", (ull)e->addr);
	if (e->kind >= FRAG_SEEN_OOM)
		fprintf(out, " %llu", (ull)e->bytes);
	fputs("] ", out);
}

static void say_event(const struct frag_event *e, FILE *out)
{
	static const char *const kinds[] = { "alloc", "free",	 "requested", "completed",
					     "trim",  "refused", "mark" };

	fputs(kinds[e->kind], out);
	if (e->kind == FRAG_EV_REFUSED)
		fprintf(out, "(%llu)", (ull)e->bytes);
	else if (e->kind != FRAG_EV_TRIM)
		fprintf(out, "#%u", e->slot);
	if (e->stream)
		fprintf(out, ".%u", e->stream);
	if (e->pool)
		fprintf(out, "/%u", (unsigned)e->pool);
	if (e->time_us)
		fprintf(out, "~%llu", (ull)e->time_us);
	fprintf(out, "%s%s%s%s ", e->flags & FRAG_EVF_AT_SYNC ? "(at sync)" : "",
		e->flags & FRAG_EVF_STEP ? "(step)" : "", e->flags & FRAG_EVF_END ? "(end)" : "",
		e->flags & FRAG_EVF_UNSURE ? "(unsure)" : "");
}

static void say_device(const struct frag_trace_dev *dev, FILE *out)
{
	size_t s = 0;

	for (size_t i = 0; i <= dev->events_count; i++) {
		for (; s < dev->seen_count && dev->seen[s].before <= i; s++)
			say_evidence(&dev->seen[s], out);
		if (i == dev->events_count)
			break;
		say_event(&dev->events[i], out);
		assert_true((dev->addrs[i] != FRAG_NO_ADDR) ==
			    (dev->events[i].kind == FRAG_EV_ALLOC));
	}
	fprintf(out, "= %u slots", dev->slots_count);
	if (dev->has_evidence)
		fputs(", evidence", out);
	for (uint32_t i = 0; i < dev->streams_count && dev->streams_count > 1; i++)
		fprintf(out, "%s%llu", i ? " " : ", streams ", (ull)dev->streams[i]);
	for (uint32_t i = 1; i < dev->pools_count; i++)
		fprintf(out, ", pool %u%s", i,
			dev->pools[i].b & FRAG_POOL_NO_SPLIT ? " never splits" : "");
}

/* A request's bytes are those of its entry, and a free repeats them. */
static void check_bytes(const struct raw_text *s, const struct frag_trace_dev *dev)
{
	uint64_t of_slot[RAW_TEXT_MOST] = { 0 };
	size_t next = 0;

	for (size_t i = 0; i < dev->events_count; i++) {
		const struct frag_event *e = &dev->events[i];

		if (e->kind == FRAG_EV_ALLOC && !(e->flags & FRAG_EVF_INITIAL)) {
			while (s->entries[next].action != FRAG_RAW_ALLOC)
				next++;
			of_slot[e->slot] = s->entries[next++].bytes;
			assert_true(e->bytes == of_slot[e->slot]);
		} else if (e->kind == FRAG_EV_FREE || e->kind == FRAG_EV_FREE_COMPLETED) {
			assert_true(e->bytes == of_slot[e->slot]);
		}
	}
}

static void answer_build(char *call, FILE *out)
{
	struct raw_text s;
	FRAG_AUTO(frag_trace_dev_release) struct frag_trace_dev dev = { 0 };

	raw_text_parse(&s, call);
	if (frag_build_dev(&s.raw, &dev, &test_err)) {
		assert_null(dev.events);
		cases_error(out, &test_err);
		return;
	}
	say_device(&dev, out);
	check_bytes(&s, &dev);
}

CASES_IN_LINES("tests/unit/trace/build.cases", answer_build)

/* The blocks that were live at the start; where their segments are known, with their sizes. */
static void answer_rewind(char *call, FILE *out)
{
	struct raw_text s;
	FRAG_AUTO(frag_trace_dev_release) struct frag_trace_dev dev = { 0 };
	size_t n = 0;

	raw_text_parse(&s, call);
	if (frag_build_dev(&s.raw, &dev, &test_err)) {
		cases_error(out, &test_err);
		return;
	}
	while (n < dev.events_count && dev.events[n].flags & FRAG_EVF_INITIAL)
		n++;
	for (size_t i = 0, waiting = n; i < n; i++) {
		bool waits = waiting < dev.events_count && dev.events[waiting].slot == i &&
			     dev.events[waiting].kind == FRAG_EV_FREE_REQUESTED;

		fprintf(out, "0x%llx holds %llu", (ull)dev.addrs[i], (ull)dev.events[i].bytes);
		if (i < dev.initial.blocks_count)
			fprintf(out, " in %llu", (ull)dev.initial_blocks[i].bytes);
		fputs(waits ? " (waiting), " : ", ", out);
		waiting += waits;
	}
	fprintf(out, "%zu segments, %llu uncertain", dev.initial.segments_count,
		(ull)dev.uncertain_blocks);
}

CASES_IN_LINES("tests/unit/trace/rewind.cases", answer_rewind)

/* ---- memory short ------------------------------------------------------------------------ */

TEST(test_out_of_memory)
{
	FRAG_AUTO(frag_trace_dev_release) struct frag_trace_dev dev = { 0 };
	struct raw_text s;

	/* S1 was there before: rewinding, too */
	raw_text_parse(&s, "segment_alloc S0 2M, alloc S0 100, alloc S1 600 stream=2, free S0 100, "
			   "segment_free S0 2M, nothing left");
	FAIL_ALLOCATIONS(frag_build_dev(&s.raw, &dev, NULL))
	assert_null(dev.events);
}