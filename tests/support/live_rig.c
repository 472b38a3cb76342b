/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <pthread.h>

#include "live_rig.h"

/* Every registered policy that a running program can have, and these settings beside. */
static const char *const settings[] = {
	"pytorch:expandable_segments:True",
	"limit:bytes=1G/tlsf",
};
/* Their defaults take most of the card at the first request. */
static const char *const small[] = { "rmm-arena:size=512M", "rmm-pool:initial=64M",
				     "umpire-fixed:objects-per-pool=64" };

const char *live_policies[64];
size_t live_policies_count;

__attribute__((constructor)) static void list_policies(void)
{
	size_t count;
	const struct frag_policy_ops *const *list = frag_policy_list(&count);
	const uint32_t never = FRAG_POLICY_HIDDEN | FRAG_POLICY_ADAPTOR | FRAG_POLICY_STACK |
			       FRAG_POLICY_NO_MEMORY | FRAG_POLICY_PLANNED;

	for (size_t i = 0; i < FRAG_ARRAY_LEN(settings); i++)
		live_policies[live_policies_count++] = settings[i];
	for (size_t i = 0; i < count; i++) {
		const char *text = list[i]->name;

		if (list[i]->flags & never ||
		    list[i]->needs & FRAG_CAN_ASYNC) /* the fake has no pools */
			continue;
		for (size_t k = 0; k < FRAG_ARRAY_LEN(small); k++)
			if (!strncmp(small[k], text, strlen(text)) && small[k][strlen(text)] == ':')
				text = small[k];
		if (live_policies_count == FRAG_ARRAY_LEN(live_policies))
			abort();
		live_policies[live_policies_count++] = text;
	}
}

static uint64_t seed;

static unsigned live_draw(unsigned below)
{
	return (unsigned)test_roll(&seed) % below;
}

void live_close(void)
{
	pthread_mutex_lock(&frag_live.opening);
	for (int i = 0; i < FRAG_LIVE_DEVICES_MAX; i++)
		if (frag_live.devs[i])
			frag_live_dev_close(frag_live.devs[i]);
	frag_policy_spec_destroy(frag_live.spec);
	frag_policy_spec_destroy(frag_live.aside);
	memset(frag_live.devs, 0, sizeof(frag_live.devs));
	memset(frag_live.fractions, 0, sizeof(frag_live.fractions));
	frag_live.spec = frag_live.aside = NULL;
	frag_live.pid = 0;
	frag_live.on_oom = NULL;
	pthread_mutex_unlock(&frag_live.opening);
}

void live_start(const char *policy, uint64_t capacity, uint64_t limit)
{
	struct frag_live_options o = { .size = sizeof(o), .policy = policy, .limit_bytes = limit };
	char text[400] = "";

	live_close();
	fake_reset(capacity);
	seed = 7;
	if (frag_live_start(&o, text, sizeof(text)))
		fail_msg("%s", text);
}

void live_must_be_sound(const char *policy)
{
	if (fake.races || fake.faults)
		fail_msg("%s: %s", policy, fake.first);
}

struct frag_live_dev *live_device(int ordinal)
{
	struct frag_live_dev *d = NULL;

	SUCCEEDS(frag_live_dev_get(ordinal, &d, &test_err));
	return d;
}

int live_take(uint64_t bytes, unsigned stream, uint64_t *addr)
{
	int rc = 0;

	FRAG_LIVE_WITH (d, live_device(0))
		rc = frag_live_take(d, bytes, fake_stream(stream), addr, NULL);
	return rc;
}

void live_alloc_one(struct live_program *p, unsigned i, unsigned stream)
{
	int rc;

	p->b[i].bytes = 4096ull << live_draw(9);
	p->b[i].stream = stream;
	rc = live_take(p->b[i].bytes, stream, &p->b[i].addr);
	p->refused += rc > 0;
	p->errors += rc < 0;
	if (rc)
		p->b[i].addr = 0;
	else
		fake_work(stream, p->b[i].addr, p->b[i].bytes, true);
}

static void use_one(struct live_program *p, unsigned i)
{
	unsigned other = live_draw(p->streams);

	if (live_draw(3))
		return;
	/* as PyTorch wants it: the other stream waits for the owner, and is named */
	if (other != p->b[i].stream) {
		const struct frag_cu *cu = frag_cu_open(NULL);
		void *event;

		cu->cuEventCreate(&event, 0);
		cu->cuEventRecord(event, fake_stream(p->b[i].stream));
		cu->cuStreamWaitEvent(fake_stream(other), event, 0);
		frag_live_record_stream((void *)(uintptr_t)p->b[i].addr, fake_stream(other));
	}
	fake_work(other, p->b[i].addr, p->b[i].bytes, false);
}

void live_free_one(struct live_program *p, unsigned i)
{
	frag_live_free((void *)(uintptr_t)p->b[i].addr, (ptrdiff_t)p->b[i].bytes, 0,
		       fake_stream(p->b[i].stream));
	p->b[i].addr = 0;
}

void live_run(struct live_program *p, unsigned steps)
{
	for (unsigned n = 0; n < steps; n++) {
		unsigned i = live_draw(LIVE_BLOCKS);

		fake_ready(live_draw(256));
		if (!p->b[i].addr)
			live_alloc_one(p, i, live_draw(p->streams));
		else if (live_draw(2))
			use_one(p, i);
		else
			live_free_one(p, i);
		if (!live_draw(1000))
			frag_live_reset();
	}
}

void live_free_all(struct live_program *p)
{
	for (unsigned i = 0; i < LIVE_BLOCKS; i++)
		if (p->b[i].addr)
			live_free_one(p, i);
}
