/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The greatest number with which a program completes on a card: bisection, each probe a
 * recording of the whole program on the pretended card, which refuses memory as the card
 * would. A probe completes if the program ends with status 0 and no request was refused, also
 * none that the program caught.
 *
 * It is taken for granted that what completes with a number completes with every smaller one.
 */
#include "fit_vary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <frag/opt.h>
#include <frag/replay.h>

#include "cli/launching.h"
#include "launch/vary.h"

struct vary {
	const struct frag_cli *cli;
	const struct frag_pretend *o;
	struct frag_launch launch;
	char name[FRAG_VARY_NAME];
	uint64_t first, last;
	json_t *probes;
};

static int parse(struct vary *v, const char *text, struct frag_err *err)
{
	const char *at = frag_vary_name(text, v->name);
	char *end = NULL;

	if (at) {
		v->first = strtoull(at, &end, 10);
		if (end != at && !strncmp(end, "..", 2)) {
			at = end + 2;
			v->last = strtoull(at, &end, 10);
			if (end != at && !*end && v->first <= v->last && v->last < UINT32_MAX)
				return 0;
		}
	}
	return frag_fail(err, FRAG_EUSAGE, "'%.60s' is no range; give one as {batch}=1..64", text);
}

static void tell(const struct vary *v, uint64_t n, bool fits, uint64_t peak_bytes, int status)
{
	json_t *one = json_object();

	json_object_set_new(one, "value", json_integer((json_int_t)n));
	json_object_set_new(one, "completes", json_boolean(fits));
	json_object_set_new(one, "peak_reserved_bytes", json_integer((json_int_t)peak_bytes));
	json_object_set_new(one, "exit_status", json_integer(status));
	json_array_append_new(v->probes, one);
	if (!v->cli->json || strcmp(v->cli->json, "-") != 0) {
		printf("%-10s %10" PRIu64 "  %-11s  peak reserved %s\n", v->name, n,
		       fits ? "completes" : "memory out", FRAG_BYTES(peak_bytes));
		fflush(stdout);
	}
}

static int probe(struct vary *v, uint64_t n, bool *fits, struct frag_err *err)
{
	uint64_t peak = 0, refused;
	struct frag_trace *trace = NULL;
	int status;

	FRAG_TRY(frag_vary_record(&v->launch, v->o, v->cli->program, v->name, n, &trace, &status,
				  &refused, err));
	*fits = !refused && !status;
	for (uint32_t d = 0; d < trace->devs_count; d++)
		peak = FRAG_MAX(peak, frag_recorded_peak(&trace->devs[d]));
	frag_trace_destroy(trace);
	tell(v, n, *fits, peak, status);
	return 0;
}

/* *best: 0 = none, if that is below the first. */
static int bisect(struct vary *v, uint64_t *best, bool *any, struct frag_err *err)
{
	uint64_t low = v->first, high = v->last; /* low completes, above high nothing does */

	FRAG_TRY(probe(v, low, any, err));
	if (!*any)
		return 0;
	while (low < high) {
		/* the end first: often all of the range fits */
		uint64_t mid =
			high == v->last && low == v->first ? high : low + (high - low + 1) / 2;
		bool fits;

		FRAG_TRY(probe(v, mid, &fits, err));
		if (fits)
			low = mid;
		else
			high = mid - 1;
	}
	*best = low;
	return 0;
}

int frag_fit_vary(const struct frag_cli *cli, const struct frag_pretend *o, const char *text,
		  struct frag_err *err)
{
	struct vary v = { .cli = cli, .o = o, .launch = frag_cli_launch(cli) };
	char buf[40];
	const char *card = frag_vary_card(&cli->target.card, buf, sizeof(buf));
	bool any = false, to_stdout = cli->json && !strcmp(cli->json, "-");
	uint64_t best = 0;
	json_t *root;
	int rc;

	FRAG_TRY(parse(&v, text, err));
	if (!cli->program || !o->no_gpu)
		return frag_fail(err, FRAG_EUSAGE,
				 "--vary records a program: give --no-gpu and -- PROGRAM");
	v.launch.stdout_to_stderr = true;
	v.probes = json_array();
	rc = bisect(&v, &best, &any, err);
	if (rc) {
		json_decref(v.probes);
		return rc;
	}
	if (!to_stdout && any)
		printf("answer: %s = %" PRIu64 " is the greatest of %" PRIu64 " to %" PRIu64
		       " with which it completes on %s (estimated)\n",
		       v.name, best, v.first, v.last, card);
	else if (!to_stdout)
		printf("answer: not even %s = %" PRIu64 " completes on %s (estimated)\n", v.name,
		       v.first, card);
	root = frag_cli_json_head(cli);
	json_object_set_new(root, "estimated", json_true());
	json_object_set_new(root, "name", json_string(v.name));
	json_object_set_new(root, "largest", any ? json_integer((json_int_t)best) : json_null());
	json_object_set_new(root, "probes", v.probes);
	if (cli->json)
		rc = frag_cli_json_write(cli, root, err);
	else
		json_decref(root);
	return rc ? rc : any ? FRAG_EXIT_DONE : FRAG_EXIT_CONDITION;
}
