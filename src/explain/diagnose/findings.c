/* SPDX-License-Identifier: Apache-2.0 */
/* The list of findings; see diagnose.h. */
#include "diagnose.h"

#include <string.h>

#include "lib/grow.h"

static const struct {
	const char *text, *word;
} kinds[] = {
#define FRAG_X_(name, text, word) { text, word },
	FRAG_FINDING_LIST(FRAG_X_)
#undef FRAG_X_
};

const char *frag_finding_text(enum frag_finding_kind kind)
{
	return kinds[kind].text;
}

struct frag_finding *frag_findings_add(struct frag_findings *f, enum frag_finding_kind kind,
				       const char *about, struct frag_err *err)
{
	struct frag_finding *one;

	if (FRAG_GROW(f->list, f->count, f->cap, "findings", err))
		return NULL;
	one = &f->list[f->count];
	*one = (struct frag_finding){ .kind = kind, .about = frag_host_strdup(about) };
	if (!one->about) {
		frag_fail_nomem(err, "findings");
		return NULL;
	}
	f->count++;
	return one;
}

struct frag_checked_device *frag_findings_add_device(struct frag_findings *f, const char *name,
						     struct frag_err *err)
{
	char *copy = frag_host_strdup(name);

	if (!copy || FRAG_GROW(f->devices, f->devices_count, f->devices_cap, "findings", NULL)) {
		frag_host_free(copy);
		frag_fail_nomem(err, "findings");
		return NULL;
	}
	f->devices[f->devices_count] = (struct frag_checked_device){ .name = copy };
	return &f->devices[f->devices_count++];
}

void frag_finding_number(struct frag_finding *f, const char *name, double value)
{
	FRAG_ASSERT(f->numbers_count < FRAG_FINDING_NUMBERS);
	f->numbers[f->numbers_count++] = (struct frag_number){ name, value };
}

void frag_finding_line(struct frag_finding *f, char *line)
{
	for (size_t i = 0; line && i < FRAG_FINDING_LINES; i++) {
		if (f->lines[i] && strcmp(f->lines[i], line) != 0)
			continue;
		if (!f->lines[i]) {
			f->lines[i] = line;
			return;
		}
		break;
	}
	frag_host_free(line);
}

static double number_of(const struct frag_finding *f, const char *name)
{
	for (size_t i = 0; i < f->numbers_count; i++)
		if (!strcmp(f->numbers[i].name, name))
			return f->numbers[i].value;
	return 0;
}

/* The same few blocks both accumulate and hold the segments: what they cost decides the word. */
static bool leak_is_cause(const struct frag_finding *leak, const struct frag_finding *frag)
{
	double lost = number_of(frag, "peak_reserved_bytes") - number_of(frag, "peak_active_bytes");

	return leak->kind == FRAG_FOUND_LEAK && frag->kind == FRAG_FOUND_FRAGMENTATION &&
	       leak->lines[0] && frag->lines[0] && !strcmp(leak->lines[0], frag->lines[0]) &&
	       !strcmp(leak->about, frag->about) && number_of(leak, "grown_bytes") < 0.25 * lost;
}

static bool comes_before(const struct frag_finding *a, const struct frag_finding *b)
{
	if (leak_is_cause(b, a))
		return true;
	return !leak_is_cause(a, b) && a->kind < b->kind;
}

/* Few of them: a stable sort by insertion. */
int frag_findings_finish(struct frag_findings *f, struct frag_err *err)
{
	FRAG_TRY(frag_find_imbalance(f->devices, f->devices_count, f, err));
	for (size_t i = 1; i < f->count; i++) {
		struct frag_finding one = f->list[i];
		size_t at = i;

		for (; at && comes_before(&one, &f->list[at - 1]); at--)
			f->list[at] = f->list[at - 1];
		f->list[at] = one;
	}
	for (size_t i = 0; i < f->count; i++)
		FRAG_TRY(frag_text_check(&f->list[i].text, err));
	return frag_text_check(&f->notes, err);
}

void frag_findings_release(struct frag_findings *f)
{
	for (size_t i = 0; i < f->count; i++) {
		frag_host_free(f->list[i].about);
		frag_text_release(&f->list[i].text);
		for (size_t k = 0; k < FRAG_FINDING_LINES; k++)
			frag_host_free(f->list[i].lines[k]);
	}
	for (size_t i = 0; i < f->devices_count; i++)
		FRAG_FREE(f->devices[i].name, f->devices[i].points);
	FRAG_FREE(f->list, f->devices);
	frag_text_release(&f->notes);
	*f = (struct frag_findings){ 0 };
}
