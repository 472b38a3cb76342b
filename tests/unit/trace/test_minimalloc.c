/* SPDX-License-Identifier: Apache-2.0 */
/* MiniMalloc's CSV: read, written, refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <frag/plan.h>

#include "trace/minimalloc/minimalloc.h"

static int read_text(const char *text, struct frag_trace **out, struct frag_err *err)
{
	char path[] = "/tmp/buffersXXXXXX";
	int fd = mkstemp(path), rc;

	assert_int_equal(write(fd, text, strlen(text)), (int)strlen(text));
	close(fd);
	rc = frag_trace_read(path, NULL, out, err);
	unlink(path);
	return rc;
}

/* Columns in another order, a foreign one, CRLF, blank lines; at 5 the free comes first. */
static void test_read(void **state)
{
	static const char text[] =
		"lower, size ,offset,id,upper\r\n5,100,0,b,9\r\n\n0,50,1,a,5\n2,7,,c,3";
	struct frag_buffers b;
	struct frag_trace *t;
	uint64_t bound;

	(void)state;
	assert_int_equal(read_text(text, &t, NULL), 0);
	assert_string_equal(t->format, "minimalloc");
	assert_int_equal(t->devs[0].events_count, 6);
	assert_int_equal(t->devs[0].slots_count, 2);
	assert_int_equal(t->devs[0].events[3].kind, FRAG_EV_FREE);
	assert_int_equal(t->devs[0].events[4].bytes, 100);
	assert_int_equal(t->devs[0].events[4].time_us, 5);
	assert_int_equal(frag_buffers_init(&b, &t->devs[0], 1, false, NULL), 0);
	assert_int_equal(b.count, 3);
	assert_int_equal(frag_load_bound(&b, &bound, NULL, NULL), 0);
	assert_int_equal(bound, 100);
	frag_buffers_release(&b);
	frag_trace_destroy(t);
}

static void test_round_trip(void **state)
{
	struct frag_trace *a, *b;
	char path[] = "/tmp/buffersXXXXXX.csv";

	(void)state;
	assert_int_equal(
		read_text("id,lower,upper,size\n0,0,4,9\n1,1,3,8\n2,2,6,7\n3,4,5,6\n", &a, NULL),
		0);
	close(mkstemps(path, 4));
	assert_int_equal(frag_minimalloc_write(&a->devs[0], path, NULL), 0);
	assert_int_equal(frag_trace_read(path, NULL, &b, NULL), 0);
	assert_int_equal(a->devs[0].events_count, b->devs[0].events_count);
	for (size_t i = 0; i < a->devs[0].events_count; i++) {
		assert_int_equal(a->devs[0].events[i].bytes, b->devs[0].events[i].bytes);
		assert_int_equal(a->devs[0].events[i].kind, b->devs[0].events[i].kind);
		assert_int_equal(a->devs[0].events[i].slot, b->devs[0].events[i].slot);
	}
	unlink(path);
	frag_trace_destroy(a);
	frag_trace_destroy(b);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		uint64_t line;
	} rows[] = {
		{ "id,lower,upper,size\n", 0 },
		{ "id,lower,upper,size\n0,1,2\n", 2 },
		{ "id,lower,upper,size\n0,1,2,x\n", 2 },
		{ "id,lower,upper,size\n0,2,2,5\n", 2 },
		{ "id,lower,upper,size\n0,1,2,0\n", 2 },
		{ "id,lower,upper,size\n0,-1,2,5\n", 2 },
		{ "id,lower,upper,size\n0,1,2,5\n1,1,2,999999999999999999999\n", 3 },
		{ "id,lower,size\n0,1,2\n", 0 },
	};

	(void)state;
	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		struct frag_err err = { 0 };
		struct frag_trace *t;

		assert_int_equal(frag_code_exit(read_text(rows[i].text, &t, &err)), 3);
		assert_int_equal(err.offset, rows[i].line);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
