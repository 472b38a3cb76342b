/* SPDX-License-Identifier: Apache-2.0 */
/* What recurrent layers take, as an H200 with cuDNN 9.19 answered; by the older interface: calls.cases. */
#include "test.h"

#include "pretend/card/entries.h"

int frag_nogpu_cudnnSetDropoutDescriptor(void *d, void *h, float share, void *states, size_t bytes,
					 unsigned long long seed);
int frag_nogpu_cudnnSetRNNDescriptor_v8(void *r, int algorithm, int cell, int bias, int direction,
					int input_mode, int type, int precision, int math,
					int input, int hidden, int projected, int layers,
					void *dropout, unsigned flags);
int frag_nogpu_cudnnSetRNNDataDescriptor(void *t, int type, int layout, int steps, int batch,
					 int width, const int *lengths, void *padding);
int frag_nogpu_cudnnGetRNNTempSpaceSizes(void *h, void *r, int mode, void *x, size_t *workspace,
					 size_t *reserve);

enum { RELU, TANH, LSTM = 2, GRU = 3 };
enum { FLOAT = 0, HALF = 2, BFLOAT = 9 };
enum { SMALL = 3 }; /* the algorithm that PyTorch chooses for few hidden values */

/* padded: as PyTorch calls it for sequences of one length */
static const struct {
	int cell, bias, both, type, input, hidden, projected, layers, steps, batch, train;
	float drops;
	unsigned padded;
	size_t workspace, reserve;
	int algorithm;
} rows[] = {
	{ LSTM, 2, 1, FLOAT, 256, 512, 512, 2, 70, 32, 1, 0.1F, 1, 140968448, 101499136, 0 },
	{ LSTM, 2, 1, FLOAT, 256, 512, 512, 2, 128, 32, 1, 0.1F, 1, 196084224, 185598208, 0 },
	{ GRU, 2, 0, FLOAT, 1024, 512, 512, 1, 70, 32, 1, 0, 1, 59441664, 27525376, 0 },
	{ LSTM, 2, 0, FLOAT, 1024, 160, 160, 1, 64, 32, 1, 0.2F, 0, 21180672, 6553856, 0 },
	{ TANH, 2, 1, BFLOAT, 64, 256, 256, 2, 64, 8, 1, 0, 0, 36815104, 1573120, 0 },
	{ LSTM, 0, 0, FLOAT, 100, 768, 768, 1, 256, 1, 0, 0, 0, 22219008, 0, 0 },
	{ LSTM, 2, 0, FLOAT, 1, 640, 640, 2, 70, 20, 1, 0, 1, 55398272, 39424256, 0 },
	{ GRU, 2, 0, HALF, 768, 40, 40, 2, 512, 128, 1, 0, 1, 329815424, 68157696, 0 },
	{ TANH, 2, 1, BFLOAT, 80, 1, 1, 1, 20, 1, 1, 0.2F, 1, 16797536, 352, 0 },
	{ LSTM, 2, 1, FLOAT, 300, 8, 8, 1, 20, 20, 0, 0.2F, 1, 17531040, 0, 0 },
	{ LSTM, 2, 0, FLOAT, 768, 20, 5, 2, 1, 7, 1, 0.2F, 1, 17103872, 7872, 0 },
	{ LSTM, 2, 1, FLOAT, 200, 1024, 512, 4, 35, 1, 0, 0.2F, 1, 260750976, 0, 0 },
	{ TANH, 2, 0, FLOAT, 256, 300, 300, 1, 100, 128, 1, 0, 1, 235873088, 15360256, SMALL },
	{ TANH, 2, 1, FLOAT, 16, 100, 100, 2, 200, 64, 0, 0, 1, 96659200, 0, SMALL },
	{ LSTM, 2, 0, FLOAT, 7, 96, 96, 2, 70, 64, 1, 0, 1, 53876480, 18923776, SMALL },
	{ LSTM, 2, 1, FLOAT, 200, 160, 160, 2, 64, 7, 1, 0.2F, 1, 46976832, 6343936, SMALL },
	{ GRU, 2, 0, FLOAT, 64, 160, 160, 1, 1, 3, 1, 0, 1, 8866592, 11776, SMALL },
	{ GRU, 2, 1, FLOAT, 300, 33, 33, 1, 10, 128, 1, 0, 1, 29873984, 2027776, SMALL },
	{ LSTM, 2, 1, BFLOAT, 64, 50, 50, 4, 35, 1, 1, 0, 1, 67625664, 161280, SMALL },
};

static void *made(int (*make)(void **))
{
	void *d = NULL;

	assert_int_equal(make(&d), 0);
	return d;
}

TEST(as_a_card_answered)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		FRAG_AUTO(free_at) void *r = made(frag_nogpu_cudnnCreateRNNDescriptor);
		FRAG_AUTO(free_at) void *x = made(frag_nogpu_cudnnCreateRNNDataDescriptor);
		FRAG_AUTO(free_at) void *d = made(frag_nogpu_cudnnCreateDropoutDescriptor);
		size_t workspace = 0, reserve = 0;
		int lengths[256];

		for (int k = 0; k < rows[i].batch; k++)
			lengths[k] = rows[i].steps;
		frag_nogpu_cudnnSetDropoutDescriptor(d, NULL, rows[i].drops, NULL, 0, 0);
		frag_nogpu_cudnnSetRNNDescriptor_v8(
			r, rows[i].algorithm, rows[i].cell, rows[i].bias, rows[i].both, 0,
			rows[i].type, 0, 0, rows[i].input, rows[i].hidden, rows[i].projected,
			rows[i].layers, d, rows[i].padded);
		frag_nogpu_cudnnSetRNNDataDescriptor(x, rows[i].type, 0, rows[i].steps,
						     rows[i].batch, rows[i].input, lengths, NULL);
		frag_nogpu_cudnnGetRNNTempSpaceSizes(NULL, r, rows[i].train, x, &workspace,
						     &reserve);
		assert_int_equal(workspace, rows[i].workspace);
		assert_int_equal(reserve, rows[i].reserve);
	}
}

static int choose_card(void **state)
{
	(void)state;
	return setenv("CUFRAG_NOGPU", "name=H200;total=150109880320;cc=9.0;sms=132", 1);
}
TEST_GROUP(choose_card, NULL)
