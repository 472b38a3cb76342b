/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a report: complete or absent, all of them or none. */
#include "test.h"

#include "sample_report.h"

#include "base/outfile.h"
#include "answer/draw/plot.h"
#include "report/charts/chart.h"

#include <sys/stat.h>
#include <unistd.h>

/* ---- files ---- */

TEST(outfile_complete_or_absent)
{
	const char *folder = test_folder("out");
	FRAG_AUTO_FREE char *path = frag_path_join(folder, "a"),
			    *under = frag_path_join(folder, "a/b");
	struct frag_outfile out;
	char text[8] = "";
	FILE *f;

	assert_int_equal(frag_outfile_open(&out, path, &test_err), 0);
	fputs("half", out.to);
	assert_int_not_equal(access(path, F_OK), 0);
	frag_outfile_abort(&out);
	assert_int_equal(rig_count_files(folder), 0);
	assert_int_equal(frag_outfile_put(path, "whole", 5, &test_err), 0);
	assert_int_equal(frag_outfile_put(path, "newer", 5, &test_err), 0);
	assert_int_equal(rig_count_files(folder), 1);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fread(text, 1, 7, f), 5);
	fclose(f);
	assert_string_equal(text, "newer");
	/* the folder is a file */
	assert_int_equal(frag_outfile_put(under, "x", 1, &test_err), FRAG_EOUTPUT);
	assert_non_null(strstr(test_err.msg, under));
	assert_int_equal(frag_make_dirs(under, &test_err), FRAG_EOUTPUT);
	/* the target is a folder: rename fails, and nothing is left beside it */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(frag_make_dirs(under, &test_err), 0);
	assert_int_equal(frag_outfile_put(path, "x", 1, &test_err), FRAG_EOUTPUT);
	assert_int_equal(rig_count_files(folder), 1);
	/* a disk that is full */
	FAILS(FRAG_EOUTPUT, "/dev/full", frag_outfile_put("/dev/full", "x", 1, &test_err));
}

static bool have_gnuplot(void)
{
	return system("gnuplot --version >/dev/null 2>&1") == 0;
}

/* Texts go into the program of the PDF as literals, whatever they are. */
TEST(one_pdf_quotes)
{
	static const struct frag_plot plot = { .script = "peak",
					       .csv = "a'b.csv",
					       .title = "`touch x` \"$x\" @M \\",
					       .subtitle = "one\ntwo\t'",
					       .extra = "" };
	FRAG_AUTO(frag_text_release) struct frag_text t = { 0 };

	frag_one_pdf_script(&plot, 1, "/scripts", "out.pdf", &t);
	assert_non_null(strstr(frag_text_str(&t), "CSV = 'a''b.csv'\n"));
	assert_non_null(strstr(frag_text_str(&t), "TITLE = '`touch x` \"$x\" @M \\'\n"));
	assert_non_null(strstr(frag_text_str(&t), "SUBTITLE = 'one'.\"\\n\".'two '''\n"));
}

/* A hostile name runs nothing, and the file is made. */
TEST(one_pdf_of_hostile_names)
{
	FRAG_AUTO(sample_release) struct sample s = { 0 };
	const char *dir = test_folder("out"), *made = test_path("made");
	FRAG_AUTO_FREE char *pdf = frag_path_join(dir, "charts.pdf");
	char name[400], start[6] = "";
	FILE *f;

	if (!have_gnuplot())
		skip();
	sample_init(&s, 2, 200, true);
	frag_host_free(s.section.trace);
	snprintf(name, sizeof(name), "a'b`touch %s`\"; system('touch %s') #@x", made, made);
	s.section.trace = frag_host_strdup(name);
	assert_int_equal(frag_report_write(&s.report, dir, FRAG_FORMAT_ONE_PDF, 2, &test_err), 0);
	assert_int_not_equal(access(made, F_OK), 0);
	f = fopen(pdf, "rb");
	assert_non_null(f);
	assert_int_equal(fread(start, 1, 5, f), 5);
	fclose(f);
	assert_string_equal(start, "%PDF-");
}

/* gnuplot stops with an error: its words are in ours, and no folder stays. */
TEST(a_failed_picture_leaves_nothing)
{
	FRAG_AUTO(sample_release) struct sample s = { 0 };
	const char *share = test_folder("share");
	FRAG_AUTO_FREE char *dir = frag_path_join(share, "out"),
			    *plot = frag_path_join(share, "plot");
	const struct frag_chart_ops *ops;
	char *path;

	if (!have_gnuplot())
		skip();
	sample_init(&s, 2, 200, true);
	assert_int_equal(frag_make_dirs(plot, &test_err), 0);
	path = frag_path_join(plot, "style.gp");
	assert_int_equal(frag_outfile_put(path, "", 0, &test_err), 0);
	frag_host_free(path);
	for (ops = NULL; (ops = frag_chart_next(ops));) {
		char file[64];

		snprintf(file, sizeof(file), "%s.gp", ops->name);
		path = frag_path_join(plot, file);
		assert_int_equal(frag_outfile_put(path, "nonsense here\n", 14, &test_err), 0);
		frag_host_free(path);
	}
	setenv("FRAG_SHARE", share, 1);
	assert_int_equal(frag_report_write(&s.report, dir, 0, 2, &test_err), FRAG_EOUTPUT);
	unsetenv("FRAG_SHARE");
	assert_non_null(strstr(test_err.msg, "gnuplot failed to draw"));
	assert_non_null(strstr(test_err.msg, "line 1"));
	assert_int_not_equal(access(dir, F_OK), 0);
}

TEST(without_gnuplot_the_way_out_is_named)
{
	FRAG_AUTO(sample_release) struct sample s = { 0 };
	const char *nothing = test_folder("path"), *dir = test_path("refused");
	FRAG_AUTO(free_at) char *path = strdup(getenv("PATH"));

	sample_init(&s, 2, 200, true);
	setenv("PATH", nothing, 1);
	assert_int_equal(frag_report_write(&s.report, dir, 0, 2, &test_err), FRAG_EOUTPUT);
	setenv("PATH", path, 1);
	assert_non_null(strstr(test_err.msg, "cannot run gnuplot"));
	assert_non_null(strstr(test_err.msg, "gnuplot-nox"));
	assert_int_not_equal(access(dir, F_OK), 0);
}
