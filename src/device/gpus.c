/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Known cards: how much memory the runtime reports, and what a CUDA context
 * takes of it. Every row says where its figure comes from:
 *
 *   measured       on the card itself, cudaMemGetInfo
 *   deviceQuery    totalGlobalMem in bytes, in public output of NVIDIA's deviceQuery
 *   torch          total_memory in MiB, in public output of PyTorch's device properties
 *   nvidia-smi     total of nvidia-smi, 0.5 to 1 % above what the runtime reports
 *   specification  capacity by specification, likewise above what the runtime reports
 *
 * The total differs between driver versions, ECC settings and board variants by
 * up to 1 %. Contexts were measured on H100 and H200; everywhere else half a GiB
 * is assumed (--context overrides). Driver calls were measured on these two, too: the
 * others borrow the prices of the H200 (--cost overrides). Sorted by capacity as it stands here.
 */
#include <frag/device.h>

#include <ctype.h>

#define ASSUMED_CONTEXT (512 * FRAG_MIB)
#define ASSUMED(name, vendor, label, bytes, source) \
	{ \
		name, vendor " " label, vendor, bytes, ASSUMED_CONTEXT, \
			source "; context assumed", 0, "h200" \
	}

/* clang-format off */
static const struct frag_gpu gpus[] = {
	ASSUMED("t4", "NVIDIA", "Tesla T4 16 GB", 15843721216, "deviceQuery, CUDA 11.0"),
	ASSUMED("l4", "NVIDIA", "L4 24 GB", 23583784960, "deviceQuery, CUDA 12.2"),
	ASSUMED("a10g", "NVIDIA", "A10G 24 GB", 22587 * FRAG_MIB, "torch, CUDA 13.0"),
	ASSUMED("a10", "NVIDIA", "A10 24 GB", 23028 * FRAG_MIB, "nvidia-smi"),
	ASSUMED("rtx3090", "NVIDIA", "GeForce RTX 3090 24 GB", 24259 * FRAG_MIB, "torch"),
	ASSUMED("rtx4090", "NVIDIA", "GeForce RTX 4090 24 GB", 24563 * FRAG_MIB, "torch"),
	ASSUMED("rtx5090", "NVIDIA", "GeForce RTX 5090 32 GB", 33677180928, "deviceQuery, CUDA 12.8"),
	ASSUMED("a100-40", "NVIDIA", "A100 SXM4 40 GB", 42298834944, "deviceQuery, CUDA 12.2"),
	ASSUMED("l40s", "NVIDIA", "L40S 48 GB", 45589 * FRAG_MIB, "torch"),
	{ "h100", "NVIDIA H100 SXM5 80 GB", "NVIDIA", 81079 * FRAG_MIB, 552402944,
	  "measured, driver 580.159.04, CUDA 13.0", 0, "h100" },
	ASSUMED("a100-80", "NVIDIA", "A100 SXM4 80 GB", 81920 * FRAG_MIB, "nvidia-smi"),
	{ "h200", "NVIDIA H200 141 GB", "NVIDIA", 150109880320, 552402944,
	  "measured, driver 580.159.04, CUDA 13.0", 0, "h200" },
	ASSUMED("b200", "NVIDIA", "B200 180 GB", 182631 * FRAG_MIB, "torch, CUDA 12.8"),
	ASSUMED("mi300x", "AMD", "Instinct MI300X 192 GB", 196592 * FRAG_MIB, "torch, ROCm 6.2"),
	ASSUMED("mi325x", "AMD", "Instinct MI325X 256 GB", 256 * FRAG_GIB, "specification"),
};
/* clang-format on */

const struct frag_gpu *frag_gpu_list(size_t *count)
{
	*count = FRAG_ARRAY_LEN(gpus);
	return gpus;
}

/* The next letter or digit of a name, in small letters; '\0' at the end. */
static char next_sign(const char **at)
{
	while (**at && !isalnum((unsigned char)**at))
		++*at;
	return **at ? (char)tolower((unsigned char)*(*at)++) : '\0';
}

/* Case, blanks and dashes do not matter: "RTX 4090" is rtx4090; nor does the unit, as in A100-80GB. */
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
