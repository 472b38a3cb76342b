/* SPDX-License-Identifier: Apache-2.0 */
/* The list of the ways to record, from the files way_*.c. */
#include "way.h"

#define FRAG_ENTRY(name) extern const struct frag_record_way frag_record_way_##name;
#include "way_list.inc"
#undef FRAG_ENTRY

static const struct frag_record_way *const ways[] = {
#define FRAG_ENTRY(name) &frag_record_way_##name,
#include "way_list.inc"
#undef FRAG_ENTRY
	NULL
};

const struct frag_record_way *const *frag_record_ways(void)
{
	return ways;
}
