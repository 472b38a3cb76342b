/* SPDX-License-Identifier: Apache-2.0 */
/* Traces in pieces: memory short in a replay from a file, batches read ahead by a thread. What they
 * hold: tests/cli stream_same, stream_damaged, stream_refused. */
#include "test.h"

#include <frag/trace.h>

#include "replay/stream.h"
#include "trace/ahead.h" /* its thread is why this also runs under ThreadSanitizer: pthread */
#include "trace/events.h"
#include "trace/source.h"
#include "must.h"

/* Nothing is lost, nothing half done comes out. */
TEST(short_of_memory)
{
	static const char path[] = "traces/mempool.default.cft";
	const struct frag_sim_config card = { .context_bytes = UINT64_MAX };
	FRAG_AUTO(frag_result_release) struct frag_result r = { 0 };
	AUTO_SPEC spec = must_parse_policy("pytorch");
	struct frag_run_options opt = default_run();
	AUTO_TRACE t = must_read(path);
	struct frag_stream s = { .path = path, .hdr = &t->devs[0] };

	FAIL_ALLOCATIONS(frag_replay_stream(spec, &card, &s, &opt, &r, NULL))
	r = (struct frag_result){ 0 };
	assert_true(r.completed);
}

/* All of it, or so many batches and then an end in the middle: the source goes on behind those. */
static void read_ahead(const char *path, const struct frag_trace *t, unsigned batches)
{
	FRAG_AUTO(frag_source_close_at) struct frag_source *src = NULL;
	struct frag_ahead *a;
	struct frag_batch b;
	uint64_t seen = 0;
	unsigned n = 0;
	int rc = 1;

	SUCCEEDS(frag_source_open(path, &src, &test_err));
	SUCCEEDS(frag_source_ahead(src, &a, &test_err));
	for (; n < batches && (rc = frag_source_ahead_next(a, &b, &test_err)) == 1; n++)
		seen += b.count;
	if (n < batches) {
		assert_int_equal(rc, 0);
		assert_int_equal(frag_source_ahead_next(a, &b, &test_err), 0);
		assert_int_equal(seen, frag_trace_events_count(t));
	}
	frag_ahead_stop(a);
	SUCCEEDS(frag_source_pass(src, t->devs_count, &test_err));
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
