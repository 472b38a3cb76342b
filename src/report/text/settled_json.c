/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording turned out to be, as JSON: the same members wherever it is told. */
#include "settled_json.h"

#include "answer/json.h"

void frag_settled_members(json_t *o, const struct frag_settled *s)
{
	static const char *const sources[] = { [FRAG_LIMIT_NONE] = "none",
					       [FRAG_LIMIT_RECORDED] = "recorded",
					       [FRAG_LIMIT_GIVEN] = "given",
					       [FRAG_LIMIT_INFERRED] = "inferred" };
	bool inferred = s->limit_source == FRAG_LIMIT_INFERRED;

	json_object_set_new(o, "limit_bytes", frag_json_number(s->limit_bytes));
	json_object_set_new(o, "limit_source", json_string(sources[s->limit_source]));
	json_object_set_new(o, "limit_low_bytes",
			    inferred ? frag_json_number(s->limit_low_bytes) : json_null());
	json_object_set_new(o, "limit_high_bytes",
			    inferred ? frag_json_number(s->limit_high_bytes) : json_null());
	json_object_set_new(o, "limit_refuted_bytes",
			    s->limit_refuted_bytes ? frag_json_number(s->limit_refuted_bytes)
						   : json_null());
	json_object_set_new(o, "assumed_trims_count", frag_json_number(s->assumed_trims_count));
	json_object_set_new(o, "recorded_peak_bytes", frag_json_number(s->peak_bytes));
}

json_t *frag_settled_json(const struct frag_settled *s)
{
	json_t *o;

	if (!s->checked)
		return json_null();
	o = json_object();
	json_object_set_new(o, "identical", json_boolean(s->identical));
	json_object_set_new(o, "undetermined", json_boolean(s->undetermined));
	json_object_set_new(o, "first_difference",
			    s->identical ? json_null() : json_string(s->difference));
	json_object_set_new(o, "first_difference_event",
			    s->identical ? json_null() : frag_json_number(s->event));
	frag_settled_members(o, s);
	json_object_set_new(o, "refused_count", frag_json_number(s->refused_count));
	return o;
}
