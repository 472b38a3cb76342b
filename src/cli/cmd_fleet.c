/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag fleet: which cards, how many and with which settings, from the results of a sweep. */
#include <string.h>

#include "cli/common.h"
#include "fleet/fleet.h"

struct options {
	const char *share, *setting, *title, *author;
	uint64_t top;
};

#define AT(field) FRAG_ARG_AT(struct options, field)

static const struct frag_arg options[] = {
	{ FRAG_ARG_TEXT, "share", AT(share), .value = "GPU", .rare = true,
	  .help = "the card that ranks share; none = they share none (default: the cheapest for "
		  "all)" },
	{ FRAG_ARG_TEXT, "setting", AT(setting), .value = "POLICY",
	  .help = "the one policy of the sweep that jobs may move to (default: any)" },
	{ FRAG_ARG_UINT, "top", AT(top), .value = "N", .min = 1, .max = 1000000, .def = "20",
	  .help = "jobs to print" },
	{ FRAG_ARG_TEXT, "title", AT(title), .value = "TEXT", .rare = true, .help = "of the page" },
	{ FRAG_ARG_TEXT, "author", AT(author), .value = "TEXT", .rare = true,
	  .help = "of the page" },
	{ 0 },
};

static const struct frag_gpu *find_card(const struct frag_fleet *f, const char *name)
{
	for (size_t i = 0; i < f->catalog.count; i++)
		if (!strcmp(f->catalog.cards[i]->name, name))
			return f->catalog.cards[i];
	return NULL;
}

static int plan(struct frag_fleet *f, const struct options *o, struct frag_err *err)
{
	const struct frag_gpu *share = NULL;
	bool known = !o->setting;

	for (size_t i = 0; o->setting && i < f->policies_count; i++)
		known |= !strcmp(f->policies[i], o->setting);
	if (!known)
		return FRAG_USAGE(err, "policy '%.100s' is not in this sweep", o->setting);
	frag_fleet_advise(f, o->setting);
	if (o->share && strcmp(o->share, "none") != 0) {
		share = find_card(f, o->share);
		if (!share)
			return FRAG_USAGE(err, "'%.60s' is not among the cards", o->share);
	}
	return o->share && !share ? 0 : frag_fleet_share(f, share, err);
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	const struct options *o = values;
	FRAG_AUTO(frag_fleet_release) struct frag_fleet f = { .headroom = cli->headroom };
	FRAG_AUTO_FREE char *today = frag_cli_day(true);
	FRAG_AUTO(frag_answer_release)
	struct frag_answer a = { .title = o->title, .author = o->author };

	FRAG_TRY(frag_catalog_init(&f.catalog, cli->cards, cli->vendor, err));
	FRAG_TRY(frag_fleet_load(&f, cli->operands[0], err));
	FRAG_TRY(plan(&f, o, err));
	a.date = today;
	FRAG_TRY(frag_fleet_answer(&f, o->top, &a, err));
	FRAG_TRY(frag_cli_show_answer(cli, &a, err));
	return f.unreproduced || (!f.ended && frag_fleet_sum(&f, FRAG_FLEET_PLAN).jobs_without)
		       ? FRAG_EXIT_CONDITION
		       : FRAG_EXIT_DONE;
}

const struct frag_cmd frag_cmd_fleet = {
	.name = "fleet",
	.summary = "a capacity plan from the results of a sweep",
	.group = FRAG_GROUP_CHOOSE,
	.rank = 7,
	.operands = "RESULTS",
	.about = "Plans cards for all jobs of a sweep: which cards each job fits under each "
		 "setting, with headroom; which jobs move to a smaller card by a setting, and what "
		 "that saves; how many cards are enough where ranks share them, and the number "
		 "that no packing can beat; which jobs fit no card, and why. Paths that differ "
		 "only in the number behind 'rank' are one job. --cards names your own cards with "
		 "prices, MIG slices among them. Exits with 1 if a job fits no card or is left out "
		 "because its recorded settings do not reproduce it.",
	.examples =
		"  cufrag fleet results.sqlite --out plan\n"
		"  cufrag fleet results.sqlite --cards ours.csv --share a100-80 --csv jobs.csv\n",
	.shared = FRAG_CLI_CARDS | FRAG_CLI_PAGE,
	.answer = &frag_fleet_shape,
	FRAG_CMD_OPTIONS(struct options, options),
	.run = run,
};
