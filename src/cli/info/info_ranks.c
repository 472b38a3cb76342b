/* SPDX-License-Identifier: Apache-2.0 */
/* `cufrag info` of several traces: one line a device, the largest and the spread. */
#include "info_ranks.h"
#include "lib/grow.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/list/list.h"

#define RIGHT 0xfe /* all columns but the first are numbers */

static int make_room(struct frag_info_ranks *r, struct frag_err *err)
{
	size_t cap = r->cap;

	FRAG_TRY(FRAG_GROW(r->peaks, r->count, cap, "table of traces", err));
	FRAG_TRY(FRAG_GROW(r->names, r->count, r->cap, "table of traces", err));
	return 0;
}

int frag_info_ranks_add(struct frag_info_ranks *r, const char *trace, uint32_t devs_count,
			const struct frag_info *info, struct frag_err *err)
{
	static const char *const heads[] = { "trace",	"events", "streams",  "steps",
					     "seconds", "blocks", "peak live" };
	char *name;

	FRAG_TRY(make_room(r, err));
	if (!r->count)
		frag_list_heads(&r->table, FRAG_ARRAY_LEN(heads), RIGHT, heads);
	name = r->names[r->count];
	if (devs_count > 1)
		snprintf(name, sizeof(*r->names), "%.120s, device %" PRIu32, trace,
			 info->dev->ordinal);
	else
		snprintf(name, sizeof(*r->names), "%.120s", trace);
	r->peaks[r->count++] = info->peak.bytes;
	frag_table_cell(&r->table, "%s", name);
	frag_table_cell(&r->table, "%" PRIu64, info->events);
	frag_table_cell(&r->table, "%" PRIu32, info->dev->streams_count);
	frag_table_cell(&r->table, "%" PRIu64, info->steps_count);
	frag_table_cell(&r->table, "%.2f", (double)info->duration_us / 1e6);
	frag_table_cell(&r->table, "%" PRIu64, info->peak.blocks_count);
	frag_table_cell(&r->table, "%s", FRAG_BYTES(info->peak.bytes));
	return 0;
}

int frag_info_ranks_print(const struct frag_info_ranks *r, struct frag_err *err)
{
	FRAG_AUTO_FREE uint64_t *sorted = NULL;
	char largest[40], median[40], least[40];
	size_t worst = 0;

	FRAG_TRY_CALLOC(sorted, r->count, "table of traces", err);
	for (size_t i = 0; i < r->count; i++) {
		sorted[i] = r->peaks[i];
		worst = r->peaks[i] > r->peaks[worst] ? i : worst;
	}
	qsort(sorted, r->count, sizeof(*sorted), frag_compare_u64);
	FRAG_TRY(frag_list_print(&r->table, 0, err));
	if (r->count > 1) {
		frag_format_bytes(sorted[r->count - 1], largest, sizeof(largest));
		frag_format_bytes(sorted[(r->count - 1) / 2], median, sizeof(median));
		frag_format_bytes(sorted[0], least, sizeof(least));
		printf("\npeak live: %s at most (%s), median %s, %s at least", largest,
		       r->names[worst], median, least);
		if (sorted[0])
			printf(", spread %.2f x", (double)sorted[r->count - 1] / (double)sorted[0]);
		puts("");
	}
	return 0;
}

void frag_info_ranks_release(struct frag_info_ranks *r)
{
	frag_table_release(&r->table);
	FRAG_FREE(r->peaks, r->names);
}
