/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents of blocks on a real card: loads the embedded kernels of kernels/ and launches them.
 *
 * All work on contents runs on one separate stream, in the order of the calls. So a reused block is
 * filled after its previous use was verified, whatever the streams. Calls that remove memory wait
 * for this work; calls of a pool are ordered by events. A verify writes its finding to 64
 * bytes on the card, which are copied to the host every POLL_EVERY verifies and at the end.
 */
#include "cuda_internal.h"

#define THREADS 256u
#define PIECES_PER_THREAD 4u
#define BLOCKS_PER_PROCESSOR 8u /* 2048 threads */
#define TOUCH_PAGE 4096u
#define POLL_EVERY 64u

/* Same layout as struct fault of kernels/verify.cu. */
struct cuda_fault {
	unsigned long long count, offset, other_offset;
	unsigned id, generation, other_id, other_generation;
	unsigned found[4];
	unsigned foreign, spare;
};
_Static_assert(sizeof(struct cuda_fault) == 64, "the layout that verify.cu writes");

#define FRAG_ENTRY(name) extern const unsigned char frag_fatbin_##name[];
#include "kernel_list.inc"
#undef FRAG_ENTRY

static const struct {
	const char *name;
	const unsigned char *fatbin;
	size_t offset; /* of its cudaKernel_t */
} kernels[] = {
#define FRAG_ENTRY(name) { "frag_" #name, frag_fatbin_##name, offsetof(struct cuda_content, name) },
#include "kernel_list.inc"
#undef FRAG_ENTRY
};
_Static_assert(FRAG_ARRAY_LEN(kernels) <= FRAG_ARRAY_LEN(((struct cuda_content *)0)->libraries),
	       "one library for each kernel");

static int load_kernels(struct cuda_content *w, struct frag_err *err)
{
	for (size_t i = 0; i < FRAG_ARRAY_LEN(kernels); i++) {
		cudaLibrary_t *library = &w->libraries[w->libraries_count];
		cudaKernel_t *kernel = (cudaKernel_t *)(void *)((char *)w + kernels[i].offset);

		FRAG_TRY(RT(err, cudaLibraryLoadData, library, kernels[i].fatbin, NULL, NULL, 0,
			    NULL, NULL, 0));
		w->libraries_count++;
		FRAG_TRY(RT(err, cudaLibraryGetKernel, kernel, *library, kernels[i].name));
	}
	return 0;
}

static int load_all(struct cuda_content *w, struct frag_err *err)
{
	FRAG_TRY(load_kernels(w, err));
	FRAG_TRY(RT(err, cudaStreamCreateWithFlags, &w->stream, cudaStreamNonBlocking));
	FRAG_TRY(RT(err, cudaEventCreateWithFlags, &w->order, cudaEventDisableTiming));
	/* a whole page, because it must not share one with the counted small segments */
	FRAG_TRY(RT(err, cudaMalloc, &w->fault, FRAG_PAGE));
	FRAG_TRY(RT(err, cudaMemset, w->fault, 0, sizeof(struct cuda_fault)));
	FRAG_TRY(RT(err, cudaHostAlloc, (void **)&w->fault_host, sizeof(struct cuda_fault),
		    cudaHostAllocDefault));
	w->fault_host->count = 0;
	w->loaded = true;
	return 0;
}

/* All or nothing: may be tried again after a failure. */
static int load(struct cuda *c, struct frag_err *err)
{
	int rc = c->content.loaded ? 0 : load_all(&c->content, err);

	if (rc)
		frag_cuda_content_release(c);
	return rc;
}

static int launch(cudaKernel_t kernel, unsigned blocks, unsigned threads, void **args,
		  cudaStream_t stream, struct frag_err *err)
{
	dim3 grid = { blocks, 1, 1 }, block = { threads, 1, 1 };

	return RT(err, cudaLaunchKernel, (const void *)kernel, grid, block, args, 0, stream);
}

static unsigned blocks_for(const struct cuda *c, uint64_t items)
{
	uint64_t most = (uint64_t)c->processors * BLOCKS_PER_PROCESSOR;
	uint64_t blocks = (items + THREADS - 1) / THREADS;

	return (unsigned)FRAG_MAX(FRAG_MIN(blocks, most), 1u);
}

int frag_cuda_touch(struct cuda *c, frag_addr_t addr, uint64_t bytes, cudaStream_t stream,
		    struct frag_err *err)
{
	unsigned long long n = bytes;
	unsigned page = TOUCH_PAGE;
	void *ptr = (void *)(uintptr_t)addr;
	void *args[] = { &ptr, &n, &page };

	FRAG_TRY(load(c, err));
	return launch(c->content.touch, blocks_for(c, bytes / TOUCH_PAGE + 1), THREADS, args,
		      stream, err);
}

int frag_cuda_touch_ready(struct cuda *c, struct frag_err *err)
{
	FRAG_TRY(load(c, err));
	/* the first launch loads its code to the card; the page after the report is unused */
	FRAG_TRY(frag_cuda_touch(c, (uintptr_t)c->content.fault + FRAG_PAGE / 2, 1,
				 c->content.stream, err));
	return RT(err, cudaStreamSynchronize, c->content.stream);
}

static int delay(struct cuda *c, const struct frag_content *b, struct frag_err *err)
{
	unsigned long long ns = b->bytes;
	void *args[] = { &ns };
	cudaStream_t s;

	FRAG_TRY(frag_cuda_stream(c, b->stream, &s, err));
	return launch(c->content.delay, 1, 1, args, s, err);
}

static int fill(struct cuda *c, const struct frag_content *b, struct frag_err *err)
{
	void *ptr = (void *)(uintptr_t)b->addr;
	unsigned long long n = b->bytes;
	unsigned id = b->id, generation = b->generation;
	void *args[] = { &ptr, &n, &id, &generation };

	return launch(c->content.fill, blocks_for(c, b->bytes / 16 / PIECES_PER_THREAD + 1),
		      THREADS, args, c->content.stream, err);
}

static int verify(struct cuda *c, const struct frag_content *b, struct frag_err *err)
{
	struct cuda_content *w = &c->content;
	void *ptr = (void *)(uintptr_t)b->addr;
	unsigned long long n = b->bytes;
	unsigned id = b->id, generation = b->generation;
	void *args[] = { &ptr, &n, &id, &generation, &w->fault };

	FRAG_TRY(launch(w->verify, blocks_for(c, b->bytes / 16 / PIECES_PER_THREAD + 1), THREADS,
			args, w->stream, err));
	if (++w->verifies % POLL_EVERY)
		return 0;
	return RT(err, cudaMemcpyAsync, w->fault_host, w->fault, sizeof(*w->fault_host),
		  cudaMemcpyDeviceToHost, w->stream);
}

int frag_cuda_content(void *priv, enum frag_content_op op, const struct frag_content *b,
		      struct frag_err *err)
{
	struct cuda *c = priv;
	cudaStream_t s;

	FRAG_TRY(load(c, err));
	if (op == FRAG_CONTENT_DELAY)
		return delay(c, b, err);
	if (c->card.pools && op != FRAG_CONTENT_VERIFY) {
		FRAG_TRY(frag_cuda_stream(c, b->stream, &s, err));
		FRAG_TRY(frag_cuda_content_follows(c, s, err));
	}
	c->content.busy = true;
	return op == FRAG_CONTENT_FILL ? fill(c, b, err) : verify(c, b, err);
}

int frag_cuda_content_follows(struct cuda *c, cudaStream_t stream, struct frag_err *err)
{
	FRAG_TRY(RT(err, cudaEventRecord, c->content.order, stream));
	return RT(err, cudaStreamWaitEvent, c->content.stream, c->content.order, 0);
}

int frag_cuda_content_precedes(struct cuda *c, cudaStream_t stream, struct frag_err *err)
{
	if (FRAG_LIKELY(!c->content.busy))
		return 0;
	FRAG_TRY(RT(err, cudaEventRecord, c->content.order, c->content.stream));
	return RT(err, cudaStreamWaitEvent, stream, c->content.order, 0);
}

void frag_cuda_before(void *priv, enum frag_call call)
{
	static const uint32_t behind = 1u << FRAG_CALL_FREE | 1u << FRAG_CALL_UNMAP |
				       1u << FRAG_CALL_MANAGED_FREE | 1u << FRAG_CALL_POOL_TRIM |
				       1u << FRAG_CALL_SYNC | 1u << FRAG_CALL_DEVICE_SYNC;
	struct cuda *c = priv;

	if (FRAG_LIKELY(!c->content.busy) || !(behind >> call & 1))
		return;
	/* an error here is sticky: the next call reports it */
	(void)cudaStreamSynchronize(c->content.stream);
	c->content.busy = false;
}

int frag_cuda_content_fault(void *priv, bool wait, struct frag_content_fault *out,
			    struct frag_err *err)
{
	struct cuda *c = priv;
	struct cuda_content *w = &c->content;
	const volatile struct cuda_fault *seen = w->fault_host;

	out->count = 0;
	if (!w->loaded)
		return 0;
	/* a copy made while a verify ran may be incomplete: read it again */
	if (wait || seen->count) {
		FRAG_TRY(RT(err, cudaStreamSynchronize, w->stream));
		FRAG_TRY(RT(err, cudaMemcpy, w->fault_host, w->fault, sizeof(*w->fault_host),
			    cudaMemcpyDeviceToHost));
	}
	*out = (struct frag_content_fault){
		.count = seen->count,
		.offset = seen->offset,
		.id = seen->id,
		.generation = seen->generation,
		.foreign = seen->foreign,
		.other_id = seen->other_id,
		.other_generation = seen->other_generation,
		.other_offset = seen->other_offset,
		.found = { seen->found[0], seen->found[1], seen->found[2], seen->found[3] },
	};
	return 0;
}

void frag_cuda_content_release(struct cuda *c)
{
	struct cuda_content *w = &c->content;

	if (w->stream)
		(void)cudaStreamDestroy(w->stream);
	if (w->order)
		(void)cudaEventDestroy(w->order);
	if (w->fault)
		(void)cudaFree(w->fault);
	if (w->fault_host)
		(void)cudaFreeHost(w->fault_host);
	for (unsigned i = 0; i < w->libraries_count; i++)
		(void)cudaLibraryUnload(w->libraries[i]);
	*w = (struct cuda_content){ 0 };
}
