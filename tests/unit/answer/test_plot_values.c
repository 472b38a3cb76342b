/* SPDX-License-Identifier: Apache-2.0 */
/* Figures for the scripts of charts. */
#include "test.h"

#include <math.h>

#include "answer/draw/plot_values.h"

static void has(const struct frag_text *out, const char *part)
{
	if (!strstr(frag_text_str(out), part))
		fail_msg("lacks '%s' in '%s'", part, frag_text_str(out));
}

TEST(values_that_are_not_known_are_zero)
{
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };
	const double values[] = { 1.5, NAN, (double)UINT64_MAX };

	frag_plot_array(&out, "A", values, 3);
	frag_plot_value(&out, "B", -2);
	assert_string_equal(frag_text_str(&out), "array A[3]; A[1] = 1.5; A[2] = 0; A[3] = 0; B = "
						 "-2; ");
}

/* The fourth curve is more than three times as high as the median of the peaks; the first ran out of memory. */
TEST(a_curve_far_above_the_others_leaves_the_sheet)
{
	static const struct frag_plot_curve curves[] = {
		{ 0, 4, 10.0 * MIB, 7, 10.0 * MIB, true },
		{ 5, 9, 12.0 * MIB, 9, 2.0 * MIB, false },
		{ 10, 14, 11.0 * MIB, 9, 3.0 * MIB, false },
		{ 15, 19, 90.0 * MIB, 9, 4.0 * MIB, false },
	};
	const struct frag_plot_lines lines = { 5.0 * MIB, NAN, 15.0 * MIB, 16.0 * MIB };
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 };

	frag_plot_curves(curves, 4, &lines, true, &out);
	has(&out, "FIRST[4] = 15; LAST[4] = 19;");
	has(&out, "BEYOND[3] = 0;");
	has(&out, "BEYOND[4] = 1;");
	has(&out, "SECONDS = 1; CLIPPED = 1; BASE = 1;");
	has(&out, "LAST_X = 9;");
	has(&out, "TOP = 12582912;");  /* 12 MiB */
	has(&out, "HIGH = 15728640;"); /* the limit, which is near; the card's is not */
	has(&out, "PLACE = 0;");
}

/* Of two curves none is far away, and an empty sheet has a height. */
TEST(two_curves_are_drawn_whole)
{
	static const struct frag_plot_curve curves[] = {
		{ 0, 1, 1.0 * MIB, 1, 1.0 * MIB, false }, { 2, 3, 50.0 * MIB, 1, 1.0 * MIB, false }
	};
	const struct frag_plot_lines none = { 0 };
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 }, empty = { 0 };

	frag_plot_curves(curves, 2, &none, false, &out);
	has(&out, "CLIPPED = 0; BASE = 0;");
	has(&out, "TOP = 52428800; HIGH = 52428800;");
	frag_plot_curves(curves, 0, &none, false, &empty);
	has(&empty, "TOP = 1048576;");
}
