/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings of the allocators of 15 releases of PyTorch, and of MemPools on an H200: skipped where
 * they are absent. Each must be followed event by event by the release that its file shows,
 * with what its notes say has to be given. And what if it had been another release: the same
 * requests were recorded under many, so the peak that the other one reached is known.
 */
#include <glob.h>

#include <frag/torch.h>

#include "recorded.h"

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
static glob_t found;
static unsigned what_ifs; /* peaks compared */

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
	const char *base = strrchr(path, '/') + 1;
	int major, minor, end = 0;

	*r = (struct recording){ .path = path };
	snprintf(r->name, sizeof(r->name), "%.*s", (int)(strstr(base, ".pickle") - base), base);
	r->notes = recorded_notes(path);
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
	if (frag_settle(t, &recorded_card, r->limit_bytes, r->limit_bytes != UINT64_MAX, &err))
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

static void as_recorded(void **state)
{
	const struct recording *r = *state;
	AUTO_TRACE t = load(r);
	uint64_t allocs = 0;

	same_release(r, t);
	for (uint32_t d = 0; d < t->devs_count; d++) {
		FRAG_AUTO(frag_verify_result_release) struct frag_verify_result v = { 0 };

		if (!t->devs[d].has_evidence)
			continue;
		v = recorded_follow(t, d, r->limit_bytes);
		allocs += v.allocs;
		/* the statistics are those of the process's first device */
		if (!d && !t->devs[d].initial.segments_count && recorded_peak(r->notes))
			must_be_peak(v.peak_reserved_bytes, recorded_peak(r->notes), r->name,
				     "its settings");
	}
	assert_true(allocs > 0);
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
	AUTO_TRACE t = NULL;

	if (r->hashed)
		return;
	t = load(r);
	r->requests = hash_requests(t);
	r->late = began_late(t);
	r->hashed = true;
}

static bool comparable(struct recording *from, struct recording *like)
{
	if (strcmp(from->work, like->work) != 0 || !*like->release || is_placed(like))
		return false;
	find_requests(from);
	find_requests(like);
	return !like->late && from->requests == like->requests;
}

static void as_others(void **state)
{
	struct recording *r = *state;
	struct frag_trace *t = load(r);
	unsigned compared = 0;

	for (size_t i = 0; i < recordings_count; i++) {
		struct recording *like = &recordings[i];
		struct frag_run_options opt;
		struct frag_result result;

		if (!comparable(r, like))
			continue;
		frag_run_options_defaults(&opt);
		opt.limit_bytes = like->limit_bytes;
		result = must_replay(recorded_policy(like->notes, like->release), &t->devs[0], NULL,
				     &opt);
		must_be_peak(result.m.peak_reserved_bytes, recorded_peak(like->notes), r->name,
			     like->release);
		frag_result_release(&result);
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
	print_message("recordings of other releases are absent\n");
	skip();
}

static int release_recordings(void **state)
{
	print_message("# %u peaks of other releases\n", what_ifs);
	for (size_t i = 0; i < recordings_count; i++) {
		json_decref(recordings[i].notes);
		free(recordings[i].conf);
	}
	globfree(&found);
	return 0;
}
TEST_GROUP(NULL, release_recordings)

TESTS
{
	glob(FRAG_SHARED_TRACES "/versions/*.pickle.xz", 0, NULL, &found);
	glob(FRAG_SHARED_TRACES "/pools/*.pickle.xz", GLOB_APPEND, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc && recordings_count < RECORDINGS_MAX; i++)
		recordings_count +=
			recording_open(&recordings[recordings_count], found.gl_pathv[i]);
	for (size_t i = 0; i < recordings_count; i += test_is_quick() ? QUICK_STRIDE : 1) {
		const struct recording *r = &recordings[i];

		test_add(as_recorded, r, "%s", r->name);
		if (*r->release)
			test_add(as_others, r, "%s under the other releases", r->name);
	}
	if (!recordings_count)
		test_add(absent, NULL, "releases");
}
