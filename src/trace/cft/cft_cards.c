/* SPDX-License-Identifier: Apache-2.0 */
/* The cards of a recording in a .cft; see cft_cards.h. */
#include "cft_cards.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CARD_MAX (1ull << 48) /* bytes, as of the file beside a recording */

static bool is_known(const struct frag_recorded_card *c)
{
	return *c->name || c->total_bytes || c->context_bytes || c->beside_bytes;
}

bool frag_cft_has_cards(const struct frag_trace *t)
{
	for (uint32_t d = 0; d < t->devs_count; d++)
		if (is_known(&t->devs[d].card))
			return true;
	return false;
}

char *frag_cft_cards_text(const struct frag_trace *t)
{
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	for (uint32_t d = 0; to && d < t->devs_count; d++) {
		const struct frag_recorded_card *c = &t->devs[d].card;

		if (!is_known(c)) {
			fputs("-\n", to);
			continue;
		}
		fprintf(to, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %.17g ", c->total_bytes,
			c->context_bytes, c->beside_bytes, c->limit_fraction);
		for (const char *at = c->name; *at; at++)
			fputc(*at < ' ' || *at > '~' ? '?' : *at, to);
		fputc('\n', to);
	}
	if (!to || !fclose(to))
		return text;
	free(text);
	return NULL;
}

/* A number and the blank behind it. */
static bool take_bytes(const char **at, uint64_t *out)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	*out = strtoull(*at, &end, 10);
	*at = end + 1;
	return *end == ' ' && *out <= CARD_MAX;
}

static bool take_line(const char *at, const char *end, struct frag_recorded_card *c)
{
	char *behind;

	if (end == at + 1 && *at == '-')
		return true;
	if (!take_bytes(&at, &c->total_bytes) || !take_bytes(&at, &c->context_bytes) ||
	    !take_bytes(&at, &c->beside_bytes) || *at < '0' || *at > '9')
		return false;
	c->limit_fraction = strtod(at, &behind);
	if (behind >= end || *behind != ' ' ||
	    !(c->limit_fraction >= 0 && c->limit_fraction <= 1) ||
	    (size_t)(end - behind) > sizeof(c->name))
		return false;
	snprintf(c->name, sizeof(c->name), "%.*s", (int)(end - behind - 1), behind + 1);
	return true;
}

const char *frag_cft_cards_read(const char *text, struct frag_trace *t)
{
	for (uint32_t d = 0; d < t->devs_count; d++) {
		const char *end = text ? strchr(text, '\n') : NULL;

		if (!end)
			return "a device without its card";
		if (!take_line(text, end, &t->devs[d].card))
			return "an invalid card";
		text = end + 1;
	}
	return text && *text ? "more cards than devices" : NULL;
}
