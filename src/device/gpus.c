/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Known cards, a line each in cards.csv: memory as the runtime reports it, the part that a CUDA
 * context takes, and the chip, as the data sheets and architecture papers of NVIDIA have it (of the
 * H200 by deviceQuery). The source of the memory is the last column:
 *
 *   measured       on the card itself, cudaMemGetInfo
 *   deviceQuery    totalGlobalMem in bytes, in public output of NVIDIA's deviceQuery
 *   torch          total_memory in MiB, in public output of PyTorch's device properties
 *   llama.cpp      cudaMemGetInfo in MiB, in public output of llama.cpp
 *   specification  capacity by specification, 0.5 to 1.5 % above what the runtime reports
 *
 * The total differs between driver versions, ECC settings and board variants by up to 1 %, and
 * Windows reports more than Linux; the figures are Linux's. Contexts were measured on H100 and
 * H200. Contexts of public logs are what serving engines found taken on an empty card, less what
 * the first kernel takes where one had run (results/layout/serving.md); the A10G has that of the
 * A10, and 1 KiB of local memory for the threads of 8 more multiprocessors. For other cards half a
 * GiB is assumed (--context overrides it). Driver calls were measured on H100 and H200; the others
 * borrow the H200's costs (--cost overrides them). on_request: as large as another card, or less
 * common. Sorted by capacity; L2 in whole MiB.
 */
#include <frag/device.h>

#include <ctype.h>
#include <string.h>

static const struct frag_gpu gpus[] = {
#define FRAG_CARD(name, vendor, label, bytes, context, costs, on_request, source, ...) \
	{ name, vendor " " label, vendor, bytes, context, source, 0, costs, on_request },
#include "card_list.inc"
#undef FRAG_CARD
};

/* In the same order; shown "": the card does not run CUDA programs. */
static const struct frag_gpu_chip chips[] = {
#define FRAG_CARD(name, vendor, label, bytes, context, costs, on_request, source, ...) \
	{ name, __VA_ARGS__ },
#include "card_list.inc"
#undef FRAG_CARD
};

const struct frag_gpu_chip *frag_gpu_chip_find(const char *name)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(chips); i++)
		if (!strcmp(chips[i].name, name) && *chips[i].shown)
			return &chips[i];
	return NULL;
}

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
