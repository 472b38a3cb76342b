/* SPDX-License-Identifier: Apache-2.0 */
/* An explanation for programs: JSON, and live stacks for flamegraph.pl and speedscope. */
#include "explain_out.h"

#include <inttypes.h>

#include "explain/diagnose/diagnose.h"
#include "answer/json.h"

static json_t *row_json(const struct frag_row *r)
{
	json_t *o = json_object();

	json_object_set_new(o, "site", json_string(r->name));
	json_object_set_new(o, "allocated_bytes", frag_json_number(r->allocated_bytes));
	json_object_set_new(o, "requested_bytes", frag_json_number(r->requested_bytes));
	json_object_set_new(o, "waiting_bytes", frag_json_number(r->waiting_bytes));
	json_object_set_new(o, "blocks_count", frag_json_number(r->blocks_count));
	json_object_set_new(o, "oldest_event", frag_json_number(r->oldest));
	json_object_set_new(o, "newest_event", frag_json_number(r->newest));
	json_object_set_new(o, "oldest_us", frag_json_number(r->oldest_us));
	json_object_set_new(o, "newest_us", frag_json_number(r->newest_us));
	json_object_set_new(o, "kind", json_string(frag_kind_name(r->kind)));
	json_object_set_new(o, "kind_confidence_ratio", json_real(r->confidence));
	json_object_set_new(o, "non_releasable_bytes", frag_json_number(r->non_releasable_bytes));
	json_object_set_new(o, "alone_bytes", frag_json_number(r->alone_bytes));
	json_object_set_new(o, "segments_count", frag_json_number(r->segments_count));
	json_object_set_new(o, "largest_hole_bytes", frag_json_number(r->largest_hole_bytes));
	json_object_set_new(o, "regained_bytes",
			    frag_json_if(r->regained_known, r->regained_bytes));
	return o;
}

static json_t *oom_json(const struct frag_explained *x)
{
	const struct frag_oom_story *o = &x->oom;
	json_t *j = json_object(), *list = json_array();
	FRAG_AUTO_FREE char *line = frag_stack_line(&x->sites, o->stack);

	json_object_set_new(
		j, "verdict",
		json_string(frag_finding_text(o->fragmentation ? FRAG_FOUND_OOM_FRAGMENTATION
							       : FRAG_FOUND_OOM_NEEDED)));
	json_object_set_new(j, "request_bytes", frag_json_number(o->request_bytes));
	json_object_set_new(j, "line", line ? json_string(line) : json_null());
	json_object_set_new(j, "live_bytes", frag_json_number(o->live_bytes));
	json_object_set_new(j, "reserved_bytes", frag_json_number(o->reserved_bytes));
	json_object_set_new(j, "non_releasable_bytes", frag_json_number(o->non_releasable_bytes));
	json_object_set_new(j, "largest_free_bytes", frag_json_number(o->largest_free_bytes));
	for (size_t i = 0; i < o->remedies_count; i++) {
		const struct frag_remedy *r = &o->remedies[i];

		json_array_append_new(list, json_pack("{sbssss?}", "served", r->served, "text",
						      r->text, "line", r->line));
	}
	json_object_set_new(j, "remedies", list);
	return j;
}

static json_t *kinds_json(const struct frag_explained *x)
{
	json_t *kinds = json_object();

	for (unsigned k = 0; k < FRAG_KINDS; k++)
		if (x->kind_blocks[k])
			json_object_set_new(kinds, frag_kind_name(k),
					    frag_json_number(x->kind_bytes[k]));
	return kinds;
}

json_t *frag_explain_json(const struct frag_explained *x, const char *title, const char *policy)
{
	const struct frag_loss *l = &x->loss;
	json_t *o = json_object(), *rows = json_array();
	struct frag_text text = { 0 };

	frag_explain_paragraph(x, &text);
	json_object_set_new(o, "trace", json_string(title));
	json_object_set_new(o, "policy", json_string(policy));
	json_object_set_new(o, "text", json_string(frag_text_str(&text)));
	frag_text_release(&text);
	json_object_set_new(o, "event", frag_json_number(x->event));
	json_object_set_new(o, "time_us", frag_json_number(x->time_us));
	json_object_set_new(o, "step",
			    x->history.from == FRAG_STEPS_NONE
				    ? json_null()
				    : frag_json_number(x->step * x->history.stride + 1));
	json_object_set_new(o, "limit_bytes", frag_json_number(x->limit_bytes));
	json_object_set_new(o, "peak_reserved_bytes", frag_json_number(x->peak_reserved_bytes));
	json_object_set_new(o, "peak_live_bytes", frag_json_number(x->history.peak_live));
	json_object_set_new(o, "reserved_bytes", frag_json_number(l->reserved_bytes));
	json_object_set_new(o, "allocated_bytes",
			    frag_json_number(l->requested_bytes + l->rounding_bytes));
	json_object_set_new(o, "requested_bytes", frag_json_number(l->requested_bytes));
	json_object_set_new(o, "waiting_bytes", frag_json_number(l->waiting_bytes));
	json_object_set_new(o, "non_releasable_bytes", frag_json_number(l->non_releasable_bytes));
	json_object_set_new(o, "releasable_bytes", frag_json_number(l->releasable_bytes));
	json_object_set_new(o, "largest_free_bytes", frag_json_number(l->largest_free_bytes));
	json_object_set_new(o, "unheld_bytes", frag_json_number(x->scene.unheld));
	json_object_set_new(o, "oom", x->oom.happened ? oom_json(x) : json_null());
	json_object_set_new(o, "kinds", kinds_json(x));
	for (size_t i = 0; i < x->rows_count; i++)
		json_array_append_new(rows, row_json(&x->rows[i]));
	json_object_set_new(o, "sites", rows);
	return o;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

uint64_t *frag_explain_by_stack(const struct frag_explained *x)
{
	size_t n = x->sites.stacks_count;
	uint64_t *bytes = frag_host_calloc(n, sizeof(*bytes));

	for (size_t i = 0; bytes && i < x->scene.count; i++) {
		const struct frag_held *h = &x->scene.list[i];

		if (!h->waiting)
			bytes[h->stack < n ? h->stack : 0] += h->granted;
	}
	return bytes;
}

/* A frame as flamegraph.pl wants it: ';' parts frames, the last blank the number. */
static void add_frame(const struct frag_trace *t, uint32_t frame, struct frag_text *out)
{
	char *name = frag_frame_name(t, frame);

	for (char *p = name; p && *p; p++)
		*p = *p == ';' ? ':' : *p;
	frag_text_add(out, name ? name : "?");
	frag_host_free(name);
}

int frag_explain_folded(const struct frag_explained *x, struct frag_text *out, struct frag_err *err)
{
	const struct frag_trace *t = x->sites.trace;
	FRAG_AUTO_FREE uint64_t *bytes = frag_explain_by_stack(x);

	FRAG_CHECK_ALLOC(bytes, "stacks", err);
	for (uint32_t s = 0; s < x->sites.stacks_count; s++) {
		size_t n;
		const uint32_t *frames = frag_stack_frames(t, s, &n);

		if (!bytes[s])
			continue;
		if (!n)
			frag_text_add(out, "(no stack)");
		for (size_t i = n; i-- > 0;) {
			add_frame(t, frames[i], out);
			frag_text_add(out, i ? ";" : "");
		}
		frag_text_addf(out, " %" PRIu64 "\n", bytes[s]);
	}
	return frag_text_check(out, err);
}

static json_t *speedscope_frames(const struct frag_trace *t)
{
	json_t *frames = json_array();

	for (uint32_t i = 0; i < t->stacks.frames_count; i++) {
		char *name = frag_frame_name(t, i);

		json_array_append_new(frames, json_pack("{ss}", "name", name ? name : "?"));
		frag_host_free(name);
	}
	json_array_append_new(frames, json_pack("{ss}", "name", "(no stack)"));
	return frames;
}

json_t *frag_explain_speedscope(const struct frag_explained *x, const char *title)
{
	const struct frag_trace *t = x->sites.trace;
	uint64_t *bytes = frag_explain_by_stack(x), total = 0;
	json_t *samples = json_array(), *weights = json_array(), *profile;

	for (uint32_t s = 0; bytes && s < x->sites.stacks_count; s++) {
		size_t n;
		const uint32_t *frames = frag_stack_frames(t, s, &n);
		json_t *sample;

		if (!bytes[s])
			continue;
		sample = json_array();
		for (size_t i = n; i-- > 0;)
			json_array_append_new(sample, json_integer(frames[i]));
		if (!n)
			json_array_append_new(sample,
					      json_integer((json_int_t)t->stacks.frames_count));
		json_array_append_new(samples, sample);
		json_array_append_new(weights, frag_json_number(bytes[s]));
		total += bytes[s];
	}
	if (!bytes) {
		json_decref(samples);
		json_decref(weights);
		return NULL;
	}
	frag_host_free(bytes);
	profile = json_pack("{ss ss ss si sI so so}", "type", "sampled", "name", title, "unit",
			    "bytes", "startValue", 0, "endValue", (json_int_t)total, "samples",
			    samples, "weights", weights);
	return json_pack("{ss ss ss s{so} s[o]}", "$schema",
			 "https://www.speedscope.app/file-format-schema.json", "exporter", "cufrag",
			 "name", title, "shared", "frames", speedscope_frames(t), "profiles",
			 profile);
}
