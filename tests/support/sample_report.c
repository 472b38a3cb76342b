/* SPDX-License-Identifier: Apache-2.0 */
#include "sample_report.h"

#include "answer/answer.h"
#include "plan/probe.h"
#include "report/charts/layout.h"

#include "must.h"
#include "test.h"

#include <dirent.h>
#include <math.h>

static const char *const names[] = {
	"pytorch",
	"pytorch:expandable_segments:True",
	"pytorch:max_split_size_mb:128",
	"native",
	"buddy",
	"pytorch:garbage_collection_threshold:0.6",
	"pytorch:roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
	"bfc",
	"rmm-pool",
	"rmm-arena",
	"tlsf",
	"quickpool",
	"async",
	"gmlake",
	"limit:bytes=8GiB/pytorch",
	"cub",
};

/* The beginning of a bundled recording. */
static void make_trace(struct sample *s, size_t events, bool times)
{
	struct frag_trace *t = must_read_bundled("gnn.default");
	struct frag_trace_dev *d = &t->devs[0];

	frag_host_free(t->name);
	t->name = frag_host_strdup("sample.default");
	d->has_evidence = false;
	d->events_count = FRAG_MIN(events, d->events_count);
	for (size_t i = 0; i < d->events_count && !times; i++)
		d->events[i].time_us = 0;
	s->trace = t;
}

void sample_rename(struct frag_result *r, const char *policy)
{
	AUTO_SPEC spec = NULL;

	if (frag_policy_spec_parse(policy, &spec, NULL) || frag_result_name(r, spec, NULL))
		FRAG_BUG("policy of a sample");
}

/* A replay, with a counter below 0, and a metric and times that are not available. */
static void run_policy(struct sample *s, size_t k, uint64_t bound, struct frag_result *r)
{
	struct frag_run_options opt = default_run();
	size_t n = 0;

	opt.windows_max = 256;
	opt.losses = opt.latency = true;
	if (k == 2)
		opt.limit_bytes = frag_round_down(bound / 4 * 3, FRAG_PAGE);
	*r = must_replay(names[k], &s->trace->devs[0], NULL, &opt);
	FRAG_ASSERT(r->completed == (k != 2));
	sample_rename(r, names[k]);
	r->trace = frag_host_strdup(s->trace->name);
	r->m.lower_bound_bytes = bound;
	r->m.reserved_over_bound_ratio = (double)r->m.peak_reserved_bytes / (double)bound;
	r->m.free_frag_ratio = NAN; /* must never be printed as a number */
	frag_hist_clear(&r->free_modelled_ns);
	while (r->counters && r->counters[n].name)
		n++;
	r->counters = frag_host_realloc(r->counters, n + 2, sizeof(*r->counters));
	r->counters[n] = (struct frag_counter){ frag_host_strdup("balance"), -7 };
	r->counters[n + 1] = (struct frag_counter){ 0 };
}

/* A placement a little above the bound, and a map of a few boxes. */
static void fill_optimum(struct sample *s, uint64_t bound)
{
	const struct frag_trace_dev *d = &s->trace->devs[0];
	struct frag_layout *l = frag_host_calloc(1, sizeof(*l));
	uint64_t last = d->events_count - 1;

	s->section.optimum.placed = true;
	s->section.optimum.place_bytes = bound + bound / 8;
	s->section.optimum.rule = "by hand";
	l->policy = frag_host_strdup(names[0]);
	l->span_bytes = 8 * MIB;
	l->cell_bytes = MIB;
	l->samples = 2;
	l->count = FRAG_LAYOUT_USES - 1;
	l->boxes = frag_host_calloc(l->count, sizeof(*l->boxes));
	for (size_t i = 0; i < l->count; i++)
		l->boxes[i] = (struct frag_layout_box){ .from_event = i % 2 * (last / 2),
							.to_event = last,
							.to_us = d->events[last].time_us,
							.low = i * MIB,
							.high = (i + 1) * MIB,
							.use = FRAG_LAYOUT_LIVE + (unsigned)i };
	s->section.layouts = l;
	s->section.layouts_count = 1;
}

void sample_init(struct sample *s, size_t policies, size_t events, bool times)
{
	uint64_t bound;

	FRAG_ASSERT(policies <= FRAG_ARRAY_LEN(names));
	memset(s, 0, sizeof(*s));
	make_trace(s, events, times);
	frag_section_init(&s->section, s->trace, 0, NULL);
	s->section.results = frag_host_calloc(policies, sizeof(*s->section.results));
	s->section.count = policies;
	bound = frag_probe_peak_live(&s->trace->devs[0], 1);
	for (size_t k = 0; k < policies; k++)
		run_policy(s, k, bound, &s->section.results[k]);
	fill_optimum(s, bound);
	s->report = (struct frag_report){
		.sections = &s->section,
		.count = 1,
		.command = "compare",
		.command_line = "cufrag compare sample.pickle --policies 'pytorch;native'",
		.device = "sim",
		.card = { .name = "NVIDIA H200 141 GB",
			  .total_bytes = 150109880320ull,
			  .context_bytes = 552402944,
			  .granule_bytes = FRAG_PAGE,
			  .modelled = true },
		.limit_bytes = UINT64_MAX,
	};
}

void sample_release(struct sample *s)
{
	frag_section_release(&s->section);
	frag_trace_destroy(s->trace);
	memset(s, 0, sizeof(*s));
}

void sample_csv(const struct frag_report *r, struct frag_text *out)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };

	frag_report_compare(r, &a);
	frag_shape_csv(a.csv, a.csv_rows.rows, a.csv_rows.count, out);
	FRAG_ASSERT(!a.failed && !out->failed);
}

void sample_json(const struct frag_report *r, struct frag_text *out)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { .command = "compare" };
	json_t *root;
	char *text;

	frag_report_compare(r, &a);
	root = frag_answer_json(&a);
	text = root ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
	FRAG_ASSERT(text);
	frag_text_add(out, text);
	free(text); /* jansson's own malloc */
	json_decref(root);
}

void sample_text(const struct frag_report *r,
		 void (*make)(const struct frag_report *r, struct frag_answer *a),
		 struct frag_text *out)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };

	make(r, &a);
	if (frag_answer_text(&a, 0, out, NULL))
		FRAG_BUG("text of a sample");
}

int sample_try_text(const struct frag_report *r,
		    void (*make)(const struct frag_report *r, struct frag_answer *a),
		    unsigned columns)
{
	struct frag_text out = { 0 };
	struct frag_answer a = { 0 };
	int rc;

	make(r, &a);
	rc = frag_answer_text(&a, columns, &out, NULL);
	frag_text_release(&out);
	frag_answer_release(&a);
	return rc;
}

void sample_page(const struct frag_report *r, struct frag_text *out)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { 0 };

	frag_report_page(r, &a);
	FRAG_ASSERT(!a.failed);
	frag_page_render(&a, &(struct frag_answer_page){ .command_line = r->command_line }, NULL,
			 out);
}

size_t rig_count_files(const char *dir)
{
	DIR *d = opendir(dir);
	size_t n = 0;

	if (!d)
		return SIZE_MAX;
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}
