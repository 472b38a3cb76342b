/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workspaces of convolutions: as the user's own cuDNN plans them (cudnn_plan.c), else by the rule
 * below, which was read off 2,016 sizes recorded on an H200 with cuDNN 9.19.
 */
#include "pretend/card/card.h"

#include <string.h>

#include "cudnn.h"

bool frag_pretend_is_conv(const struct pretend_cudnn *op)
{
	return op->kind == PRETEND_CUDNN_CONV_FORWARD ||
	       op->kind == PRETEND_CUDNN_CONV_BACKWARD_FILTER ||
	       op->kind == PRETEND_CUDNN_CONV_BACKWARD_DATA;
}

#define CONVERSION 16 /* bytes beside converted tensors */

/* ---- the rule ----------------------------------------------------------------------------- */

struct conv {
	int64_t images, channels, filters, area; /* area: points of the input */
	int64_t x_bytes, w_bytes, y_bytes; /* channels rounded up to what the card's units take */
	int64_t element_bytes, taps;	   /* taps: points of a filter */
	bool channels_last, padded, depthwise, pointwise;
	bool volume; /* of three dimensions */
	bool strided;
};

static int64_t points(const struct pretend_cudnn *t)
{
	int64_t n = 1;

	for (int64_t i = 2; i < t->dims_count; i++)
		n *= t->dims[i];
	return n;
}

static int64_t bytes_of(const struct pretend_cudnn *t, int64_t element_bytes)
{
	return t->dims[0] * t->dims[1] * points(t) * element_bytes;
}

static bool is_plain(const struct pretend_cudnn *conv, int64_t dims)
{
	for (int64_t i = 0; i < FRAG_MIN(dims, 3); i++)
		if (conv->conv_strides[i] != 1 || conv->conv_pads[i])
			return false;
	return true;
}

static bool describe(const struct pretend_cudnn *op, struct conv *c)
{
	const struct pretend_cudnn *x = op->x_part, *w = op->w_part, *y = op->y_part;
	int64_t unit, whole;

	if (!x || !w || !y || x->dims_count < 3 || w->dims_count != x->dims_count ||
	    y->dims_count != x->dims_count || !x->dims[1] || !w->dims[1])
		return false;
	c->element_bytes = frag_pretend_cudnn_element_bytes(x->type);
	c->images = x->dims[0];
	c->channels = x->dims[1];
	c->filters = w->dims[0];
	c->area = points(x);
	c->taps = points(w);
	c->channels_last = x->strides[1] == 1 && c->channels > 1;
	c->depthwise = w->dims[1] == 1 && c->channels > 1;
	c->pointwise = c->taps == 1 && (!op->conv || is_plain(op->conv, x->dims_count - 2));
	c->strided = op->conv && op->conv->conv_strides[x->dims_count - 3] > 1;
	c->volume = x->dims_count > 4;
	/* matrix units take 16 bytes of channels at a time */
	unit = 16 / FRAG_MAX(c->element_bytes, 1);
	whole = (c->channels + unit - 1) / unit * unit;
	c->padded = whole != c->channels;
	c->x_bytes = bytes_of(x, c->element_bytes) / c->channels * whole;
	c->w_bytes = bytes_of(w, c->element_bytes) / w->dims[1] *
		     (w->dims[1] == c->channels ? whole : w->dims[1]);
	c->y_bytes = bytes_of(y, c->element_bytes);
	return true;
}

/* The sum over images and points, split over multiprocessors: partial filters. */
static int64_t split_bytes(const struct conv *c)
{
	int64_t tiles = (c->filters + 127) / 128 * ((c->channels * c->taps + 127) / 128);
	int64_t parts = 75 / tiles;

	return parts < 3 || c->padded ? 0 : parts * c->w_bytes * 4 / c->element_bytes;
}

/* The same for filters of a point: parts of 21 steps of 64 points or more, which fill the card. */
static int64_t product_splits(const struct conv *c)
{
	int64_t all = c->images * c->area, steps = (all + 63) / 64;
	int64_t tiles = (c->channels * c->filters + 16383) / 16384, fill = 132 / tiles;
	int64_t wide = FRAG_MAX(c->channels, c->filters),
		narrow = FRAG_MIN(c->channels, c->filters);

	if (c->element_bytes == 4) {
		tiles = (wide + 255) / 256 * ((narrow + 127) / 128);
		return all < 1568 ? 0 : FRAG_MIN(FRAG_MIN(66, 132 / tiles), all / 118);
	}
	if (tiles >= 24)
		return steps < 300 ? 0 : 264 / tiles;
	if (tiles >= 6 && steps < 102)
		return 0;
	if (tiles > 1 && tiles <= 4 && steps < 1500)
		fill = 88 / tiles;
	return FRAG_MIN((steps + 10) / 21, fill);
}

static int64_t product_bytes(const struct conv *c)
{
	int64_t splits = product_splits(c);

	return splits < 2 ? 0 : splits * c->channels * c->filters * 4;
}

/*
 * One filter for each channel, channels last: in half precision 16 partial filters for each image,
 * of channels in units of 32, where there are points enough; in single precision no rule was found.
 */
static int64_t depthwise_bytes(const struct conv *c)
{
	int64_t all = c->images * c->area, whole = (c->channels + 31) / 32 * 32;

	if (c->element_bytes == 4)
		return FRAG_MIN(512 * c->w_bytes, 2 * (int64_t)FRAG_MIB);
	if (all < (c->strided ? 1024 : 576) || (c->strided && c->taps == 1))
		return 0;
	return 16 * c->images * c->w_bytes / c->channels * whole;
}

/* product: of a point, one for each image */
static int64_t filter_bytes(const struct conv *c, bool product)
{
	if (c->depthwise)
		return c->channels_last ? depthwise_bytes(c) : 0;
	if (c->channels_last && c->pointwise)
		return product_bytes(c);
	if (c->channels_last)
		return (c->padded ? c->x_bytes + 2 * c->w_bytes : 0) + split_bytes(c);
	if (c->pointwise)
		return product ? c->images * c->channels * c->filters * 4 : c->x_bytes + c->y_bytes;
	return c->x_bytes + c->w_bytes + c->y_bytes + split_bytes(c) + CONVERSION;
}

/*
 * Filters of one point are products of plain matrices by cuBLASLt, which cuDNN does not plan for without a card. Of three
 * dimensions, filter passes of few channels are none (187 sizes of an H100: 85 %).
 */
static bool is_product(const struct pretend_cudnn *op, const struct conv *c)
{
	if (!c->pointwise || op->w_part->dims[1] != c->channels)
		return false;
	return !c->volume || op->kind != PRETEND_CUDNN_CONV_BACKWARD_FILTER ||
	       c->channels >= (c->element_bytes == 4 ? 32 : 128);
}

/*
 * Engines for matrix units want channels last. Where the program has them first, all three tensors
 * are copied, unless the filter is a point and the product is one of plain matrices.
 */
static int64_t by_rule(const struct pretend_cudnn *op, const struct conv *c)
{
	if (op->kind == PRETEND_CUDNN_CONV_BACKWARD_FILTER)
		return filter_bytes(c, is_product(op, c));
	if (c->depthwise || c->pointwise)
		return 0;
	if (c->channels_last)
		return c->padded ? c->x_bytes + c->w_bytes + CONVERSION : 0;
	return c->x_bytes + c->w_bytes + c->y_bytes + CONVERSION;
}

void frag_pretend_conv_plans(const struct pretend_cudnn *op, struct pretend_plans *plans)
{
	struct conv c;
	bool clear = describe(op, &c);

	if (!frag_pretend_conv_planned(op, plans))
		*plans = (struct pretend_plans){ .count = 1 };
	else if (!clear || plans->known || !is_product(op, &c))
		return;
	plans->at[0].bytes = clear ? by_rule(op, &c) : 0;
}
