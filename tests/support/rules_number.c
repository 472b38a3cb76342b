/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and addresses in rules. */
#include "rules_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *text;
	uint64_t times;
} units[] = {
	{ "K", FRAG_KIB }, { "M", FRAG_MIB }, { "G", FRAG_GIB },   { "T", 1024 * FRAG_GIB },
	{ "us", 1000 },	   { "ms", 1000000 }, { "s", 1000000000 },
};

static bool is_part(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* "25M" and what follows it in *text */
static bool plain_number(const char **text, uint64_t *out)
{
	char *end;
	size_t n = 0;

	*out = strtoull(*text, &end, 10);
	while (is_part(end[n]))
		n++;
	*text = end + n;
	for (size_t i = 0; n && i < FRAG_ARRAY_LEN(units); i++) {
		if (strlen(units[i].text) != n || strncmp(end, units[i].text, n) != 0)
			continue;
		*out *= units[i].times;
		return true;
	}
	return !n;
}

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

static bool atom(struct rules *r, const char **text, uint64_t *out, bool *placed)
{
	char word[32] = "";
	size_t n = 0;

	if (isdigit((unsigned char)**text))
		return plain_number(text, out);
	while (is_part((*text)[n]) && n < sizeof(word) - 1)
		n++;
	memcpy(word, *text, n);
	*text += n;
	if (!strcmp(word, "max")) {
		*out = UINT64_MAX;
		return true;
	}
	if (!placed || !place_of(r, word, out))
		return false;
	*placed = true;
	return true;
}

static bool product(struct rules *r, const char **text, uint64_t *out, bool *placed)
{
	uint64_t factor;

	if (!atom(r, text, out, placed))
		return false;
	while (**text == '*') {
		++*text;
		if (!atom(r, text, &factor, placed))
			return false;
		*out *= factor;
	}
	return true;
}

bool rules_number(struct rules *r, const char *text, uint64_t *out, bool *placed)
{
	const char *at = text;
	uint64_t part;
	bool ok = product(r, &at, out, placed);

	while (ok && (*at == '+' || *at == '-')) {
		char sign = *at++;

		ok = product(r, &at, &part, placed);
		*out = sign == '+' ? *out + part : *out - part;
	}
	if (ok && !*at)
		return true;
	return rules_wrong(r, placed ? "'%s' is no number, block or segment" : "'%s' is no number",
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
	size_t i = 4;

	while (i-- && (!bytes || bytes % units[i].times))
		;
	if (i < 4)
		sprintf(buf, "%llu%s", (unsigned long long)(bytes / units[i].times), units[i].text);
	else
		sprintf(buf, "%llu", (unsigned long long)bytes);
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
