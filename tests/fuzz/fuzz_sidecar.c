/* SPDX-License-Identifier: Apache-2.0 */
/* The file beside a snapshot: refused with a message, or everything that it gives is in its range. */
#include "trace/sidecar.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frag_trace_dev devs[2] = { { .ordinal = 0 }, { .ordinal = 1 } };
	struct frag_trace t = { .devs = devs, .devs_count = 2 };
	struct frag_err err = { 0 };
	int rc = frag_sidecar_parse("fuzz", (const char *)data, size, &t, &err);

	if (rc)
		must(rc == FRAG_EINPUT && err.msg[0]);
	for (size_t i = 0; i < 2; i++) {
		const struct frag_recorded_card *c = &devs[i].card;

		must(c->context_bytes <= c->total_bytes && c->beside_bytes <= c->total_bytes);
		must(c->total_bytes <= 1ull << 50 && c->limit_fraction >= 0 &&
		     c->limit_fraction <= 1);
		must(memchr(c->name, 0, sizeof(c->name)) && !strchr(c->name, '\033'));
	}
	return 0;
}
