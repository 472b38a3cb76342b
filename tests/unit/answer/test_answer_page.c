/* SPDX-License-Identifier: Apache-2.0 */
/* An answer as a page: sentences begin with a capital, names are never changed. */
#include "test.h"

#include "answer/answer.h"
#include "answer/textbuf.h"

static bool has(const char *page, const char *text)
{
	return strstr(page, text) != NULL;
}

TEST(names_keep_their_case)
{
	FRAG_AUTO(frag_answer_release) struct frag_answer a = { .command = "advise" };
	const struct frag_answer_page page = { .command_line = "cufrag advise" };
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };
	const char *text;

	frag_answer_item(&a, "%s: %s in place of AdamW", "sgd", "torch.optim.SGD");
	frag_answer_item(&a, "%s: another allocator", "vmm");
	frag_answer_item(&a, "tried without effect: %s", "fused");
	frag_answer_item(&a, "left out: %s: no such module", "adam_8bit");
	frag_answer_say(&a, "%s reserved most", "train, run 3");
	frag_answer_say(&a, "%s", "a sentence that was put together");
	frag_answer_say(&a, "cufrag verify checks it");
	frag_answer_remark(&a, "max_split_size_mb is not set");
	frag_answer_remark(&a, "run.pickle holds one device");
	frag_answer_heading(&a, "%s", "pytorch has a name");
	frag_answer_conclude(&a, "%s with vmm is enough", "l4");
	assert_int_equal(frag_answer_page_text(&a, &page, &out, &test_err), 0);
	text = frag_text_str(&out);
	assert_true(has(text, "<li>sgd: torch.optim.SGD in"));
	assert_true(has(text, "<li>vmm: another"));
	assert_true(has(text, "<li>Tried without effect: fused"));
	assert_true(has(text, "<li>Left out: adam_8bit: no"));
	assert_true(has(text, ">train, run 3 reserved most."));
	assert_true(has(text, ">A sentence that"));
	assert_true(has(text, ">cufrag verify checks"));
	assert_true(has(text, ">max_split_size_mb is"));
	assert_true(has(text, ">run.pickle holds"));
	assert_true(has(text, "<h2>pytorch has"));
	assert_true(has(text, ">l4 with vmm"));
}
