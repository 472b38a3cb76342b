/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of explain: why, where every byte was, who held it, what would have helped. */
#include "explain_answer.h"

#include <inttypes.h>
#include <math.h>

#include <frag/opt.h>

#include "explain/curve_point.h"
#include "explain/diagnose/diagnose.h"

/* ---- call sites ------------------------------------------------------------------------------- */

static const struct frag_field site_fields[] = {
	FRAG_FIELD_AS(TEXT, "site", struct frag_row, name, NULL,
		      "call site; without stacks, size and step of its blocks"),
	FRAG_FIELD(BYTES, struct frag_row, allocated_bytes, "live", "as granted"),
	FRAG_FIELD(RATIO, struct frag_row, share_ratio, "share", "of all live bytes",
		   .precision = 1),
	FRAG_FIELD(BYTES, struct frag_row, requested_bytes, NULL, "live, as requested"),
	FRAG_FIELD(BYTES, struct frag_row, waiting_bytes, NULL,
		   "freed, but used by another stream"),
	FRAG_FIELD(COUNT, struct frag_row, blocks_count, "blocks", "live or waiting"),
	FRAG_FIELD(COUNT, struct frag_row, oldest_event, NULL, "that allocated the oldest block"),
	FRAG_FIELD(COUNT, struct frag_row, newest_event, NULL, "that allocated the newest block"),
	FRAG_FIELD(COUNT, struct frag_row, oldest_step, "oldest",
		   "step of the oldest block; null after the last step", .unit = "step",
		   .none = "end", .spare = 4),
	FRAG_FIELD(COUNT, struct frag_row, newest_step, "newest",
		   "step of the newest block; null after the last step", .unit = "step",
		   .none = "end", .spare = 3),
	FRAG_FIELD(US, struct frag_row, oldest_us, NULL, "time of the oldest block"),
	FRAG_FIELD(US, struct frag_row, newest_us, NULL, "time of the newest block"),
	FRAG_FIELD(US, struct frag_row, oldest_age_us, "age", "of the oldest block", .spare = 2),
	FRAG_FIELD(TEXT, struct frag_row, kind, "kind", "what most of its bytes are for",
		   .spare = 5),
	FRAG_FIELD(RATIO, struct frag_row, kind_confidence_ratio, "confidence",
		   "that the kind is right: the part of the stack's blocks that behaved the same, "
		   "times the part of the bytes that are of this kind",
		   .spare = 1),
	FRAG_FIELD(BYTES, struct frag_row, non_releasable_bytes, NULL,
		   "its share of the free bytes in the segments of its blocks"),
	FRAG_FIELD(RATIO, struct frag_row, non_releasable_share_ratio, NULL,
		   "of all non-releasable bytes"),
	FRAG_FIELD(BYTES, struct frag_row, alone_bytes, NULL,
		   "non-releasable in segments where nothing else lives"),
	FRAG_FIELD(COUNT, struct frag_row, segments_count, NULL, "that its blocks pin"),
	FRAG_FIELD(BYTES, struct frag_row, largest_hole_bytes, NULL, "in these segments"),
	FRAG_FIELD(BYTES, struct frag_row, regained_bytes, NULL,
		   "what a trim returns to the device without its blocks, replayed; null if not "
		   "asked"),
	FRAG_FIELD_SHOWN(TEXT, struct frag_row, name, "allocated at", "call site"),
	FRAG_FIELD_END,
};
static const struct frag_shape site_shape =
	FRAG_SHAPE("call site", struct frag_row, site_fields, "blocks of one call site");

/* The same rows as those that pin segments. */
static const struct frag_field pinning_fields[] = {
	FRAG_FIELD_SHOWN(BYTES, struct frag_row, non_releasable_bytes, "pinned",
			 "free bytes of its segments, shared equally among their blocks"),
	FRAG_FIELD_SHOWN(RATIO, struct frag_row, non_releasable_share_ratio, "share",
			 "of all pinned bytes", .precision = 1, .spare = 4),
	FRAG_FIELD_SHOWN(COUNT, struct frag_row, segments_count, "segments", "that its blocks pin",
			 .spare = 3),
	FRAG_FIELD_SHOWN(BYTES, struct frag_row, largest_hole_bytes, "largest hole",
			 "in these segments", .spare = 2),
	FRAG_FIELD_SHOWN(COUNT, struct frag_row, blocks_count, "blocks", "of the call site",
			 .spare = 1),
	FRAG_FIELD_SHOWN(BYTES, struct frag_row, regained_bytes, "if freed",
			 "what a trim returns to the device without its blocks, replayed"),
	FRAG_FIELD_SHOWN(TEXT, struct frag_row, name, "pinned by", "call site"),
	FRAG_FIELD_END,
};
/* Only a table: JSON has all of it in the sites. */
static const struct frag_shape pinning_shape =
	FRAG_SHAPE("pinning call site", struct frag_row, pinning_fields, "who pins segments");

/* ---- kinds ------------------------------------------------------------------------------------ */

struct kind_row {
	const char *kind, *rule;
	uint64_t live_bytes, blocks_count;
	double share_ratio;
};

static const struct frag_field kind_fields[] = {
	FRAG_FIELD(TEXT, struct kind_row, kind, "kind", "what blocks are for"),
	FRAG_FIELD(BYTES, struct kind_row, live_bytes, "live", "bytes of this kind"),
	FRAG_FIELD_SHOWN(RATIO, struct kind_row, share_ratio, "share", "of all live bytes",
			 .precision = 1),
	FRAG_FIELD_SHOWN(COUNT, struct kind_row, blocks_count, "blocks", "of this kind"),
	FRAG_FIELD_SHOWN(TEXT, struct kind_row, rule, "rule", "how blocks of this kind behave"),
	FRAG_FIELD_END,
};
static const struct frag_shape kind_shape =
	FRAG_SHAPE("kind", struct kind_row, kind_fields, "live bytes of a kind, by its name");

static const char *const kind_rules[FRAG_KINDS] = {
	[FRAG_KIND_PERMANENT] = "allocated in the first step, live to the end: weights",
	[FRAG_KIND_OPTIMIZER] = "allocated in the first optimizer step, live to the end",
	[FRAG_KIND_GRADIENT] = "live through the optimizer step, freed before the next allocation",
	[FRAG_KIND_ACTIVATION] = "allocated and freed before the optimizer runs in its step",
	[FRAG_KIND_TEMPORARY] = "freed within 2 % of the requests of its step",
	[FRAG_KIND_CARRIED] = "allocated in one step, freed in the next: a batch, a loss",
	[FRAG_KIND_KEPT] = "allocated after the first step, live for two steps or more",
	[FRAG_KIND_WITHIN] = "allocated and freed within one step",
	[FRAG_KIND_UNKNOWN] = "the recording has no steps to tell by",
};

static struct frag_rows kinds_of(const struct frag_explained *x, struct frag_answer *a)
{
	struct kind_row *rows = frag_answer_new(a, FRAG_KINDS, sizeof(*rows));
	uint64_t live = x->loss.requested_bytes + x->loss.rounding_bytes;
	size_t n = 0;

	for (unsigned k = 0; rows && k < FRAG_KINDS; k++)
		if (x->kind_blocks[k])
			rows[n++] =
				(struct kind_row){ frag_kind_name(k), kind_rules[k],
						   x->kind_bytes[k], x->kind_blocks[k],
						   live ? (double)x->kind_bytes[k] / (double)live
							: 0 };
	return (struct frag_rows){ rows, n };
}

/* ---- a refused request ------------------------------------------------------------------------ */

struct remedy_row {
	bool served;
	const char *text, *line;
	uint64_t bytes, tried_count;
	double ratio;
};

static const struct frag_field remedy_fields[] = {
	FRAG_FIELD(BOOL, struct remedy_row, served, "served", "the request, in a replay",
		   .left = true),
	FRAG_FIELD(TEXT, struct remedy_row, text, "change", "what to do"),
	FRAG_FIELD(TEXT, struct remedy_row, line, NULL, "to paste; null if there is none"),
	FRAG_FIELD(BYTES, struct remedy_row, bytes, NULL, "that the change frees or unpins"),
	FRAG_FIELD(COUNT, struct remedy_row, tried_count, NULL,
		   "settings, none of which served it"),
	FRAG_FIELD(RATIO, struct remedy_row, ratio, NULL, "by which the batch is smaller"),
	FRAG_FIELD_END,
};
static const struct frag_shape remedy_shape = FRAG_SHAPE("remedy", struct remedy_row, remedy_fields,
							 "one change, replayed up to the request");

struct refusal {
	const char *verdict, *line;
	uint64_t request_bytes, live_bytes, reserved_bytes, non_releasable_bytes,
		largest_free_bytes, excess_bytes;
	struct frag_rows remedies;
};

static const struct frag_field refusal_fields[] = {
	FRAG_FIELD(TEXT, struct refusal, verdict, NULL, "as diagnose has it"),
	FRAG_FIELD(BYTES, struct refusal, request_bytes, NULL, "asked for"),
	FRAG_FIELD(TEXT, struct refusal, line, NULL, "that asked"),
	FRAG_FIELD(BYTES, struct refusal, live_bytes, NULL, "then, with those that wait"),
	FRAG_FIELD(BYTES, struct refusal, reserved_bytes, NULL, "then"),
	FRAG_FIELD(BYTES, struct refusal, non_releasable_bytes, NULL, "then"),
	FRAG_FIELD(BYTES, struct refusal, largest_free_bytes, NULL, "largest hole"),
	FRAG_FIELD(BYTES, struct refusal, excess_bytes, NULL,
		   "live memory and the request above the limit; null if they fit or the limit is "
		   "inferred"),
	FRAG_FIELD(LIST, struct refusal, remedies, NULL, "what would have served it",
		   .of = &remedy_shape),
	FRAG_FIELD_END,
};
static const struct frag_shape refusal_shape =
	FRAG_SHAPE("refused request", struct refusal, refusal_fields, "why it was refused");

static const char *remedy_text(const struct frag_remedy *r, struct frag_answer *a)
{
	switch (r->kind) {
	case FRAG_REMEDY_SETTING:
		return r->served ? "another allocator setting"
				 : frag_answer_print(a,
						     "another allocator setting: none of %" PRIu64
						     " serves it",
						     r->tried_count);
	case FRAG_REMEDY_EMPTY_CACHE:
		return "empty_cache before the request";
	case FRAG_REMEDY_FREE_PINNING:
		return frag_answer_print(a, "freeing the blocks of %.200s (they pin %s)", r->site,
					 FRAG_BYTES(r->bytes));
	case FRAG_REMEDY_FREE_LIVE:
		return frag_answer_print(a, "freeing the blocks of %.200s (%s live)", r->site,
					 FRAG_BYTES(r->bytes));
	case FRAG_REMEDY_BATCH:
		return r->served
			       ? frag_answer_print(a, "a batch smaller by %.0f %% in this step",
						   100 * r->ratio)
			       : frag_answer_print(a, "a smaller batch: %.0f %% less is not enough",
						   100 * r->ratio);
	default:
		return r->served ? frag_answer_print(
					   a, "a larger card: %s or more, with all of its memory",
					   r->card)
				 : "a larger card: no known card serves it";
	}
}

static const char *remedy_line(const struct frag_remedy *r, struct frag_answer *a)
{
	if (r->conf)
		return frag_answer_print(a, "export PYTORCH_CUDA_ALLOC_CONF=%s", r->conf);
	return r->kind == FRAG_REMEDY_EMPTY_CACHE && r->served ? "torch.cuda.empty_cache()" : NULL;
}

static struct frag_rows remedies_of(const struct frag_refused_request *o, struct frag_answer *a)
{
	struct remedy_row *rows = frag_answer_new(a, o->remedies_count, sizeof(*rows));

	for (size_t i = 0; rows && i < o->remedies_count; i++) {
		const struct frag_remedy *r = &o->remedies[i];

		rows[i] = (struct remedy_row){ .served = r->served,
					       .text = remedy_text(r, a),
					       .line = remedy_line(r, a),
					       .bytes = r->bytes ? r->bytes : UINT64_MAX,
					       .tried_count =
						       r->tried_count ? r->tried_count : UINT64_MAX,
					       .ratio = r->ratio > 0 ? r->ratio : NAN };
	}
	return (struct frag_rows){ rows, rows ? o->remedies_count : 0 };
}

static struct refusal *refusal_of(const struct frag_explained *x, struct frag_answer *a)
{
	const struct frag_refused_request *o = &x->refused;
	struct refusal *r = frag_answer_new(a, 1, sizeof(*r));
	FRAG_AUTO_FREE char *line = frag_sites_line(&x->in.sites, o->stack);
	uint64_t need = o->live_bytes + o->request_bytes;

	if (!r)
		return NULL;
	*r = (struct refusal){
		.verdict = frag_finding_text(o->fragmentation ? FRAG_FOUND_OOM_FRAGMENTATION
							      : FRAG_FOUND_OOM_NEEDED),
		.line = line ? frag_answer_print(a, "%s", line) : NULL,
		.request_bytes = o->request_bytes,
		.live_bytes = o->live_bytes,
		.reserved_bytes = o->reserved_bytes,
		.non_releasable_bytes = o->non_releasable_bytes,
		.largest_free_bytes = o->largest_free_bytes,
		.excess_bytes = need > x->in.limit_bytes && !x->in.limit_high_bytes
					? need - x->in.limit_bytes
					: UINT64_MAX,
		.remedies = remedies_of(o, a),
	};
	return r;
}

/* ---- over time -------------------------------------------------------------------------------- */

struct highest { /* where curves are highest */
	const char *site;
	uint64_t bytes, all_bytes;
	double share_ratio;
};

static const struct frag_field highest_fields[] = {
	FRAG_FIELD(TEXT, struct highest, site, NULL, "that has most then"),
	FRAG_FIELD(BYTES, struct highest, bytes, NULL, "that it has"),
	FRAG_FIELD(BYTES, struct highest, all_bytes, NULL, "of all call sites"),
	FRAG_FIELD(RATIO, struct highest, share_ratio, NULL, "bytes of all_bytes"),
	FRAG_FIELD_END,
};
static const struct frag_shape highest_shape =
	FRAG_SHAPE("highest", struct highest, highest_fields, "where the chart is highest");

struct curve { /* the live or the pinned one */
	char *const *names;
	size_t count;
	const uint64_t (*bytes)[FRAG_CURVES + 1];
};

static const struct highest *highest_of(const struct frag_curves *c, const struct curve *v,
					struct frag_answer *a)
{
	struct highest *h = frag_answer_new(a, 1, sizeof(*h));
	const uint64_t *top = NULL;
	size_t who = 0;

	for (size_t p = 0; h && p < c->points; p++) {
		uint64_t sum = v->bytes[p][FRAG_CURVES];

		for (size_t i = 0; i < v->count; i++)
			sum += v->bytes[p][i];
		if (sum <= h->all_bytes)
			continue;
		h->all_bytes = sum;
		top = v->bytes[p];
	}
	if (!top || !v->count)
		return NULL;
	for (size_t i = 1; i < v->count; i++)
		who = top[i] > top[who] ? i : who;
	h->site = v->names[who];
	h->bytes = top[who];
	h->share_ratio = (double)h->bytes / (double)h->all_bytes;
	return h->bytes ? h : NULL;
}

/* Site by site, as gnuplot draws them: from the bottom of the stack up, all others on top. */
static struct frag_rows points_of(const struct frag_curves *c, const struct curve *v,
				  struct frag_answer *a)
{
	size_t n = v->count, count = 0;
	struct frag_curve_point *list = frag_answer_new(a, (n + 1) * c->points, sizeof(*list));

	for (size_t i = 0; list && i <= n; i++)
		for (size_t p = 0; p < c->points; p++) {
			const uint64_t *bytes = v->bytes[p];
			uint64_t own = bytes[i < n ? i : FRAG_CURVES], upto = own;

			for (size_t k = 0; k < i; k++)
				upto += bytes[k];
			list[count++] =
				(struct frag_curve_point){ i,
							   i < n ? v->names[i] : "all others",
							   (double)c->events[p],
							   (double)c->us[p] / 1e6,
							   own,
							   upto };
		}
	return (struct frag_rows){ list, count };
}

/* ---- the facts -------------------------------------------------------------------------------- */

struct explanation {
	const char *trace, *policy, *at, *text;
	uint64_t event, time_us, step, limit_bytes, limit_low_bytes, limit_high_bytes;
	bool limit_guessed;
	uint64_t peak_reserved_bytes, peak_live_bytes, reserved_bytes, allocated_bytes,
		requested_bytes, waiting_bytes, non_releasable_bytes, releasable_bytes,
		largest_free_bytes, unheld_bytes, blocks_count, pinned_segments_count;
	const void *oom, *live_highest, *pinned_highest;
	struct frag_rows kinds, sites;
	/* for people */
	const char *moment, *limit, *live, *pinned;
};

static const struct frag_field explanation_fields[] = {
	FRAG_FIELD(TEXT, struct explanation, trace, NULL, "name of the recording"),
	FRAG_FIELD(TEXT, struct explanation, policy, NULL, "that is replayed"),
	FRAG_FIELD(TEXT, struct explanation, at, NULL, "which moment"),
	FRAG_FIELD(TEXT, struct explanation, text, NULL, "the answer as a sentence"),
	FRAG_FIELD_SHOWN(TEXT, struct explanation, moment, "moment", "event, time and step"),
	FRAG_FIELD(COUNT, struct explanation, event, NULL, "number, from 0"),
	FRAG_FIELD(US, struct explanation, time_us, NULL, "since the recording began"),
	FRAG_FIELD(COUNT, struct explanation, step, NULL, "number, from 1; null without steps"),
	FRAG_FIELD_SHOWN(TEXT, struct explanation, limit, "limit", "of the process"),
	FRAG_FIELD(BYTES, struct explanation, limit_bytes, NULL, "that the process may reserve"),
	FRAG_FIELD(BYTES, struct explanation, limit_low_bytes, NULL, "if inferred: the least"),
	FRAG_FIELD(BYTES, struct explanation, limit_high_bytes, NULL, "if inferred: the most"),
	FRAG_FIELD(BOOL, struct explanation, limit_guessed, NULL,
		   "assumed to be the most that was ever reserved"),
	FRAG_FIELD(BYTES, struct explanation, peak_reserved_bytes, NULL, "of the whole replay"),
	FRAG_FIELD(BYTES, struct explanation, peak_live_bytes, NULL, "of the whole recording"),
	FRAG_FIELD(BYTES, struct explanation, reserved_bytes, "reserved", "taken from the device"),
	FRAG_FIELD_SHOWN(TEXT, struct explanation, live, "live", "granted and not freed"),
	FRAG_FIELD(BYTES, struct explanation, allocated_bytes, NULL, "live, as granted"),
	FRAG_FIELD(BYTES, struct explanation, requested_bytes, NULL, "live, as requested"),
	FRAG_FIELD(COUNT, struct explanation, blocks_count, NULL, "live or waiting"),
	FRAG_FIELD(BYTES, struct explanation, waiting_bytes, "waiting for another stream",
		   "freed, but used by another stream", .if_any = true),
	FRAG_FIELD_SHOWN(TEXT, struct explanation, pinned, "free, but pinned",
			 "free in segments that live blocks pin"),
	FRAG_FIELD(BYTES, struct explanation, non_releasable_bytes, NULL,
		   "free in segments that live blocks pin"),
	FRAG_FIELD(COUNT, struct explanation, pinned_segments_count, NULL, "with free bytes"),
	FRAG_FIELD(BYTES, struct explanation, releasable_bytes, "free, releasable",
		   "a trim returns them"),
	FRAG_FIELD(BYTES, struct explanation, largest_free_bytes, NULL, "largest hole"),
	FRAG_FIELD(BYTES, struct explanation, unheld_bytes, NULL,
		   "non-releasable without a block: the policy's own"),
	FRAG_FIELD(OBJECT, struct explanation, oom, NULL, "null unless a request was refused then",
		   .of = &refusal_shape),
	FRAG_FIELD(MAP, struct explanation, kinds, NULL, "live bytes by what they are for",
		   .of = &kind_shape),
	FRAG_FIELD(LIST, struct explanation, sites, NULL, "the largest first", .of = &site_shape),
	FRAG_FIELD(OBJECT, struct explanation, live_highest, NULL,
		   "of live memory over time; null without --out", .of = &highest_shape),
	FRAG_FIELD(OBJECT, struct explanation, pinned_highest, NULL,
		   "of pinned memory over time; null without --out", .of = &highest_shape),
	FRAG_FIELD_END,
};
const struct frag_shape frag_explanation_shape = FRAG_SHAPE(
	"explain", struct explanation, explanation_fields, "who holds the memory at one moment");

/* "1 block", "2 blocks" */
static const char *count_of(struct frag_answer *a, uint64_t n, const char *what)
{
	return frag_answer_print(a, "%" PRIu64 " %s%s", n, what, n == 1 ? "" : "s");
}

static const char *moment_of(const struct frag_explained *x, struct frag_answer *a)
{
	struct frag_text t = { 0 };

	frag_text_addf(&t, "event %" PRIu64 ", ", x->event);
	frag_text_add_ns(&t, x->time_us * 1000);
	if (x->in.history.from != FRAG_STEPS_NONE) {
		frag_text_add(&t, ", ");
		frag_case_add_in_step(&x->in, x->step, &t);
	}
	return frag_answer_take(a, &t);
}

static const char *limit_of(const struct frag_case *c, struct frag_answer *a)
{
	if (c->limit_bytes == UINT64_MAX)
		return NULL;
	if (c->limit_high_bytes)
		return frag_answer_print(a, "%s, inferred: between %s and %s",
					 FRAG_BYTES(c->limit_bytes), FRAG_BYTES(c->limit_low_bytes),
					 FRAG_BYTES(c->limit_high_bytes));
	return frag_answer_print(a, "%s%s", FRAG_BYTES(c->limit_bytes),
				 c->limit_guessed ? ", assumed: the most that was ever reserved"
						  : "");
}

static const char *pinned_of(const struct frag_explained *x, struct frag_answer *a)
{
	if (!x->loss.non_releasable_bytes)
		return "0 B";
	return frag_answer_print(a, "%s in %s with live blocks, largest hole %s",
				 FRAG_BYTES(x->loss.non_releasable_bytes),
				 count_of(a, x->view.segments_pinned, "segment"),
				 FRAG_BYTES(x->loss.largest_free_bytes));
}

static void fill(const struct frag_explained *x, const struct frag_explain_names *names,
		 struct frag_answer *a, struct explanation *e)
{
	const struct frag_loss *l = &x->loss;
	const struct frag_case *c = &x->in;
	uint64_t live = l->requested_bytes + l->rounding_bytes;

	*e = (struct explanation){
		.trace = names->trace,
		.policy = names->policy,
		.at = frag_at_words[x->at.what],
		.event = x->event,
		.time_us = x->time_us,
		.step = frag_case_step_number(c, x->step),
		.limit_bytes = c->limit_bytes,
		.limit_low_bytes = c->limit_high_bytes ? c->limit_low_bytes : UINT64_MAX,
		.limit_high_bytes = c->limit_high_bytes ? c->limit_high_bytes : UINT64_MAX,
		.limit_guessed = c->limit_guessed,
		.peak_reserved_bytes = x->peak_reserved_bytes ? x->peak_reserved_bytes : UINT64_MAX,
		.peak_live_bytes = c->history.peak_live,
		.reserved_bytes = l->reserved_bytes,
		.allocated_bytes = live,
		.requested_bytes = l->requested_bytes,
		.waiting_bytes = l->waiting_bytes,
		.non_releasable_bytes = l->non_releasable_bytes,
		.releasable_bytes = l->releasable_bytes,
		.largest_free_bytes = l->largest_free_bytes,
		.unheld_bytes = x->view.unpinned,
		.blocks_count = x->view.count,
		.pinned_segments_count = x->view.segments_pinned,
		.oom = x->refused.happened ? refusal_of(x, a) : NULL,
		.kinds = kinds_of(x, a),
		.sites = { x->rows, x->rows_count },
		.moment = moment_of(x, a),
		.limit = limit_of(c, a),
		.live = frag_answer_print(a, "%s in %s of %s", FRAG_BYTES(live),
					  count_of(a, x->view.count, "block"),
					  count_of(a, x->rows_count, "call site")),
		.pinned = pinned_of(x, a),
	};
}

/* ---- what people read -------------------------------------------------------------------------- */

static const char *why_refused(const struct frag_explained *x, const struct refusal *r,
			       struct frag_answer *a)
{
	const struct frag_case *c = &x->in;
	const char *what = frag_answer_print(
		a, "a request for %s%s%s was refused%s: %s was live and %s was reserved%s%s",
		FRAG_BYTES(r->request_bytes), r->line ? " at " : "", r->line ? r->line : "",
		x->refused.fragmentation ? " because of fragmentation"
					 : "; the program needs more memory",
		FRAG_BYTES(r->live_bytes), FRAG_BYTES(r->reserved_bytes),
		c->limit_bytes == UINT64_MAX ? "" : " under a limit of ",
		c->limit_bytes == UINT64_MAX ? "" : FRAG_BYTES(c->limit_bytes));

	if (x->refused.fragmentation)
		return frag_answer_print(a,
					 "%s. Live memory and the request fit, but %s is free in "
					 "segments that live blocks pin, the largest hole %s",
					 what, FRAG_BYTES(r->non_releasable_bytes),
					 FRAG_BYTES(r->largest_free_bytes));
	if (r->excess_bytes != UINT64_MAX)
		return frag_answer_print(a, "%s. Live memory and the request exceed it by %s", what,
					 FRAG_BYTES(r->excess_bytes));
	return frag_answer_print(a, "%s. Live memory and the request %s", what,
				 r->live_bytes + r->request_bytes > c->limit_bytes
					 ? "exceed it"
					 : "would fit only without a single hole");
}

/* Who has most of what is reserved. */
static const char *who_holds(const struct frag_explained *x, struct frag_answer *a)
{
	const struct frag_row *live = x->rows_count ? &x->rows[0] : NULL;
	const struct frag_row *pins = x->pinned_count ? &x->rows[x->pinned[0]] : NULL;
	struct frag_text t = { 0 };

	frag_text_addf(&t, "%s %s is reserved. %s of that is live", frag_at_words[x->at.what],
		       FRAG_BYTES(x->loss.reserved_bytes),
		       FRAG_BYTES(x->loss.requested_bytes + x->loss.rounding_bytes));
	if (live)
		frag_text_addf(&t, ", %.1f %% of it %s %s", 100 * live->share_ratio,
			       frag_sites_known(&x->in.sites) ? "allocated at" : "in blocks of",
			       live->name);
	if (pins)
		frag_text_addf(&t,
			       ". %s is free, but in segments with live blocks, %.1f %% of it "
			       "pinned by "
			       "%s%s",
			       FRAG_BYTES(x->loss.non_releasable_bytes),
			       100 * pins->non_releasable_share_ratio,
			       frag_sites_known(&x->in.sites) ? "" : "blocks of ", pins->name);
	return frag_answer_take(a, &t);
}

static void say_remedies(const struct refusal *r, struct frag_answer *a)
{
	const struct remedy_row *rows = r->remedies.rows;

	frag_answer_heading(a, "What would have served the request (each replayed up to it)");
	frag_answer_table(a, &remedy_shape, rows, r->remedies.count)->wraps = true;
	for (size_t i = 0; i < r->remedies.count; i++)
		if (rows[i].line)
			frag_answer_paste(a, rows[i].text, rows[i].line);
}

static const struct remedy_row *first_served(const struct refusal *r)
{
	const struct remedy_row *rows = r->remedies.rows;

	for (size_t i = 0; i < r->remedies.count; i++)
		if (rows[i].served)
			return &rows[i];
	return NULL;
}

/* What --top leaves out. */
static void say_rest(struct frag_answer *a, const struct frag_row *rows, size_t from, size_t count)
{
	uint64_t bytes = 0, blocks = 0;

	for (size_t i = from; i < count; i++) {
		bytes += rows[i].allocated_bytes;
		blocks += rows[i].blocks_count;
	}
	if (from < count)
		frag_answer_say(a, "and %s with %s in %s (--top)",
				count_of(a, count - from, "more call site"), FRAG_BYTES(bytes),
				count_of(a, blocks, "block"));
}

static void say_pinning(const struct frag_explained *x, struct frag_answer *a)
{
	size_t n = FRAG_MIN(x->opt.top, x->pinned_count);
	struct frag_row *rows = frag_answer_new(a, n, sizeof(*rows));

	if (!n || !rows)
		return;
	for (size_t i = 0; i < n; i++)
		rows[i] = x->rows[x->pinned[i]];
	frag_answer_heading(a, "Free memory that cannot be returned, by the blocks that pin its "
			       "segments");
	frag_answer_table(a, &pinning_shape, rows, n);
	if (n < x->pinned_count)
		frag_answer_say(a, "and %s (--top)",
				count_of(a, x->pinned_count - n, "more call site"));
	frag_answer_remark(a, "the free bytes of a segment are shared equally among its blocks; if "
			      "freed: what a trim returns without these blocks, replayed");
}

static void draw(const struct frag_explained *x, const char *policy, struct frag_answer *a,
		 struct explanation *e)
{
	const struct frag_curves *c = x->curves;
	const struct curve live = { c->live_names, c->live_count, c->live };
	const struct curve pinned = { c->pinned_names, c->pinned_count, c->pinned };
	const struct highest *most = highest_of(c, &live, a), *pins = highest_of(c, &pinned, a);
	const char *under = frag_answer_print(a, "under %s", policy);

	e->live_highest = most;
	e->pinned_highest = pins;
	frag_answer_heading(a, "Over time");
	frag_answer_last(a)->page_only = true;
	frag_answer_chart(
		a,
		&(struct frag_answer_chart){
			.script = "sites",
			.base = "explain-live",
			.heading = "Live memory by call site",
			.title = most ? frag_answer_print(a, "%.200s: %.1f %% of at most %s live",
							  most->site, 100 * most->share_ratio,
							  FRAG_BYTES(most->all_bytes))
				      : "No call site has live memory",
			.subtitle = under,
			.extra = "stack",
			.caption = "Live memory, and memory that waits for another stream, by the "
				   "line that allocated it.",
			.shape = &frag_curve_by_event,
			.rows = points_of(c, &live, a) });
	frag_answer_chart(
		a,
		&(struct frag_answer_chart){
			.script = "sites",
			.base = "explain-held",
			.heading = "Free memory that cannot be returned, by who pins it",
			.title = pins ? frag_answer_print(a, "%.200s: %.1f %% of at most %s pinned",
							  pins->site, 100 * pins->share_ratio,
							  FRAG_BYTES(pins->all_bytes))
				      : "All free memory can be returned",
			.subtitle = under,
			.extra = "stack",
			.caption = "Non-releasable memory by the lines whose blocks pin the "
				   "segments; the free bytes of a segment are shared equally "
				   "among its blocks.",
			.shape = &frag_curve_by_event,
			.rows = points_of(c, &pinned, a) });
}

static void say_tables(const struct frag_explained *x, struct frag_answer *a,
		       const struct explanation *e)
{
	size_t top = FRAG_MIN(x->opt.top, x->rows_count);

	if (e->oom)
		say_remedies(e->oom, a);
	frag_answer_heading(a, "Live memory by call site");
	frag_answer_table(a, &site_shape, x->rows, top);
	say_rest(a, x->rows, top, x->rows_count);
	say_pinning(x, a);
	frag_answer_heading(a, "What the memory is for, by how it behaves over the steps");
	frag_answer_table(a, &kind_shape, e->kinds.rows, e->kinds.count)->wraps = true;
}

int frag_explained_answer(const struct frag_explained *x, const struct frag_explain_names *names,
			  struct frag_answer *a, struct frag_err *err)
{
	struct explanation *e = frag_answer_new(a, 1, sizeof(*e));
	const struct remedy_row *served;

	FRAG_CHECK_ALLOC(e, "explanation", err);
	fill(x, names, a, e);
	if (a->failed)
		return frag_fail_nomem(err, "explanation");
	frag_answer_data(a, &frag_explanation_shape, e);
	frag_answer_csv(a, &site_shape, x->rows, x->rows_count);
	a->title = frag_answer_print(a, "Who holds the memory of %s%s", names->trace,
				     a->estimated ? ", an estimate" : "");
	a->question = "Who holds the memory, and why can the rest of it not be used?";
	frag_answer_remark(a, "trace %s under %s%s", names->trace, names->policy,
			   a->estimated ? ", an estimate" : "");
	e->text = e->oom ? why_refused(x, e->oom, a) : who_holds(x, a);
	frag_answer_conclude(a, "%s", e->text);
	served = e->oom ? first_served(e->oom) : NULL;
	if (served)
		frag_answer_conclude(a, "%s serves it in a replay%s%s", served->text,
				     served->line ? ": " : "", served->line ? served->line : "");
	if (!frag_sites_known(&x->in.sites))
		frag_answer_remark(a,
				   "the recording has no stacks, so blocks are grouped by size and "
				   "step; to see the lines, record with "
				   "torch.cuda.memory._record_memory_history(stacks=\"python\")");
	frag_answer_gap(a);
	frag_answer_facts(a, &frag_explanation_shape, e);
	say_tables(x, a, e);
	if (x->curves)
		draw(x, names->policy, a, e);
	return 0;
}
