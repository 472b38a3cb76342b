/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of users and of other commands: refused with a message, or in range. */
#include <math.h>

#include <jansson.h>

#include <frag/device.h>
#include <frag/policy.h>

#include "explain/diagnose/diagnose.h"
#include "explain/diff/diff.h"
#include "fleet/fleet.h"
#include "fleet/results.h"
#include "planned/plan_text.h"
#include "recording/estimate.h"
#include "fuzz.h"

/* ---- a list of cards, a cost profile, a log of memory in use -------------------------------- */

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
	int rc = frag_memlog_read(path, &log, &err);

	must(rc >= 0 || (err.code == FRAG_EINPUT && err.msg[0]));
	if (!rc)
		rc = frag_diagnose_timeline(path, &found, &err);
	must(rc >= 0 || (err.code == FRAG_EINPUT && err.msg[0]));
	for (size_t i = 0; rc == 1 && i < log.count; i++) {
		const struct frag_memlog_series *s = &log.list[i];

		must(s->count <= FRAG_MEMLOG_SAMPLES && s->count <= s->seen);
		for (size_t k = 0; k < s->count; k++) {
			double bytes = s->list[k].bytes;

			must(isfinite(bytes) && bytes >= 0 && bytes <= s->most);
		}
	}
	must(!log.count || !frag_diagnose_log(&log, &found, &err));
	frag_findings_release(&found);
	frag_answer_release(&texts);
	frag_memlog_release(&log);
}

void fuzz_tables(const uint8_t *data, size_t size)
{
	char path[32];
	int fd;

	fd = file_of(data, size, path);
	cards(path);
	cost(path);
	memlog(path);
	close(fd);
}

/* ---- results of a sweep ---------------------------------------------------------------------- */

/* SQLite wants a file with a name of its own. */
static void write_file(char *path, const uint8_t *data, size_t size)
{
	int fd = mkstemp(path);

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
}

static void load(const char *path)
{
	FRAG_AUTO(frag_fleet_release) struct frag_fleet f = { 0 };
	struct frag_err err = { 0 };

	must(!frag_catalog_init(&f.catalog, NULL, NULL, &err));
	if (frag_fleet_load(&f, path, &err))
		must(err.code == FRAG_EINPUT && err.msg[0]);
	else
		frag_fleet_advise(&f, NULL);
}

static void merge(const char *path)
{
	FRAG_AUTO(frag_store_close_at) struct frag_store *into = NULL;
	struct frag_err err = { 0 };
	char whole[] = "/dev/shm/fuzz-store.XXXXXX";

	write_file(whole, (const uint8_t *)"", 0);
	must(!frag_store_open(&into, whole, false, &err));
	if (frag_store_add(into, path, &err))
		must(err.code && err.msg[0]);
	unlink(whole);
}

void fuzz_store(const uint8_t *data, size_t size)
{
	char path[] = "/dev/shm/fuzz-store.XXXXXX";

	write_file(path, data, size);
	load(path);
	merge(path);
	unlink(path);
}

/* ---- policies and sizes: what parses reads back from its own echo as the same echo ---- */

static void parse(const char *text)
{
	FRAG_AUTO(frag_policy_spec_destroy_at) struct frag_policy_spec *spec = NULL, *again = NULL;
	struct frag_err err = { 0 };
	const char *echo;

	if (frag_policy_spec_parse(text, &spec, &err)) {
		must(err.code == FRAG_EUSAGE && err.msg[0]);
		return;
	}
	echo = frag_policy_spec_echo(spec);
	must(!frag_policy_spec_parse(echo, &again, NULL));
	must(!strcmp(frag_policy_spec_echo(again), echo));
}

static void parse_size(const char *text)
{
	char out[32];
	uint64_t n = 0, again;

	if (frag_parse_bytes(text, &n, NULL))
		return;
	frag_format_bytes(n, out, sizeof(out));
	must(!frag_parse_bytes(out, &again, NULL) || n >= 1023ull << 50);
}

void fuzz_spec(const uint8_t *data, size_t size)
{
	FRAG_AUTO_FREE char *text = text_of(data, size);

	parse_size(text);
	if (!strstr(text, ".so")) /* a file that was named by chance is no business of a parser */
		parse(text);
}

/* ---- a plan of steps, results that `diff` compares, the note of a recording without a GPU ---- */

static void plan(const uint8_t *data, size_t size)
{
	struct frag_err err = { 0 };
	struct plan p = { 0 };
	char path[32];
	int fd = file_of(data, size, path);

	if (plan_read(path, &p, &err)) {
		must(err.code == FRAG_EINPUT && err.msg[0]);
	} else {
		for (uint32_t i = 0; i < p.entries_count; i++)
			must(p.entries[i].bytes <= p.reserve_bytes &&
			     p.entries[i].offset <= p.reserve_bytes - p.entries[i].bytes);
		for (uint32_t i = 0; i < p.phases_count; i++)
			must(p.phases[i].first + (uint64_t)p.phases[i].count <= p.entries_count);
		plan_release(&p);
	}
	close(fd);
}

static void results(const char *text)
{
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	struct frag_side a = { 0 }, b = { 0 };
	struct frag_answer answer = { 0 };
	struct frag_err err = { 0 };

	if (!root)
		return;
	if (frag_side_of_json(root, "fuzz", &answer, &a, &err) ||
	    frag_side_of_json(root, "fuzz", &answer, &b, &err))
		must(err.msg[0] != '\0');
	else
		must(!frag_diff(&a, &b, 10, &answer, &err));
	frag_answer_release(&answer);
	json_decref(root);
}

static void note(char *text)
{
	struct frag_trace t = { .estimate = text, .name = text };
	FRAG_AUTO(frag_answer_release) struct frag_answer answer = { 0 };
	const struct frag_estimate *e = frag_estimate_read(&answer, &t);
	struct frag_sim_config card = { .total_bytes = 7, .context_bytes = 5 };

	/* a card that is possible, or none */
	must(frag_estimate_card(&t, &card) ? card.total_bytes > card.context_bytes
					   : card.total_bytes == 7 && card.context_bytes == 5);
	if (e) {
		frag_estimate_text(&answer, e);
		must(frag_estimate_again(&answer, e) && !answer.failed);
		must(frag_estimate_places(e, "computed") <= e->places.count);
	}
}

void fuzz_words(const uint8_t *data, size_t size)
{
	FRAG_AUTO_FREE char *text = text_of(data, size);

	plan(data, size);
	results(text);
	note(text);
}
