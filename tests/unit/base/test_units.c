/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/units.c: sizes in and out, nearest words. */
#include "test.h"

#include <frag/opt.h>

TEST(sizes_that_parse)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} rows[] = {
		{ "0", 0 },
		{ "512", 512 },
		{ "512B", 512 },
		{ "512 B", 512 },
		{ "20M", 20 * FRAG_MIB },
		{ "20MiB", 20 * FRAG_MIB },
		{ "20 MiB", 20 * FRAG_MIB },
		{ "1k", 1024 },
		{ "1.5GiB", 3 * FRAG_GIB / 2 },
		{ ".5K", 512 },
		{ "7.5G", 8053063680 },
		{ "0.1G", 107374182 }, /* 107374182.4, rounded down */
		{ "0.0009765625K", 1 },
		{ "2.0", 2 },
		{ "1T", 1ull << 40 },
		{ "15E", 15ull << 60 },
		{ "16777215T", 16777215ull << 40 },
		{ "18446744073709551615", UINT64_MAX },
		/* more digits than count: the tail is below a byte */
		{ "1.99999999999999999999999999999999K", 2047 },
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		uint64_t n = 99;

		if (frag_parse_bytes(rows[i].text, &n, NULL) || n != rows[i].bytes)
			fail_msg("'%s' became %llu", rows[i].text, (unsigned long long)n);
	}
}

TEST(sizes_that_do_not)
{
	static const char *const rows[] = {
		"",
		" ",
		"-1",
		"+1",
		"M",
		".",
		".K",
		"1.5",
		"1.5B",
		"20MB",
		"20Mi",
		"20MiBs",
		"1e9",
		"0x10",
		"12 34",
		" 5",
		"5 ",
		"1..5K",
		"1.5.5K",
		"16E",
		"18446744073709551616",
		"99999999999999999999999G",
		"16777216T",
		"K1",
		"1KK",
		"max",
		"nan",
		"inf",
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		struct frag_err err = { 0 };
		uint64_t n = 99;

		if (frag_parse_bytes(rows[i], &n, &err) != FRAG_EUSAGE || n != 99)
			fail_msg("'%s' became %llu", rows[i], (unsigned long long)n);
		assert_int_equal(err.code, FRAG_EUSAGE);
		assert_non_null(strstr(err.msg, rows[i]));
	}
}

TEST(sizes_out)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} rows[] = {
		{ 0, "0 B" },
		{ 512, "512 B" },
		{ 1023, "1023 B" },
		{ 1024, "1 KiB" },
		{ 20 * FRAG_MIB, "20 MiB" },
		{ 3 * FRAG_GIB / 2, "1.50 GiB" },
		{ 150109880320, "139.80 GiB" },
		{ 1ull << 40, "1 TiB" },
		{ UINT64_MAX, "16.00 EiB" },
	};
	char buf[32];

	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++)
		assert_string_equal(frag_format_bytes(rows[i].bytes, buf, sizeof(buf)),
				    rows[i].text);
}

TEST(nearest)
{
	static const char *const words[] = {
		"buddy", "pytorch",	      "native", "null", "rmm-pool",
		"list",	 "max_split_size_mb", "gc",	NULL
	};
	static const struct {
		const char *typed, *found;
	} rows[] = {
		{ "budy", "buddy" },
		{ "pytroch", "pytorch" }, /* neighbours swapped: one edit */
		{ "PyTorch", "pytorch" },
		{ "nativ", "native" },
		{ "rmm_pool", "rmm-pool" },
		{ "lits", "list" },
		{ "max_split", "max_split_size_mb" }, /* a beginning */
		{ "max-split-size", "max_split_size_mb" },
		{ "gc", "gc" },
		{ "x", NULL },
		{ "", NULL },
		{ "zzzzzz", NULL },
		{ "ma", NULL },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		  "a",
		  NULL },
	};

	for (size_t i = 0; i < FRAG_ARRAY_LEN(rows); i++) {
		const char *w = frag_nearest(rows[i].typed, words);

		if (rows[i].found ? !w || strcmp(w, rows[i].found) != 0 : w != NULL)
			fail_msg("'%s' gave '%s'", rows[i].typed, w ? w : "nothing");
	}
	/* ties: the first one */
	assert_string_equal(frag_nearest("cat", (const char *const[]){ "bat", "hat", NULL }), "ba"
											      "t");
	assert_null(frag_nearest("cat", (const char *const[]){ NULL }));
}
