/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions as another process plans them: a script that says always the same, and the machine's own cuDNN. */
#include "test.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pretend/libraries/cudnn.h"

int frag_nogpu_cudnnBackendGetAttribute(struct nogpu_cudnn *d, int name, int type, int64_t wanted,
					int64_t *count, void *out);
int frag_nogpu_conv_planner(void);

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

#define OTHER_RELEASE \
	77 /* status where the plans of a card are known of another cuDNN than this machine's */

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
	if (WIFEXITED(status) && WEXITSTATUS(status) == OTHER_RELEASE)
		skip();
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

/* known: what a card adds to the plans of this cuDNN */
static void plans_of_a_script(const char *known, int64_t point_bytes)
{
	struct conv dense = conv(NOGPU_CUDNN_CONV_FORWARD, FLOAT, false, 5, 24, 17, 40, 3, 1);
	struct conv point = conv(NOGPU_CUDNN_CONV_FORWARD, FLOAT, false, 5, 24, 18, 40, 1, 1);
	struct nogpu_plans plans;
	char text[200];

	setenv("CUFRAG_NOGPU", "total=1000;name=c;cc=9.0;sms=132", 1);
	MUST(frag_nogpu_conv_planner() == 0);
	snprintf(text, sizeof(text),
		 "#!/bin/sh\nread card\necho 91000 %s\nwhile read q; do echo 1000 1 "
		 "${CUDA_VISIBLE_DEVICES-seen }2000 0; done\n",
		 known);
	write_script(text);
	frag_nogpu_conv_plans(op_of(&dense), &plans);
	MUST(plans.count == 2 && plans.at[0].bytes == 1000 && plans.at[0].notes == 1);
	MUST(plans.at[1].bytes == 2000 && plans.at[1].notes == 0);
	frag_nogpu_conv_plans(op_of(&point), &plans);
	MUST(plans.count == 2 && plans.at[0].bytes == point_bytes);
	MUST(frag_nogpu_conv_planner() == 91000);
}

static void plans_of_a_known_release(void)
{
	plans_of_a_script("1", 1000);
}

/* cuBLASLt's products are not among its plans. */
static void plans_of_another_release(void)
{
	plans_of_a_script("0", 0);
}

/* Filters of one point are plain products, which it does not plan for this card; of three dimensions, those of few channels are none. */
static void points_of_other_cards(void)
{
	struct conv point = conv(NOGPU_CUDNN_CONV_FORWARD, FLOAT, false, 5, 24, 18, 40, 1, 1);
	struct conv deep = conv(NOGPU_CUDNN_CONV_BACKWARD_FILTER, HALF, false, 2, 24, 96, 3, 1, 1);
	struct nogpu_cudnn *parts[] = { &deep.x, &deep.w, &deep.y };
	struct nogpu_plans plans;

	setenv("CUFRAG_NOGPU", "total=1000;name=c;cc=8.0;sms=108", 1);
	write_script("#!/bin/sh\nread card\necho 91900 0\nwhile read q; do echo 1000 1 2000 0; "
		     "done\n");
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

	write_script("#!/bin/sh\nread card\necho 91900 1\nwhile read q; do case $q in all*) echo "
		     "700 0 9000 1;;"
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
	struct conv last = conv(NOGPU_CUDNN_CONV_FORWARD, BFLOAT, true, 2, 16, 8, 24, 3, 1);
	struct conv point = conv(NOGPU_CUDNN_CONV_BACKWARD_FILTER, HALF, false, 2, 16, 8, 24, 1, 1);
	struct nogpu_plans plans;

	write_script("#!/bin/sh\nread card\necho 91900 1\nread q\n");
	for (int i = 0; i < 2; i++) {
		frag_nogpu_conv_plans(op_of(&dense), &plans);
		MUST(plans.count == 1);
		MUST(plans.at[0].bytes ==
		     4 * (5 * 24 * 17 * 17 + 40 * 24 * 9 + 5 * 40 * 17 * 17) + 16);
	}
	frag_nogpu_conv_plans(op_of(&last), &plans);
	MUST(plans.at[0].bytes == 0);
	frag_nogpu_conv_plans(op_of(&point), &plans);
	MUST(plans.at[0].bytes == 2 * 16 * 24 * 4);
	MUST(frag_nogpu_conv_planner() == 91900);
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
		 "/usr/bin/python3\nsrc/pretend/python/cufrag_planner.py\n%s",
		 machines_cudnn());
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

/* The first plan that a program takes: all of them, or those without tensor cores. */
static int64_t first_of(const struct nogpu_plans *plans, bool without)
{
	for (int i = 0; i < plans->count; i++)
		if (!without || !(plans->at[i].notes & 1))
			return plans->at[i].bytes;
	return -1;
}

#define MEASURED "tests/pretend/card/convolutions.csv"
#define MISSED "tests/pretend/card/convolutions_missed.csv"
#define MISSED_MOST 18 /* may only fall */

struct measured {
	struct conv conv;
	bool without_tensor_cores;
	int64_t bytes, off_at_most;
};

static int one_of(const char *word, const char *const *words)
{
	int i = 0;

	while (words[i] && strcmp(words[i], word) != 0)
		i++;
	MUST(words[i]);
	return i;
}

/* A line of either file. */
static struct measured measured_of(const char *line)
{
	static const int kinds[] = { NOGPU_CUDNN_CONV_FORWARD, NOGPU_CUDNN_CONV_BACKWARD_DATA,
				     NOGPU_CUDNN_CONV_BACKWARD_FILTER },
			 types[] = { FLOAT, HALF, BFLOAT };
	char op[9], type[6], layout[6], cores[9];
	long long v[9];
	struct measured m;
	bool last;

	MUST(sscanf(line,
		    "%8[^,],%5[^,],%5[^,],%8[^,],%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld", op,
		    type, layout, cores, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7],
		    &v[8]) == 13);
	last = one_of(layout, (const char *const[]){ "nchw", "nhwc", NULL });
	m.without_tensor_cores = one_of(cores, (const char *const[]){ "any", "without", NULL });
	m.conv = grouped_conv(
		kinds[one_of(op, (const char *const[]){ "forward", "data", "filter", NULL })],
		types[one_of(type, (const char *const[]){ "fp32", "fp16", "bf16", NULL })], last,
		v[0], v[1], v[2], v[3], v[4], v[5], v[6]);
	m.bytes = v[7];
	m.off_at_most = v[8];
	return m;
}

/* Lines of a file but its head. */
static size_t read_lines(const char *path, char (*lines)[120], size_t most)
{
	FILE *f = fopen(path, "r");
	size_t count = 0;

	MUST(f && fgets(lines[0], sizeof(*lines), f));
	while (count < most && fgets(lines[count], sizeof(*lines), f))
		count++;
	fclose(f);
	return count;
}

/* As this machine's cuDNN and what is known of a card say. */
static void plan(struct conv *v, struct nogpu_plans *plans)
{
	MUST(frag_nogpu_conv_planned(op_of(v), plans));
	if (!plans->known)
		_exit(OTHER_RELEASE);
}

static bool is_planned(struct measured *m)
{
	struct nogpu_plans plans;

	plan(&m->conv, &plans);
	return llabs(first_of(&plans, m->without_tensor_cores) - m->bytes) <= m->off_at_most;
}

/*
 * As an H200 with cuDNN 9.19 took them: copies alone, with the partial sums of a whole card, cuBLASLt's products of points,
 * single channels, counters of sums that are split, and transforms. Those in MISSED are expected to come out wrong.
 */
static void as_measured(void)
{
	static char lines[200][120], missed[200][120];
	size_t count = read_lines(MEASURED, lines, 200), expected = read_lines(MISSED, missed, 200);
	size_t found = 0, wrong = 0;

	plan_for(H200);
	for (size_t i = 0; i < count; i++) {
		struct measured m = measured_of(lines[i]);
		bool is_expected = false;

		for (size_t j = 0; j < expected; j++)
			is_expected |= !strcmp(lines[i], missed[j]);
		found += is_expected;
		if (is_planned(&m) != is_expected)
			continue;
		wrong++;
		fprintf(stderr, "%s: %s",
			is_expected ? "no miss any more, take it off " MISSED : "missed", lines[i]);
	}
	MUST(!wrong && found == expected && expected <= MISSED_MOST);
}

/* Patches of 8 by 8 points in single precision: all that cuDNN proposes first has tensor cores. */
static void of_the_second_list(void)
{
	struct conv v = conv(NOGPU_CUDNN_CONV_FORWARD, FLOAT, false, 6, 192, 192, 512, 8, 8);
	struct nogpu_plans plans;

	v.settings.conv_pads[0] = v.settings.conv_pads[1] = 0;
	v.y = tensor(FLOAT, false, 6, 512, 24);
	plan_for(H200);
	plan(&v, &plans);
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
	plan(&v, &plans);
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
		struct nogpu_plans plans;

		plan(&v, &plans);
		MUST(frag_nogpu_conv_largest(op_of(&v), &plain) == rows[i].bytes);
	}
}

TEST(a_script_is_asked)
{
	in_a_child(plans_of_a_known_release);
}

TEST(points_of_another_release_are_products)
{
	in_a_child(plans_of_another_release);
}

TEST(other_cards_points_are_products)
{
	in_a_child(points_of_other_cards);
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
