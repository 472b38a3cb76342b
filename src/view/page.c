/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A view as a section of a page: the data as text in base 64, which no browser runs, then style and
 * script. Names from recordings are in the data only, so none can be taken for HTML; the page may
 * run this script alone (its sum is in the page's policy), and may make no requests.
 */
#include "view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The script (script/), view.css, the script's SHA-256 in base 64, each ended by 0. */
extern const char frag_view_js[], frag_view_css[], frag_view_sum[];

static void add_base64(const uint8_t *bytes, size_t count, struct frag_text *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char four[4];

	for (size_t i = 0; i < count; i += 3) {
		unsigned left = (unsigned)FRAG_MIN(count - i, (size_t)3);
		uint32_t n = (uint32_t)bytes[i] << 16 |
			     (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
			     (left > 2 ? bytes[i + 2] : 0u);

		for (unsigned k = 0; k < 4; k++)
			four[k] = k > left ? '=' : digits[n >> (18 - 6 * k) & 63];
		frag_text_addn(out, four, 4);
	}
}

/* ---- what fits ---- */

struct piece {
	uint64_t peak;
	size_t lane, number;
};

FRAG_COMPARE(by_peak, struct piece, FRAG_ORDER(x->peak, y->peak), FRAG_ORDER(y->number, x->number))

/* Marks the tapes (not the states) of the lowest pieces as left out until the rest fits; that with
 * the peak of reserved memory is the last to go. */
static int leave_out(const struct frag_view *v, uint64_t max_bytes, bool *left_out,
		     struct frag_err *err)
{
	uint64_t bytes = (v->store.bytes + 2) / 3 * 4 + v->store.count * 80;
	FRAG_AUTO_FREE struct piece *list = NULL;
	size_t count = 0;

	for (size_t i = 0; i < v->lanes.count; i++)
		count += v->lane_list[i].pieces.count / 4;
	FRAG_TRY_CALLOC(list, count + 1, "page", err);
	count = 0;
	for (size_t i = 0; i < v->lanes.count; i++) {
		const struct frag_lane *lane = &v->lane_list[i];

		for (size_t k = 0; k < lane->pieces.count / 4; k++)
			list[count++] =
				(struct piece){ k == lane->peak_reserved_event / lane->piece_events
							? UINT64_MAX
							: lane->peaks[k],
						i, k };
	}
	qsort(list, count, sizeof(*list), by_peak);
	for (size_t i = 0; i < count && bytes > max_bytes; i++) {
		const uint64_t *blobs = v->lane_list[list[i].lane].pieces.rows;

		for (unsigned k = 1; k < 4; k += 2) {
			uint64_t blob = blobs[4 * list[i].number + k];

			if (!blob)
				continue;
			left_out[blob] = true;
			bytes -= FRAG_MIN(bytes, (v->store.blobs[blob].bytes + 2) / 3 * 4);
		}
	}
	return 0;
}

static int add_blobs(const struct frag_view *v, uint64_t max_bytes, struct frag_text *out,
		     struct frag_err *err)
{
	FRAG_AUTO_FREE bool *left_out = NULL;

	FRAG_TRY_CALLOC(left_out, v->store.count, "page", err);
	FRAG_TRY(leave_out(v, max_bytes, left_out, err));
	for (size_t i = 0; i < v->store.count; i++) {
		const struct frag_blob *b = &v->store.blobs[i];
		FRAG_AUTO_FREE uint8_t *bytes = NULL;

		if (left_out[i])
			continue;
		FRAG_TRY(frag_blob_store_read(&v->store, i, &bytes, err));
		frag_text_addf(out, "<script type=\"application/%s\" id=\"b%zu\">",
			       b->bytes < b->plain ? "zlib" : "octet-stream", i);
		add_base64(bytes, b->bytes, out);
		frag_text_add(out, "</script>\n");
	}
	return 0;
}

int frag_view_put(struct frag_view *v, uint64_t max_bytes, struct frag_answer *page,
		  struct frag_err *err)
{
	FRAG_AUTO(frag_text_release) struct frag_text out = { 0 }, policy = { 0 };
	json_auto_t *root = NULL;
	FRAG_AUTO_FREE char *text = NULL;
	uint64_t head;

	if (!v->store.count)
		return 0;
	v->lanes.rows = v->lane_list;
	v->files.rows = v->file_list;
	v->notes.rows = v->note_list;
	root = frag_shape_json(&frag_view_shape, v);
	text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	FRAG_CHECK_ALLOC(text, "page", err);
	FRAG_TRY(frag_blob_store_add(&v->store, text, strlen(text), &head, err));
	frag_text_add(&out, "<style>\n");
	frag_text_add(&out, frag_view_css);
	frag_text_addf(&out,
		       "</style>\n<section id=\"live\" class=\"live\" data-head=\"%" PRIu64 "\"%s "
		       "hidden></section>\n",
		       head, max_bytes ? "" : " data-served=\"1\"");
	if (max_bytes)
		FRAG_TRY(add_blobs(v, max_bytes, &out, err));
	frag_text_add(&out, "<script>");
	frag_text_add(&out, frag_view_js);
	frag_text_add(&out, "</script>\n");
	frag_text_addf(&policy,
		       "default-src 'none'; style-src 'unsafe-inline'; img-src data:; %sbase-uri "
		       "'none'; form-action 'none'; script-src 'sha256-%s'",
		       max_bytes ? "" : "connect-src 'self'; ", frag_view_sum);
	FRAG_TRY(frag_text_check(&out, err) ?: frag_text_check(&policy, err));
	page->live = frag_answer_take(page, &out);
	page->live_policy = frag_answer_take(page, &policy);
	return page->live && page->live_policy ? 0 : frag_fail_nomem(err, "page");
}
