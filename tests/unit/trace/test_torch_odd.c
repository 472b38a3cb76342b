/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots that are odd, but sound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "trace/torch/torch_parts.h"
#include "snapshot_bytes.h"

/* Entries whose items come one by one, in any order, with unknown keys of any kind. */
static void test_entries_in_pieces(void **state)
{
	struct pickle_bytes b = { .dialect = PICKLE_PYTHON };
	struct frag_trace *t;

	(void)state;
	sb_top(&b);
	sb_no_segments(&b);
	sb_open_traces(&b);
	/* the action last: the dict is not known as an entry until it is listed */
	pb_op(&b, '}');
	pb_remember(&b);
	pb_text_int(&b, "size", 512);
	pb_op(&b, 's');
	pb_text_int(&b, "addr", S0);
	pb_op(&b, 's');
	pb_text_text(&b, "action", "alloc");
	pb_op(&b, 's');
	/* the action first: a record that is filled later */
	pb_op(&b, '}');
	pb_remember(&b);
	pb_text_text(&b, "action", "alloc");
	pb_op(&b, 's');
	pb_op(&b, '(');
	pb_text(&b, "extra");
	pb_dict(&b);
	pb_text(&b, "deep");
	pb_list(&b);
	pb_op(&b, 'N');
	pb_close_list(&b);
	pb_close_dict(&b);
	pb_text_int(&b, "addr", S1);
	pb_text_int(&b, "size", 7);
	pb_close_dict(&b);
	sb_close_traces(&b);
	sb_finish(&b);
	t = sb_read_good(&b);
	assert_int_equal(t->devs[0].events_count, 2);
	assert_int_equal(t->devs[0].events[0].bytes, 512);
	assert_true(t->devs[0].addrs[0] == S0);
	assert_int_equal(t->devs[0].events[1].bytes, 7);
	assert_true(t->devs[0].addrs[1] == S1);
	frag_trace_destroy(t);
	pb_release(&b);
}

/* A dict somewhere else that happens to have the key "action" is nobody's entry. */
static void test_foreign_actions(void **state)
{
	struct pickle_bytes b = { .dialect = PICKLE_PYTHON };
	struct frag_trace *t;

	(void)state;
	sb_top(&b);
	pb_text(&b, "notes");
	pb_dict(&b);
	pb_text_text(&b, "action", "alloc");
	pb_text_text(&b, "addr", "elsewhere");
	pb_close_dict(&b);
	pb_text(&b, "other");
	pb_dict(&b);
	pb_text_text(&b, "action", "free_requested");
	pb_text_int(&b, "addr", S0);
	pb_close_dict(&b);
	sb_no_segments(&b);
	sb_open_traces(&b);
	pb_entry(&b, "alloc", S0, 1, 0, T0);
	sb_close_traces(&b);
	sb_finish(&b);
	t = sb_read_good(&b);
	assert_int_equal(t->devs[0].events_count, 1);
	frag_trace_destroy(t);
	pb_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entries_in_pieces),
		cmocka_unit_test(test_foreign_actions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
