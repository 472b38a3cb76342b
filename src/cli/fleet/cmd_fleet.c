/* SPDX-License-Identifier: Apache-2.0 */
/* cufrag fleet: which cards, how many and with which settings, from the results of a sweep. */
#include "fleet.h"

#include <string.h>

struct options {
	const char *share, *setting, *title, *author, *date;
	uint64_t top;
};

#define AT(field) FRAG_ARG_AT(struct options, field)

static const struct frag_arg options[] = {
	{ FRAG_ARG_TEXT, "share", AT(share), .value = "GPU",
	  .help = "the card that ranks share; none = do not look (default: the cheapest for all)" },
	{ FRAG_ARG_TEXT, "setting", AT(setting), .value = "POLICY",
	  .help = "the one policy of the sweep that jobs may move to (default: any)" },
	{ FRAG_ARG_UINT, "top", AT(top), .value = "N", .min = 1, .max = 1000000, .def = "20",
	  .help = "jobs to print" },
	{ FRAG_ARG_TEXT, "title", AT(title), .value = "TEXT", .help = "of the page" },
	{ FRAG_ARG_TEXT, "author", AT(author), .value = "TEXT", .help = "of the page" },
	{ FRAG_ARG_TEXT, "date", AT(date), .value = "TEXT",
	  .help = "of the page (default: SOURCE_DATE_EPOCH, else today)" },
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
		return frag_fail(err, FRAG_EUSAGE, "'%.100s' is no policy of this sweep",
				 o->setting);
	frag_fleet_advise(f, o->setting);
	if (o->share && strcmp(o->share, "none") != 0) {
		share = find_card(f, o->share);
		if (!share)
			return frag_fail(err, FRAG_EUSAGE, "'%.60s' is not among the cards",
					 o->share);
	}
	return o->share && !share ? 0 : frag_fleet_share(f, share, err);
}

static int draw(struct frag_fleet *f, struct frag_err *err)
{
	FRAG_AUTO(frag_progress_end) struct frag_progress progress;

	frag_cli_show(&progress, "drawing", f->cli->out);
	return frag_fleet_page(f, f->cli->out, err);
}

static int show(struct frag_fleet *f, const struct options *o, struct frag_err *err)
{
	const struct frag_cli *cli = f->cli;

	if (cli->out)
		FRAG_TRY(draw(f, err));
	if (cli->csv)
		FRAG_TRY(frag_fleet_csv(f, cli->csv, err));
	if (cli->json)
		FRAG_TRY(frag_fleet_json(f, err));
	if ((!cli->csv || strcmp(cli->csv, "-") != 0) &&
	    (!cli->json || strcmp(cli->json, "-") != 0))
		FRAG_TRY(frag_fleet_print(f, o->top, err));
	return frag_fleet_sum(f, true).jobs_without ? FRAG_EXIT_CONDITION : FRAG_EXIT_DONE;
}

static int run(struct frag_cli *cli, void *values, struct frag_err *err)
{
	const struct options *o = values;
	struct frag_fleet f = { .cli = cli, .title = o->title, .author = o->author };
	FRAG_AUTO_FREE char *today = o->date ? NULL : frag_cli_day(true);
	int rc = frag_catalog_init(&f.catalog, cli->cards, cli->vendor, err);

	f.date = o->date ? o->date : today;
	if (rc)
		return rc;
	rc = frag_fleet_load(&f, cli->operands[0], err) ?: plan(&f, o, err) ?: show(&f, o, err);
	frag_fleet_release(&f);
	return rc;
}

const struct frag_cmd frag_cmd_fleet = {
	.name = "fleet",
	.summary = "a capacity plan from the results of a sweep",
	.group = FRAG_GROUP_CHOOSE,
	.rank = 7,
	.operands = "RESULTS",
	.operands_min = 1,
	.operands_max = 1,
	.about = "For every job of a sweep the cards it fits under each setting, with headroom; "
		 "which jobs "
		 "a setting moves to a smaller card and what that saves; how many cards would do "
		 "where "
		 "ranks share them, beside the number that no packing can beat; and the jobs that "
		 "no "
		 "card fits, and why. Paths that differ in the number behind 'rank' only are one "
		 "job. "
		 "--cards names your own cards with prices, MIG slices among them. Exit status 1 "
		 "if a "
		 "job fits no card.",
	.examples =
		"  cufrag fleet results.sqlite --out plan\n"
		"  cufrag fleet results.sqlite --cards ours.csv --share a100-80 --csv jobs.csv\n",
	.shared = FRAG_CLI_CARDS | FRAG_CLI_JSON | FRAG_CLI_CSV | FRAG_CLI_OUT | FRAG_CLI_THREADS,
	.options = FRAG_CMD_OPTIONS(options),
	.options_size = sizeof(struct options),
	.run = run,
};
