/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "snapshot_bytes.h"

#include "trace/input/input.h"
#include "trace/torch/torch_parts.h"

void sb_top(struct pickle_bytes *b)
{
	pb_begin(b);
	pb_dict(b);
}

void sb_finish(struct pickle_bytes *b)
{
	pb_close_dict(b);
	pb_end(b);
}

void sb_open_traces(struct pickle_bytes *b)
{
	pb_text(b, "device_traces");
	pb_list(b);
	pb_list(b);
}

void sb_close_traces(struct pickle_bytes *b)
{
	pb_close_list(b);
	pb_close_list(b);
}

void sb_no_segments(struct pickle_bytes *b)
{
	pb_text(b, "segments");
	pb_list(b);
	pb_close_list(b);
}

void sb_block(struct pickle_bytes *b, int64_t addr, int64_t size, int64_t requested,
	      const char *state)
{
	pb_dict(b);
	pb_text_int(b, "address", addr);
	pb_text_int(b, "size", size);
	pb_text_int(b, "requested_size", requested);
	pb_text_text(b, "state", state);
	pb_text(b, "frames");
	pb_list(b);
	pb_close_list(b);
	pb_close_dict(b);
}

void sb_open_segment(struct pickle_bytes *b, int64_t device, int64_t addr, int64_t size,
		     const char *type, int64_t stream, int64_t pool)
{
	pb_dict(b);
	pb_text_int(b, "device", device);
	pb_text_int(b, "address", addr);
	pb_text_int(b, "total_size", size);
	pb_text_int(b, "stream", stream);
	pb_text_text(b, "segment_type", type);
	pb_text(b, "segment_pool_id");
	pb_int(b, pool);
	pb_int(b, 0);
	pb_op(b, 0x86);
	pb_remember(b);
	pb_text(b, "is_expandable");
	pb_bool(b, 0);
	pb_text(b, "blocks");
	pb_list(b);
}

void sb_close_segment(struct pickle_bytes *b)
{
	pb_close_list(b);
	pb_close_dict(b);
}

void sb_settings(struct pickle_bytes *b)
{
	pb_text(b, "allocator_settings");
	pb_dict(b);
	pb_text_text(b, "PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64,expandable_segments:True");
	pb_text_int(b, "max_split_size", 64 * MIB);
	pb_text(b, "garbage_collection_threshold");
	pb_float(b, 0.6);
	pb_text(b, "expandable_segments");
	pb_bool(b, 1);
	pb_text_int(b, "pinned_num_register_threads", 1);
	pb_text(b, "roundup_power2_divisions");
	pb_dict(b);
	pb_text_int(b, "1", 4);
	pb_text_int(b, "256", 8);
	pb_text_int(b, "32768", 2);
	pb_text_int(b, "65536", 2);
	pb_text_int(b, "3", 16);
	pb_close_dict(b);
	pb_close_dict(b);
}

void sb_annotation(struct pickle_bytes *b, const char *name, const char *stage, int64_t time)
{
	pb_dict(b);
	pb_text_text(b, "name", name);
	pb_text_text(b, "stage", stage);
	pb_text_int(b, "device", 0);
	pb_text_int(b, "time_us", time);
	pb_close_dict(b);
}

void sb_everything(struct pickle_bytes *b)
{
	sb_top(b);
	pb_text(b, "segments");
	pb_list(b);
	sb_open_segment(b, 0, S0, 2 * MIB, "small", 77, 0);
	sb_block(b, S0, 1024, 600, "active_allocated");
	sb_block(b, S0 + 1024, 2 * MIB - 1024, 512, "inactive");
	sb_close_segment(b);
	pb_close_list(b);
	sb_open_traces(b);
	pb_entry(b, "segment_alloc", S0, 2 * MIB, 77, T0);
	pb_entry(b, "alloc", S0, 600, 77, T0 + 1);
	pb_entry(b, "alloc", S0 + 1024, 512, 77, T0 + 2);
	pb_entry(b, "free_requested", S0 + 1024, 512, 77, T0 + 10);
	pb_entry(b, "free_completed", S0 + 1024, 512, 77, T0 + 11);
	pb_entry(b, "oom", 123456789, 1ll << 40, 77, T0 + 20);
	pb_entry(b, "brand_new_action", 1, 2, 3, T0 + 21);
	pb_close_list(b);
	pb_list(b);
	sb_close_traces(b);
	sb_settings(b);
	pb_text(b, "external_annotations");
	pb_list(b);
	sb_annotation(b, "Optimizer.step#AdamW.step", "START", T0 + 3);
	sb_annotation(b, "Optimizer.step#AdamW.step", "END", T0 + 10);
	sb_annotation(b, "forward", "START", T0 - 5);
	pb_close_list(b);
	sb_finish(b);
}

/* ---- reading ---------------------------------------------------------------------- */

int sb_read(const void *bytes, size_t n, const char *options, struct frag_trace **out,
	    struct frag_err *err)
{
	struct frag_input *in = NULL;
	int rc = frag_input_open_memory("snapshot", bytes, n, &in, err);

	*out = NULL;
	if (!rc)
		rc = frag_reader_torch.read(in, options, out, err);
	frag_input_close(in);
	return rc;
}

struct frag_trace *sb_read_good(const struct pickle_bytes *b)
{
	struct frag_trace *t;
	struct frag_err err = { 0 };

	if (sb_read(b->bytes, b->len, NULL, &t, &err))
		fail_msg("%s", err.msg);
	return t;
}

void sb_expect_fail(struct pickle_bytes *b, const char *says)
{
	struct frag_trace *t;
	struct frag_err err = { 0 };

	assert_int_equal(sb_read(b->bytes, b->len, NULL, &t, &err), FRAG_EINPUT);
	assert_null(t);
	if (!strstr(err.msg, says))
		fail_msg("'%s' does not say '%s'", err.msg, says);
	assert_non_null(strstr(err.msg, "'snapshot'"));
	pb_release(b);
}
