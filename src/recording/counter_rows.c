/* SPDX-License-Identifier: Apache-2.0 */
/* What a policy counted for itself; see counter_rows.h. */
#include "counter_rows.h"

#include "answer/row.h"

#define COUNTER(F, P, S) \
	F(S, TEXT, name, "counter of the policy", "its name") \
	F(S, INT, value, "value", "at the end")
FRAG_ROW_AS(, frag_counter_shape, counter_row, "counter", COUNTER,
	    "statistics of the policy's own, by name");

struct frag_rows frag_counter_rows(struct frag_answer *a, const struct frag_counter *counters)
{
	struct counter_row *rows;
	size_t count = 0;

	while (counters && counters[count].name)
		count++;
	rows = frag_answer_new(a, count, sizeof(*rows));
	for (size_t i = 0; rows && i < count; i++)
		rows[i] = (struct counter_row){ frag_answer_print(a, "%s", counters[i].name),
						counters[i].value };
	return (struct frag_rows){ rows, rows ? count : 0 };
}
