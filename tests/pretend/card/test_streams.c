/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of the pretended card: captures, graphs, and the time that work takes. */
#include "test.h"

#include "nogpu_card.h"

int frag_nogpu_cudaGraphExecDestroy(void *graph);

static int capturing(void *stream)
{
	int status;

	OK(cudaStreamIsCapturing(stream, &status));
	return status;
}

TEST(who_waits_for_a_capture_is_refused_and_it_is_lost)
{
	static const int refused[] = { 0, 900, 900, 907, 907 };
	void *a, *b, *event, *graph;
	int rc;

	NEEDS_ADDRESSES();
	frag_nogpu_cudaStreamCreate(&a);
	frag_nogpu_cudaStreamCreate(&b);
	frag_nogpu_cudaEventCreate(&event);
	for (int way = 0; way < 5; way++) {
		frag_nogpu_cudaStreamBeginCapture(a, 0);
		frag_nogpu_cudaEventRecord(event, a);
		frag_nogpu_cudaStreamWaitEvent(b, event, 0);
		OK(cudaStreamSynchronize(NULL));
		rc = way == 1	? frag_nogpu_cudaStreamSynchronize(b)
		     : way == 2 ? frag_nogpu_cudaDeviceSynchronize()
		     : way == 3 ? frag_nogpu_cudaEventSynchronize(event)
		     : way == 4 ? frag_nogpu_cudaEventQuery(event)
				: 0;
		assert_int_equal(rc, refused[way]);
		assert_true(capturing(a) && capturing(b));
		assert_int_equal(frag_nogpu_cudaStreamEndCapture(a, &graph), way ? 901 : 0);
		assert_int_equal(graph == NULL, way > 0);
		assert_false(capturing(a) || capturing(b));
		OK(cudaEventSynchronize(event));
		OK(cudaStreamSynchronize(b));
		OK(cudaDeviceSynchronize());
	}
}

/* 300 us of work on a stream, and 45 of the host to hand it out: two segments take the host more than that. */
TEST(segments_and_copies_take_time)
{
	static unsigned char host[8 << 20];
	void *stream, *event, *p, *q, *pinned;

	NEEDS_ADDRESSES();
	OK(cudaStreamCreate(&stream));
	OK(cudaEventCreateWithFlags(&event, 0));
	frag_nogpu_work(stream, 300000, 0, false);
	OK(cudaEventRecord(event, stream));
	OK(cudaMalloc(&p, sizeof(host)));
	assert_int_equal(frag_nogpu_cudaEventQuery(event), 600);
	OK(cudaMalloc(&q, sizeof(host)));
	OK(cudaEventQuery(event));
	OK(cudaMemcpyAsync(p, host, sizeof(host), 1, stream));
	OK(cudaEventRecord(event, stream));
	OK(cudaEventQuery(event));
	OK(cudaHostAlloc(&pinned, sizeof(host), 0));
	OK(cudaMemcpyAsync(p, pinned, sizeof(host), 1, stream));
	OK(cudaEventRecord(event, stream));
	assert_int_equal(frag_nogpu_cudaEventQuery(event), 600);
	OK(cudaStreamSynchronize(stream));
	OK(cudaEventQuery(event));
	OK(cudaFreeHost(pinned));
	OK(cudaFree(p));
	OK(cudaFree(q));
}

static void count_up(void *count)
{
	++*(int *)count;
}

/* as NCCL's groups do it: given to a graph while it is captured; of another graph, lost while its capture goes on, at once */
TEST(what_a_graph_holds_goes_with_the_last_that_can_be_launched)
{
	void *stream, *graph, *launched, *object, *kept;
	int gone = 0;

	NEEDS_ADDRESSES();
	frag_nogpu_cudaStreamCreate(&stream);
	for (int lost = 0; lost < 2; lost++) {
		gone = 0;
		OK(cudaStreamBeginCapture(stream, 0));
		OK(cudaStreamGetCaptureInfo_v2(stream, (int[1]){ 0 }, NULL, &graph, NULL, NULL));
		OK(cudaUserObjectCreate(&object, &gone, count_up, 1, 1));
		OK(cudaGraphRetainUserObject(graph, object, 1, 1));
		OK(cudaUserObjectCreate(&kept, &gone, count_up, 1, 1));
		OK(cudaGraphRetainUserObject(graph, kept, 1, 0));
		if (lost) {
			frag_nogpu_cudaStreamSynchronize(stream);
			assert_int_equal(frag_nogpu_cudaStreamEndCapture(stream, &graph), 901);
		} else {
			OK(cudaStreamEndCapture(stream, &graph));
			OK(cudaGraphInstantiate(&launched, graph, 0));
			OK(cudaGraphDestroy(graph));
			assert_int_equal(gone, 0);
			OK(cudaGraphExecDestroy(launched));
		}
		assert_int_equal(gone, 1);
		OK(cudaUserObjectRelease(kept, 1));
		assert_int_equal(gone, 2);
	}
}

TEST_GROUP(small_card, NULL)
