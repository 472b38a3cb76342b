/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions as another process plans them: a script that says always the same, and the machine's own cuDNN. */
#include "test.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pretend/libraries/cudnn.h"

int frag_nogpu_cudnnBackendGetAttribute(struct nogpu_cudnn *d, int name, int type, int64_t wanted,
					int64_t *count, void *out);

#define HEURISTICS_RESULTS 202
#define FLOAT 0
#define HALF 2
#define BFLOAT 9

struct conv {
	struct nogpu_cudnn x, w, y, settings, op;
};

static struct nogpu_cudnn tensor(int type, bool last, int64_t n, int64_t c, int64_t side)
{
	return (struct nogpu_cudnn){ .type = type,
				     .dims_count = 4,
				     .dims = { n, c, side, side },
				     .strides = { c * side * side, last ? 1 : side * side,
						  last ? c * side : side, last ? c : 1 } };
}

static struct conv conv(int kind, int type, bool last, int64_t n, int64_t c, int64_t side,
			int64_t k, int64_t r, int64_t stride)
{
	int64_t pad = r / 2;

	return (struct conv){ .x = tensor(type, last, n, c, side),
			      .w = tensor(type, last, k, c, r),
			      .y = tensor(type, last, n, k, (side + 2 * pad - r) / stride + 1),
			      .settings = { .conv_strides = { stride, stride },
					    .conv_dilations = { 1, 1 },
					    .conv_pads = { pad, pad } },
			      .op = { .kind = kind } };
}

static struct nogpu_cudnn *op_of(struct conv *v)
{
	v->op.conv = &v->settings;
	v->op.x_part = &v->x;
	v->op.w_part = &v->w;
	v->op.y_part = &v->y;
	return &v->op;
}

static const char *script; /* that the planner is */

/* Each test has a process of its own: a planner is started once. */
static void in_a_child(void (*test)(void))
{
	pid_t pid;
	int status;

	script = test_make_file("planner", "", 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		test();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define MUST(x) \
	do { \
		if (!(x)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
			_exit(1); \
		} \
	} while (0)

static void write_script(const char *text)
{
	char setting[200];
	FILE *f = fopen(script, "w");

	MUST(f && fputs(text, f) >= 0 && !fclose(f) && !chmod(script, 0700));
	snprintf(setting, sizeof(setting), "%s\nscript\nlibrary", script);
	setenv("CUFRAG_NOGPU_PLANNER", setting, 1);
}

static void plans_of_a_script(void)
{
	struct conv dense = conv(NOGPU_CUDNN_CONV_FORWARD, FLOAT, false, 5, 24, 17, 40, 3, 1);
	struct conv point = conv(NOGPU_CUDNN_CONV_FORWARD, FLOAT, false, 5, 24, 18, 40, 1, 1);
	struct conv known = conv(NOGPU_CUDNN_CONV_FORWARD, FLOAT, false, 24, 3, 160, 64, 7, 2);
	/* measured, of other numbers of images */
	struct conv other = conv(NOGPU_CUDNN_CONV_FORWARD, FLOAT, false, 23, 3, 160, 64, 7, 2);
	struct nogpu_plans plans;

	setenv("CUFRAG_NOGPU", "total=1000;name=c;cc=9.0;sms=132", 1);
	write_script("#!/bin/sh\nread card\nwhile read q; do echo 1000 1 "
		     "${CUDA_VISIBLE_DEVICES-seen }2000 0; done\n");
	frag_nogpu_conv_plans(op_of(&dense), &plans);
	MUST(plans.count == 2 && plans.at[0].bytes == 1000 && plans.at[0].notes == 1);
	MUST(plans.at[1].bytes == 2000 && plans.at[1].notes == 0);
	frag_nogpu_conv_plans(op_of(&point), &plans);
	MUST(plans.count == 2 && plans.at[0].bytes == 1000);
	frag_nogpu_conv_plans(op_of(&other), &plans);
	MUST(plans.count == 2 && plans.at[0].bytes == 1000);
	frag_nogpu_conv_plans(op_of(&known), &plans); /* measured */
	MUST(plans.count == 2 && plans.at[0].bytes == 46732048 && plans.at[1].bytes == 2000);
}

/* Filters of one point are plain products, which it does not plan for this card; of three dimensions, those of few channels are none. */
static void points_of_other_cards(void)
{
	struct conv point = conv(NOGPU_CUDNN_CONV_FORWARD, FLOAT, false, 5, 24, 18, 40, 1, 1);
	struct conv deep = conv(NOGPU_CUDNN_CONV_BACKWARD_FILTER, HALF, false, 2, 24, 96, 3, 1, 1);
	struct nogpu_cudnn *parts[] = { &deep.x, &deep.w, &deep.y };
	struct nogpu_plans plans;

	setenv("CUFRAG_NOGPU", "total=1000;name=c;cc=8.0;sms=108", 1);
	write_script("#!/bin/sh\nread card\nwhile read q; do echo 1000 1 2000 0; done\n");
	frag_nogpu_conv_plans(op_of(&point), &plans);
	MUST(plans.count == 2 && plans.at[0].bytes == 0);
	for (int i = 0; i < 3; i++) {
		parts[i]->dims_count = 5;
		parts[i]->dims[4] = parts[i]->dims[3];
		parts[i]->strides[4] = 1;
	}
	deep.settings.conv_strides[2] = deep.settings.conv_dilations[2] = 1;
	frag_nogpu_conv_plans(op_of(&deep), &plans);
	MUST(plans.at[0].bytes == 1000);
	deep.op.kind = NOGPU_CUDNN_CONV_FORWARD;
	frag_nogpu_conv_plans(op_of(&deep), &plans);
	MUST(plans.at[0].bytes == 0);
}

/* Measured in bfloat16. */
static void what_was_measured_otherwise(void)
{
	struct conv half = conv(NOGPU_CUDNN_CONV_FORWARD, HALF, false, 64, 3, 224, 64, 7, 2);
	struct nogpu_plans plans;

	setenv("CUFRAG_NOGPU", "total=1000;name=c;cc=9.0;sms=132", 1);
	write_script("#!/bin/sh\nread card\nwhile read q; do echo 1000 1 2000 0; done\n");
	frag_nogpu_conv_plans(op_of(&half), &plans);
	MUST(plans.at[0].bytes == 1000);
}

#define CFG_WORKSPACE 303

/* PyTorch 2.15 makes one descriptor where there are more plans, and takes as many as it is told. After the first of each kind, the largest. */
static void as_many_as_asked_for(void)
{
	struct conv dense = conv(NOGPU_CUDNN_CONV_FORWARD, FLOAT, false, 5, 24, 17, 40, 3, 1);
	struct nogpu_cudnn graph = { .kind = NOGPU_CUDNN_GRAPH,
				     .ops = { op_of(&dense) },
				     .ops_count = 1 };
	struct nogpu_cudnn heuristics = { .made_of = &graph }, config[4] = { 0 },
			   *out[5] = { &config[0], &config[1], &config[2], &config[3] };
	static const int64_t expected[] = { 1000, 2000, 9000, 2000 };
	int64_t count = -1, bytes;

	write_script("#!/bin/sh\nread card\nwhile read q; do case $q in all*) echo 700 0 9000 1;;"
		     " *) echo 1000 1 2000 0;; esac; done\n");
	frag_nogpu_cudnnBackendGetAttribute(&heuristics, HEURISTICS_RESULTS, 0, 0, &count, NULL);
	MUST(count == 4);
	frag_nogpu_cudnnBackendGetAttribute(&heuristics, HEURISTICS_RESULTS, 0, 1, &count, out);
	MUST(count == 1 && config[0].made_of == &heuristics);
	frag_nogpu_cudnnBackendGetAttribute(&heuristics, HEURISTICS_RESULTS, 0, 5, &count, out);
	MUST(count == 4);
	for (int i = 0; i < 4; i++) {
		frag_nogpu_cudnnBackendGetAttribute(&config[i], CFG_WORKSPACE, 0, 1, &count,
						    &bytes);
		MUST(bytes == expected[i]);
	}
}

static void rule_where_it_ends(void)
{
	struct conv dense = conv(NOGPU_CUDNN_CONV_FORWARD, FLOAT, false, 5, 24, 17, 40, 3, 1);
	struct nogpu_plans plans;

	write_script("#!/bin/sh\nread card\nread q\n");
	for (int i = 0; i < 2; i++) {
		frag_nogpu_conv_plans(op_of(&dense), &plans);
		MUST(plans.count == 1);
		MUST(plans.at[0].bytes ==
		     4 * (5 * 24 * 17 * 17 + 40 * 24 * 9 + 5 * 40 * 17 * 17) + 16);
	}
}

/* "" = not there. */
static const char *machines_cudnn(void)
{
	static const char *const places[] = { "/usr/local/cuda/lib64/libcudnn.so.9",
					      "/usr/local/cuda/lib/libcudnn.so.9",
					      "/usr/local/cuda-13.0/lib/libcudnn.so.9",
					      "/usr/lib/x86_64-linux-gnu/libcudnn.so.9" };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (!access(places[i], R_OK))
			return places[i];
	return "";
}

static void plan_for(const char *card)
{
	char setting[600];

	setenv("CUFRAG_NOGPU", card, 1);
	snprintf(setting, sizeof(setting),
		 "/usr/bin/python3\nsrc/pretend/python/cufrag_planner.py\n%s", machines_cudnn());
	setenv("CUFRAG_NOGPU_PLANNER", setting, 1);
	snprintf(setting, sizeof(setting),
		 "/usr/bin/python3 -c 'import sys; sys.path.insert(0, "
		 "\"src/pretend/python\"); "
		 "import cufrag_stubs; cufrag_stubs.no_card(\"%s.d\", [])'",
		 script);
	MUST(!system(setting));
	snprintf(setting, sizeof(setting), "%s.d", script);
	setenv("CUFRAG_NOGPU_PLANNER_PATH", setting, 1);
}

static void on_this_machine(void (*test)(void))
{
	char command[200];

	if (!*machines_cudnn() || access("/usr/bin/python3", X_OK))
		skip();
	in_a_child(test);
	snprintf(command, sizeof(command), "rm -r %s.d", script);
	assert_int_equal(system(command), 0);
}

#define H200 "total=150109880320;name=NVIDIA H200;cc=9.0;sms=132;l2=62914560;clock=1980000"

static struct conv grouped_conv(int kind, int type, bool last, int64_t n, int64_t c, int64_t side,
				int64_t k, int64_t r, int64_t stride, int64_t groups)
{
	struct conv v = conv(kind, type, last, n, c, side, k, r, stride);
	int64_t of_one = c / groups;

	v.w.dims[1] = of_one;
	v.w.strides[0] = of_one * r * r;
	if (last) {
		v.w.strides[2] = of_one * r;
		v.w.strides[3] = of_one;
	}
	return v;
}

/* Where the card takes another one. Of points in half precision with channels last the trees have six of ten; who mends this moves it to
 * as_measured. */
static void missed_by_the_trees(void)
{
	struct conv v = grouped_conv(NOGPU_CUDNN_CONV_BACKWARD_FILTER, BFLOAT, true, 64, 480, 28,
				     832, 1, 1, 1);
	const int64_t measured = 15974672;
	struct nogpu_plans plans;

	MUST(frag_nogpu_conv_planned(op_of(&v), &plans));
	MUST(llabs(plans.at[0].bytes - measured) >= 512);
}

/*
 * As an H200 took them: copies alone, with the partial sums of a whole card, cuBLASLt's products of points, single channels, whose
 * kernels cuDNN proposes only where it finds a driver, and transforms.
 */
static void as_measured(void)
{
	static const struct {
		int kind, type;
		bool last;
		int64_t n, c, side, k, r, stride, groups, bytes;
	} rows[] = {
		{ NOGPU_CUDNN_CONV_BACKWARD_DATA, FLOAT, true, 16, 512, 16, 512, 3, 1, 1, 7864959 },
		{ NOGPU_CUDNN_CONV_BACKWARD_DATA, BFLOAT, false, 32, 1280, 8, 1280, 3, 1, 1,
		  47841935 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, BFLOAT, true, 64, 128, 20, 128, 3, 1, 1,
		  2359671 },
		{ NOGPU_CUDNN_CONV_FORWARD, FLOAT, true, 16, 128, 28, 256, 3, 2, 1, 6816111 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, BFLOAT, false, 48, 2304, 80, 336, 1, 1, 1,
		  148635648 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, BFLOAT, true, 160, 24, 56, 448, 1, 1, 1,
		  7397648 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, BFLOAT, true, 2, 32, 28, 20, 1, 1, 1, 251136 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, BFLOAT, true, 64, 1920, 28, 1408, 1, 1, 1,
		  64880928 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, BFLOAT, true, 32, 832, 56, 144, 1, 1, 1,
		  12460304 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, BFLOAT, false, 96, 162, 4, 972, 1, 1, 1,
		  60466576 },
		{ NOGPU_CUDNN_CONV_BACKWARD_DATA, BFLOAT, true, 50, 512, 14, 512, 7, 1, 512, 0 },
		{ NOGPU_CUDNN_CONV_BACKWARD_DATA, BFLOAT, true, 10, 432, 28, 304, 1, 1, 1, 0 },
		{ NOGPU_CUDNN_CONV_FORWARD, FLOAT, false, 80, 480, 75, 80, 1, 1, 1, 0 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, BFLOAT, true, 8, 88, 36, 88, 3, 1, 88, 221184 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, BFLOAT, true, 20, 32, 129, 32, 3, 1, 32,
		  184320 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, FLOAT, false, 16, 64, 28, 64, 3, 1, 1,
		  15040512 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, FLOAT, false, 20, 288, 64, 288, 3, 1, 4,
		  3043491904 },
		{ NOGPU_CUDNN_CONV_BACKWARD_DATA, FLOAT, false, 32, 16, 69, 64, 3, 1, 1, 26738688 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, BFLOAT, false, 4, 320, 20, 320, 3, 1, 8,
		  11059200 },
		{ NOGPU_CUDNN_CONV_BACKWARD_DATA, BFLOAT, false, 20, 24, 224, 8, 3, 1, 1,
		  462449664 },
		{ NOGPU_CUDNN_CONV_FORWARD, BFLOAT, false, 24, 240, 28, 240, 5, 1, 8, 171000960 },
	};
	struct nogpu_plans plans;

	plan_for(H200);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct conv v = grouped_conv(rows[i].kind, rows[i].type, rows[i].last, rows[i].n,
					     rows[i].c, rows[i].side, rows[i].k, rows[i].r,
					     rows[i].stride, rows[i].groups);

		MUST(frag_nogpu_conv_planned(op_of(&v), &plans));
		MUST(llabs(plans.at[0].bytes - rows[i].bytes) < 512);
	}
	missed_by_the_trees();
}

/* The first plan that a program takes: all of them, or those without tensor cores. */
static int64_t first_of(const struct nogpu_plans *plans, bool without)
{
	for (int i = 0; i < plans->count; i++)
		if (!without || !(plans->at[i].notes & 1))
			return plans->at[i].bytes;
	return -1;
}

/*
 * As an H200's cuDNN 9.19 planned what no tree was grown from: counters of sums that are split, in one and in several groups, and
 * none of them up to two rounds of tiles; transforms of programs that forbid tensor cores, and those that a card takes before plans with
 * tensor cores; products of cuBLASLt.
 */
static void to_the_byte(void)
{
	static const struct {
		int kind, type;
		bool last, without;
		int64_t n, c, side, k, r, stride, groups, bytes;
	} rows[] = {
		{ NOGPU_CUDNN_CONV_FORWARD, HALF, false, false, 2, 288, 47, 672, 3, 1, 1,
		  20813923 },
		{ NOGPU_CUDNN_CONV_FORWARD, FLOAT, false, false, 4, 240, 33, 40, 3, 1, 1, 5224336 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, HALF, true, false, 160, 64, 19, 192, 5, 1, 1,
		  7340527 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, HALF, false, false, 8, 320, 8, 160, 3, 1, 1,
		  1413136 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, BFLOAT, true, false, 48, 792, 20, 792, 3, 2, 3,
		  42735408 },
		{ NOGPU_CUDNN_CONV_FORWARD, HALF, false, false, 1, 1536, 64, 96, 3, 1, 3,
		  14254128 },
		{ NOGPU_CUDNN_CONV_BACKWARD_DATA, FLOAT, false, true, 256, 960, 32, 320, 3, 1, 1,
		  4189061120 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, FLOAT, true, true, 16, 672, 64, 192, 3, 1, 1,
		  759324688 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, FLOAT, true, true, 1, 2048, 128, 256, 3, 1, 8,
		  502530176 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, FLOAT, true, true, 256, 32, 16, 128, 3, 1, 1,
		  432160784 },
		{ NOGPU_CUDNN_CONV_FORWARD, FLOAT, false, true, 1, 2048, 4, 512, 3, 1, 8,
		  311427072 },
		{ NOGPU_CUDNN_CONV_FORWARD, FLOAT, true, true, 1, 448, 16, 3, 5, 1, 1, 16328208 },
		{ NOGPU_CUDNN_CONV_FORWARD, FLOAT, false, false, 1, 240, 40, 32, 7, 1, 1,
		  269137920 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, FLOAT, false, false, 1, 320, 112, 576, 3, 1, 1,
		  127696896 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, FLOAT, false, false, 1, 240, 94, 240, 5, 1, 5,
		  1542024960 },
		{ NOGPU_CUDNN_CONV_BACKWARD_DATA, FLOAT, false, false, 8, 16, 445, 5, 3, 1, 1,
		  1810432 },
		{ NOGPU_CUDNN_CONV_BACKWARD_DATA, BFLOAT, false, false, 12, 3, 24, 16, 5, 1, 1,
		  1881984 },
		{ NOGPU_CUDNN_CONV_FORWARD, BFLOAT, false, false, 48, 72, 45, 12, 3, 1, 1,
		  83731968 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, BFLOAT, false, false, 1, 82, 32, 256, 1, 1, 1,
		  1427712 },
		{ NOGPU_CUDNN_CONV_BACKWARD_DATA, BFLOAT, true, false, 8, 12, 19, 16, 1, 1, 1,
		  277504 },
		{ NOGPU_CUDNN_CONV_BACKWARD_DATA, HALF, true, false, 1, 560, 224, 560, 3, 1, 5,
		  137790099 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, HALF, true, false, 1, 384, 128, 256, 1, 1, 1,
		  4718864 },
		{ NOGPU_CUDNN_CONV_FORWARD, HALF, false, false, 10, 96, 7, 16, 3, 1, 1, 1253376 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, FLOAT, false, false, 20, 880, 1, 880, 5, 1, 22,
		  22497280 },
		{ NOGPU_CUDNN_CONV_FORWARD, HALF, true, false, 2, 5, 64, 16, 1, 1, 1, 524544 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, FLOAT, false, false, 672, 16, 42, 32, 3, 1, 1,
		  1241726976 },
		{ NOGPU_CUDNN_CONV_BACKWARD_DATA, FLOAT, false, false, 2, 18, 320, 18, 3, 1, 1,
		  2036736 },
		{ NOGPU_CUDNN_CONV_BACKWARD_DATA, FLOAT, false, false, 2, 36, 320, 18, 3, 1, 1,
		  3760128 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, BFLOAT, true, false, 4, 768, 32, 768, 1, 1, 1,
		  7078160 },
		{ NOGPU_CUDNN_CONV_FORWARD, FLOAT, false, false, 12, 1024, 18, 1024, 3, 1, 32,
		  33030291 },
	};
	struct nogpu_plans plans;

	plan_for(H200);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct conv v = grouped_conv(rows[i].kind, rows[i].type, rows[i].last, rows[i].n,
					     rows[i].c, rows[i].side, rows[i].k, rows[i].r,
					     rows[i].stride, rows[i].groups);

		MUST(frag_nogpu_conv_planned(op_of(&v), &plans));
		MUST(first_of(&plans, rows[i].without) == rows[i].bytes);
	}
}

/* Patches of 8 by 8 points in single precision: all that cuDNN proposes first has tensor cores. */
static void of_the_second_list(void)
{
	struct conv v = conv(NOGPU_CUDNN_CONV_FORWARD, FLOAT, false, 6, 192, 192, 512, 8, 8);
	struct nogpu_plans plans;

	v.settings.conv_pads[0] = v.settings.conv_pads[1] = 0;
	v.y = tensor(FLOAT, false, 6, 512, 24);
	plan_for(H200);
	MUST(frag_nogpu_conv_planned(op_of(&v), &plans));
	MUST(first_of(&plans, false) > 49152 && first_of(&plans, true) == 49152);
}

/* Filters of more points than a tile of Fourier's transforms has: an H200 takes what is proposed without a card. */
static void larger_than_tiles(void)
{
	struct conv v = conv(NOGPU_CUDNN_CONV_BACKWARD_DATA, FLOAT, true, 128, 7, 33, 512, 33, 1);
	struct nogpu_plans plans;

	v.settings.conv_pads[0] = v.settings.conv_pads[1] = 2;
	v.y = tensor(FLOAT, true, 128, 512, 5);
	plan_for(H200);
	MUST(frag_nogpu_conv_planned(op_of(&v), &plans));
	MUST(first_of(&plans, false) == 28856336);
}

/* What an H100 took to try all plans, as cudnn.benchmark does: the largest is by Fourier transforms. */
static void largest_as_measured(void)
{
	static const struct {
		int kind, type;
		int64_t n, c, side, k, r, stride, bytes;
	} rows[] = {
		{ NOGPU_CUDNN_CONV_FORWARD, FLOAT, 64, 128, 28, 128, 3, 1, 214499328 },
		{ NOGPU_CUDNN_CONV_FORWARD, FLOAT, 64, 256, 56, 128, 1, 1, 1661075456 },
		{ NOGPU_CUDNN_CONV_BACKWARD_FILTER, FLOAT, 64, 128, 28, 128, 3, 1, 168296448 },
		{ NOGPU_CUDNN_CONV_BACKWARD_DATA, FLOAT, 64, 128, 28, 128, 3, 1, 142606336 },
		{ NOGPU_CUDNN_CONV_BACKWARD_DATA, FLOAT, 64, 128, 56, 128, 3, 2, 594837520 },
		{ NOGPU_CUDNN_CONV_BACKWARD_DATA, FLOAT, 64, 3, 224, 64, 7, 2, 309674000 },
	};

	plan_for("total=85017493504;name=NVIDIA H100;cc=9.0;sms=132;l2=52428800;clock=1980000");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct conv v = conv(rows[i].kind, rows[i].type, false, rows[i].n, rows[i].c,
				     rows[i].side, rows[i].k, rows[i].r, rows[i].stride);
		struct nogpu_plan plain = { .bytes = 0, .notes = 0 };

		MUST(frag_nogpu_conv_largest(op_of(&v), &plain) == rows[i].bytes);
	}
}

TEST(a_script_is_asked)
{
	in_a_child(plans_of_a_script);
}

TEST(other_cards_points_are_products)
{
	in_a_child(points_of_other_cards);
}

TEST(other_types_are_asked_for)
{
	in_a_child(what_was_measured_otherwise);
}

TEST(plans_are_as_many_as_asked_for)
{
	in_a_child(as_many_as_asked_for);
}

TEST(a_planner_that_ends_is_asked_no_more)
{
	in_a_child(rule_where_it_ends);
}

TEST(the_machines_cudnn_plans_as_a_card)
{
	on_this_machine(as_measured);
}

TEST(plans_come_out_to_the_byte)
{
	on_this_machine(to_the_byte);
}

TEST(programs_without_tensor_cores_have_a_plan)
{
	on_this_machine(of_the_second_list);
}

TEST(filters_larger_than_tiles_have_a_plan)
{
	on_this_machine(larger_than_tiles);
}

TEST(the_largest_plans_are_as_on_a_card)
{
	on_this_machine(largest_as_measured);
}
