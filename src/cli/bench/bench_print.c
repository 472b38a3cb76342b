/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of cufrag bench as a table and as CSV. */
#include "bench.h"

#include <stdio.h>
#include <string.h>

#include "base/term.h"
#include "answer/table.h"

#define LLU(x) ((unsigned long long)(x))

static uint64_t median(const struct frag_bench_row *r)
{
	return frag_bench_quantile(r, 0.5);
}

/* How far the middle 80 % of the samples spread, in parts of the median. */
static double noise(const struct frag_bench_row *r)
{
	uint64_t m = median(r);

	return m ? (double)(frag_bench_quantile(r, 0.9) - frag_bench_quantile(r, 0.1)) / (double)m
		 : 0;
}

static void cell_ns(struct frag_table *t, uint64_t ns)
{
	frag_table_cell(t, "%.2f", (double)ns / 1000);
}

void frag_bench_table(const struct frag_bench *b, struct frag_text *out)
{
	static const struct frag_table_column columns[] = {
		{ "call", "", true, NULL },	 { "size", "", false, NULL },
		{ "handles", "", false, NULL },	 { "samples", "", false, NULL },
		{ "min", "us", false, NULL },	 { "median", "us", false, NULL },
		{ "p90", "us", false, NULL },	 { "p99", "us", false, NULL },
		{ "max", "us", false, NULL },	 { "noise", "%", false, NULL },
		{ "rate", "GB/s", false, NULL },
	};
	static const char *const spare[] = { "noise", "rate", "samples", "handles",
					     "p90",   "max",  "min",	 NULL };
	struct frag_table t = { .room = frag_term_room(stdout), .spare = spare };

	frag_table_columns(&t, columns, FRAG_ARRAY_LEN(columns));
	for (size_t i = 0; i < b->rows_count; i++) {
		const struct frag_bench_row *r = &b->rows[i];

		frag_table_cell(&t, "%s", r->item);
		frag_table_cell(&t, "%s", r->bytes ? FRAG_BYTES(r->bytes) : "-");
		frag_table_cell(&t, "%u", r->handles);
		frag_table_cell(&t, "%zu", r->count);
		cell_ns(&t, r->ns[0]);
		cell_ns(&t, median(r));
		cell_ns(&t, frag_bench_quantile(r, 0.9));
		cell_ns(&t, frag_bench_quantile(r, 0.99));
		cell_ns(&t, r->ns[r->count - 1]);
		frag_table_cell(&t, "%.0f", 100 * noise(r));
		if (!strncmp(r->item, "kernel ", 7) && median(r))
			frag_table_cell(&t, "%.0f", (double)r->bytes / (double)median(r));
		else
			frag_table_cell(&t, "-");
	}
	frag_table_print(&t, out);
	frag_table_release(&t);
	if (b->mappings_count)
		frag_text_addf(out, "# mappings of one handle: %s %u\n",
			       b->mappings_refused ? "the driver refused more than"
						   : "none refused up to",
			       b->mappings_count);
}

void frag_bench_csv(const struct frag_bench *b, struct frag_text *out)
{
	frag_text_add(out, "call,bytes,handles,samples_count,min_ns,p10_ns,median_ns,p90_ns,p99_ns,"
			   "max_ns,noise_ratio\n");
	for (size_t i = 0; i < b->rows_count; i++) {
		const struct frag_bench_row *r = &b->rows[i];

		frag_text_add_csv(out, r->item);
		frag_text_addf(out, ",%llu,%u,%zu,%llu,%llu,%llu,%llu,%llu,%llu,%.3f\n",
			       LLU(r->bytes), r->handles, r->count, LLU(r->ns[0]),
			       LLU(frag_bench_quantile(r, 0.1)), LLU(median(r)),
			       LLU(frag_bench_quantile(r, 0.9)), LLU(frag_bench_quantile(r, 0.99)),
			       LLU(r->ns[r->count - 1]), noise(r));
	}
}
