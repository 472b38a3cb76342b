/* SPDX-License-Identifier: Apache-2.0 */
/* One program, one number in it; see vary.h. */
#include "vary.h"

#include <inttypes.h>
#include <string.h>

const char *frag_vary_name(const char *text, char *name)
{
	const char *equals = strchr(text, '=');
	size_t len = equals ? (size_t)(equals - text) : 0;

	if (len < 3 || len >= FRAG_VARY_NAME || text[0] != '{' || equals[-1] != '}')
		return NULL;
	memcpy(name, text, len);
	name[len] = '\0';
	return equals + 1;
}

const char *frag_vary_card(const struct frag_cli *cli, char *buf, size_t cap)
{
	if (!cli->target.card.name)
		return "h200";
	if (strcmp(cli->target.card.name, "sim") != 0)
		return cli->target.card.name;
	snprintf(buf, cap, "a card of %s", FRAG_BYTES(cli->target.card.total_bytes));
	return buf;
}

/* `word` with the number for the name, in new memory. */
static char *substitute(const char *name, const char *word, uint64_t n)
{
	size_t name_len = strlen(name), room = strlen(word) + 1, len = 0;
	char number[24], *out;

	for (const char *p = word; (p = strstr(p, name)); p += name_len)
		room += sizeof(number);
	out = frag_host_alloc(room);
	if (!out)
		return NULL;
	snprintf(number, sizeof(number), "%" PRIu64, n);
	while (*word) {
		if (!strncmp(word, name, name_len)) {
			len += (size_t)sprintf(out + len, "%s", number);
			word += name_len;
		} else {
			out[len++] = *word++;
		}
	}
	out[len] = '\0';
	return out;
}

static uint64_t refusals(const struct frag_trace *trace)
{
	uint64_t count = 0;

	for (uint32_t d = 0; d < trace->devs_count; d++) {
		const struct frag_trace_dev *dev = &trace->devs[d];

		for (size_t i = 0; i < dev->seen_count; i++)
			count += dev->seen[i].kind == FRAG_SEEN_OOM;
		for (size_t i = 0; i < dev->events_count; i++)
			count += dev->events[i].kind == FRAG_EV_REFUSED;
	}
	return count;
}

int frag_vary_record(const struct frag_cli *cli, const struct frag_record_options *o,
		     const char *name, uint64_t n, struct frag_trace **out, int *status,
		     uint64_t *refused, struct frag_err *err)
{
	size_t count = 0;
	FRAG_AUTO_FREE char **words = NULL;
	int rc = 0;

	*out = NULL;
	while (cli->program[count])
		count++;
	FRAG_TRY_CALLOC(words, count + 1, "program", err);
	for (size_t i = 0; !rc && i < count; i++) {
		words[i] = substitute(name, cli->program[i], n);
		if (!words[i])
			rc = frag_fail_nomem(err, "program");
	}
	if (!rc)
		rc = frag_nogpu_record(cli, o, words, true, out, status, err);
	if (rc == FRAG_EINPUT)
		frag_err_prefix(err, "with %s = %" PRIu64, name, n);
	if (!rc && frag_record_ended())
		rc = frag_fail(err, FRAG_EINTR, "interrupted with %s = %" PRIu64, name, n);
	if (!rc)
		rc = frag_record_name_after(*out, cli->program, err);
	if (!rc) {
		*refused = refusals(*out);
		if (*status && !*refused)
			rc = frag_fail(err, FRAG_EINPUT,
				       "with %s = %" PRIu64
				       " the program ended with status %d, not for want of memory",
				       name, n, *status);
	}
	if (rc) {
		frag_trace_destroy(*out);
		*out = NULL;
	}
	for (size_t i = 0; i < count; i++)
		frag_host_free(words[i]);
	return rc;
}
