/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_text.h"

#include "test.h"

#include "trace/input/input.h"
#include "trace/strings.h"
#include "trace/torch/unpickle.h"

static void more(FILE *out, const char *word, uint64_t value)
{
	if (value)
		fprintf(out, " %s %llu", word, (ull)value);
}

static void flag(FILE *out, const char *word, bool set)
{
	if (set)
		fprintf(out, " %s", word);
}

static void address(FILE *out, frag_addr_t addr)
{
	if (addr != FRAG_NO_ADDR)
		fprintf(out, " @0x%llx", (ull)addr);
}

/* ---- settings, stacks ------------------------------------------------------------- */

static void settings(const struct frag_trace_settings *s, FILE *out)
{
	fputs("settings:", out);
	flag(out, "present", s->present);
	if (s->conf)
		fprintf(out, " \"%s\"", s->conf);
	if (s->max_split_bytes != UINT64_MAX)
		fprintf(out, " max-split %llu", (ull)s->max_split_bytes);
	if (s->gc_threshold > 0)
		fprintf(out, " gc %.17g", s->gc_threshold);
	flag(out, "expandable", s->expandable);
	if (s->limit_bytes != UINT64_MAX || s->limit_known)
		fprintf(out, " limit %llu%s", (ull)s->limit_bytes,
			s->limit_known ? "" : " (unknown)");
	if (s->torch_first)
		fprintf(out, " torch %u.%u to %u.%u", s->torch_first / 100, s->torch_first % 100,
			s->torch_last / 100, s->torch_last % 100);
	for (unsigned i = 0; i < FRAG_ARRAY_LEN(s->roundup); i++)
		if (s->roundup[i])
			fprintf(out, " roundup[%u MiB] %u", 1u << i, s->roundup[i]);
	fputs("\n", out);
}

static void stacks(const struct frag_trace *t, FILE *out)
{
	const struct frag_stacks *s = &t->stacks;

	for (size_t i = 1; i < s->count; i++) {
		fprintf(out, "stack %zu:", i);
		for (uint64_t k = s->first[i]; k < s->first[i + 1]; k++) {
			const struct frag_frame *f = &s->frames[s->index[k]];

			fprintf(out, "%s %s at %s:%u", k > s->first[i] ? "," : "",
				frag_trace_string(t, f->name), frag_trace_string(t, f->file),
				f->line);
		}
		fputs("\n", out);
	}
}

/* ---- a device --------------------------------------------------------------------- */

static void event(const struct frag_trace_dev *dev, size_t i, const struct frag_trace *t, FILE *out)
{
	static const char *const kinds[] = {
		"alloc", "free", "free_requested", "free_completed", "trim", "refused", "mark"
	};
	const struct frag_event *e = &dev->events[i];

	fputs(kinds[e->kind], out);
	if (e->kind == FRAG_EV_MARK && t)
		fprintf(out, " '%s'", frag_trace_string(t, e->slot));
	else if (e->kind <= FRAG_EV_FREE_COMPLETED || e->slot)
		fprintf(out, " #%u", e->slot);
	more(out, "bytes", e->bytes);
	more(out, "stream", e->stream);
	more(out, "pool", e->pool);
	more(out, "time", e->time_us);
	more(out, "stack", e->stack);
	flag(out, "initial", e->flags & FRAG_EVF_INITIAL);
	flag(out, "at-sync", e->flags & FRAG_EVF_AT_SYNC);
	flag(out, "end", e->flags & FRAG_EVF_END);
	flag(out, "step", e->flags & FRAG_EVF_STEP);
	flag(out, "unsure", e->flags & FRAG_EVF_UNSURE);
	if (e->flags >> 5)
		fprintf(out, " flags 0x%x", e->flags);
	if (dev->addrs)
		address(out, dev->addrs[i]);
	fputs("\n", out);
}

static void seen(const struct frag_evidence *s, FILE *out)
{
	static const char *const kinds[] = { "segment_alloc", "segment_free", "segment_map",
					     "segment_unmap", "oom",	      "snapshot" };

	fprintf(out, "\t%s", kinds[s->kind]);
	more(out, "bytes", s->bytes);
	more(out, "stream", s->stream);
	more(out, "time", s->time_us);
	fprintf(out, " @0x%llx\n", (ull)s->addr);
}

#define SEGMENT(when, g, out) \
	do { \
		fprintf(out, when " segment @0x%llx bytes %llu, blocks %u from %u", \
			(ull)(g)->addr, (ull)(g)->bytes, (g)->blocks_count, (g)->first_block); \
		more(out, "stream", (g)->stream); \
		more(out, "pool", (g)->pool); \
		flag(out, "small", (g)->small); \
		flag(out, "expandable", (g)->expandable); \
	} while (0)

static void initial(const struct frag_initial_state *s, FILE *out)
{
	for (size_t i = 0; i < s->segments_count; i++) {
		SEGMENT("initial", &s->segments[i], out);
		if (s->segments[i].range_addr)
			fprintf(out, " in range @0x%llx", (ull)s->segments[i].range_addr);
		fputs("\n", out);
	}
	for (size_t i = 0; i < s->blocks_count; i++) {
		const struct frag_initial_block *b = &s->blocks[i];

		fprintf(out, "initial block #%u @0x%llx bytes %llu requested %llu", b->slot,
			(ull)b->addr, (ull)b->bytes, (ull)b->requested);
		more(out, "stream", b->stream);
		flag(out, "waiting", b->waiting);
		fputs("\n", out);
	}
}

static void finals(const struct frag_trace_dev *dev, FILE *out)
{
	static const char *const states[] = { [FRAG_STATE_FREE] = "free",
					      [FRAG_STATE_LIVE] = "live",
					      [FRAG_STATE_WAITING] = "waiting" };

	for (size_t i = 0; i < dev->final_segments_count; i++) {
		SEGMENT("final", &dev->final_segments[i], out);
		fputs("\n", out);
	}
	for (size_t i = 0; i < dev->final_blocks_count; i++) {
		const struct frag_final_block *b = &dev->final_blocks[i];

		fprintf(out, "final block @0x%llx bytes %llu requested %llu %s\n", (ull)b->addr,
			(ull)b->bytes, (ull)b->requested, states[b->state]);
	}
}

/* t: for the names of marks. */
static void device(const struct frag_trace_dev *dev, const struct frag_trace *t, FILE *out)
{
	size_t s = 0;

	fprintf(out, "device %u:", dev->ordinal);
	more(out, "recorded", dev->recorded_count);
	more(out, "slots", dev->slots_count);
	more(out, "uncertain", dev->uncertain_blocks);
	flag(out, "truncated", dev->truncated);
	flag(out, "evidence", dev->has_evidence);
	for (uint32_t i = 0; i < dev->streams_count && dev->streams_count > 1; i++)
		fprintf(out, "%s%llu", i ? ", " : "; streams ", (ull)dev->streams[i]);
	for (uint32_t i = 0; i < dev->pools_count && dev->pools_count > 1; i++)
		fprintf(out, "%s(%llu, %llu%s)", i ? ", " : "; pools ", (ull)dev->pools[i].a,
			(ull)(dev->pools[i].b & ~FRAG_POOL_NO_SPLIT),
			dev->pools[i].b & FRAG_POOL_NO_SPLIT ? " no-split" : "");
	flag(out, "no streams", !dev->streams_count);
	flag(out, "no pools", !dev->pools_count);
	if (dev->card.total_bytes)
		fprintf(out, "; card '%s' bytes %llu, beside %llu", dev->card.name,
			(ull)dev->card.total_bytes, (ull)dev->card.beside_bytes);
	more(out, "context", dev->card.context_bytes);
	if (dev->card.limit_fraction > 0 && dev->card.limit_fraction < 1)
		fprintf(out, " fraction %.17g", dev->card.limit_fraction);
	fputs("\n", out);
	initial(&dev->initial, out);
	for (size_t i = 0; i <= dev->events_count; i++) {
		for (; s < dev->seen_count && dev->seen[s].before <= i; s++)
			seen(&dev->seen[s], out);
		if (i < dev->events_count)
			event(dev, i, t, out);
	}
	finals(dev, out);
}

void trace_text(const struct frag_trace *t, bool whole, FILE *out)
{
	if (whole) {
		fprintf(out,
			"name %s, of %llu bytes, %zu frames, texts:", t->name ? t->name : "none",
			(ull)t->file_bytes, t->stacks.frames_count);
		for (uint32_t i = 1; t->strings && i < frag_strings_count(t->strings); i++) {
			fputs(" ", out);
			fwrite(frag_strings_get(t->strings, i), 1, frag_strings_len(t->strings, i),
			       out);
		}
		fputs("\n", out);
	}
	fprintf(out, "%s%s", t->format ? t->format : "no format", t->start_us ? ", " : "\n");
	if (t->start_us)
		fprintf(out, "start %llu\n", (ull)t->start_us);
	if (whole || t->settings.present || t->settings.torch_first || t->settings.limit_known)
		settings(&t->settings, out);
	stacks(t, out);
	for (uint32_t d = 0; d < t->devs_count; d++)
		device(&t->devs[d], t, out);
}

char *trace_text_of(const struct frag_trace *t, bool whole)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, &(size_t){ 0 });

	FRAG_ASSERT(out);
	trace_text(t, whole, out);
	fclose(out);
	return text;
}

/* ---- pickles ------------------------------------------------------------------- */

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

int pickle_text(const void *bytes, size_t count, FILE *out)
{
	static const char *const words[] = { "action", "size" };
	struct frag_pickle *p = NULL;
	struct frag_input *in = NULL;
	frag_pv root;
	int rc;

	rc = frag_input_open_memory("test", bytes, count, &in, &test_err);
	if (!rc)
		rc = frag_pickle_create(words, 2, NULL, &p, &test_err);
	if (!rc)
		rc = frag_pickle_read(p, in, &root, &test_err);
	if (!rc) {
		say_value(p, root, out);
		fputs("\n", out);
	}
	frag_pickle_destroy(p);
	frag_input_close(in);
	return rc;
}
