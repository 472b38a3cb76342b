/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Known cards: memory as the runtime reports it, and the part that a CUDA context takes. Every row
 * names the source of its figure:
 *
 *   measured       on the card itself, cudaMemGetInfo
 *   deviceQuery    totalGlobalMem in bytes, in public output of NVIDIA's deviceQuery
 *   torch          total_memory in MiB, in public output of PyTorch's device properties
 *   specification  capacity by specification, 0.5 to 1 % above what the runtime reports
 *
 * The total differs between driver versions, ECC settings and board variants by up to 1 %, and
 * Windows reports more than Linux; the figures are Linux's. Contexts were measured on H100 and
 * H200. Those of public logs are what serving engines found taken on an empty card, less what the
 * first kernel takes where one had run (results/layout/serving.md).
 * For other cards half a GiB is assumed (--context overrides it). Driver calls were measured
 * on these two, too; the others borrow the H200's prices (--cost overrides them). Sorted by
 * capacity.
 */
#include <frag/device.h>

#include <ctype.h>

#define ASSUMED_CONTEXT (512 * FRAG_MIB)
#define CARD(name, vendor, label, bytes, context, source, asked_only) \
	{ \
		name, vendor " " label, vendor, bytes, context, source, 0, "h200", asked_only \
	}
#define ASSUMED(name, vendor, label, bytes, source) \
	CARD(name, vendor, label, bytes, ASSUMED_CONTEXT, source "; context assumed", false)
#define LOGGED(name, label, bytes, context, source) \
	CARD(name, "NVIDIA", label, bytes, context, source "; context of public logs", false)
/* as large as one of the others, or less common */
#define ON_REQUEST(name, label, bytes, source) \
	CARD(name, "NVIDIA", label, bytes, ASSUMED_CONTEXT, source "; context assumed", true)

/* clang-format off */
static const struct frag_gpu gpus[] = {
	ASSUMED("t4", "NVIDIA", "Tesla T4 16 GB", 15843721216, "deviceQuery, CUDA 11.0"),
	CARD("rtx5080", "NVIDIA", "GeForce RTX 5080 16 GB", 15840 * FRAG_MIB, 192 * FRAG_MIB, "torch; context of public logs", true),
	ON_REQUEST("rtx4080", "GeForce RTX 4080 16 GB", 16049 * FRAG_MIB, "torch"),
	ON_REQUEST("v100-16", "Tesla V100 SXM2 16 GB", 16160 * FRAG_MIB, "torch, CUDA 10.1"),
	LOGGED("l4", "L4 24 GB", 23583784960, 200 * FRAG_MIB, "deviceQuery, CUDA 12.2"),
	/* as the A10, and 1 KiB of local memory for the threads of 8 more multiprocessors */
	CARD("a10g", "NVIDIA", "A10G 24 GB", 22587 * FRAG_MIB, 212 * FRAG_MIB, "torch, CUDA 13.0; context as of A10", false),
	LOGGED("a10", "A10 24 GB", 23696375808, 200 * FRAG_MIB, "deviceQuery, CUDA 12.8"),
	ON_REQUEST("a5000", "RTX A5000 24 GB", 24114 * FRAG_MIB, "torch"),
	ON_REQUEST("a30", "A30 24 GB", 24164 * FRAG_MIB, "torch, CUDA 12.8"),
	ASSUMED("rtx4090", "NVIDIA", "GeForce RTX 4090 24 GB", 24217 * FRAG_MIB, "torch, CUDA 12.1"),
	ASSUMED("rtx3090", "NVIDIA", "GeForce RTX 3090 24 GB", 24259 * FRAG_MIB, "torch"),
	ASSUMED("rtx5090", "NVIDIA", "GeForce RTX 5090 32 GB", 33677180928, "deviceQuery, CUDA 12.8"),
	ON_REQUEST("v100-32", "Tesla V100 SXM2 32 GB", 34072559616, "deviceQuery, CUDA 12.9"),
	ASSUMED("a100-40", "NVIDIA", "A100 SXM4 40 GB", 42298834944, "deviceQuery, CUDA 12.2"),
	ON_REQUEST("a40", "A40 48 GB", 45416 * FRAG_MIB, "torch"),
	ASSUMED("l40s", "NVIDIA", "L40S 48 GB", 45589 * FRAG_MIB, "torch"),
	ON_REQUEST("rtx6000ada", "RTX 6000 Ada 48 GB", 48520 * FRAG_MIB, "torch, CUDA 12.8"),
	ON_REQUEST("a6000", "RTX A6000 48 GB", 48676 * FRAG_MIB, "torch"),
	ON_REQUEST("h100-pcie", "H100 PCIe 80 GB", 81008 * FRAG_MIB, "torch"),
	{ "h100", "NVIDIA H100 SXM5 80 GB", "NVIDIA", 81079 * FRAG_MIB, 552402944,
	  "measured, driver 580.159.04, CUDA 13.0", 0, "h100", false },
	ASSUMED("a100-80", "NVIDIA", "A100 SXM4 80 GB", 85100068864, "deviceQuery, CUDA 12.5"),
	ON_REQUEST("h100-nvl", "H100 NVL 94 GB", 95320 * FRAG_MIB, "torch, CUDA 13.0"),
	ON_REQUEST("rtxpro6000", "RTX PRO 6000 Blackwell 96 GB", 97250 * FRAG_MIB, "torch, CUDA 13.0"),
	ON_REQUEST("gh200", "GH200 96 GB", 102005473280, "deviceQuery, CUDA 12.2"),
	ON_REQUEST("h20", "H20 96 GB", 97285 * FRAG_MIB, "torch"),
	{ "h200", "NVIDIA H200 141 GB", "NVIDIA", 150109880320, 552402944,
	  "measured, driver 580.159.04, CUDA 13.0", 0, "h200", false },
	ASSUMED("b200", "NVIDIA", "B200 180 GB", 182631 * FRAG_MIB, "torch, CUDA 12.8"),
	ASSUMED("mi300x", "AMD", "Instinct MI300X 192 GB", 196592 * FRAG_MIB, "torch, ROCm 6.2"),
	ASSUMED("mi325x", "AMD", "Instinct MI325X 256 GB", 256 * FRAG_GIB, "specification"),
	ASSUMED("b300", "NVIDIA", "B300 SXM6 288 GB", 274115 * FRAG_MIB, "torch"),
};
/* clang-format on */

const struct frag_gpu *frag_gpu_list(size_t *count)
{
	*count = FRAG_ARRAY_LEN(gpus);
	return gpus;
}

/* The next letter or digit of a name, in lower case; '\0' at the end. */
static char next_sign(const char **at)
{
	while (**at && !isalnum((unsigned char)**at))
		++*at;
	return **at ? (char)tolower((unsigned char)*(*at)++) : '\0';
}

/* Ignores case, blanks and dashes ("RTX 4090" is rtx4090), and the unit in A100-80GB. */
static bool same_name(const char *name, const char *asked)
{
	char a, b;

	do {
		a = next_sign(&name);
		b = next_sign(&asked);
	} while (a && a == b);
	return a == b || (!a && b == 'g' && next_sign(&asked) == 'b' && !next_sign(&asked));
}

const struct frag_gpu *frag_gpu_find(const char *name)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(gpus); i++) {
		const struct frag_gpu_chip *chip = frag_gpu_chip_find(gpus[i].name);

		if (same_name(gpus[i].name, name) || same_name(gpus[i].label, name) ||
		    (chip && same_name(chip->shown, name)))
			return &gpus[i];
	}
	return NULL;
}
