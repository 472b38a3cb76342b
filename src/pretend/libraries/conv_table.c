/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workspaces of convolutions as a card took them (src/pretend/libraries/conv_table.csv, made on H100s and H200s by
 * scripts/lab/conv_workspaces.py). Nearly each is a sum of three parts, which is what makes it
 * hold for other numbers of images and points:
 *
 *	some of the tensors x, w, y	copied into the layout that the engine wants, with channels
 *					as they are or in whole units of 16 bytes
 *	splits * w in 32 bits		partial results of a sum that was split over multiprocessors
 *	a rest				mostly below 1 KiB
 *
 * So a size that was measured is taken as it is; else the parts of the same convolution at the
 * nearest number of points (images * height * width) are added up anew.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <frag/base.h>

#include "cudnn.h"

struct row {
	uint8_t op, type, channels_last;
	uint8_t stride, pad, dilation;
	uint16_t r, s, c, k, groups;
	uint16_t n, h, w;
	uint64_t bytes;
};

enum { forward, data, filter };
enum { fp32, bf16, fp16 };
enum { nchw, nhwc };

/* Lines of one convolution stand together. */
static const struct row rows[] = {
#define FRAG_ROW(op, type, layout, c, k, r, s, stride, pad, dilation, groups, n, h, w, bytes) \
	{ op, type, layout, stride, pad, dilation, r, s, c, k, groups, n, h, w, bytes },
#include "conv_list.inc"
#undef FRAG_ROW
};

static bool same(const struct row *a, const struct row *b)
{
	return a->op == b->op && a->type == b->type && a->channels_last == b->channels_last &&
	       a->stride == b->stride && a->pad == b->pad && a->dilation == b->dilation &&
	       a->r == b->r && a->s == b->s && a->c == b->c && a->k == b->k &&
	       a->groups == b->groups;
}

static double points_of(const struct row *a)
{
	return (double)a->n * (double)a->h * (double)a->w;
}

/* ---- the parts of a size ----------------------------------------------------------------- */

#define COPIES 15u /* bits: x, w, y, channels in whole units; no tensor has no units */

static uint64_t units(uint64_t channels, uint64_t unit)
{
	return (channels + unit - 1) / unit * unit;
}

static uint64_t out_side(uint64_t side, uint64_t taps, const struct row *a, bool one_row)
{
	int64_t reach =
		(int64_t)side + (one_row ? 0 : 2 * a->pad) - a->dilation * ((int64_t)taps - 1);

	return reach < 1 ? 1 : (uint64_t)(reach - 1) / (one_row ? 1 : a->stride) + 1;
}

/* Bytes of the tensors in `copies`, for the sizes of a. */
static uint64_t copied_bytes(const struct row *a, unsigned copies)
{
	uint64_t element = a->type == fp32 ? 4 : 2, unit = copies & 8 ? 16 / element : 1;
	uint64_t c = units(a->c, unit), k = units(a->k, unit), bytes = 0;
	uint64_t y_points = out_side(a->h, a->r, a, a->h == 1) * out_side(a->w, a->s, a, false);

	if (copies & 1)
		bytes += (uint64_t)a->n * c * a->h * a->w;
	if (copies & 2)
		bytes += (uint64_t)a->k * (a->groups == 1 ? c : a->c / a->groups) * a->r * a->s;
	if (copies & 4)
		bytes += a->n * k * y_points;
	return bytes * element;
}

static uint64_t partial_bytes(const struct row *a)
{
	return (uint64_t)a->k * (a->c / a->groups) * a->r * a->s * 4;
}

struct parts {
	unsigned copies;
	uint64_t splits, rest;
};

/* The parts that leave the smallest rest; a split has to save more than it costs to believe in it. */
static struct parts take_apart(const struct row *a)
{
	struct parts best = { 0, 0, a->bytes };
	uint64_t best_cost = a->bytes ? a->bytes + 100 : 0, partial = partial_bytes(a);

	for (unsigned copies = 0; copies <= COPIES; copies++) {
		uint64_t copied = copied_bytes(a, copies), left = a->bytes - copied;

		if (copies == 8 || copied > a->bytes)
			continue;
		for (int split = 0; split < 2; split++) {
			uint64_t splits = split ? left / partial : 0;
			uint64_t rest = left - splits * partial;
			uint64_t cost =
				rest + (splits ? 300 + 1000 * splits : 0) + (copies ? 0 : 100);

			if (cost < best_cost) {
				best = (struct parts){ copies, splits, rest };
				best_cost = cost;
			}
		}
	}
	return best;
}

/* ---- sizes of other convolutions ----------------------------------------------------------- */

/* The first of the rows that are least far from the key; NULL: HUGE_VAL is said of all. */
static const struct row *nearest(const struct row *key,
				 double (*far_from)(const struct row *a, const struct row *key))
{
	const struct row *near = NULL;
	double least = HUGE_VAL;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		double far = far_from(&rows[i], key);

		if (far < least) {
			near = &rows[i];
			least = far;
		}
	}
	return near;
}

static double apart(uint64_t a, uint64_t b)
{
	return fabs(log((double)a / (double)b));
}

/* How well a row of n items lies in words of 16 bytes. */
static int words_of(uint64_t n)
{
	return n % 8 == 0 ? 0 : n % 4 == 0 ? 1 : n % 2 == 0 ? 2 : 3;
}

static bool is_point(const struct row *a)
{
	return a->r == 1 && a->s == 1 && a->stride == 1 && a->groups == 1;
}

/* Do both choose among the same kernels? */
static bool alike(const struct row *a, const struct row *b)
{
	return a->op == b->op && (a->type == fp32) == (b->type == fp32) &&
	       a->channels_last == b->channels_last && is_point(a) && is_point(b);
}

/* With channels last, a point's convolution is one product: images and points are the same to it. */
static double unlike(const struct row *a, const struct row *b)
{
	uint64_t area = (uint64_t)a->h * a->w, other = (uint64_t)b->h * b->w;
	double channels;

	if (!alike(a, b))
		return HUGE_VAL;
	channels = apart(a->c, b->c) + apart(a->k, b->k) +
		   0.5 * (words_of(a->c) != words_of(b->c)) +
		   0.5 * (words_of(a->k) != words_of(b->k));
	if (is_point(a) && a->channels_last)
		return channels + fabs(log(points_of(a) / points_of(b)));
	return channels + 0.5 * apart(a->n, b->n) + 0.7 * apart(area, other) +
	       0.5 * abs(words_of(area) - words_of(other));
}

/* What the kernels take that cuDNN does not plan for: nothing, or a partial filter for each image. */
static bool was_unplanned(const struct row *a)
{
	uint64_t bytes = a->op == filter && a->h * a->w > 1 ? a->n * partial_bytes(a) : 0;
	uint64_t off = a->bytes > bytes ? a->bytes - bytes : bytes - a->bytes;

	return off <= FRAG_MAX(2048, bytes / 50);
}

/* ---- looking up ----------------------------------------------------------------------------- */

static double far_of_same(const struct row *a, const struct row *key)
{
	if (!same(a, key))
		return HUGE_VAL;
	return fabs(log(points_of(a) / points_of(key))) + (a->h == key->h ? 0 : 1e-3);
}

static bool look_up(const struct row *key, bool nearby, int64_t *bytes)
{
	const struct row *near = nearest(key, far_of_same);
	struct parts p;

	if (near && near->n == key->n && near->h == key->h && near->w == key->w) {
		*bytes = (int64_t)near->bytes;
		return true;
	}
	if (is_point(key) && key->channels_last) /* the other passes take nothing, nearly always */
		near = key->op == filter ? nearest(key, unlike) : NULL;
	if (!nearby || !near)
		return false;
	p = take_apart(near);
	*bytes = (int64_t)(copied_bytes(key, p.copies) + p.splits * partial_bytes(key) + p.rest);
	return true;
}

static bool fits(int64_t v, int64_t most)
{
	return v >= 1 && v <= most;
}

/* The table has one number for both directions, that of the second where there is one line of points. */
static bool describe(const struct nogpu_cudnn *op, struct row *key)
{
	const struct nogpu_cudnn *x = op->x_part, *w = op->w_part, *conv = op->conv;

	if (!x || !w || !conv || x->dims_count != 4 || w->dims_count != 4)
		return false;
	for (int i = 0; i < 4; i++)
		if (!fits(x->dims[i], UINT16_MAX) || !fits(w->dims[i], UINT16_MAX))
			return false;
	if (!fits(conv->conv_strides[1], UINT8_MAX) || !fits(conv->conv_dilations[1], UINT8_MAX) ||
	    conv->conv_pads[1] < 0 || conv->conv_pads[1] > UINT8_MAX)
		return false;
	if (x->dims[2] > 1 && (conv->conv_strides[0] != conv->conv_strides[1] ||
			       conv->conv_pads[0] != conv->conv_pads[1] ||
			       conv->conv_dilations[0] != conv->conv_dilations[1]))
		return false;
	*key = (struct row){ .op = op->kind == NOGPU_CUDNN_CONV_FORWARD		? forward
				   : op->kind == NOGPU_CUDNN_CONV_BACKWARD_DATA ? data
										: filter,
			     .type = x->type == 0   ? fp32
				     : x->type == 9 ? bf16
				     : x->type == 2 ? fp16
						    : UINT8_MAX,
			     .channels_last = x->strides[1] == 1 && x->dims[1] > 1,
			     .stride = (uint8_t)conv->conv_strides[1],
			     .pad = (uint8_t)conv->conv_pads[1],
			     .dilation = (uint8_t)conv->conv_dilations[1],
			     .r = (uint16_t)w->dims[2],
			     .s = (uint16_t)w->dims[3],
			     .c = (uint16_t)x->dims[1],
			     .k = (uint16_t)w->dims[0],
			     .groups = (uint16_t)(x->dims[1] / w->dims[1]),
			     .n = (uint16_t)x->dims[0],
			     .h = (uint16_t)x->dims[2],
			     .w = (uint16_t)x->dims[3] };
	return key->groups > 0;
}

bool frag_nogpu_conv_recorded(const struct nogpu_cudnn *op, bool near, int64_t *bytes)
{
	struct row key;

	if (!describe(op, &key))
		return false;
	if (look_up(&key, near, bytes))
		return true;
	/* half precision of either kind takes the same units, but not always the same kernel: ResNet's first layer */
	if (key.type != fp16 || !near)
		return false;
	key.type = bf16;
	return look_up(&key, near, bytes);
}

/* Of three dimensions, filter passes of few channels take copies (187 sizes of an H100: 85 %). */
static bool is_wide(const struct nogpu_cudnn *x)
{
	return x && x->dims_count > 1 && x->dims[1] >= (x->type == 0 ? 32 : 128);
}

bool frag_nogpu_conv_is_unplanned(const struct nogpu_cudnn *op)
{
	const struct row *near;
	struct row key;

	if (!describe(op, &key))
		return op->kind != NOGPU_CUDNN_CONV_BACKWARD_FILTER || is_wide(op->x_part);
	near = nearest(&key, unlike);
	return !near || was_unplanned(near);
}
