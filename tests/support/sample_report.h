/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The beginning of a trace and its replays by any number of policies, for tests of what shows results. Times
 * of the host are measured, all else is the same each time. And hostile text.
 */
#ifndef FRAG_TEST_SAMPLE_REPORT_H
#define FRAG_TEST_SAMPLE_REPORT_H

#include "report/report.h"

#define EVENTS 3000
#define NASTY "<script>alert(\"x\")</script>&'"

struct sample {
	struct frag_trace *trace;
	struct frag_section section;
	struct frag_report report;
};

/* policies: 1 to 16; the third one runs out of memory if there are three. times: false = all 0. */
void sample_init(struct sample *s, size_t policies, size_t events, bool times);
void sample_release(struct sample *s);
/* A result says that it is of another policy. */
void sample_rename(struct frag_result *r, const char *policy);

/* What a report prints: --csv, --json in one line, and the text of an answer. */
void sample_csv(const struct frag_report *r, struct frag_text *out);
void sample_json(const struct frag_report *r, struct frag_text *out);
void sample_text(const struct frag_report *r,
		 void (*make)(const struct frag_report *r, struct frag_answer *a),
		 struct frag_text *out);
/* The same, which may fail; a text of `columns`. */
int sample_try_text(const struct frag_report *r,
		    void (*make)(const struct frag_report *r, struct frag_answer *a),
		    unsigned columns);
/* The page without its pictures. */
void sample_page(const struct frag_report *r, struct frag_text *out);

/* Files in a folder, SIZE_MAX if there is no such folder. */
size_t rig_count_files(const char *dir);

#endif
