/* SPDX-License-Identifier: Apache-2.0 */
#include "recorded.h"

#include <unistd.h>

#define CARD_BYTES 150109880320ull

const struct frag_sim_config recorded_card = { .context_bytes = UINT64_MAX };

void recorded_or_skip(const char *path)
{
	if (access(path, R_OK) != 0 || test_is_quick())
		skip();
}

json_t *recorded_notes(const char *pickle)
{
	char path[512];
	const char *dot = strstr(pickle, ".pickle");

	snprintf(path, sizeof(path), "%.*s.json", (int)(dot - pickle), pickle);
	return json_load_file(path, 0, NULL);
}

uint64_t recorded_peak(const json_t *notes)
{
	return (uint64_t)json_integer_value(
		json_object_get(json_object_get(notes, "stats"), "reserved_bytes.all.peak"));
}

uint64_t recorded_limit(const json_t *notes)
{
	const char *fraction = json_string_value(json_object_get(notes, "memfrac"));
	const char *workload = json_string_value(json_object_get(notes, "workload"));
	double f = 1;

	if (fraction && *fraction)
		f = strtod(fraction, NULL);
	else if (workload && !strcmp(workload, "oomcap"))
		f = 7.5 * (double)GIB / (double)CARD_BYTES;
	return f < 1 ? (uint64_t)(f * (double)CARD_BYTES) : UINT64_MAX;
}

const char *recorded_policy(const json_t *notes, const char *release)
{
	static char text[600];
	const char *conf = json_string_value(json_object_get(notes, "conf"));

	snprintf(text, sizeof(text), "pytorch:%s%s%s%s", *release ? "version=" : "", release,
		 *release && conf && *conf ? "," : "", conf ? conf : "");
	return text;
}

struct frag_verify_result recorded_follow(struct frag_trace *t, uint32_t dev, uint64_t limit_bytes)
{
	struct frag_verify_result r;
	struct frag_err err = { 0 };

	if (frag_verify(t, dev, &recorded_card, limit_bytes, NULL, &r, &err))
		fail_msg("%s: %s", t->name, err.msg);
	if (!r.identical)
		fail_msg("%s: device %u: %s", t->name, r.device_ordinal, r.first_difference);
	assert_int_equal(r.allocs, r.allocs_same);
	assert_int_equal(r.segments, r.segments_same);
	assert_int_equal(r.ooms, r.ooms_same);
	assert_int_equal(r.finals, r.finals_same);
	return r;
}

void must_be_peak(uint64_t got, uint64_t recorded, const char *what, const char *under)
{
	if (got != recorded)
		fail_msg("%s under %s: %llu, recorded %llu", what, under, (ull)got, (ull)recorded);
}
