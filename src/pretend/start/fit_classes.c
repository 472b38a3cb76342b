/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program recorded for each class of cards; see pretend.h.
 *
 * The card of a class is its largest. If the program runs out of memory there, it is recorded with
 * enough, to see what it needs. Two recordings run at a time, if host memory allows; a program that
 * fails beside another run of it (a port, a file) is recorded again, alone.
 */
#include "child.h"
#include "start.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/interrupt.h"
#include "base/scratch.h"
#include "base/term.h"
#include "recording/estimate.h"

#define KINDS_MAX (FRAG_FIT_CLASSES - TRIES_MAX)
#define TRIES_MAX 4u	   /* cards that seem to be the one, and are recorded themselves */
#define LARGE (1ull << 40) /* more than any card has */

/* ---- recordings ------------------------------------------------------------------ */

/* The program on the card of recording i, silently. path[4096]: of the recording. */
static struct frag_program program_of(const struct frag_fit_classes *c, size_t i, char *path)
{
	struct frag_program p = c->program;

	snprintf(path, 4096, "%s/%zu.cft", c->folder, i);
	p.gpu = p.target.card.name = c->gpus[i]->name;
	p.note = NULL;
	p.target.tell = NULL;
	p.target.card.total_bytes = c->capacities[i];
	p.target.card.context_bytes = c->gpus[i]->context_bytes;
	return p;
}

static int record(const struct frag_fit_classes *c, size_t i, struct frag_err *err)
{
	FRAG_AUTO(frag_trace_destroy_at) struct frag_trace *trace = NULL;
	struct frag_pretend once = *c->program.pretend;
	char path[4096];
	struct frag_program p = program_of(c, i, path);
	int status;

	once.again = false;
	p.pretend = &once;
	FRAG_TRY(frag_program_record(&p, &trace, &status, err));
	return frag_launch_interrupted() ? FRAG_EINTR : frag_trace_write_cft(trace, path, err);
}

/* Records all from i on, each worker every `workers`th, in processes of their own; failures leave
 * no file. The program's output was shown before. */
static void record_from(const struct frag_fit_classes *c, size_t i, size_t workers)
{
	FRAG_AUTO(frag_progress_end) struct frag_progress progress = { 0 };
	struct frag_child list[2] = { { .log = "/dev/null" }, { .log = "/dev/null" } };
	struct frag_err err;
	int state;

	for (size_t w = 0; w < workers; w++) {
		if (frag_child_begin(&list[w], &err) || list[w].pid)
			continue;
		for (i += w; i < c->count && !frag_launch_interrupted(); i += workers)
			record(c, i, &err);
		frag_child_leave(0);
	}
	/* its thread starts after the forks */
	frag_progress_show(&progress, "recording for other cards");
	for (size_t w = 0; w < workers; w++)
		while (list[w].pid && !frag_child_ended(&list[w], &state)) {
			if (frag_interrupted())
				frag_child_end(&list[w]);
			usleep(20000);
		}
}

/* Opens recording i and searches it, unless the program failed for another reason than memory. */
static int judge(struct frag_fit_classes *c, size_t i, struct frag_err *err)
{
	struct frag_fit_cards *f = &c->list[i];
	char path[4096], *paths[] = { path };
	const struct frag_program p = program_of(c, i, path);

	frag_fit_cards_release(f);
	*f = (struct frag_fit_cards){ .target = c->first->target,
				      .headroom = c->headroom,
				      .catalog = c->first->catalog,
				      .borrows = true,
				      .failed = access(path, R_OK) != 0 };
	if (f->failed || frag_interrupted())
		return 0;
	FRAG_TRY(frag_recordings_open(&f->units, paths, 1, &p.target, 0, err));
	FRAG_TRY(frag_fit_cards_search(f, c->policies, c->threads, err));
	f->failed = !f->ended && !frag_estimate_to_end(f->units.list[0].trace);
	return 0;
}

/* Does host memory hold the program twice? As much as the first recording took. */
static bool fits_twice(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), kib = sysconf(_SC_PAGESIZE) / 1024;
	struct rusage used;

	return !getrusage(RUSAGE_CHILDREN, &used) && used.ru_maxrss < pages / 4 * kib;
}

/* Records and judges all from number i on. enlarge: with enough memory if it runs out. */
static int run(struct frag_fit_classes *c, size_t i, bool enlarge, struct frag_err *err)
{
	const size_t end = c->count;
	size_t workers = c->threads > 1 && fits_twice() ? 2 : 1;

	record_from(c, i, FRAG_MIN(workers, end - i));
	for (; i < end && !frag_interrupted(); i++) {
		FRAG_TRY(judge(c, i, err));
		if (!(c->list[i].failed && workers > 1) && !(c->list[i].ended && enlarge))
			continue;
		c->capacities[i] = c->list[i].ended ? LARGE : c->capacities[i];
		c->count = i + 1;
		record_from(c, i, 1);
		c->count = end;
		FRAG_TRY(judge(c, i, err));
	}
	return 0;
}

/* ---- which cards ----------------------------------------------------------------- */

static const struct frag_gpu_chip *chip_of(const struct frag_gpu *card)
{
	const struct frag_gpu *gpu = frag_gpu_find(card->name); /* may be from a user's list */

	return gpu ? frag_gpu_chip_find(gpu->name) : NULL;
}

/* The last recording for the kernels of a card; c->count = none. */
static size_t class_of(const struct frag_fit_classes *c, const struct frag_gpu *card)
{
	for (size_t i = c->count; i-- > 0;)
		if (frag_same_kernels(chip_of(c->gpus[i]), chip_of(card)))
			return i;
	return c->count;
}

static void put(struct frag_fit_classes *c, size_t i, const struct frag_gpu *card,
		uint64_t capacity)
{
	c->gpus[i] = frag_gpu_find(card->name);
	c->capacities[i] = capacity;
	c->count = FRAG_MAX(c->count, i + 1);
}

/* One recording per class, on its largest card, unless the first recording covers it. */
static void list_classes(struct frag_fit_classes *c)
{
	for (size_t g = 0; g < c->first->catalog.count; g++) {
		const struct frag_gpu *card = c->first->catalog.cards[g];
		size_t i = class_of(c, card);

		if (chip_of(card) && i < KINDS_MAX &&
		    (c->first->ended || frag_fit_basis(c->first, g) != FRAG_FIT_RECORDED) &&
		    (i == c->count || c->capacities[i] < card->total_bytes))
			put(c, i, card, card->total_bytes);
	}
}

static void set_judges(struct frag_fit_classes *c)
{
	for (size_t g = 0; g < c->first->catalog.count; g++) {
		size_t i = class_of(c, c->first->catalog.cards[g]);

		c->judges[g] = i < c->count && c->list[i].target ? &c->list[i] : c->first;
	}
}

/* The card to advise, until it has been recorded itself; *out: its judge, NULL = no card. */
static int confirm(struct frag_fit_classes *c, struct frag_fit_cards **out, struct frag_err *err)
{
	for (unsigned tries = 0; !frag_interrupted(); tries++) {
		size_t g = frag_fit_card(c->first, SIZE_MAX, false), i = 0;
		const struct frag_gpu *card = g == SIZE_MAX ? NULL : c->first->catalog.cards[g];

		*out = card ? (struct frag_fit_cards *)c->judges[g] : NULL;
		while (i < c->count && &c->list[i] != *out)
			i++;
		if (!card || !chip_of(card) || tries == TRIES_MAX ||
		    (chip_of(card) == (*out)->chip &&
		     card->total_bytes == (i < c->count ? c->capacities[i]
							: c->program.target.card.total_bytes)))
			return 0;
		put(c, c->count, card, card->total_bytes);
		FRAG_TRY(run(c, c->count - 1, false, err));
		if (c->list[c->count - 1].target)
			c->judges[g] = &c->list[c->count - 1];
	}
	return 0;
}

int frag_fit_classes_record(struct frag_fit_classes *c, struct frag_fit_cards **out,
			    struct frag_err *err)
{
	size_t same;
	int reason;

	*out = c->first;
	if (!(c->first->ended || frag_estimate_to_end(c->first->units.list[0].trace)) ||
	    frag_interrupted())
		return 0;
	reason = frag_scratch_folder(NULL, &c->folder);
	if (reason)
		return frag_fail(err, FRAG_EOUTPUT, "cannot create a temporary folder: %s",
				 strerror(reason));
	list_classes(c);
	same = class_of(c, frag_gpu_find(c->program.gpu ? c->program.gpu : "h200"));
	FRAG_TRY(run(c, 0, true, err));
	set_judges(c);
	c->first->judges = c->judges;
	FRAG_TRY(confirm(c, out, err));
	if (!*out)
		*out = same < c->count && c->list[same].target ? &c->list[same] : c->first;
	(*out)->judges = c->judges;
	(*out)->partial = frag_interrupted();
	return 0;
}

void frag_fit_classes_release(struct frag_fit_classes *c)
{
	for (size_t i = 0; i < c->count; i++)
		frag_fit_cards_release(&c->list[i]);
	frag_scratch_remove(c->folder);
}
