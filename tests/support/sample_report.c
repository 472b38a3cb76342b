/* SPDX-License-Identifier: Apache-2.0 */
#include "sample_report.h"

#include "answer/page.h"
#include "metrics/series.h"
#include "report/charts/layout.h"

#include "test.h"

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

static void make_trace(struct sample *s, size_t events, bool times)
{
	struct frag_event *ev = frag_host_calloc(events, sizeof(*ev));
	uint64_t *live = frag_host_calloc(events, sizeof(*live)), seed = 11, now = 0;
	size_t count = 0;

	for (size_t i = 0; i < events; i++) {
		double wave = sin((double)i / (double)events * 60.0);
		bool grow = count == 0 || (double)(test_roll(&seed) % 1000) < 500 + 400 * wave;

		now += test_roll(&seed) % 400;
		ev[i].time_us = times ? now : 0;
		if (grow) {
			ev[i].kind = FRAG_EV_ALLOC;
			ev[i].bytes = 1ull << (9 + test_roll(&seed) % 17);
			ev[i].bytes += test_roll(&seed) % ev[i].bytes;
			ev[i].slot = (uint32_t)count;
			live[count++] = ev[i].bytes;
		} else {
			ev[i].kind = FRAG_EV_FREE;
			ev[i].slot = (uint32_t)--count;
			ev[i].bytes = live[count];
		}
	}
	frag_host_free(live);
	s->trace = (struct frag_trace){
		.name = frag_host_strdup("sample.default"),
		.format = frag_host_strdup("torch-snapshot"),
		.devs = frag_host_calloc(1, sizeof(*s->trace.devs)),
		.devs_count = 1,
		.settings = { .present = true, .conf = frag_host_strdup("") },
	};
	s->trace.devs[0].events = ev;
	s->trace.devs[0].events_count = events;
	s->trace.devs[0].slots_count = (uint32_t)events;
	s->trace.devs[0].streams_count = 1;
	s->trace.devs[0].pools_count = 1;
}

/* Reserved = what policy k needs for `active`; losses share the difference. */
static void loss_at(struct frag_loss *l, size_t k, uint64_t requested, uint64_t reserved)
{
	uint64_t left;

	l->requested_bytes = requested;
	l->rounding_bytes = requested / (k == 4 ? 3 : 50);
	l->reserved_bytes = reserved;
	left = reserved - FRAG_MIN(reserved, l->requested_bytes + l->rounding_bytes);
	if (l->requested_bytes + l->rounding_bytes > reserved)
		l->rounding_bytes = reserved - l->requested_bytes;
	l->waiting_bytes = left / 10;
	l->releasable_bytes = left * (k % 4) / 5;
	l->non_releasable_bytes = left - l->waiting_bytes - l->releasable_bytes;
	if (k == 3) {
		l->other_bytes = l->non_releasable_bytes;
		l->non_releasable_bytes = 0;
	}
	l->largest_free_bytes = (l->non_releasable_bytes + l->releasable_bytes) / 2;
}

static void fill_latency(struct frag_result *r, size_t k)
{
	static const uint64_t base[FRAG_CLASS_COUNT] = { 40, 70, 900, 1500, 300, 40000, 800 };
	uint64_t seed = k + 5;

	for (int c = 0; c < FRAG_CLASS_COUNT; c++) {
		if (c >= FRAG_CLASS_STITCH && (k + (size_t)c) % 3)
			continue;
		for (int i = 0; i < 3000 >> c; i++) {
			double f = 1.0 + (double)(test_roll(&seed) % 1000) / 300.0;

			if (test_roll(&seed) % 100 == 0)
				f *= 20;
			frag_hist_add(&r->alloc_host_ns[c],
				      (uint64_t)((double)base[c] * f * (1.0 + (double)k / 8)));
			frag_hist_add(&r->alloc_modelled_ns[c],
				      c < FRAG_CLASS_GROW ? 0 : (uint64_t)(f * 30000 * (double)c));
		}
	}
	for (int i = 0; i < 2000; i++)
		frag_hist_add(&r->free_host_ns, 30 + test_roll(&seed) % 60 + k);
}

static void fill_metrics(struct frag_result *r, size_t events, uint64_t bound)
{
	struct frag_metrics *m = &r->m;

	m->lower_bound_bytes = bound;
	m->peak_active_bytes = m->peak_allocated_bytes = m->peak_requested_bytes + FRAG_MIB;
	m->efficiency_ratio = (double)m->peak_active_bytes / (double)m->peak_reserved_bytes;
	m->frag_bytes = m->peak_reserved_bytes - m->peak_active_bytes;
	m->reserved_over_bound_ratio = (double)m->peak_reserved_bytes / (double)bound;
	m->mean_efficiency_ratio = 0.7;
	m->at_peak_requested_bytes = r->peak.requested_bytes;
	m->at_peak_rounding_bytes = r->peak.rounding_bytes;
	m->at_peak_waiting_bytes = r->peak.waiting_bytes;
	m->non_releasable_bytes = r->peak.non_releasable_bytes;
	m->releasable_bytes = r->peak.releasable_bytes;
	m->at_peak_other_bytes = r->peak.other_bytes;
	m->largest_free_bytes = r->peak.largest_free_bytes;
	m->free_frag_ratio = NAN; /* not available: must never be printed as a number */
	m->events_count = events;
	m->host_ns = 123456789;
	m->events_per_s = 1.5e7;
	m->host_ns_per_op = 55.5;
	for (int c = 0; c < FRAG_CALL_COUNT; c++) {
		m->driver_calls_count += r->calls[c].count + r->calls[c].failed;
		m->modelled_ns += r->calls[c].ns;
	}
}

void sample_rename(struct frag_result *r, const char *policy)
{
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL;

	if (frag_policy_spec_parse(policy, &spec, NULL) || frag_result_name(r, spec, NULL))
		FRAG_BUG("policy of a sample");
}

static void run_policy(struct sample *s, size_t k, struct frag_result *r)
{
	const struct frag_trace_dev *d = &s->trace.devs[0];
	uint64_t requested = 0, reserved = 0, stop = k == 2 ? d->events_count * 2 / 3 : UINT64_MAX;
	struct frag_recorder rec;

	sample_rename(r, names[k]);
	r->trace = frag_host_strdup(s->trace.name);
	r->completed = true;
	frag_series_init(&rec, 256, NULL);
	for (size_t i = 0; i < d->events_count; i++) {
		const struct frag_event *e = &d->events[i];
		uint64_t need;
		struct frag_loss loss = { .event = i, .time_us = e->time_us };

		if (i == stop) {
			r->completed = false;
			r->oom = (struct frag_oom){ .happened = true,
						    .event = i,
						    .step = 3,
						    .time_us = e->time_us,
						    .bytes = e->bytes };
			loss_at(&r->oom.at, k, requested, reserved);
			break;
		}
		requested += e->kind == FRAG_EV_ALLOC ? e->bytes : -(uint64_t)e->bytes;
		need = frag_round_up(requested + requested * (1 + (k * 5) % 13) / 20, FRAG_PAGE);
		if (k == 3)
			reserved = need;
		reserved = FRAG_MAX(reserved, need);
		loss_at(&loss, k, requested, reserved);
		if (reserved > r->m.peak_reserved_bytes) {
			r->m.peak_reserved_bytes = reserved;
			r->m.peak_event = i;
			r->peak = loss;
		}
		r->m.peak_requested_bytes = FRAG_MAX(r->m.peak_requested_bytes, requested);
		frag_series_add(&rec, i, e->time_us, requested, requested + loss.rounding_bytes,
				requested + loss.rounding_bytes + loss.waiting_bytes, reserved);
		if (frag_series_want_loss(&rec))
			frag_series_add_loss(&rec, &loss);
	}
	frag_series_finish(&rec, &r->series);
	r->calls[FRAG_CALL_MALLOC] = (struct frag_call_stat){ .count = 10 + k * k * 40,
							      .bytes = reserved,
							      .ns = (10 + k * k * 40) * 45000ull };
	r->calls[FRAG_CALL_FREE] =
		(struct frag_call_stat){ .count = 4 + k, .ns = 120000 * (k + 1) };
	if (k % 3 == 1)
		r->calls[FRAG_CALL_MAP] = (struct frag_call_stat){ .count = 300, .ns = 300000 };
	fill_latency(r, k);
	r->counters = frag_host_calloc(3, sizeof(*r->counters));
	r->counters[0] = (struct frag_counter){ frag_host_strdup("num_alloc_retries"), 3 };
	r->counters[1] = (struct frag_counter){ frag_host_strdup("balance"), -7 };
}

/* A placement a little above the bound, and a map of a few boxes. */
static void fill_optimum(struct sample *s, uint64_t bound)
{
	const struct frag_trace_dev *d = &s->trace.devs[0];
	struct frag_layout *l = frag_host_calloc(1, sizeof(*l));
	uint64_t last = d->events_count - 1;

	s->section.optimum.placed = true;
	s->section.optimum.place_bytes = bound + bound / 8;
	s->section.optimum.rule = "by hand";
	l->policy = frag_host_strdup(names[0]);
	l->span_bytes = 8 * FRAG_MIB;
	l->cell_bytes = FRAG_MIB;
	l->samples = 2;
	l->count = FRAG_LAYOUT_USES - 1;
	l->boxes = frag_host_calloc(l->count, sizeof(*l->boxes));
	for (size_t i = 0; i < l->count; i++)
		l->boxes[i] = (struct frag_layout_box){ .from_event = i % 2 * (last / 2),
							.to_event = last,
							.to_us = d->events[last].time_us,
							.low = i * FRAG_MIB,
							.high = (i + 1) * FRAG_MIB,
							.use = FRAG_LAYOUT_LIVE + (unsigned)i };
	s->section.layouts = l;
	s->section.layouts_count = 1;
}

void sample_init(struct sample *s, size_t policies, size_t events, bool times)
{
	uint64_t bound = 0;

	FRAG_ASSERT(policies <= FRAG_ARRAY_LEN(names));
	memset(s, 0, sizeof(*s));
	make_trace(s, events, times);
	frag_section_init(&s->section, &s->trace, 0, NULL);
	s->section.results = frag_host_calloc(policies, sizeof(*s->section.results));
	s->section.count = policies;
	for (size_t k = 0; k < policies; k++) {
		run_policy(s, k, &s->section.results[k]);
		bound = FRAG_MAX(bound, s->section.results[k].m.peak_requested_bytes);
	}
	for (size_t k = 0; k < policies; k++)
		fill_metrics(&s->section.results[k], events, bound);
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
	frag_host_free(s->trace.name);
	frag_host_free(s->trace.format);
	frag_host_free(s->trace.settings.conf);
	frag_host_free(s->trace.devs[0].events);
	frag_host_free(s->trace.devs);
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
