/* SPDX-License-Identifier: Apache-2.0 */
/* Known cards; those that advice may name: which, in which order, and what they leave. Vendors: tests/cli fit_cards; bad lists: fit_cards_bad. */
#include "test.h"

#include <frag/device.h>

#include "must.h"

static void must_list(const char *text, struct frag_catalog *out)
{
	const char *path = test_make_file("cards.csv", text, strlen(text));

	SUCCEEDS(frag_catalog_init(out, path, NULL, &test_err));
}

TEST(room_and_choice)
{
	struct frag_headroom h = { .ratio = 0.1, .outside_bytes = GIB };
	struct frag_catalog c;

	must_list("name,memory,context,price_per_hour\nbig,40G,0,1\nsmall,10G,1G,2\n", &c);
	assert_string_equal(c.cards[0]->name, "small");
	assert_int_equal(frag_gpu_room(c.cards[0], NULL), 9 * GIB);
	assert_int_equal(frag_gpu_room(c.cards[0], &h), 7 * GIB);
	/* all have a price: the cheapest; what it may hold, to the byte */
	assert_string_equal(frag_catalog_pick(&c, 7 * GIB, &h)->name, "big");
	assert_string_equal(frag_catalog_pick(&c, 35 * GIB, &h)->name, "big");
	assert_null(frag_catalog_pick(&c, 35 * GIB + 1, &h));
	frag_catalog_release(&c);
	must_list("name,memory,price_per_hour\nbig,40G,1\nsmall,10G,\n", &c);
	assert_string_equal(frag_catalog_pick(&c, 7 * GIB, NULL)->name, "small");
	h.bytes = GIB << 12; /* more than any card */
	assert_int_equal(frag_gpu_room(c.cards[0], &h), 0);
	frag_catalog_release(&c);
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
		assert_true(g[i].total_bytes > 7 * GIB);
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
