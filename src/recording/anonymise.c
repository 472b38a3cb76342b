/* SPDX-License-Identifier: Apache-2.0 */
/* See anonymise.h. */
#include "anonymise.h"

#include <stdio.h>
#include <string.h>

#include <frag/device.h>
#include <frag/torch.h>

#include "trace/log/log.h"
#include "trace/strings.h"

static const char *past(const char *text, const char *word)
{
	return strncmp(text, word, strlen(word)) != 0 ? text : text + strlen(word);
}

/* This name, and what its log does not say. */
static bool is_named(const char *format, const char *name)
{
	static const char *const lacks[] = { FRAG_LOG_LACKS, "streams, ", "times, ", "beginning",
					     ", end" };
	const char *rest = past(format, name);

	for (size_t i = 0; i < FRAG_ARRAY_LEN(lacks); i++)
		rest = past(rest, lacks[i]);
	return !*rest;
}

/* That of a reader, or one of ours. */
static bool is_format(const char *format)
{
	size_t count;
	const struct frag_reader_ops *const *readers = frag_reader_list(&count);

	for (size_t i = 0; i < count; i++)
		if (is_named(format, readers[i]->name))
			return true;
	return is_named(format, "driver calls") || is_named(format, "gen");
}

/* Keys and values of PyTorch's only: the parser knows all of them. */
static bool is_conf(const char *conf)
{
	struct frag_trace_settings ignored = { 0 };

	return !conf || !*conf || !frag_torch_settings(conf, 0, &ignored, NULL);
}

/* Every text that a file of this trace would hold. */
static int check(const struct frag_trace *t, struct frag_err *err)
{
	const char *left = *t->name			? t->name
			   : !is_format(t->format)	? t->format
			   : !is_conf(t->settings.conf) ? t->settings.conf
							: t->estimate;

	for (uint32_t i = 1; !left && i < frag_strings_count(t->strings); i++) {
		const char *text = frag_strings_get(t->strings, i);

		if (*text != 'f' || text[1 + strspn(text + 1, "0123456789")])
			left = text;
	}
	for (uint32_t d = 0; !left && d < t->devs_count; d++)
		if (*t->devs[d].card.name && !frag_gpu_find(t->devs[d].card.name))
			left = t->devs[d].card.name;
	if (left || t->stacks.count || t->stacks.frames_count || t->start_us)
		return frag_fail(err, FRAG_ECHECK, "something is left: '%.60s'",
				 left ? left : "a stack or the date");
	return 0;
}

/* A string for each name of a mark, in the order of the marks. */
static int rename_marks(struct frag_trace *t, struct frag_err *err)
{
	FRAG_AUTO(frag_strings_destroy_at) struct frag_strings *made = NULL;
	FRAG_AUTO_FREE uint32_t *now = NULL;

	FRAG_TRY(frag_strings_create(&made, err));
	FRAG_TRY_CALLOC(now, t->strings ? frag_strings_count(t->strings) : 1, "names", err);
	for (uint32_t d = 0; d < t->devs_count; d++) {
		for (size_t i = 0; i < t->devs[d].events_count; i++) {
			struct frag_event *e = &t->devs[d].events[i];
			char name[16];

			e->stack = FRAG_NO_STACK;
			if (e->kind != FRAG_EV_MARK || !e->slot)
				continue;
			snprintf(name, sizeof(name), "f%u", frag_strings_count(made));
			if (!now[e->slot])
				FRAG_TRY(frag_strings_intern(made, name, strlen(name),
							     &now[e->slot], err));
			e->slot = now[e->slot];
		}
	}
	frag_strings_destroy(t->strings);
	t->strings = FRAG_GIVE(made);
	return 0;
}

int frag_trace_anonymise(struct frag_trace *t, struct frag_err *err)
{
	if (t->estimate)
		return frag_fail(err, FRAG_EINPUT,
				 "'%.200s' is an estimate, recorded without a GPU; only recordings "
				 "of a card are made anonymous",
				 t->name);
	if (!is_conf(t->settings.conf))
		return frag_fail(err, FRAG_EINPUT,
				 "the settings hold a word that is none of PyTorch's; --conf "
				 "replaces them");
	FRAG_TRY(rename_marks(t, err));
	frag_stacks_release(&t->stacks);
	t->stacks = (struct frag_stacks){ 0 };
	t->start_us = 0;
	*t->name = '\0'; /* readers then take the file's */
	if (!is_format(t->format))
		snprintf(t->format, strlen(t->format) + 1, "csv");
	for (uint32_t d = 0; d < t->devs_count; d++) {
		struct frag_trace_dev *dev = &t->devs[d];

		for (uint32_t i = 0; i < dev->streams_count; i++)
			dev->streams[i] = i;
		if (!frag_gpu_find(dev->card.name))
			dev->card.name[0] = '\0';
	}
	return check(t, err);
}
