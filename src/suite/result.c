/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a result; see suite.h. It holds whole numbers and texts only, so that the simulated
 * division writes the same bytes everywhere. Its hash covers everything else in it.
 */
#include "suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <frag/policy.h>

#include "base/clean.h"

#define FORMAT "cufrag-suite-result"

/* ---- written ------------------------------------------------------------------------------ */

/* text[]: of the document without its hash. */
static bool hash_of(const json_t *doc, char *text)
{
	json_auto_t *bare = json_copy((json_t *)doc);
	FRAG_AUTO_FREE char *line = NULL;

	if (!bare)
		return false;
	json_object_del(bare, "hash");
	line = json_dumps(bare, JSON_COMPACT | JSON_SORT_KEYS);
	if (line)
		frag_sha256(line, strlen(line), text);
	return line != NULL;
}

static json_t *policies_of(const struct frag_suite *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->policies.count; i++) {
		FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;
		const char *text = s->policies.text[i];
		char hash[FRAG_SHA256_TEXT] = "";

		if (frag_policy_spec_parse(text, &spec, NULL) ||
		    (frag_ends_with(text, ".so") && frag_sha256_file(text, hash, NULL)))
			continue; /* it could be read when the run began */
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s, s:s}", "policy", text, "settings",
						frag_policy_spec_echo(spec), "rules",
						frag_policy_spec_ops(spec)->source, "revision",
						*hash ? hash : "cufrag " FRAG_VERSION));
	}
	return list;
}

static json_t *classes_of(const struct frag_suite *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->manifest.classes_count; i++)
		json_array_append_new(list, json_string(s->manifest.classes[i]));
	return list;
}

json_t *frag_suite_result_make(const struct frag_suite *s, json_t *rows,
			       const struct frag_suite_card *card)
{
	char hash[FRAG_SHA256_TEXT];
	json_t *doc = json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:{s:I, s:s, s:I}, s:o, s:o, s:O}", "format",
		FORMAT, "version", s->manifest.version, "cufrag", FRAG_VERSION, "division",
		card ? "card" : "simulated", "device", card ? card->name : s->target.card.name,
		"driver", card ? card->driver : "", "seed", (json_int_t)s->target.seed, "settings",
		"events_max", (json_int_t)s->manifest.events_max, "manifest", s->manifest.sha256,
		"creep_events_max", (json_int_t)FRAG_SUITE_CREEP_EVENTS, "policies", policies_of(s),
		"classes", classes_of(s), "rows", rows);

	if (!doc || !hash_of(doc, hash) || json_object_set_new(doc, "hash", json_string(hash))) {
		json_decref(doc);
		return NULL;
	}
	return doc;
}

/* ---- read ---------------------------------------------------------------------------------- */

static int names_of(json_t *list, const char *member, const char ***out, size_t *count,
		    struct frag_err *err)
{
	FRAG_TRY_CALLOC(*out, json_array_size(list) + 1, "result", err);
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *one = json_array_get(list, i);
		const char *name = json_string_value(member ? json_object_get(one, member) : one);

		if (!name)
			return FRAG_INPUT(err, "a name is not a text");
		(*out)[(*count)++] = name;
	}
	return 0;
}

static int read_rows(struct frag_suite_result *r, json_t *rows, struct frag_err *err)
{
	FRAG_TRY_CALLOC(r->rows, json_array_size(rows) + 1, "result", err);
	for (; r->rows_count < json_array_size(rows); r->rows_count++) {
		struct frag_suite_row *row = &r->rows[r->rows_count];

		if (!frag_suite_row_read(row, json_array_get(rows, r->rows_count)))
			return frag_fail_at(err, FRAG_EINPUT, r->rows_count,
					    "row %zu lacks something, or it is of another kind",
					    r->rows_count + 1);
		r->complete &= frag_suite_is_measured(row);
		if (r->card && frag_suite_is_done(row) &&
		    (row->turns_count < FRAG_SUITE_TURNS_MIN || row->turns_count == UINT64_MAX))
			return frag_fail_at(err, FRAG_EINPUT, r->rows_count,
					    "row %zu has fewer than %u runs on the card",
					    r->rows_count + 1, FRAG_SUITE_TURNS_MIN);
	}
	return 0;
}

static int read_doc(struct frag_suite_result *r, struct frag_err *err)
{
	json_t *policies, *classes, *rows;
	char hash[FRAG_SHA256_TEXT];
	const char *format, *division, *manifest;
	size_t whole = 0;
	json_int_t seed, most, creep;
	json_error_t e;

	if (json_unpack_ex(r->doc, &e, 0,
			   "{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:{s:I, s:s, s:I}, s:o, s:o, s:o, "
			   "s:s}",
			   "format", &format, "version", &r->version, "cufrag", &r->cufrag,
			   "division", &division, "device", &r->device, "driver", &r->driver,
			   "seed", &seed, "settings", "events_max", &most, "manifest", &manifest,
			   "creep_events_max", &creep, "policies", &policies, "classes", &classes,
			   "rows", &rows, "hash", &r->hash) ||
	    strcmp(format, FORMAT) != 0)
		return FRAG_INPUT(err, "not a result of the suite%s%.100s", *e.text ? ": " : "",
				  e.text);
	if (strtoul(r->version, NULL, 10) != FRAG_SUITE_MAJOR)
		return FRAG_INPUT(err, "version '%.20s' is not known here, only %d.x.y", r->version,
				  FRAG_SUITE_MAJOR);
	FRAG_CHECK_ALLOC(hash_of(r->doc, hash), "result", err);
	if (strcmp(hash, r->hash) != 0)
		return FRAG_INPUT(err, "its hash is not that of its content: it was edited");
	r->card = !strcmp(division, "card");
	FRAG_TRY(names_of(policies, "policy", &r->policies, &r->policies_count, err));
	FRAG_TRY(names_of(classes, NULL, &r->classes, &r->classes_count, err));
	r->complete = true;
	FRAG_TRY(read_rows(r, rows, err));
	/* each policy has a row for each workload of the baseline */
	for (size_t i = 0; i < r->rows_count; i++)
		whole += !strcmp(r->rows[i].policy, FRAG_SUITE_BASELINE);
	r->complete &= r->rows_count == whole * r->policies_count;
	return 0;
}

int frag_suite_result_open(struct frag_suite_result *r, const char *path, struct frag_err *err)
{
	int rc;

	*r = (struct frag_suite_result){ 0 };
	FRAG_TRY(frag_suite_json_open(path, &r->doc, err));
	rc = read_doc(r, err);
	if (!rc)
		return 0;
	frag_suite_result_release(r);
	return frag_err_prefix(err, "'%.200s'", path);
}

void frag_suite_result_release(struct frag_suite_result *r)
{
	json_decref(r->doc);
	FRAG_FREE(r->policies, r->classes, r->rows);
	*r = (struct frag_suite_result){ 0 };
}
