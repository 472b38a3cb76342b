/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and addresses in rules. */
#include "rules_internal.h"

#include <stdio.h>
#include <string.h>

#include "cases.h"

/* A block's name, S0 or next. */
static bool place_of(struct rules *r, const char *word, uint64_t *out)
{
	const struct rules_name *name = rules_find_name(r, word);
	unsigned number;
	char rest;

	if (name)
		*out = name->addr;
	else if (!strcmp(word, "next"))
		*out = r->next;
	else if (sscanf(word, "S%u%c", &number, &rest) == 1 && number < r->rig.taken_count)
		*out = r->rig.taken[number].addr;
	else
		return false;
	return true;
}

struct finding {
	struct rules *r;
	bool *placed;
};

static bool find(void *ctx, const char *word, size_t length, uint64_t *out)
{
	const struct finding *f = ctx;
	char name[32];

	snprintf(name, sizeof(name), "%.*s", (int)length, word);
	if (!strcmp(name, "max"))
		*out = UINT64_MAX;
	else if (f->placed && place_of(f->r, name, out))
		*f->placed = true;
	else
		return false;
	return true;
}

bool rules_number(struct rules *r, const char *text, uint64_t *out, bool *placed)
{
	return cases_sum(text, find, &(struct finding){ r, placed }, out) ||
	       rules_wrong(r, placed ? "'%s' is no number, block or segment" : "'%s' is no number",
			   text);
}

bool rules_address(struct rules *r, const char *text, frag_addr_t *out)
{
	bool placed = false;

	if (!rules_number(r, text, out, &placed))
		return false;
	if (!placed && !r->rig.taken_count)
		return rules_wrong(r, "'%s': there is no segment yet", text);
	*out += placed ? 0 : r->rig.taken[0].addr;
	return true;
}

char *rules_bytes_text(uint64_t bytes, char *buf)
{
	static const char units[] = "TGMK";
	int i = 0;

	while (i < 4 && (!bytes || bytes % (1ull << (40 - 10 * i))))
		i++;
	sprintf(buf, "%llu%.1s", (unsigned long long)(i < 4 ? bytes >> (40 - 10 * i) : bytes),
		&units[i]);
	return buf;
}

char *rules_address_text(const struct rules *r, frag_addr_t addr, char *buf)
{
	char offset[32];
	size_t best = r->rig.taken_count;

	for (size_t i = 0; i < r->rig.taken_count; i++)
		if (r->rig.taken[i].addr <= addr &&
		    (best == r->rig.taken_count || r->rig.taken[i].addr >= r->rig.taken[best].addr))
			best = i;
	if (best == r->rig.taken_count)
		sprintf(buf, "%#llx", (unsigned long long)addr);
	else
		sprintf(buf, "S%zu+%s", best,
			rules_bytes_text(addr - r->rig.taken[best].addr, offset));
	return buf;
}
