/* SPDX-License-Identifier: Apache-2.0 */
/* What is advised: which result, in which words, and the line that sets it. */
#include "test.h"

#include "sample_report.h"

/* A sample of five policies with these peaks in GiB and driver times in ms. */
static void sample_of(struct sample *s, const uint64_t *gib, const uint64_t *ms)
{
	sample_init(s, 5, EVENTS, true);
	s->section.duration_us = 1000000;
	s->section.baseline_recorded = true;
	for (size_t k = 0; k < s->section.count; k++) {
		struct frag_result *r = &s->section.results[k];

		r->completed = true;
		r->m.peak_reserved_bytes = gib[k] * GIB;
		r->m.modelled_ns = ms[k] * 1000000;
	}
}

static void assert_answer(const struct frag_section *s, const char *part)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer texts = { 0 };
	const char *text = frag_section_answer(s, &texts);

	if (!strstr(text, part))
		fail_msg("'%s' is not in '%s'", part, text);
}

static void assert_export(const struct frag_section *s, const char *line)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer texts = { 0 };

	assert_string_equal(frag_section_export(s, &texts) ?: "", line);
}

/* Failed ones last; of equals the one that was asked for first. */
TEST(the_order)
{
	static const uint64_t gib[] = { 10, 8, 1, 13, 8 }, ms[] = { 9, 60, 9, 9, 60 };
	static const size_t wanted[] = { 1, 4, 0, 3, 2 };
	FRAG_AUTO(sample_release) struct sample s = { 0 };
	size_t order[5];

	sample_of(&s, gib, ms);
	s.section.results[2].completed = false;
	frag_section_order(&s.section, order);
	assert_memory_equal(order, wanted, sizeof(wanted));
	assert_int_equal(frag_section_best(&s.section), 1);
	for (size_t k = 0; k < 5; k++)
		s.section.results[k].completed = false;
	assert_int_equal(frag_section_best(&s.section), SIZE_MAX);
	assert_answer(&s.section, "no policy completes 'sample.default' here: every one of them "
				  "runs out of memory");
	assert_export(&s.section, "");
}

/* What spends a noticeable time in the driver comes second, with its price. */
TEST(cheap_ones_first)
{
	static const uint64_t gib[] = { 10, 8, 20, 13, 8 }, ms[] = { 9, 60, 9, 9, 60 };
	FRAG_AUTO(sample_release) struct sample s = { 0 };

	sample_of(&s, gib, ms);
	assert_answer(&s.section,
		      "of PyTorch's settings that spend less than 1 % of the recorded time in the "
		      "driver, 'pytorch' needs least: 10 GiB reserved at peak; these are the "
		      "recorded settings, and no other of these needs less; the smallest known "
		      "card with room for it is ");
	assert_answer(&s.section, ". 'pytorch:expandable_segments:True' would do with 8 GiB, but "
				  "spends 60.0 ms in the driver, 6.0 % of the recorded time");
	assert_export(&s.section, "unset PYTORCH_CUDA_ALLOC_CONF");
}

/* A setting is advised even where another allocator would need less; that one is named. */
TEST(settings_before_other_allocators)
{
	static const uint64_t gib[] = { 10, 8, 20, 13, 6 }, ms[] = { 1, 1, 1, 1, 1 };
	struct frag_advice a;
	FRAG_AUTO(sample_release) struct sample s = { 0 };

	sample_of(&s, gib, ms);
	frag_section_advice(&s.section, &a);
	assert_int_equal(a.pick, 1);
	assert_int_equal(a.least, 4);
	assert_string_equal(a.conf, "expandable_segments:True");
	assert_non_null(a.card);
	assert_int_equal(a.spare_bytes, a.card->total_bytes - a.card->context_bytes - 8 * GIB);
	assert_answer(&s.section, "2 GiB (20.0 %) less than the recorded 'pytorch' with 10 GiB");
	assert_int_equal(a.live, 4);
	assert_answer(&s.section, ". 'buddy' would do with 6 GiB, through cufrag run");
	/* one that a running program cannot have */
	s.section.results[4].policy_flags |= FRAG_POLICY_STACK;
	frag_section_advice(&s.section, &a);
	assert_int_equal(a.live, SIZE_MAX);
	assert_answer(&s.section, ". 'buddy' would do with 6 GiB, but is another allocator");
	assert_export(&s.section, "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
	/* what a shell would take apart is quoted */
	sample_rename(&s.section.results[1], "pytorch:roundup_power2_divisions:[256:1,>:8]");
	assert_export(&s.section, "export PYTORCH_CUDA_ALLOC_CONF='roundup_power2_divisions:"
				  "[256:1,>:8]'");
}

/* Where the trace is not PyTorch's, any policy may be the answer. */
TEST(any_policy_for_other_programs)
{
	static const uint64_t gib[] = { 10, 8, 20, 13, 6 }, ms[] = { 1, 1, 1, 1, 1 };
	FRAG_AUTO(sample_release) struct sample s = { 0 };

	sample_of(&s, gib, ms);
	frag_host_free(s.section.conf);
	s.section.conf = NULL;
	s.section.baseline_recorded = false;
	assert_answer(&s.section,
		      "'buddy' needs least: 6 GiB reserved at peak, 4 GiB (40.0 %) less "
		      "than 'pytorch' with 10 GiB");
	assert_export(&s.section, "");
}

/* A plan has seen the future: it is named, never advised, unless nothing else completes. */
TEST(a_plan_is_not_advised)
{
	static const uint64_t gib[] = { 10, 8, 20, 13, 6 }, ms[] = { 1, 1, 1, 1, 1 };
	FRAG_AUTO(frag_answer_release) struct frag_answer texts = { 0 };
	struct frag_advice a;
	FRAG_AUTO(sample_release) struct sample s = { 0 };

	sample_of(&s, gib, ms);
	sample_rename(&s.section.results[4], "planned");
	assert_answer(&s.section, ". 'planned' would do with 6 GiB, but has seen the first steps "
				  "in advance");
	assert_null(frag_section_planned(&s.section, &texts));
	s.section.results[4].plan = frag_host_strdup("first 3 of 6 steps");
	assert_string_equal(frag_section_planned(&s.section, &texts),
			    "'planned' has a plan from the first 3 of 6 steps, which placed "
			    "0.0 % of all requests");
	for (size_t k = 0; k < 4; k++)
		s.section.results[k].completed = false;
	frag_section_advice(&s.section, &a);
	assert_int_equal(a.pick, 4);
}

/* Where what is cheap needs more than the recording took, that is said. */
TEST(worse_than_recorded)
{
	static const uint64_t gib[] = { 5, 8, 20, 13, 6 }, ms[] = { 50, 1, 1, 1, 1 };
	FRAG_AUTO(sample_release) struct sample s = { 0 };

	sample_of(&s, gib, ms);
	assert_answer(&s.section, "'pytorch:expandable_segments:True' needs least: 8 GiB reserved "
				  "at peak, 3 GiB (60.0 %) more than the recorded 'pytorch' with 5 "
				  "GiB");
}
