/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings of the allocators of 15 releases of PyTorch, and of MemPools on an H200: skipped where
 * they are absent. Each must be followed event by event by the release that its file shows,
 * with what its notes say has to be given. And what if it had been another release: the same
 * requests were recorded under many, so the peak that the other one reached is known.
 */
#include <frag/replay.h>
#include <frag/torch.h>
#include <frag/trace.h>

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#define QUICK_STRIDE 12 /* every n-th recording is in the quick suite */
#define RECORDINGS_MAX 512

/* VERSION.WORKLOAD.SETTING of the recordings; the README there says what they are. */
struct recording {
	char *path;
	char name[96];
	char release[16]; /* "2.13"; "" where the folder does not say */
	const char *work; /* "WORKLOAD.SETTING" in name */
	json_t *notes;
	uint64_t limit_bytes; /* given, UINT64_MAX = none */
	char *conf;	      /* given: the file does not hold it; NULL else */
	bool hashed, late;
	uint64_t requests; /* hash of what was asked for, once `hashed` */
};

static struct recording recordings[RECORDINGS_MAX];
static size_t recordings_count;
static unsigned what_ifs; /* peaks compared */

static const struct frag_sim_config card = { .context_bytes = UINT64_MAX };

/* "--limit N" and "--conf=TEXT" of the notes: what a user has to give. */
static void read_given(struct recording *r)
{
	const char *args = json_string_value(json_object_get(r->notes, "verify_args"));
	const char *limit = args ? strstr(args, "--limit") : NULL;
	const char *conf = args ? strstr(args, "--conf=") : NULL;

	r->limit_bytes =
		limit ? strtoull(limit + strcspn(limit, "0123456789"), NULL, 10) : UINT64_MAX;
	r->conf = NULL;
	if (conf) {
		conf += strlen("--conf=");
		conf += strspn(conf, "'\"");
		r->conf = strndup(conf, strcspn(conf, " '\""));
	}
}

static bool recording_open(struct recording *r, char *path)
{
	char notes[512];
	const char *base = strrchr(path, '/') + 1;
	int major, minor, end = 0;

	*r = (struct recording){ .path = path };
	snprintf(r->name, sizeof(r->name), "%.*s", (int)(strstr(base, ".pickle") - base), base);
	snprintf(notes, sizeof(notes), "%.*s.json", (int)(strstr(path, ".pickle") - path), path);
	r->notes = json_load_file(notes, 0, NULL);
	r->work = r->name;
	if (sscanf(r->name, "%d.%d.%*d.%n", &major, &minor, &end) == 2 && end) {
		snprintf(r->release, sizeof(r->release), "%d.%d", major, minor);
		r->work = r->name + end;
	}
	if (r->notes)
		read_given(r);
	return r->notes != NULL;
}

static struct frag_trace *load(const struct recording *r)
{
	struct frag_err err = { 0 };
	struct frag_trace *t;
	char option[600];

	snprintf(option, sizeof(option), "conf=%s", r->conf ? r->conf : "");
	if (frag_trace_read(r->path, r->conf ? option : NULL, &t, &err))
		fail_msg("%s: %s", r->name, err.msg);
	if (r->conf && frag_settings_use(t, r->conf, &err))
		fail_msg("%s: %s", r->name, err.msg);
	if (frag_settle(t, &card, r->limit_bytes, r->limit_bytes != UINT64_MAX, &err))
		fail_msg("%s: %s", r->name, err.msg);
	return t;
}

/* ---- as recorded ---- */

/* The release shows, as far as formats tell: between the first and the last that write this one. */
static void same_release(const struct recording *r, const struct frag_trace *t)
{
	unsigned release;

	if (!*r->release)
		return;
	assert_int_equal(frag_torch_parse(r->release, &release, NULL), 0);
	if (release < t->settings.torch_first || release > t->settings.torch_last)
		fail_msg("%s: read as release %u to %u", r->name, t->settings.torch_first,
			 t->settings.torch_last);
}

/* Statistics that PyTorch printed at the end, of the process's first device. */
static void same_peak(const struct recording *r, const struct frag_verify_result *v)
{
	const json_t *want =
		json_object_get(json_object_get(r->notes, "stats"), "reserved_bytes.all.peak");

	if (json_is_integer(want) && (uint64_t)json_integer_value(want) != v->peak_reserved_bytes)
		fail_msg("%s: peak %llu, recorded %lld", r->name,
			 (unsigned long long)v->peak_reserved_bytes,
			 (long long)json_integer_value(want));
}

static void as_recorded(void **state)
{
	const struct recording *r = *state;
	struct frag_trace *t = load(r);
	struct frag_err err = { 0 };
	uint64_t allocs = 0;

	same_release(r, t);
	for (uint32_t d = 0; d < t->devs_count; d++) {
		struct frag_verify_result v;

		if (!t->devs[d].has_evidence)
			continue;
		if (frag_verify(t, d, &card, r->limit_bytes, NULL, &v, &err))
			fail_msg("%s: %s", r->name, err.msg);
		if (!v.identical)
			fail_msg("%s: device %u: %s", r->name, v.device_ordinal,
				 v.first_difference);
		assert_int_equal(v.allocs, v.allocs_same);
		assert_int_equal(v.segments, v.segments_same);
		assert_int_equal(v.ooms, v.ooms_same);
		assert_int_equal(v.finals, v.finals_same);
		allocs += v.allocs;
		if (!d && !t->devs[d].initial.segments_count)
			same_peak(r, &v);
		frag_verify_result_release(&v);
	}
	assert_true(allocs > 0);
	frag_trace_destroy(t);
}

/* ---- what if ---- */

/* What was asked for, in order; frees follow the release's own queries of events. */
static uint64_t hash_requests(const struct frag_trace *t)
{
	uint64_t h = 14695981039346656037ull; /* FNV-1a */

	for (uint32_t d = 0; d < t->devs_count; d++) {
		for (size_t i = 0; i < t->devs[d].events_count; i++) {
			const struct frag_event *e = &t->devs[d].events[i];

			if (e->kind != FRAG_EV_ALLOC && e->kind != FRAG_EV_REFUSED)
				continue;
			h = (h ^ e->bytes) * 1099511628211ull;
			h = (h ^ e->stream) * 1099511628211ull;
		}
	}
	return h;
}

static bool began_late(const struct frag_trace *t)
{
	for (uint32_t d = 0; d < t->devs_count; d++)
		if (t->devs[d].initial.segments_count)
			return true;
	return false;
}

/* Addresses that only the pretended card's placement gives cannot come from another one. */
static bool is_placed(const struct recording *r)
{
	return json_object_get(json_object_get(r->notes, "fakecard"), "FAKECARD_PLACE") != NULL;
}

static void find_requests(struct recording *r)
{
	struct frag_trace *t;

	if (r->hashed)
		return;
	t = load(r);
	r->requests = hash_requests(t);
	r->late = began_late(t);
	r->hashed = true;
	frag_trace_destroy(t);
}

static bool comparable(struct recording *from, struct recording *like)
{
	if (strcmp(from->work, like->work) != 0 || !*like->release || is_placed(like))
		return false;
	find_requests(from);
	find_requests(like);
	return !like->late && from->requests == like->requests;
}

static uint64_t replay_peak(const struct frag_trace *t, const struct recording *like)
{
	const char *conf = json_string_value(json_object_get(like->notes, "conf"));
	struct frag_run_options opt;
	struct frag_policy_spec *spec;
	struct frag_result r = { 0 };
	struct frag_err err = { 0 };
	uint64_t peak_bytes;
	char text[600];

	snprintf(text, sizeof(text), "pytorch:version=%s%s%s", like->release,
		 conf && *conf ? "," : "", conf ? conf : "");
	frag_run_options_defaults(&opt);
	opt.limit_bytes = like->limit_bytes;
	if (frag_policy_spec_parse(text, &spec, &err) ||
	    frag_replay_sim(spec, &card, &t->devs[0], &opt, &r, &err))
		fail_msg("%s: %s", text, err.msg);
	peak_bytes = r.m.peak_reserved_bytes;
	frag_result_release(&r);
	frag_policy_spec_destroy(spec);
	return peak_bytes;
}

static void as_others(void **state)
{
	struct recording *r = *state;
	struct frag_trace *t = load(r);
	unsigned compared = 0;

	for (size_t i = 0; i < recordings_count; i++) {
		struct recording *like = &recordings[i];
		uint64_t want, got;

		if (!comparable(r, like))
			continue;
		want = (uint64_t)json_integer_value(json_object_get(
			json_object_get(like->notes, "stats"), "reserved_bytes.all.peak"));
		got = replay_peak(t, like);
		if (got != want)
			fail_msg("%s under %s: %llu, recorded %llu", r->name, like->release,
				 (unsigned long long)got, (unsigned long long)want);
		compared++;
	}
	frag_trace_destroy(t);
	if (!compared)
		skip();
	what_ifs += compared;
}

/* ---- the tests ---- */

static void absent(void **state)
{
	(void)state;
	print_message("recordings of other releases are absent\n");
	skip();
}

static void find_recordings(glob_t *g)
{
	glob(FRAG_SHARED_TRACES "/versions/*.pickle.xz", 0, NULL, g);
	glob(FRAG_SHARED_TRACES "/pools/*.pickle.xz", GLOB_APPEND, NULL, g);
	for (size_t i = 0; i < g->gl_pathc && recordings_count < RECORDINGS_MAX; i++)
		recordings_count += recording_open(&recordings[recordings_count], g->gl_pathv[i]);
}

int main(void)
{
	static struct CMUnitTest tests[2 * RECORDINGS_MAX];
	static char names[RECORDINGS_MAX][128];
	size_t n = 0, stride = getenv("FRAG_TEST_QUICK") ? QUICK_STRIDE : 1;
	glob_t g = { 0 };

	find_recordings(&g);
	for (size_t i = 0; i < recordings_count; i += stride) {
		struct recording *r = &recordings[i];

		tests[n++] = (struct CMUnitTest){ .name = r->name,
						  .test_func = as_recorded,
						  .initial_state = r };
		snprintf(names[i], sizeof(names[i]), "%s under the other releases", r->name);
		if (*r->release)
			tests[n++] = (struct CMUnitTest){ .name = names[i],
							  .test_func = as_others,
							  .initial_state = r };
	}
	if (!n)
		tests[n++] = (struct CMUnitTest){ .name = "releases", .test_func = absent };
	n = (size_t)_cmocka_run_group_tests("releases", tests, n, NULL, NULL);
	print_message("# %u peaks of other releases\n", what_ifs);
	for (size_t i = 0; i < recordings_count; i++) {
		json_decref(recordings[i].notes);
		free(recordings[i].conf);
	}
	globfree(&g);
	return (int)n;
}
