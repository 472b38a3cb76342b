/* SPDX-License-Identifier: Apache-2.0 */
/* Traces in pieces: parts passed over, batches read ahead by a thread, replays from a file. */
#include "test.h"

#include <frag/trace.h>

#include "replay/stream.h"
#include "trace/ahead.h" /* its thread is why this also runs under ThreadSanitizer: pthread */
#include "trace/source.h"
#include "must.h"

static struct frag_source *open_source(const char *path)
{
	struct frag_source *src = NULL;

	SUCCEEDS(frag_source_open(path, &src, &test_err));
	return src;
}

/* ---- replays ------------------------------------------------------------------------ */

static int replay(const char *path, const char *policy, bool ahead, struct frag_result *out)
{
	struct frag_sim_config card = { .context_bytes = UINT64_MAX };
	struct frag_source *src = NULL;
	struct frag_policy_spec *spec = NULL;
	struct frag_run_options opt = default_run();
	int rc = frag_policy_spec_parse(policy, &spec, NULL);

	if (!rc)
		rc = frag_source_open(path, &src, NULL);
	if (!rc) {
		struct frag_stream s = { .path = path,
					 .hdr = &frag_source_head(src)->devs[0],
					 .ahead = ahead };

		rc = frag_replay_stream(spec, &card, &s, &opt, out, NULL);
	}
	frag_source_close(src);
	frag_policy_spec_destroy(spec);
	return rc;
}

/* Every allocation that can fail does so once; nothing is lost, nothing half done comes out. */
TEST(test_out_of_memory)
{
	FRAG_AUTO(frag_result_release) struct frag_result r = { 0 };

	FAIL_ALLOCATIONS(replay("traces/mempool.default.cft", "pytorch", false, &r))
	r = (struct frag_result){ 0 };
	assert_true(r.completed);
}

/* ---- reading ahead ------------------------------------------------------------------ */

static void check_batch(const struct frag_batch *b, const struct frag_trace *t, uint64_t *seen)
{
	const struct frag_trace_dev *dev = &t->devs[b->dev];

	assert_int_equal(b->first, seen[b->dev]);
	assert_true(b->count && b->first + b->count <= dev->events_count);
	assert_memory_equal(b->events, dev->events + b->first, b->count * sizeof(*b->events));
	seen[b->dev] += b->count;
}

/* All of it, or so many batches and then an end in the middle. */
static void read_ahead(const char *path, const struct frag_trace *t, unsigned batches)
{
	FRAG_AUTO(frag_source_close_at) struct frag_source *src = open_source(path);
	struct frag_ahead *a;
	struct frag_batch b;
	uint64_t seen[4] = { 0 };
	unsigned n = 0;
	int rc = 1;

	assert_int_equal(frag_source_ahead(src, &a, &test_err), 0);
	while (n < batches && (rc = frag_source_ahead_next(a, &b, &test_err)) == 1) {
		check_batch(&b, t, seen);
		n++;
	}
	if (n < batches) {
		assert_int_equal(rc, 0);
		assert_int_equal(frag_source_ahead_next(a, &b, &test_err), 0);
		for (uint32_t d = 0; d < t->devs_count; d++)
			assert_int_equal(seen[d], t->devs[d].events_count);
	}
	frag_ahead_stop(a);
	/* the source goes on behind what was read ahead */
	assert_int_equal(frag_source_pass(src, t->devs_count, &test_err), 0);
	assert_int_equal(frag_source_next(src, &b, &test_err), 0);
}

TEST(test_ahead)
{
	static const char *const paths[] = { "traces/serve.default.cft",
					     "traces/modelpar.default.cft",
					     /* a format that is read whole */
					     "tests/cli/data/seeddemo.pickle.xz" };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(paths); i++) {
		AUTO_TRACE t = must_read(paths[i]);

		for (unsigned n = 0; !i && n < 10; n += 3)
			read_ahead(paths[i], t, n);
		read_ahead(paths[i], t, UINT32_MAX);
	}
}

/* ---- passing over ----------------------------------------------------------------- */

TEST(test_pass)
{
	AUTO_TRACE t = must_read("traces/modelpar.default.cft");
	struct frag_source *src = open_source("traces/modelpar.default.cft");
	struct frag_batch b;
	uint64_t seen[2] = { 0 };

	assert_int_equal(frag_source_pass(src, 1, &test_err), 0);
	while (frag_source_next(src, &b, &test_err) == 1) {
		assert_int_equal(b.dev, 1);
		check_batch(&b, t, seen);
	}
	assert_int_equal(seen[1], t->devs[1].events_count);
	frag_source_close(src);
	/* over everything: the totals at the end are right */
	src = open_source("traces/modelpar.default.cft");
	assert_int_equal(frag_source_pass(src, 2, &test_err), 0);
	assert_int_equal(frag_source_next(src, &b, &test_err), 0);
	frag_source_close(src);
}

static void check_evidence(const char *path)
{
	AUTO_TRACE t = must_read(path);

	for (uint32_t d = 0; d < t->devs_count; d++) {
		FRAG_AUTO(frag_source_close_at) struct frag_source *src = open_source(path);
		const struct frag_trace_dev *dev = &t->devs[d];
		const struct frag_evidence *e;
		size_t n, have = 0;

		while (frag_source_seen(src, d, &e, &n, &test_err) == 1) {
			assert_true(have + n <= dev->seen_count);
			for (size_t i = 0; i < n; i++, have++) {
				assert_int_equal(e[i].kind, dev->seen[have].kind);
				assert_int_equal(e[i].addr, dev->seen[have].addr);
				assert_int_equal(e[i].bytes, dev->seen[have].bytes);
				assert_int_equal(e[i].before, dev->seen[have].before);
			}
		}
		assert_int_equal(have, dev->seen_count);
		assert_int_equal(frag_source_pass(src, t->devs_count, &test_err), 0);
	}
}

TEST(test_evidence)
{
	check_evidence("traces/serve.default.cft");
	check_evidence("traces/modelpar.default.cft");
	check_evidence("traces/varlen.default.cft");
}

/* Of a file that ends too soon: everything before, then an error that stays. */
TEST(test_error_stays)
{
	static char bytes[20000];
	FRAG_AUTO(fclose_at) FILE *f = fopen("traces/gnn.default.cft", "rb");
	FRAG_AUTO(frag_source_close_at) struct frag_source *src = NULL;
	struct frag_batch b;
	int rc;

	assert_true(f && fread(bytes, 1, sizeof(bytes), f) == sizeof(bytes));
	src = open_source(test_make_file("cut.cft", bytes, sizeof(bytes)));
	while ((rc = frag_source_next(src, &b, &test_err)) == 1)
		;
	assert_int_equal(rc, FRAG_EINPUT);
	FAILS(FRAG_EINPUT, "truncated", frag_source_next(src, &b, &test_err));
}

TEST(test_other_formats)
{
	struct frag_source *src = NULL;

	SUCCEEDS(frag_source_open_cft("tests/cli/data/seeddemo.pickle.xz", &src, NULL));
	assert_null(src);
	SUCCEEDS(frag_source_open_cft("traces/gnn.default.cft", &src, NULL));
	assert_non_null(src);
	frag_source_close(src);
	assert_int_equal(frag_source_open_cft("traces/missing.cft", &src, NULL), FRAG_EINPUT);
}
