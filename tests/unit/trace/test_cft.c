/* SPDX-License-Identifier: Apache-2.0 */
/* The .cft format: what goes in comes out, and nothing damaged does. */
#include "test.h"

#include <sys/wait.h>
#include <unistd.h>

#include <frag/trace.h>

#include "trace/cft/cft_write.h"
#include "packed.h"
#include "must.h"
#include "sample_trace.h"
#include "trace_text.h"

extern const struct frag_reader_ops frag_reader_cft;

/* The beginning of the first line that differs. */
static size_t first_difference(const char *a, const char *b)
{
	size_t same = 0, line = 0;

	for (; a[same] && a[same] == b[same]; same++)
		if (a[same] == '\n')
			line = same + 1;
	return line;
}

static void round_trip(struct frag_trace *t)
{
	FRAG_AUTO(blob_release) struct blob im = cft_image_of(t), again = { 0 };
	AUTO_TRACE back = NULL;
	FRAG_AUTO(free_at) char *before = trace_text_of(t, true), *after = NULL;

	SUCCEEDS(cft_image_read(im.bytes, im.len, NULL, &back, &test_err));
	after = trace_text_of(back, true);
	if (strcmp(before, after)) /* too long to print */
		fail_msg("differs: %.200s", after + first_difference(before, after));
	again = cft_image_of(back);
	assert_int_equal(im.len, again.len);
	assert_memory_equal(im.bytes, again.bytes, im.len);
	frag_trace_destroy(t);
}

TEST(test_round_trip_by_hand)
{
	struct frag_trace *none = sample_trace_small();

	round_trip(sample_trace_small());
	round_trip(sample_trace_empty());
	/* a device without anything */
	none->devs[1].events_count = none->devs[1].slots_count = 0;
	none->devs[1].streams_count = none->devs[1].pools_count = 0;
	round_trip(none);
}

TEST(test_cards_are_kept)
{
	static const struct frag_recorded_card card = { "NVIDIA H100 80GB HBM3", 85017493504,
							552403353, 1200000000, 0.1 + 0.2 };
	struct frag_trace *t = sample_trace_small();

	t->devs[1].card = card; /* nothing is known of the first */
	round_trip(t);
	t = sample_trace_small();
	t->devs[0].card = card;
	t->devs[1].card = card;
	memset(t->devs[1].card.name, 'x', sizeof(card.name) - 1);
	t->estimate = frag_host_strdup("card h100\n");
	round_trip(t);
}

TEST(test_round_trip_random)
{
	static const size_t counts[] = { 1, 2, 300, 65535, 65536, 65537, 140000 };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(counts); i++) {
		round_trip(sample_trace_random(i, counts[i], true, false));
		round_trip(sample_trace_random(i + 100, counts[i], false, true));
	}
}

/* Fields that a kind has no use for are kept all the same. */
TEST(test_unused_fields)
{
	struct frag_trace *t = sample_trace_small();
	struct frag_event *ev = t->devs[0].events;

	ev[7].slot = UINT32_MAX; /* refused */
	ev[9].slot = 12345;	 /* trim */
	ev[9].bytes = 99;
	ev[9].stream = 2;
	ev[10].bytes = 7; /* mark */
	ev[10].pool = 2;
	ev[10].stack = 2;
	round_trip(t);
}

/* More kinds of event than a block has codes for: it must be cut, not refused. */
TEST(test_many_codes)
{
	struct frag_trace *t = sample_trace_random(1, 4000, false, false);
	struct frag_trace_dev *dev = &t->devs[0];

	for (size_t i = 0; i < dev->events_count; i++)
		dev->events[i].flags = (uint8_t)(i % 256) & ~FRAG_EVF_INITIAL;
	round_trip(t);
}

TEST(test_long_texts)
{
	struct frag_trace *t = sample_trace_empty();
	uint32_t index, n = 0;
	char *text = calloc(1, 700001);

	memset(text, 'x', 700000);
	for (uint32_t len = 1; len <= 700000; len = len * 3 + 1)
		SUCCEEDS(frag_strings_intern(t->strings, text, len, &index, NULL));
	for (; n < 70000; n++) {
		char word[16];
		int len = snprintf(word, sizeof(word), "%u", n);

		SUCCEEDS(frag_strings_intern(t->strings, word, (size_t)len, &index, NULL));
	}
	SUCCEEDS(frag_strings_intern(t->strings, "a\xc3\xa9", 3, &index, NULL));
	free(text);
	round_trip(t);
}

/* "device=N" keeps the device of that ordinal. */
TEST(test_one_device)
{
	AUTO_TRACE t = sample_trace_small();
	struct frag_trace *back;
	FRAG_AUTO(blob_release) struct blob im = cft_image_of(t);

	assert_int_equal(cft_image_read(im.bytes, im.len, "device=5", &back, &test_err), 0);
	assert_int_equal(back->devs_count, 1);
	assert_int_equal(back->devs[0].ordinal, 5);
	assert_int_equal(back->devs[0].events_count, 2);
	frag_trace_destroy(back);
	for (size_t i = 0; i < 4; i++) {
		static const char *const wrong[] = { "device=4", "device=", "device=-5",
						     "devise=5" };

		assert_int_equal(cft_image_read(im.bytes, im.len, wrong[i], &back, &test_err),
				 i ? FRAG_EUSAGE : FRAG_EINPUT);
	}
}

/* ---- files, pipes, in order ------------------------------------------------------------------ */

static void source_equals(struct frag_source *src, const struct frag_trace *t)
{
	const struct frag_trace *head = frag_source_head(src);
	struct frag_batch batch;
	uint64_t seen[2] = { 0 };
	int rc;

	assert_int_equal(head->devs_count, t->devs_count);
	assert_string_equal(head->name, t->name);
	while ((rc = frag_source_next(src, &batch, &test_err)) == 1) {
		const struct frag_trace_dev *dev = &t->devs[batch.dev];

		assert_int_equal(head->devs[batch.dev].slots_count, dev->slots_count);
		assert_int_equal(batch.first, seen[batch.dev]);
		assert_true(batch.first + batch.count <= dev->events_count);
		assert_memory_equal(batch.events, dev->events + batch.first,
				    batch.count * sizeof(*batch.events));
		seen[batch.dev] += batch.count;
	}
	if (rc)
		fail_msg("%s", test_err.msg);
	for (uint32_t d = 0; d < t->devs_count; d++)
		assert_int_equal(seen[d], t->devs[d].events_count);
	assert_int_equal(frag_source_next(src, &batch, &test_err), 0);
}

static void check_in_order(struct frag_trace *t)
{
	const char *path = test_path("t.cft");
	struct frag_source *src = NULL;

	SUCCEEDS(frag_trace_write_cft(t, path, &test_err) ||
		 frag_source_open(path, &src, &test_err));
	source_equals(src, t);
	frag_source_close(src);
	unlink(path);
	frag_trace_destroy(t);
}

TEST(test_source)
{
	AUTO_TRACE empty = sample_trace_empty();
	struct frag_source *src;
	struct frag_batch batch;
	const char *path;

	check_in_order(sample_trace_small());
	check_in_order(sample_trace_random(3, 200000, true, true));
	path = test_path("empty.cft");
	SUCCEEDS(frag_trace_write_cft(empty, path, NULL));
	SUCCEEDS(frag_source_open(path, &src, NULL));
	SUCCEEDS(frag_source_next(src, &batch, NULL));
	frag_source_close(src);
	unlink(path);
}

/* Through a pipe, and cut off: everything before the cut, then an error that stays. */
static void through_pipe(const struct blob *im, size_t len, const struct frag_trace *t)
{
	struct frag_source *src = NULL;
	struct frag_batch batch;
	char path[32];
	int fds[2], rc;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		ssize_t n = 1;

		close(fds[0]);
		for (size_t at = 0; at < len && n > 0; at += (size_t)n)
			n = write(fds[1], im->bytes + at, FRAG_MIN(len - at, (size_t)1777));
		_exit(0);
	}
	close(fds[1]);
	snprintf(path, sizeof(path), "/dev/fd/%d", fds[0]);
	SUCCEEDS(frag_source_open(path, &src, &test_err));
	if (len == im->len) {
		source_equals(src, t);
	} else {
		while ((rc = frag_source_next(src, &batch, &test_err)) == 1)
			;
		assert_int_equal(rc, FRAG_EINPUT);
		assert_int_equal(frag_source_next(src, &batch, &test_err), FRAG_EINPUT);
	}
	frag_source_close(src);
	close(fds[0]);
	waitpid(pid, NULL, 0);
}

TEST(test_pipe)
{
	AUTO_TRACE t = sample_trace_random(9, 150000, true, false);
	FRAG_AUTO(blob_release) struct blob im = cft_image_of(t);

	through_pipe(&im, im.len, t);
	through_pipe(&im, im.len / 2, t);
	through_pipe(&im, im.len - 1, t);
}

TEST(test_written_or_absent)
{
	AUTO_TRACE t = sample_trace_small();
	const char *path = test_path("no/such/folder.cft");

	assert_int_equal(frag_trace_write_cft(t, path, &test_err), FRAG_EOUTPUT);
	assert_int_equal(frag_trace_write_cft(t, "/dev/full", &test_err), FRAG_EOUTPUT);
	t->devs[0].events[11].bytes++;
	path = test_path("t.cft");
	assert_int_equal(frag_trace_write_cft(t, path, &test_err), FRAG_EINPUT);
	assert_int_equal(access(path, F_OK), -1);
}

/* Every host allocation of the writer fails once (of the reader: tests/conformance/test_readers.c). */
TEST(test_memory_short)
{
	AUTO_TRACE t = sample_trace_small();
	FILE *to = fopen("/dev/null", "w");

	FAIL_ALLOCATIONS(frag_cft_write_stream(t, to, &test_err));
	fclose(to);
}

TEST(test_probe)
{
	assert_int_equal(
		frag_reader_cft.probe((const unsigned char *)FRAG_CFT_MAGIC "\1\0\0\0", 12), 100);
	assert_int_equal(frag_reader_cft.probe((const unsigned char *)FRAG_CFT_MAGIC, 7), 0);
	assert_int_equal(frag_reader_cft.probe((const unsigned char *)"\x80\x04}\x94(X", 6), 0);
	assert_int_equal(frag_reader_cft.probe(NULL, 0), 0);
}
