/* SPDX-License-Identifier: Apache-2.0 */
/* `cufrag info --json`: one device, and the recorded settings. */
#include "info_json.h"

#include "answer/json.h"

const double frag_info_quantiles[FRAG_INFO_QUANTILES] = { 0.5, 0.9, 0.99, 1.0 };
static const char *const quantile_names[FRAG_INFO_QUANTILES] = { "p50", "p90", "p99", "max" };

json_t *frag_info_settings_json(const struct frag_trace_settings *s)
{
	json_t *roundup = json_array();

	if (!s->present) {
		json_decref(roundup);
		return json_null();
	}
	for (size_t i = 0; i < FRAG_ARRAY_LEN(s->roundup); i++)
		json_array_append_new(roundup, json_integer(s->roundup[i]));
	return json_pack("{s:s, s:o, s:f, s:b, s:o}", "conf", s->conf ? s->conf : "",
			 "max_split_bytes", frag_json_number(s->max_split_bytes),
			 "gc_threshold_ratio", s->gc_threshold, "expandable_segments",
			 s->expandable, "roundup_power2_divisions", roundup);
}

static json_t *sizes_json(const struct frag_info *info)
{
	json_t *all = json_array();

	for (unsigned c = 0; c < FRAG_INFO_CLASSES; c++)
		json_array_append_new(
			all, json_pack("{s:o, s:o, s:o}", "up_to_bytes",
				       frag_json_number(frag_info_class_bytes[c]), "count",
				       frag_json_number(info->class_count[c]), "requested_bytes",
				       frag_json_number(info->class_bytes[c])));
	return all;
}

static json_t *quantiles_json(const struct frag_hist *h)
{
	json_t *o = json_object();

	for (size_t i = 0; i < FRAG_INFO_QUANTILES; i++)
		json_object_set_new(
			o, quantile_names[i],
			h->count ? frag_json_number(frag_hist_quantile(h, frag_info_quantiles[i]))
				 : json_null());
	return o;
}

static json_t *peak_json(const struct frag_info_peak *p)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "live_bytes", frag_json_number(p->bytes),
			 "requested_bytes", frag_json_number(p->requested_bytes), "blocks_count",
			 frag_json_number(p->blocks_count), "event", frag_json_number(p->event),
			 "time_us", frag_json_number(p->time_us), "steps_done_count",
			 frag_json_number(p->step));
}

static json_t *counts_json(const struct frag_info *info)
{
	static const char *const names[FRAG_EV_COUNT] = {
		"allocs_count", "frees_count",	 "frees_requested_count", "frees_completed_count",
		"trims_count",	"refused_count", "marks_count",
	};
	json_t *o = json_object();

	for (size_t i = 0; i < FRAG_EV_COUNT; i++)
		json_object_set_new(o, names[i], frag_json_number(info->kinds[i]));
	return o;
}

static json_t *card_json(const struct frag_recorded_card *c)
{
	if (!c->total_bytes)
		return json_null();
	return json_pack("{s:s, s:I, s:I, s:I, s:f}", "name", c->name, "total_bytes",
			 (json_int_t)c->total_bytes, "context_bytes", (json_int_t)c->context_bytes,
			 "beside_bytes", (json_int_t)c->beside_bytes, "limit_fraction",
			 c->limit_fraction);
}

json_t *frag_info_json(const struct frag_info *info, const struct frag_source_counts *counts)
{
	const struct frag_trace_dev *dev = info->dev;
	json_t *o = counts_json(info);

	json_object_set_new(o, "device", frag_json_number(dev->ordinal));
	json_object_set_new(o, "card", card_json(&dev->card));
	json_object_set_new(o, "events_count", frag_json_number(info->events));
	json_object_set_new(o, "recorded_count", frag_json_number(dev->recorded_count));
	json_object_set_new(o, "streams_count", frag_json_number(dev->streams_count));
	json_object_set_new(o, "pools_count", frag_json_number(dev->pools_count));
	json_object_set_new(o, "slots_count", frag_json_number(dev->slots_count));
	json_object_set_new(o, "steps_count", frag_json_number(info->steps_count));
	json_object_set_new(o, "duration_us", frag_json_number(info->duration_us));
	json_object_set_new(o, "began_late", json_boolean(info->initial_blocks_count));
	json_object_set_new(o, "initial_blocks_count",
			    frag_json_number(info->initial_blocks_count));
	json_object_set_new(o, "initial_bytes", frag_json_number(info->initial_bytes));
	json_object_set_new(o, "truncated", json_boolean(dev->truncated));
	json_object_set_new(o, "uncertain_count", frag_json_number(dev->uncertain_blocks));
	json_object_set_new(o, "unsure_trims_count", frag_json_number(info->unsure_count));
	json_object_set_new(o, "has_evidence", json_boolean(dev->has_evidence));
	json_object_set_new(o, "evidence_count", frag_json_number(counts->seen));
	json_object_set_new(o, "final_segments_count", frag_json_number(counts->final_segments));
	json_object_set_new(o, "final_blocks_count", frag_json_number(counts->final_blocks));
	json_object_set_new(o, "peak", peak_json(&info->peak));
	json_object_set_new(o, "never_freed_count", frag_json_number(info->kept_count));
	json_object_set_new(o, "requests", sizes_json(info));
	json_object_set_new(o, "lifetime_events", quantiles_json(&info->life_events));
	json_object_set_new(o, "lifetime_us", quantiles_json(&info->life_us));
	return o;
}
