/* SPDX-License-Identifier: Apache-2.0 */
/* What bench measured, as an answer: driver calls by size. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include "answer/row.h"
#include "base/term.h"

#define LLU(x) ((unsigned long long)(x))

#define CALL_ROW(F, P, S) \
	F(S, TEXT, call, r->item, "call", "the driver's name, or a case of the call") \
	F(S, BYTES, bytes, r->bytes, NULL, "of one call; 0 = it has no size") \
	P(S, TEXT, size, r->bytes ? frag_answer_print(a, "%s", FRAG_BYTES(r->bytes)) : NULL, \
	  "size", "of one call", .right = true) \
	F(S, COUNT, handles, r->handles, "handles", "in one call", .spare = 4) \
	F(S, COUNT, samples_count, r->count, "samples", "calls that were timed", .spare = 3) \
	F(S, NS, min_ns, r->ns[0], "min", "the fastest", .unit = "us", .precision = 2, .spare = 7) \
	F(S, NS, p10_ns, p10, NULL, "10 % are faster") \
	F(S, NS, median_ns, median, "median", "half are faster", .unit = "us", .precision = 2) \
	F(S, NS, p90_ns, p90, "p90", "90 % are faster", .unit = "us", .precision = 2, .spare = 5) \
	F(S, NS, p99_ns, frag_bench_quantile(r, 0.99), "p99", "99 % are faster", .unit = "us", \
	  .precision = 2) \
	F(S, NS, max_ns, r->ns[r->count - 1], "max", "the slowest", .unit = "us", .precision = 2, \
	  .spare = 6) \
	F(S, RATIO, noise_ratio, median ? (double)(p90 - p10) / (double)median : 0, "noise", \
	  "from p10 to p90, over the median", .unit = "%", .spare = 1)
FRAG_VALUED_ROW(call_row, "bench_call", CALL_ROW, "one driver call at one size");

#define BENCH_ROW(F, P, S) \
	F(S, TEXT, device, NULL, "the card that was measured") \
	F(S, TEXT, driver, NULL, "driver and runtime") \
	F(S, LIST, calls, NULL, "by call and size", .of = &call_row_shape)
FRAG_ROW_STRUCT(bench_row, BENCH_ROW);
FRAG_ROW_SHAPE(, frag_bench_shape, bench_row, "bench", BENCH_ROW,
	       "what driver calls cost on a card");

/* ---- driver calls ---------------------------------------------------------------------- */

static struct call_row call_row(struct frag_answer *a, const struct frag_bench_row *r)
{
	uint64_t median = frag_bench_quantile(r, 0.5), p10 = frag_bench_quantile(r, 0.1),
		 p90 = frag_bench_quantile(r, 0.9);

	return FRAG_ROW_VALUES(call_row, CALL_ROW);
}

void frag_bench_calls_answer(const struct frag_bench *b, struct frag_answer *a)
{
	struct call_row *rows = frag_answer_new(a, b->rows_count, sizeof(*rows));
	struct bench_row *data = frag_answer_new(a, 1, sizeof(*data));
	struct frag_device_info info;

	if (!rows || !data)
		return;
	frag_dev_info(b->dev, &info);
	for (size_t i = 0; i < b->rows_count; i++)
		rows[i] = call_row(a, &b->rows[i]);
	*data = (struct bench_row){ .device = frag_answer_print(a, "%s", info.name),
				    .driver = *info.driver ? frag_answer_print(a, "%s", info.driver)
							   : NULL,
				    .calls = { rows, b->rows_count } };
	a->title = data->device;
	a->question = "What does each driver call cost on this card?";
	frag_answer_data(a, &frag_bench_shape, data);
	frag_answer_csv(a, &call_row_shape, rows, b->rows_count);
	frag_answer_remark(a, "cufrag %s bench: %s%s%s", FRAG_VERSION, info.name,
			   *info.driver ? ", " : "", info.driver);
	frag_answer_table(a, &call_row_shape, rows, b->rows_count);
}
