/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of cufrag bench as a table, as CSV, and as a cost profile. */
#include "bench.h"

#include <string.h>

#include "report/text/table.h"

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
	struct frag_table t = { 0 };

	for (size_t i = 0; i < FRAG_ARRAY_LEN(columns); i++)
		frag_table_column(&t, &columns[i]);
	for (size_t i = 0; i < b->rows_count; i++) {
		const struct frag_bench_row *r = &b->rows[i];
		char size[32];

		frag_table_cell(&t, "%s", r->item);
		frag_table_cell(&t, "%s",
				r->bytes ? frag_format_bytes(r->bytes, size, sizeof(size)) : "-");
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

/* ---- profile ----------------------------------------------------------------------- */

static const struct frag_bench_row *find(const struct frag_bench *b, const char *item,
					 uint64_t bytes, uint32_t handles)
{
	for (size_t i = 0; i < b->rows_count; i++) {
		const struct frag_bench_row *r = &b->rows[i];

		if (r->bytes == bytes && r->handles == handles && !strcmp(r->item, item))
			return r;
	}
	return NULL;
}

/* What one median is above another; noise may turn them round. */
static uint64_t beyond(uint64_t a, uint64_t b)
{
	return a - FRAG_MIN(a, b);
}

/* Each handle after the first of a call: of the row with the most handles of a size. */
static void add_next(const struct frag_bench *b, const char *item, struct frag_text *out)
{
	for (size_t i = 0; i < b->rows_count; i++) {
		const struct frag_bench_row *r = &b->rows[i], *one;

		if (strcmp(r->item, item) != 0 || r->handles < 4 ||
		    (r->bytes == FRAG_PAGE && r->handles != 512))
			continue;
		one = find(b, item, r->bytes, 1);
		if (!one)
			continue;
		frag_text_addf(out, "%s.next,%llu,%llu\n", item, LLU(r->bytes),
			       LLU(beyond(median(r), median(one)) / (r->handles - 1)));
	}
}

/* The difference of two rows of the same size, as an item of its own. */
static void add_part(const struct frag_bench *b, const char *item, const char *whole,
		     const char *without, struct frag_text *out)
{
	for (size_t i = 0; i < b->rows_count; i++) {
		const struct frag_bench_row *r = &b->rows[i], *less;

		less = strcmp(r->item, whole) ? NULL : find(b, without, r->bytes, 1);
		if (less)
			frag_text_addf(out, "%s,%llu,%llu\n", item, LLU(r->bytes),
				       LLU(beyond(median(r), median(less))));
	}
}

/* What a first touch of so much takes beyond zeroing it; 0: not measured. */
static uint64_t faulted_ns(const struct frag_bench *b, uint64_t bytes)
{
	const struct frag_bench_row *touched = find(b, "managed first touch", bytes, 1);
	const struct frag_bench_row *zeroed = find(b, "managed first prefetch", bytes, 1);
	const struct frag_bench_row *call = find(b, "cudaMemPrefetchAsync", bytes, 1);

	if (!touched || !zeroed || !call)
		return 0;
	return beyond(median(touched), beyond(median(zeroed), median(call)));
}

/* What faults add for each block of 2 MiB, and once for a touch that faults. */
static void add_faults(const struct frag_bench *b, struct frag_text *out)
{
	const uint64_t blocks = 8;
	const struct frag_bench_row *launch = find(b, "managed.touch", 0, 1);
	uint64_t one = faulted_ns(b, FRAG_PAGE), all = faulted_ns(b, blocks * FRAG_PAGE);
	uint64_t block = beyond(all, one) / (blocks - 1), once;

	if (!launch || !one || !all)
		return;
	once = FRAG_MAX(beyond(one, block), median(launch));
	frag_text_addf(out, "managed.touch,65536,%llu\nmanaged.touch,131072,%llu\n", LLU(once),
		       LLU(once));
	frag_text_addf(out, "managed.fault,%llu,%llu\n", LLU(FRAG_PAGE), LLU(block));
}

void frag_bench_profile(const struct frag_bench *b, struct frag_text *out)
{
	struct frag_device_info info;

	frag_dev_info(b->dev, &info);
	frag_text_addf(out, "# %s; %s; medians of cufrag bench\ncall,bytes,ns\n", info.name,
		       *info.driver ? info.driver : "modelled");
	for (size_t i = 0; i < b->rows_count; i++) {
		const struct frag_bench_row *r = &b->rows[i];

		if (r->profile && !strcmp(r->item, "memory.clear"))
			frag_text_add(out, "memory.clear,0,0\n"); /* a rate: the line begins at 0 */
		if (r->profile && r->handles == 1)
			frag_text_addf(out, "%s,%llu,%llu\n", r->item, LLU(r->bytes),
				       LLU(median(r)));
	}
	add_next(b, "cuMemSetAccess", out);
	add_next(b, "cuMemUnmap", out);
	add_part(b, "managed.zero", "managed first prefetch", "cudaMemPrefetchAsync", out);
	add_faults(b, out);
}
