/* SPDX-License-Identifier: Apache-2.0 */
/* The table of known cards. */
#include "test.h"

#include <frag/device.h>

#include "must.h"

TEST(test_h200)
{
	const struct frag_gpu *g = frag_gpu_find("h200");
	struct frag_sim_config cfg = { .context_bytes = UINT64_MAX };
	struct frag_device_info info;
	AUTO_DEVICE d = NULL;

	assert_non_null(g);
	assert_int_equal(g->total_bytes, 150109880320ull);
	assert_int_equal(g->context_bytes, 552402944ull);
	/* it is the card that a simulation has unless told otherwise */
	d = must_open_sim(&cfg);
	frag_dev_info(d, &info);
	assert_int_equal(info.total_bytes, g->total_bytes);
	assert_int_equal(info.context_bytes, g->context_bytes);
}

TEST(test_table)
{
	size_t count;
	const struct frag_gpu *g = frag_gpu_list(&count);

	for (size_t i = 0; i < count; i++) {
		struct frag_sim_config cfg = { .name = g[i].label,
					       .total_bytes = g[i].total_bytes,
					       .context_bytes = g[i].context_bytes };

		assert_ptr_equal(frag_gpu_find(g[i].name), &g[i]); /* names are unique */
		assert_true(!strcmp(g[i].vendor, "NVIDIA") == !!frag_gpu_chip_find(g[i].name));
		assert_true(strlen(g[i].label) > 0 && strlen(g[i].source) > 0);
		assert_true(g[i].total_bytes > 10 * GIB);
		assert_true(g[i].context_bytes < GIB);
		assert_true(!i || g[i].total_bytes >= g[i - 1].total_bytes); /* ascending */
		frag_dev_close(must_open_sim(&cfg));
	}
	assert_ptr_equal(frag_gpu_find("H200"), frag_gpu_find("h200"));
	assert_ptr_equal(frag_gpu_find("RTX 4090"), frag_gpu_find("rtx4090"));
	assert_ptr_equal(frag_gpu_find("A100-80GB"), frag_gpu_find("a100-80"));
	assert_ptr_equal(frag_gpu_find("NVIDIA L40S 48 GB"), frag_gpu_find("l40s"));
	assert_ptr_equal(frag_gpu_find("NVIDIA H100 80GB HBM3"), frag_gpu_find("h100"));
	assert_ptr_equal(frag_gpu_find("RTX 6000 Ada"), frag_gpu_find("rtx6000ada"));
	assert_null(frag_gpu_find("h2"));
	assert_null(frag_gpu_find("h2000"));
	assert_null(frag_gpu_find("a100"));
	assert_null(frag_gpu_find(""));
}
