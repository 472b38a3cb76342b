/* SPDX-License-Identifier: Apache-2.0 */
/* Releases of PyTorch: see frag/torch.h. */
#include <frag/torch.h>

#include <stdio.h>
#include <string.h>

int frag_torch_parse(const char *text, unsigned *release, struct frag_err *err)
{
	unsigned major, minor;
	int end = 0;

	if (sscanf(text, "%3u.%3u%n", &major, &minor, &end) != 2 || minor > 99 ||
	    !strchr(".+ab", text[end]))
		return FRAG_USAGE(err, "'%.40s' is not a release of PyTorch (example: 2.13)", text);
	*release = FRAG_TORCH(major, minor);
	if (*release < FRAG_TORCH_OLDEST || *release > FRAG_TORCH_NEWEST)
		return FRAG_USAGE(err, "unknown release PyTorch %u.%u: cufrag knows %u.%u to %u.%u",
				  major, minor, FRAG_TORCH_OLDEST / 100, FRAG_TORCH_OLDEST % 100,
				  FRAG_TORCH_NEWEST / 100, FRAG_TORCH_NEWEST % 100);
	return 0;
}

char *frag_torch_format(unsigned release, char *buf, size_t cap)
{
	snprintf(buf, cap, "%u.%u", release / 100, release % 100);
	return buf;
}
