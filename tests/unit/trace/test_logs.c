/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of other tools: what they mean, what they leave open, and what is refused with the line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include <frag/trace.h>

static int read_options(const char *text, const char *options, struct frag_trace **out,
			struct frag_err *err)
{
	char path[] = "/tmp/logXXXXXX";
	int fd = mkstemp(path), rc;

	assert_int_equal(write(fd, text, strlen(text)), (int)strlen(text));
	close(fd);
	rc = frag_trace_read(path, options, out, err);
	unlink(path);
	return rc;
}

static struct frag_trace *good(const char *text, const char *format)
{
	struct frag_err err = { 0 };
	struct frag_trace *t = NULL;

	if (read_options(text, NULL, &t, &err))
		fail_msg("%s", err.msg);
	assert_string_equal(t->format, format);
	return t;
}

static void refused(const char *text, uint64_t line)
{
	struct frag_err err = { 0 };
	struct frag_trace *t = NULL;

	if (read_options(text, NULL, &t, &err) != FRAG_EINPUT || err.offset != line)
		fail_msg("'%s': %s at %llu", text, err.msg, (unsigned long long)err.offset);
	assert_null(t);
}

static void expect(const struct frag_trace *t, size_t i, unsigned kind, uint64_t bytes,
		   uint32_t slot, uint64_t time_us, unsigned stream)
{
	const struct frag_event *e = &t->devs[0].events[i];

	assert_true(i < t->devs[0].events_count);
	assert_int_equal(e->kind, kind);
	assert_int_equal(e->bytes, bytes);
	assert_int_equal(e->slot, slot);
	assert_int_equal(e->time_us, time_us);
	assert_int_equal(e->stream, stream);
}

/* ---- CSV, JSON lines --------------------------------------------------------------- */

/* As spreadsheets and pandas write it; a comma or a quote within quotes is text. */
static void test_csv_quotes(void **state)
{
	struct frag_trace *t = good("\"action\",\"id\",\"note\",\"size\"\r\n"
				    "\"alloc\", \"7\" ,\"a, \"\"b\"\"\",\"512\"\r\nfree,\"7\"\r\n",
				    "csv without streams, times, beginning");

	(void)state;
	assert_int_equal(t->devs[0].events_count, 2);
	expect(t, 0, FRAG_EV_ALLOC, 512, 0, 0, 0);
	frag_trace_destroy(t);
	refused("alloc,\"7,512\nfree,7\n", 1);
	refused("action,id,size,time_s\nalloc,7,512,0x10\n", 2);
}

/* The first line is known by its word, so that what is wrong in it is told. */
static void test_first_lines(void **state)
{
	(void)state;
	refused("alloc,-7,5\n", 1);
	refused("alloc,,5\n", 1);
	refused("alloc,18446744073709551616,5\n", 1);
	refused("{\"action\":\"alloc\",\"id\":1,\"size\":5,\"time_us\":NaN}\n", 1);
	refused("{ \"action\":\"alloc\",\"id\":99999999999999999999999,\"size\":5}\n", 1);
}

static void test_csv(void **state)
{
	struct frag_trace *t =
		good("alloc,7,1048576,0,1200\nalloc,8,512,3\nfree,7\nalloc,0x9,100,1\n"
		     "refused,,5000,0,1300\nfree,8,,,1350\n",
		     "csv without beginning");

	(void)state;
	assert_int_equal(t->devs_count, 1);
	assert_int_equal(t->devs[0].events_count, 6);
	assert_int_equal(t->devs[0].slots_count, 2);
	assert_int_equal(t->devs[0].streams_count, 3);
	expect(t, 0, FRAG_EV_ALLOC, 1048576, 0, 0, 0);
	expect(t, 1, FRAG_EV_ALLOC, 512, 1, 0, 2); /* streams by handle: 0, 1, 3 */
	expect(t, 2, FRAG_EV_FREE, 1048576, 0, 0, 0);
	expect(t, 3, FRAG_EV_ALLOC, 100, 0, 0, 1);
	expect(t, 4, FRAG_EV_REFUSED, 5000, 0, 100, 0);
	expect(t, 5, FRAG_EV_FREE, 512, 1, 150, 2);
	frag_trace_destroy(t);

	t = good("# mine\n device, Size "
		 ",pointer,action,why\n1,10,5,malloc,x\n0,20,5,malloc\n1,,5,free\n",
		 "csv without streams, times, beginning");
	assert_int_equal(t->devs_count, 2);
	assert_int_equal(t->devs[0].events_count, 1);
	assert_int_equal(t->devs[1].ordinal, 1);
	assert_int_equal(t->devs[1].events_count, 2);
	frag_trace_destroy(t);

	assert_int_equal(read_options("device,size,id,action\n1,10,5,alloc\n0,20,5,alloc\n",
				      "device=0", &t, NULL),
			 0);
	assert_int_equal(t->devs_count, 1);
	expect(t, 0, FRAG_EV_ALLOC, 20, 0, 0, 0);
	frag_trace_destroy(t);
}

/* As the recorder writes them: what an address is called may come later, or never. */
static void test_csv_stacks(void **state)
{
	struct frag_trace *t =
		good("action,id,size,stream,time_us,device,call,stack\n"
		     "#stack 1 0x10 0x20 0x30\nalloc,7,64,0,5,0,cuMemAlloc_v2,1\n"
		     "#stack 2 0x10 0x40\nalloc,8,64,0,6,0,cuMemAlloc_v2,2\n"
		     "alloc,9,64,0,6,0,cuMemAlloc_v2,3\nalloc,10,64,0,6,0,x,1\n"
		     "#frame 0x10\tcuMemAlloc_v2\t/x/libcuda.so.1\t0x1\n"
		     "#frame 0x20\tmain\t/x/prog\t0x2f\n# mine\n\n\n"
		     "#stack 3 0x10 0x8000000000000001 0x8000000000000002\n"
		     "#frame 0x8000000000000001\tModel.step\t/x/train.py\t:12\n"
		     "#frame 0x8000000000000002\t\t/x/train.py\t:-9\n#apart 5 libx.so\n",
		     "csv without beginning");
	const struct frag_stacks *s = &t->stacks;
	const struct frag_event *e = t->devs[0].events;

	(void)state;
	assert_int_equal(s->count, 4);
	assert_int_equal(e[0].stack, 1);
	assert_int_equal(e[1].stack, 2);
	assert_int_equal(e[2].stack, 0); /* a number that nothing told of */
	assert_int_equal(e[3].stack, 1);
	assert_int_equal(s->first[2] - s->first[1], 2); /* the driver's frame is left out */
	assert_string_equal(frag_trace_string(t, s->frames[s->index[0]].name), "main+0x2f");
	assert_string_equal(frag_trace_string(t, s->frames[s->index[0]].file), "/x/prog");
	assert_string_equal(frag_trace_string(t, s->frames[s->index[1]].name), "0x30");
	assert_string_equal(frag_trace_string(t, s->frames[s->index[s->first[3]]].name), "Model."
											 "step");
	assert_int_equal(s->frames[s->index[s->first[3]]].line, 12);
	assert_int_equal(s->frames[s->index[s->first[3] + 1]].line, 0);
	frag_trace_destroy(t);
	refused("action,id,size\n#stack 2 0x10\n", 2);
	refused("action,id,size\n#stack 1 0x10 nonsense\n", 2);
	refused("action,id,size\n#stack 1 0x0\n", 2);
	refused("action,id,size\n#frame 0x10\tmain\n", 2);
	refused("action,id,size\n#frame x\t\t\t\n", 2);
}

/* Frees of what was live before; null pointers and empty requests are nothing. */
/* What libcufrag_torch.so writes: private pools, frees that wait for a stream. */
static void test_csv_pools(void **state)
{
	struct frag_trace *t = good("action,id,size,stream,time_us,device,pool\n"
				    "alloc,4096,100,7,0,0,0\n"
				    "alloc,8192,200,7,1,0,33\n"
				    "free_requested,4096,100,7,2,0,0\n"
				    "alloc,12288,300,9,3,0,0\n"
				    "free_completed,4096,100,7,4,0,0\n"
				    "alloc,4096,400,9,5,0,0\n"
				    "free,8192,200,7,6,0,33\n"
				    "trim,0,0,0,7,0,33\n",
				    "csv without beginning");
	const struct frag_trace_dev *dev = &t->devs[0];

	(void)state;
	expect(t, 0, FRAG_EV_ALLOC, 100, 0, 0, 1);
	expect(t, 1, FRAG_EV_ALLOC, 200, 1, 1, 1);
	expect(t, 2, FRAG_EV_FREE_REQUESTED, 100, 0, 2, 1);
	expect(t, 3, FRAG_EV_ALLOC, 300, 2, 3, 2);
	expect(t, 4, FRAG_EV_FREE_COMPLETED, 100, 0, 4, 1);
	expect(t, 5, FRAG_EV_ALLOC, 400, 0, 5, 2);
	expect(t, 6, FRAG_EV_FREE, 200, 1, 6, 1);
	expect(t, 7, FRAG_EV_TRIM, 0, 0, 7, 0);
	assert_int_equal(dev->pools_count, 2);
	assert_int_equal(dev->pools[1].a, 33);
	assert_int_equal(dev->events[1].pool, 1);
	assert_int_equal(dev->events[6].pool, 1);
	assert_int_equal(dev->events[7].pool, 1);
	assert_int_equal(dev->events[5].pool, 0);
	frag_trace_destroy(t);
	refused("alloc,7,100\nfree_requested,7\nfree_requested,7\n", 3);
	refused("alloc,7,100\nfree_completed,7\n", 2);
	refused("alloc,7,100\nfree_requested,7\nfree,7\n", 3);
}

static void test_before_the_log(void **state)
{
	struct frag_trace *t =
		good("alloc,1,10,0,5\nfree,77,4096,0,6\nfree,88\nalloc,2,0,0,7\nfree,2\nfree,0\n",
		     "csv without beginning");

	(void)state;
	assert_int_equal(t->devs[0].events_count, 3);
	assert_int_equal(t->devs[0].events[0].flags, FRAG_EVF_INITIAL);
	assert_int_equal(t->devs[0].uncertain_blocks, 1);
	expect(t, 0, FRAG_EV_ALLOC, 4096, 0, 0, 0);
	expect(t, 1, FRAG_EV_ALLOC, 10, 1, 0, 0);
	expect(t, 2, FRAG_EV_FREE, 4096, 0, 1, 0);
	frag_trace_destroy(t);
}

static void test_jsonl(void **state)
{
	struct frag_trace *t =
		good("{\"action\": \"alloc\", \"id\": \"0x7f\", \"size\": 64, \"stream\": 2, "
		     "\"time_us\": "
		     "1700000000000000}\n\n{\"action\": \"free\", \"id\": 127, \"time_us\": "
		     "1700000000000009, \"other\": []}\n",
		     "jsonl without beginning");

	(void)state;
	assert_int_equal(t->start_us, 1700000000000000);
	expect(t, 0, FRAG_EV_ALLOC, 64, 0, 0, 1);
	expect(t, 1, FRAG_EV_FREE, 64, 0, 9, 1);
	frag_trace_destroy(t);
}

/* ---- RMM, Umpire -------------------------------------------------------------------- */

static void test_rmm(void **state)
{
	struct frag_trace *t = good("Thread,Time,Action,Pointer,Size,Stream\n"
				    "31417,23:59:59.999999,allocate,0x7f3a40000000,1000000,0x2\n"
				    "31417,23:59:59.999998,allocate failure,(nil),68719476736,0x2\n"
				    "31418,00:00:00.000004,free,0x7f3a40000000,1000000,0x2\n",
				    "rmm without beginning");

	(void)state;
	expect(t, 0, FRAG_EV_ALLOC, 1000000, 0, 0, 1);
	expect(t, 1, FRAG_EV_REFUSED, 68719476736, 0, 0, 1);
	expect(t, 2, FRAG_EV_FREE, 1000000, 0, 5, 1);
	frag_trace_destroy(t);
}

static const char umpire[] =
	"{\"category\":\"metadata\",\"name\":\"version\",\"numeric_args\":{},\"string_args\":{},"
	"\"tags\":{},\"timestamp\":1700000000000000000}\n"
	"{\"category\":\"operation\",\"name\":\"make_memory_resource\",\"numeric_args\":{},"
	"\"string_args\":{\"allocator_ref\":\"0x10\"},\"tags\":{\"allocator_name\":\"DEVICE\"},"
	"\"timestamp\":1700000000000000000}\n"
	"{\"category\":\"operation\",\"name\":\"make_memory_resource\",\"numeric_args\":{},"
	"\"string_args\":{\"allocator_ref\":\"0x11\"},\"tags\":{\"allocator_name\":\"HOST\"},"
	"\"timestamp\":1700000000000000000}\n"
	"{\"category\":\"operation\",\"name\":\"make_allocator\",\"numeric_args\":{},\"string_"
	"args\":{"
	"\"allocator_ref\":\"0x20\",\"arg0\":\"DEVICE\",\"type\":\"N6umpire8strategy9QuickPoolE\"},"
	"\"tags\":{\"allocator_name\":\"pool0\"},\"timestamp\":1700000000000000001}\n"
	"{\"category\":\"operation\",\"name\":\"allocate\",\"numeric_args\":{\"size\":9},"
	"\"string_args\":{\"allocator_ref\":\"0x11\",\"pointer\":\"0x5\"},\"tags\":{},"
	"\"timestamp\":1700000000000001000}\n"
	"{\"category\":\"operation\",\"name\":\"allocate\",\"numeric_args\":{\"size\":1048576},"
	"\"string_args\":{\"allocator_ref\":\"0x10\",\"pointer\":\"0x7f00aa000000\"},\"tags\":{},"
	"\"timestamp\":1700000000000001000}\n"
	"{\"category\":\"operation\",\"name\":\"allocate\",\"numeric_args\":{\"size\":4096},"
	"\"string_args\":{\"allocator_ref\":\"0x20\",\"pointer\":\"0x7f00aa000000\"},\"tags\":{},"
	"\"timestamp\":1700000000000002000}\n"
	"{\"category\":\"operation\",\"name\":\"deallocate\",\"numeric_args\":{},"
	"\"string_args\":{\"allocator_ref\":\"0x20\",\"pointer\":\"0x7f00aa000000\"},\"tags\":{},"
	"\"timestamp\":1700000000000009000}\n";

/* The pool's own upstream and host memory are no requests of the program. */
static void test_umpire(void **state)
{
	struct frag_trace *t = good(umpire, "umpire without streams, beginning");

	(void)state;
	assert_int_equal(t->devs[0].events_count, 2);
	assert_int_equal(t->start_us, 1700000000000002);
	expect(t, 0, FRAG_EV_ALLOC, 4096, 0, 0, 0);
	expect(t, 1, FRAG_EV_FREE, 4096, 0, 7, 0);
	frag_trace_destroy(t);

	t = good("{\"kind\":\"replay\",\"uid\":1,\"timestamp\":5000,\"event\":\"allocate\","
		 "\"payload\":{"
		 "\"allocator_ref\":\"0x1\",\"size\":64}}\n"
		 "{\"kind\":\"replay\",\"uid\":1,\"timestamp\":6000,\"event\":\"allocate\","
		 "\"payload\":{"
		 "\"allocator_ref\":\"0x1\",\"size\":64},\"result\":{\"memory_ptr\":\"0xa0\"}}\n"
		 "{\"kind\":\"replay\",\"uid\":1,\"timestamp\":8000,\"event\":\"deallocate\","
		 "\"payload\":{"
		 "\"allocator_ref\":\"0x1\",\"memory_ptr\":\"0xa0\"}}\n",
		 "umpire without streams, beginning");
	assert_int_equal(t->devs[0].events_count, 2);
	expect(t, 1, FRAG_EV_FREE, 64, 0, 2, 0);
	frag_trace_destroy(t);
}

/* ---- Kineto, Nsight Systems ------------------------------------------------------------ */

#define MEMORY(ts, bytes, addr, type) \
	"{\"ph\": \"i\", \"name\": \"[memory]\", \"ts\": " ts ", \"args\": {\"Bytes\": " bytes \
	", \"Device Id\": 0, \"Device Type\": " type ", \"Addr\": " addr "}}"

/* Out of order, host memory between, braces inside strings, a base of the times behind the events. */
static void test_kineto(void **state)
{
	struct frag_trace *t = good(
		"{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0}], \"traceEvents\": [\n"
		"{\"ph\": \"X\", \"name\": \"a{\\\"[[[memory]\", \"args\": {\"x\": [1, "
		"{}]}},\n" MEMORY("12.500", "-512", "4096", "1") "," MEMORY(
			"12.25", "512", "4096", "1") "," MEMORY("1", "8", "9",
								"0") "],"
								     "\n \"baseTimeNanoseconds\": "
								     "1790857026000000000\n}\n",
		"kineto without streams, beginning");

	(void)state;
	assert_int_equal(t->devs[0].events_count, 2);
	assert_int_equal(t->start_us, 1790857026000012);
	expect(t, 0, FRAG_EV_ALLOC, 512, 0, 0, 0);
	expect(t, 1, FRAG_EV_FREE, 512, 0, 0, 0);
	frag_trace_destroy(t);
	t = good("[" MEMORY("5", "512", "7", "1") "]", "kineto without streams, beginning");
	frag_trace_destroy(t);
}

static void test_kineto_recorded(void **state)
{
	static const char path[] = FRAG_SHARED_TRACES "/diagnose/kineto.json.xz";
	struct frag_trace *t;

	(void)state;
	if (access(path, R_OK))
		skip();
	assert_int_equal(frag_trace_read(path, NULL, &t, NULL), 0);
	assert_int_equal(t->devs[0].events_count, 4238);
	assert_int_equal(t->devs[0].uncertain_blocks, 0);
	/* counted from the file by another program: 100 blocks live at its end */
	assert_int_equal(t->devs[0].slots_count, 196);
	frag_trace_destroy(t);
}

static void make_database(const char *path, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static int read_database(const char *sql, struct frag_trace **out, struct frag_err *err)
{
	char path[] = "/tmp/log with %XXXXXX";
	int rc;

	close(mkstemp(path));
	make_database(path, sql);
	rc = frag_trace_read(path, NULL, out, err);
	unlink(path);
	return rc;
}

#define NSYS_TABLE \
	"CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER NOT NULL, globalPid INTEGER, " \
	"deviceId INTEGER, contextId INTEGER, address INTEGER, pc INTEGER, bytes INTEGER, " \
	"memKind " \
	"INTEGER, memoryOperationType INTEGER, name TEXT, correlationId INTEGER, streamId " \
	"INTEGER);"

static void test_nsys(void **state)
{
	struct frag_trace *t;
	struct frag_err err = { 0 };

	(void)state;
	assert_int_equal(read_database(NSYS_TABLE
				       "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES"
				       "(9000,1,0,1,139637976727552,0,2097152,2,1,NULL,2,NULL),"
				       "(2000,1,0,1,139637976727552,0,2097152,2,0,NULL,1,7),"
				       "(3000,1,0,1,64,0,4096,1,0,NULL,3,NULL),"
				       "(4000,1,0,1,99,0,123,5,0,'g',4,NULL);",
				       &t, &err),
			 0);
	assert_string_equal(t->format, "nsys without beginning");
	assert_int_equal(t->devs[0].events_count, 2);
	expect(t, 0, FRAG_EV_ALLOC, 2097152, 0, 0, 1);
	expect(t, 1, FRAG_EV_FREE, 2097152, 0, 7, 1);
	frag_trace_destroy(t);
	/* a view in the place of the table could be any amount of work */
	assert_int_equal(
		read_database("CREATE TABLE a (x); CREATE VIEW CUDA_GPU_MEMORY_USAGE_EVENTS AS "
			      "WITH RECURSIVE r(start) AS (SELECT 1 UNION ALL SELECT start + 1 "
			      "FROM r) SELECT start FROM r;",
			      &t, &err),
		FRAG_EINPUT);
	assert_non_null(strstr(err.msg, "--cuda-memory-usage"));
	assert_int_equal(read_database(NSYS_TABLE "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES"
						  "(1,1,0,1,5,0,-5,2,0,NULL,2,NULL);",
				       &t, &err),
			 FRAG_EINPUT);
	assert_int_equal(err.offset, 1);
}

/* ---- refused ---------------------------------------------------------------------------- */

static void test_refused(void **state)
{
	char long_line[8000];

	(void)state;
	refused("alloc,7,100\nalloc,7,100\n", 2);
	refused("alloc,7,100\nalloc,8\n", 2);
	refused("alloc,7,100\nalloc,8,x\n", 2);
	refused("alloc,7,100\nalloc,8,-1\n", 2);
	refused("alloc,7,100\nwhat,8,1\n", 2);
	refused("alloc,7,100\nfree\n", 2);
	refused("alloc,7,100\nalloc,8,999999999999999999999\n", 2);
	refused("alloc,7,281474976710656\n", 1);
	refused("alloc,0,5\n", 1);
	refused("action,id,size\n", 0);
	memset(long_line, 'a', sizeof(long_line));
	memcpy(long_line, "alloc,1,1\n", 10);
	long_line[sizeof(long_line) - 1] = 0;
	refused(long_line, 2);
	refused("{\"action\":\"alloc\",\"id\":7,\"size\":1}\n{\"action\":\"alloc\",\"id\":8}\n", 2);
	refused("{\"action\":\"alloc\",\"id\":7,\"size\":1}\n{\"action\":\n", 2);
	refused("{\"action\":\"alloc\",\"id\":7,\"size\":1.5}\n", 1);
	refused("Thread,Time,Action,Pointer,Size,Stream\n1,10:15:02.1,allocate,0x1,5\n", 2);
	refused("Thread,Time,Action,Pointer,Size,Stream\n1,10:99:02.1,allocate,0x1,5,0\n", 2);
	refused("[" MEMORY("5", "512", "7", "1"), 110);
	refused("[" MEMORY("5", "512", "\"x\"", "1") "]", 1);
	refused("{\"traceEvents\": []}", 0);
	refused("{\"category\":\"operation\",\"name\":\"allocate\",\"numeric_args\":{},\"string_"
		"args\":{}}\n",
		1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_csv),
		cmocka_unit_test(test_csv_quotes),
		cmocka_unit_test(test_first_lines),
		cmocka_unit_test(test_csv_stacks),
		cmocka_unit_test(test_csv_pools),
		cmocka_unit_test(test_before_the_log),
		cmocka_unit_test(test_jsonl),
		cmocka_unit_test(test_rmm),
		cmocka_unit_test(test_umpire),
		cmocka_unit_test(test_kineto),
		cmocka_unit_test(test_kineto_recorded),
		cmocka_unit_test(test_nsys),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
