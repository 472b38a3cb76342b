/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small files that a user hands over: a list of cards, a cost profile, a log of memory in
 * use. Each is refused with a message, or its results are in range.
 */
#include <math.h>

#include <frag/device.h>

#include "explain/diagnose/diagnose.h"
#include "fuzz.h"

static void cards(const char *path)
{
	struct frag_err err = { 0 };
	struct frag_catalog c;

	if (frag_catalog_init(&c, path, "all", &err)) {
		must(err.msg[0] != '\0');
		return;
	}
	for (size_t i = 0; i < c.count; i++) {
		must(c.cards[i]->total_bytes > c.cards[i]->context_bytes);
		must(c.cards[i]->price_per_hour >= 0 && c.cards[i]->name[0]);
		must(!i || frag_gpu_room(c.cards[i - 1], NULL) <= frag_gpu_room(c.cards[i], NULL));
	}
	frag_catalog_release(&c);
}

static void cost(const char *path)
{
	struct frag_err err = { 0 };
	struct frag_cost *c = NULL;

	if (frag_cost_load(path, &c, &err))
		must(err.msg[0] && !c);
	frag_cost_destroy(c);
}

static void memlog(const char *path)
{
	struct frag_answer texts = { 0 };
	struct frag_findings found = { .texts = &texts };
	struct frag_memlog log;
	struct frag_err err = { 0 };

	if (frag_memlog_probe(path, &err) != 1)
		return;
	if (frag_memlog_read(path, &log, &err)) {
		must(err.code == FRAG_EINPUT && err.msg[0]);
		return;
	}
	for (size_t i = 0; i < log.count; i++) {
		const struct frag_memlog_series *s = &log.list[i];

		must(s->count <= FRAG_MEMLOG_SAMPLES && s->count <= s->seen);
		for (size_t k = 0; k < s->count; k++)
			must(isfinite(s->bytes[k]) && s->bytes[k] >= 0 && s->bytes[k] <= s->most);
	}
	must(!frag_diagnose_log(&log, &found, &err));
	frag_findings_release(&found);
	frag_answer_release(&texts);
	frag_memlog_release(&log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[32];
	int fd;

	if (size > LENGTH_MAX)
		return 0;
	fd = file_of(data, size, path);
	cards(path);
	cost(path);
	memlog(path);
	close(fd);
	return 0;
}
