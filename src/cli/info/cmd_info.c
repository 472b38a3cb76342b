/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cufrag info: what is in a trace, from one pass over it with bounded memory. What it turned out
 * to be (settled) is found by replaying it, as every command does; all else is the file alone.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <frag/opt.h>
#include <frag/replay.h>
#include <frag/torch.h>
#include <frag/trace.h>

#include "answer/json.h"
#include "trace/log/log.h"
#include "trace/source.h"
#include "cli/common.h"
#include "cli/estimate.h"
#include "cli/recordings.h"
#include "info_json.h"
#include "info_ranks.h"
#include "info_scan.h"
#include "cli/list/list.h"
#include "recording/settled_shape.h"

#define MARKS_SHOWN 6
#define LABEL 14 /* width of the left column */

/* ---- text ---------------------------------------------------------------------- */

static void label(unsigned indent, const char *text)
{
	printf("%*s%-*s ", (int)indent, "", (int)(LABEL - indent), text);
}

static char *grouped(uint64_t n, char *buf)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n);
	char *to = buf;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return buf;
}

static char *duration(uint64_t us, char *buf, size_t cap)
{
	if (us < 1000)
		snprintf(buf, cap, "%" PRIu64 " us", us);
	else if (us < 1000000)
		snprintf(buf, cap, "%.1f ms", (double)us / 1e3);
	else
		snprintf(buf, cap, "%.2f s", (double)us / 1e6);
	return buf;
}

/* "2.13", "2.5 to 2.7": files tell some releases from others. */
static void print_release(const struct frag_trace_settings *s)
{
	char first[16], last[16];

	if (!s->torch_last)
		return;
	label(0, "recorded by");
	printf("PyTorch %s", frag_torch_format(s->torch_first, first, sizeof(first)));
	if (s->torch_first != s->torch_last)
		printf(" to %s", frag_torch_format(s->torch_last, last, sizeof(last)));
	putchar('\n');
}

static void print_settings(const struct frag_trace_settings *s)
{
	label(0, "settings");
	if (!s->present) {
		puts("not recorded");
	} else {
		printf("%s\n", s->conf && *s->conf ? s->conf : "default");
		label(0, "");
		printf("expandable segments %s, max split %s, gc threshold %g\n",
		       s->expandable ? "on" : "off",
		       s->max_split_bytes == UINT64_MAX ? "unlimited"
							: FRAG_BYTES(s->max_split_bytes),
		       s->gc_threshold);
	}
}

/* What the file says; else what was found by replaying it, which is said of each device below. */
static void print_limit(const struct frag_trace *t)
{
	char text[600];
	bool found = false;

	for (uint32_t d = 0; d < t->devs_count; d++)
		found |= t->devs[d].settled.identical &&
			 t->devs[d].settled.limit_source == FRAG_LIMIT_INFERRED;
	label(0, "limit");
	if (t->settings.limit_known)
		printf("%s\n", FRAG_BYTES(t->settings.limit_bytes));
	else
		puts(found ? "not in the file, but found" : "not recorded");
	for (uint32_t d = 0; d < t->devs_count; d++) {
		if (!t->devs[d].has_evidence)
			continue;
		label(0, d ? "" : "checked");
		if (t->devs_count > 1)
			printf("device %u: ", t->devs[d].ordinal);
		puts(t->devs[d].settled.checked
			     ? frag_settled_text(&t->devs[d].settled, text, sizeof(text))
			     : "not here; cufrag verify does");
	}
}

/* "kineto without streams, beginning": what the log does not say, at the end of its format. */
static const char *lacks_of(const struct frag_trace *t, int *format_len)
{
	const char *format = t->format ? t->format : "unknown";
	const char *lacks = strstr(format, FRAG_LOG_LACKS);

	*format_len = lacks ? (int)(lacks - format) : (int)strlen(format);
	return lacks ? lacks + strlen(FRAG_LOG_LACKS) : NULL;
}

static bool lacks(const struct frag_trace *t, const char *word)
{
	int len;
	const char *list = lacks_of(t, &len);

	return list && strstr(list, word);
}

static void print_format(const struct frag_trace *t)
{
	int len;
	const char *list = lacks_of(t, &len);

	label(0, "format");
	printf("%.*s\n", len, t->format ? t->format : "unknown");
	if (list) {
		label(0, "not in it");
		printf("%s\n", list);
	}
}

static void print_head(const struct frag_trace *t)
{
	time_t start = (time_t)(t->start_us / 1000000);
	struct tm tm;
	char buf[64];

	label(0, "trace");
	printf("%s\n", t->name ? t->name : "");
	print_format(t);
	if (t->start_us && gmtime_r(&start, &tm) && strftime(buf, sizeof(buf), "%F %T UTC", &tm)) {
		label(0, "recorded");
		printf("%s\n", buf);
	}
	print_release(&t->settings);
	print_settings(&t->settings);
	print_limit(t);
	frag_cli_print_estimate(t, LABEL);
	if (t->stacks.count > 1) {
		label(0, "stacks");
		printf("%zu of %zu frames\n", t->stacks.count - 1, t->stacks.frames_count);
	}
}

static void print_counts(const struct frag_info *info)
{
	static const struct {
		uint8_t kind;
		const char *one, *many;
	} words[] = {
		{ FRAG_EV_ALLOC, "alloc", "allocs" },
		{ FRAG_EV_FREE, "free", "frees" },
		{ FRAG_EV_FREE_REQUESTED, "free that waits for a stream",
		  "frees that wait for a stream" },
		{ FRAG_EV_TRIM, "empty_cache", "empty_caches" },
		{ FRAG_EV_REFUSED, "out of memory", "out of memory" },
		{ FRAG_EV_MARK, "mark", "marks" },
	};
	char buf[32];

	label(2, "events");
	printf("%s", grouped(info->events, buf));
	for (size_t i = 0; i < FRAG_ARRAY_LEN(words); i++) {
		uint64_t n = info->kinds[words[i].kind];

		if (n)
			printf("%s %s %s", i ? "," : ":", grouped(n, buf),
			       n == 1 ? words[i].one : words[i].many);
	}
	puts("");
	if (info->unsure_count) {
		label(2, "");
		printf("%" PRIu64 " of the empty_caches may have been the retry of a malloc\n",
		       info->unsure_count);
	}
}

static void print_marks(const struct frag_info *info, const struct frag_trace *t)
{
	uint32_t names[MARKS_SHOWN], counts[MARKS_SHOWN];
	size_t n = frag_info_marks(info, MARKS_SHOWN, names, counts);

	label(2, "steps");
	printf("%" PRIu64 "\n", info->steps_count);
	for (size_t i = 0; i < n; i++) {
		label(2, i ? "" : "marks");
		printf("%6u x %.100s\n", counts[i], frag_trace_string(t, names[i]));
	}
}

static void print_history(const struct frag_info *info, const struct frag_trace *t)
{
	const struct frag_trace_dev *dev = info->dev;
	bool late = lacks(t, "beginning");
	char a[32], b[32];

	label(2, "history");
	if (late && !info->initial_blocks_count && !dev->uncertain_blocks)
		printf("of what was live before the log, nothing is known");
	else if (late)
		printf("%s in %s blocks that the log frees were live before it, others are not "
		       "known",
		       FRAG_BYTES(info->initial_bytes), grouped(info->initial_blocks_count, b));
	else if (info->initial_blocks_count)
		printf("began late%s: %s in %s blocks were live before",
		       dev->truncated ? ", its oldest entries were lost" : "",
		       FRAG_BYTES(info->initial_bytes), grouped(info->initial_blocks_count, b));
	else
		printf("%s",
		       dev->truncated ? "its oldest entries were lost" : "from the beginning");
	if (lacks(t, "times"))
		puts("");
	else
		printf(", over %s\n", duration(info->duration_us, a, sizeof(a)));
	if (dev->uncertain_blocks) {
		label(2, "");
		printf(late ? "%s frees of blocks whose size the log never tells are left out\n"
			    : "the size of %s of these blocks is not determined by the file\n",
		       grouped(dev->uncertain_blocks, a));
	}
}

static void print_evidence(const struct frag_trace_dev *dev, const struct frag_source_counts *c)
{
	label(2, "evidence");
	if (dev->has_evidence)
		printf("addresses, %" PRIu64 " segment events and ooms, %" PRIu64
		       " final segments of %" PRIu64 " blocks\n",
		       c->seen, c->final_segments, c->final_blocks);
	else
		puts("none: verify has nothing to compare with");
}

static void print_peak(const struct frag_info *info, const struct frag_trace *t)
{
	const struct frag_info_peak *p = &info->peak;
	char a[32], b[32], c[32];

	label(2, "peak live");
	if (!p->blocks_count) {
		puts("nothing was ever allocated");
		return;
	}
	printf("%s in %s blocks, at event %" PRIu64 " (%s, %" PRIu64 " steps done)\n",
	       FRAG_BYTES(p->bytes), grouped(p->blocks_count, b), p->event,
	       lacks(t, "times") ? "time not recorded" : duration(p->time_us, c, sizeof(c)),
	       p->step);
	label(2, "never freed");
	printf("%s %s\n", grouped(info->kept_count, a),
	       info->kept_count == 1 ? "request" : "requests");
}

static void class_name(unsigned c, char *buf, size_t cap)
{
	if (c + 1 < FRAG_INFO_CLASSES) {
		frag_format_bytes(frag_info_class_bytes[c], buf, cap);
		return;
	}
	buf[0] = '>';
	frag_format_bytes(frag_info_class_bytes[c - 1], buf + 1, cap - 1);
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

static int print_sizes(const struct frag_info *info, struct frag_err *err)
{
	static const char *const heads[] = { "requests up to", "count", "%", "bytes", "%" };
	FRAG_AUTO(frag_table_release) struct frag_table t = { 0 };
	char a[40];

	frag_list_heads(&t, FRAG_ARRAY_LEN(heads), 0x1f, heads);
	for (unsigned c = 0; c < FRAG_INFO_CLASSES; c++) {
		if (!info->class_count[c])
			continue;
		class_name(c, a, sizeof(a));
		frag_table_cell(&t, "%s", a);
		frag_table_cell(&t, "%s", grouped(info->class_count[c], a));
		frag_table_cell(&t, "%.1f",
				percent(info->class_count[c], info->kinds[FRAG_EV_ALLOC]));
		frag_table_cell(&t, "%s", FRAG_BYTES(info->class_bytes[c]));
		frag_table_cell(&t, "%.1f", percent(info->class_bytes[c], info->requests_bytes));
	}
	return frag_list_print(&t, 2, err);
}

static int print_lifetimes(const struct frag_info *info, const struct frag_trace *t,
			   struct frag_err *err)
{
	static const char *const heads[] = { "lifetime", "p50", "p90", "p99", "max" };
	FRAG_AUTO(frag_table_release) struct frag_table table = { 0 };
	char a[40];

	frag_list_heads(&table, FRAG_ARRAY_LEN(heads), 0x1e, heads);
	frag_table_cell(&table, "in events");
	for (size_t i = 0; i < FRAG_INFO_QUANTILES; i++)
		frag_table_cell(
			&table, "%s",
			grouped(frag_hist_quantile(&info->life_events, frag_info_quantiles[i]), a));
	if (!lacks(t, "times"))
		frag_table_cell(&table, "in time");
	for (size_t i = 0; i < FRAG_INFO_QUANTILES && !lacks(t, "times"); i++)
		frag_table_cell(&table, "%s",
				duration(frag_hist_quantile(&info->life_us, frag_info_quantiles[i]),
					 a, sizeof(a)));
	return frag_list_print(&table, 2, err);
}

static void print_card(const struct frag_recorded_card *c)
{
	if (!c->total_bytes)
		return;
	label(2, "card");
	printf("%s, %s", *c->name ? c->name : "not named", FRAG_BYTES(c->total_bytes));
	if (c->limit_fraction < 1)
		printf(", of which the process might have %g", c->limit_fraction);
	if (c->beside_bytes)
		printf("; beside its allocator it held %s", FRAG_BYTES(c->beside_bytes));
	puts("");
}

static int print_device(const struct frag_info *info, const struct frag_trace *t,
			const struct frag_source_counts *counts, struct frag_err *err)
{
	const struct frag_trace_dev *dev = info->dev;

	printf("\ndevice %u\n", dev->ordinal);
	print_card(&dev->card);
	print_counts(info);
	label(2, "streams");
	if (lacks(t, "streams"))
		puts("not recorded");
	else
		printf("%u\n", dev->streams_count);
	if (dev->pools_count > 1) {
		label(2, "private pools");
		printf("%u\n", dev->pools_count - 1);
	}
	print_marks(info, t);
	print_history(info, t);
	print_evidence(dev, counts);
	print_peak(info, t);
	if (!info->kinds[FRAG_EV_ALLOC])
		return 0;
	puts("");
	FRAG_TRY(print_sizes(info, err));
	puts("");
	return print_lifetimes(info, t, err);
}

/* ---- JSON ---------------------------------------------------------------------- */

/* ["2.5", "2.7"]: first and last that it can be; null where none made the trace. */
static json_t *release_json(const struct frag_trace_settings *s)
{
	char first[16], last[16];

	if (!s->torch_last)
		return json_null();
	return json_pack("[s, s]", frag_torch_format(s->torch_first, first, sizeof(first)),
			 frag_torch_format(s->torch_last, last, sizeof(last)));
}

static json_t *trace_json(const struct frag_trace *t, const struct frag_info *infos,
			  const struct frag_source *src)
{
	json_t *o = json_object(), *devices = json_array();

	for (uint32_t d = 0; d < t->devs_count; d++) {
		struct frag_source_counts counts;

		frag_source_counts(src, d, &counts);
		json_array_append_new(devices, frag_info_json(&infos[d], &counts));
		json_object_set_new(json_array_get(devices, d), "recording",
				    frag_settled_json(&t->devs[d].settled));
	}
	json_object_set_new(o, "trace", json_string(t->name ? t->name : ""));
	int format_len;
	const char *list = lacks_of(t, &format_len);

	json_object_set_new(o, "format",
			    json_stringn(t->format ? t->format : "unknown", (size_t)format_len));
	json_object_set_new(o, "not_recorded", list ? json_string(list) : json_null());
	json_object_set_new(o, "start_us",
			    t->start_us ? frag_json_number(t->start_us) : json_null());
	json_object_set_new(o, "torch", release_json(&t->settings));
	json_object_set_new(o, "estimate", frag_cli_json_estimate(t));
	json_object_set_new(o, "settings", frag_info_settings_json(&t->settings));
	json_object_set_new(o, "limit_bytes",
			    t->settings.limit_known ? frag_json_number(t->settings.limit_bytes)
						    : json_null());
	json_object_set_new(o, "stacks_count",
			    frag_json_number(t->stacks.count ? t->stacks.count - 1 : 0));
	json_object_set_new(o, "devices", devices);
	return o;
}

/* One trace: its members beside those of the head. Several: an array "traces". */
static int write_json(const struct frag_cli *cli, json_t *traces, struct frag_err *err)
{
	json_t *root = frag_cli_json_head(cli);

	FRAG_CHECK_ALLOC(root, "JSON document", err);
	if (json_array_size(traces) == 1)
		json_object_update(root, json_array_get(traces, 0));
	else
		json_object_set(root, "traces", traces);
	return frag_cli_json_write(cli, root, err);
}

/* ---- the pass --------------------------------------------------------------------- */

/* What the traces have in common while they are read one after the other. */
struct pass {
	const struct frag_cli *cli;
	bool text;
	json_t *traces;
	struct frag_info_ranks ranks; /* of several */
};

static int scan(struct frag_source *src, struct frag_info *infos, struct frag_err *err)
{
	FRAG_AUTO(frag_progress_end) struct frag_progress progress;
	struct frag_batch batch;
	int rc;

	frag_cli_show(&progress, "reading", frag_source_head(src)->name);
	while ((rc = frag_source_next(src, &batch, err)) == 1)
		FRAG_TRY(frag_info_add(&infos[batch.dev], batch.events, batch.count, err));
	return rc;
}

static int show(struct pass *p, const struct frag_source *src, const struct frag_info *infos,
		struct frag_err *err)
{
	const struct frag_trace *t = frag_source_head(src);
	bool several = p->cli->operands_count > 1;

	if (p->text && !several)
		print_head(t);
	for (uint32_t d = 0; p->text && d < t->devs_count; d++) {
		struct frag_source_counts counts;

		frag_source_counts(src, d, &counts);
		if (several)
			FRAG_TRY(frag_info_ranks_add(&p->ranks, t->name ? t->name : "",
						     t->devs_count, &infos[d], err));
		else
			FRAG_TRY(print_device(&infos[d], t, &counts, err));
	}
	if (p->cli->json)
		json_array_append_new(p->traces, trace_json(t, infos, src));
	return 0;
}

/* Nothing is shown before the last byte has been checked. */
static int info_of(struct pass *p, const char *path, struct frag_err *err)
{
	FRAG_AUTO(frag_recording_release) struct frag_recording r = { 0 };
	FRAG_AUTO_FREE struct frag_info *infos = NULL;
	struct frag_target quiet = p->cli->target;
	int rc;

	quiet.tell = NULL; /* that it is an estimate is among what is shown */
	FRAG_TRY(frag_recording_open(&r, path, &quiet, FRAG_OPEN_SOURCE, err));
	FRAG_TRY_CALLOC(infos, r.trace->devs_count, "statistics of the trace", err);
	for (uint32_t d = 0; d < r.trace->devs_count; d++)
		frag_info_init(&infos[d], &r.trace->devs[d]);
	rc = scan(r.source, infos, err) ?: frag_recording_settle(&r, &p->cli->target, 0, err);
	if (!rc)
		rc = show(p, r.source, infos, err);
	for (uint32_t d = 0; d < r.trace->devs_count; d++)
		frag_info_release(&infos[d]);
	return rc;
}

static int run(struct frag_cli *cli, void *options, struct frag_err *err)
{
	struct pass p = { .cli = cli,
			  .text = !cli->json || strcmp(cli->json, "-") != 0,
			  .traces = json_array() };
	int rc = 0;

	(void)options;
	for (size_t i = 0; !rc && i < cli->operands_count; i++)
		rc = info_of(&p, cli->operands[i], err);
	if (!rc && p.text && cli->operands_count > 1)
		rc = frag_info_ranks_print(&p.ranks, err);
	if (!rc && cli->json)
		rc = write_json(cli, p.traces, err);
	json_decref(p.traces);
	frag_info_ranks_release(&p.ranks);
	return rc;
}

const struct frag_cmd frag_cmd_info = {
	.name = "info",
	.summary = "what is in a trace: events, sizes, lifetimes, settings, limits",
	.group = FRAG_GROUP_UNDERSTAND,
	.rank = 3,
	.operands = "TRACE...",
	.operands_min = 1,
	.operands_max = 10000,
	.about = "Reads a trace once and says what it contains. Peak live is the largest sum of "
		 "live "
		 "requests, each rounded up to 512 B: no allocator can reserve less. Lifetimes end "
		 "where the program lets go; their percentiles are at most 3.2 % too high. Of "
		 "several "
		 "traces, as the ranks of a job write them, a line each, and how far they are "
		 "apart.",
	.examples = "  cufrag info traces/gnn.default.cft\n"
		    "  cufrag info rank*.pickle\n"
		    "  xz -dc snapshot.pickle.xz | cufrag info - --json -\n",
	.shared = FRAG_CLI_JSON,
	.run = run,
};
