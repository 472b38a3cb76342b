/* SPDX-License-Identifier: Apache-2.0 */
/* One of the two runs: from a recording, or from the JSON of a former one; see diff.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/torch.h>

#include "base/clean.h"
#include "diff.h"
#include "recording/recording.h"

/* Texts come from files. */
static const char *clean(struct frag_answer *a, const char *text)
{
	size_t len = strlen(text);
	char *copy = frag_answer_new(a, len + 1, 1);

	return copy ? frag_clean_text(memcpy(copy, text, len + 1), len) : "";
}

FRAG_COMPARE(by_name, struct frag_side_site, strcmp(x->name, y->name))

static void sort_sites(struct frag_side *s)
{
	if (s->sites_count)
		qsort(s->sites, s->sites_count, sizeof(*s->sites), by_name);
}

/* ---- a recording ------------------------------------------------------------------------ */

/* x: at the peak of reserved memory; live: at that of live memory. */
static void fill(struct frag_side *out, const struct frag_explained *x,
		 const struct frag_explained *live, const char *name, struct frag_answer *a)
{
	const struct frag_history *h = &x->in.history;
	const struct frag_trace_dev *td = frag_events_dev(&x->in.events);
	const struct frag_gpu_chip *chip = frag_recorded_chip(x->in.events.trace, td);
	unsigned release = x->in.target.torch;
	char torch[16], source[16];

	*out = (struct frag_side){
		.name = clean(a, name),
		.policy = clean(a, frag_policy_spec_text(x->in.spec)),
		.torch =
			release ? frag_answer_print(
					  a, "%s", frag_torch_format(release, torch, sizeof(torch)))
				: NULL,
		.estimate = x->in.events.trace->estimate != NULL,
		.peak_reserved_bytes = x->m.peak_reserved_bytes,
		.peak_live_bytes = h->peak_live,
		.non_releasable_bytes = x->loss.non_releasable_bytes,
		.card = chip ? frag_answer_print(a, "%s", chip->name) : NULL,
		.release = td->source_release
				   ? frag_answer_print(a, "%s",
						       frag_torch_format(td->source_release, source,
									 sizeof(source)))
				   : NULL,
		.steps_count = frag_steps_known(h) ? h->count * h->stride : 0,
		.state = frag_is_state(x->in.events.trace, td),
		.has_loss = true,
		.loss = x->loss,
		.sites = frag_answer_new(a, live->rows_count, sizeof(*out->sites)),
		.steps = frag_answer_new(a, h->count, sizeof(*out->steps)),
		.curves = x->curves ? FRAG_ANSWER_KEEP(a, *x->curves) : NULL,
		.events = h->events,
	};
	if (out->state && !x->in.recorded_peak_bytes) { /* the replay's */
		out->peak_reserved_bytes = 0;
		out->non_releasable_bytes = out->loss.requested_bytes = UINT64_MAX;
	}
	for (size_t i = 0; out->sites && i < live->rows_count; i++)
		out->sites[out->sites_count++] =
			(struct frag_side_site){ clean(a, live->rows[i].site),
						 live->rows[i].requested_bytes };
	for (size_t i = 0; out->steps && frag_steps_known(h) && i < h->count; i++)
		out->steps[out->steps_listed++] = h->steps[i].peak_live;
	sort_sites(out);
}

/* The call sites are those of the peak of live memory, which no policy moves. */
static int take(struct frag_side *side, const struct frag_case *in, struct frag_explained *x,
		const char *name, struct frag_err *err)
{
	const struct frag_explain_options at_live = {
		.at = { FRAG_AT_EVENT, x->in.history.peak_event },
		.by = x->opt.by,
		.frame = x->opt.frame,
	};
	FRAG_AUTO(frag_explained_destroy_at) struct frag_explained *live = NULL;

	FRAG_TRY_CALLOC(live, 1, "comparison", err);
	FRAG_TRY(frag_explain(in, &at_live, x->texts, live, err));
	fill(side, x, live, name, x->texts);
	return 0;
}

int frag_side_take(struct frag_side *side, const struct frag_case *in,
		   const struct frag_explain_options *opt, const char *name, struct frag_answer *a,
		   struct frag_err *err)
{
	struct frag_explain_options at_peak = *opt;
	FRAG_AUTO(frag_explained_destroy_at) struct frag_explained *x = NULL;
	const struct frag_ending *ending = &frag_events_dev(&in->events)->ending;
	uint64_t devices = side->devices_count + 1;
	uint64_t above = side->name ? side->ended_above_bytes : UINT64_MAX;

	if (ending->out_of_memory)
		above = ending->need_bytes;

	at_peak.at = (struct frag_at){ .what = FRAG_AT_RESERVED };
	at_peak.top = 0;
	FRAG_TRY_CALLOC(x, 1, "comparison", err);
	FRAG_TRY(frag_explain(in, &at_peak, a, x, err));
	if (!side->name || (side->state ? x->in.history.peak_live > side->peak_live_bytes
					: x->m.peak_reserved_bytes > side->peak_reserved_bytes))
		FRAG_TRY(take(side, in, x, name, err));
	side->devices_count = devices;
	side->ended_above_bytes = above;
	return 0;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

json_t *frag_side_read_json(const char *path)
{
	json_t *root = NULL;
	FRAG_AUTO_FILE FILE *f = strcmp(path, "-") != 0 ? fopen(path, "rb") : NULL;
	int c;

	if (!f)
		return NULL;
	do
		c = fgetc(f);
	while (c == ' ' || c == '\n' || c == '\t' || c == '\r');
	rewind(f);
	if (c == '{')
		root = json_loadf(f, JSON_REJECT_DUPLICATES, NULL);
	if (json_object_get(root, "schema"))
		return root;
	json_decref(root);
	return NULL;
}

/* 0 where it is absent or no size. */
static uint64_t bytes_of(const json_t *o, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

static void sites_of_json(struct frag_side *s, const json_t *list, struct frag_answer *a)
{
	const json_t *one;
	size_t i;

	s->sites = frag_answer_new(a, json_array_size(list), sizeof(*s->sites));
	json_array_foreach(list, i, one)
	{
		const char *name = json_string_value(json_object_get(one, "site"));

		if (name && s->sites)
			s->sites[s->sites_count++] =
				(struct frag_side_site){ clean(a, name), bytes_of(one, "requested_"
										       "bytes") };
	}
	sort_sites(s);
}

int frag_side_of_json(const json_t *root, const char *name, struct frag_answer *a,
		      struct frag_side *out, struct frag_err *err)
{
	const json_t *first = json_array_get(json_object_get(root, "results"), 0);
	const json_t *r = first ? first : root;
	const char *policy = json_string_value(json_object_get(r, "policy"));
	const json_t *event = json_object_get(r, "peak_reserved_event");
	const json_t *trace = json_array_get(json_object_get(root, "traces"), 0);
	const json_t *ended = json_object_get(trace ? trace : root, "ended_out_of_memory");

	*out = (struct frag_side){
		.name = clean(a, name),
		.policy = clean(a, policy ? policy : ""),
		.peak_reserved_bytes = bytes_of(r, "peak_reserved_bytes"),
		.peak_live_bytes =
			FRAG_MAX(bytes_of(r, "lower_bound_bytes"), bytes_of(r, "peak_live_bytes")),
		.non_releasable_bytes = bytes_of(r, "non_releasable_bytes"),
		.devices_count = UINT64_MAX,
		.steps_count = UINT64_MAX,
		.ended_above_bytes = bytes_of(ended, "need_bytes") ?: UINT64_MAX,
		/* "estimate": an object, up to schema 2 */
		.estimate = json_is_true(json_object_get(root, "estimated")) ||
			    json_is_object(json_object_get(root, "estimate")),
		.loss = { .requested_bytes = bytes_of(r, first ? "at_peak_requested_bytes"
							       : "requested_bytes"),
			  .non_releasable_bytes = bytes_of(r, "non_releasable_bytes"),
			  .releasable_bytes = bytes_of(r, "releasable_bytes") },
	};
	if (!out->peak_reserved_bytes)
		return FRAG_INPUT(err,
				  "'%.200s' is not a result of replay, compare or explain: it "
				  "lacks peak_reserved_bytes",
				  name);
	/* explain looked at another moment */
	if (event && !json_equal(event, json_object_get(r, "event")))
		out->non_releasable_bytes = out->loss.requested_bytes = UINT64_MAX;
	sites_of_json(out, json_object_get(root, "sites"), a);
	return a->failed ? frag_fail_nomem(err, "comparison") : 0;
}
