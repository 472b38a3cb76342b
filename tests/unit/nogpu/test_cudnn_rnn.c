/* SPDX-License-Identifier: Apache-2.0 */
/* What recurrent layers take, as an H200 with cuDNN 9.19 answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

int frag_nogpu_cudnnCreateRNNDescriptor(void **out);
int frag_nogpu_cudnnCreateRNNDataDescriptor(void **out);
int frag_nogpu_cudnnCreateDropoutDescriptor(void **out);
int frag_nogpu_cudnnSetDropoutDescriptor(void *d, void *h, float share, void *states, size_t bytes,
					 unsigned long long seed);
int frag_nogpu_cudnnDropoutGetStatesSize(void *h, size_t *bytes);
int frag_nogpu_cudnnSetRNNDescriptor_v8(void *r, int algorithm, int cell, int bias, int direction,
					int input_mode, int type, int precision, int math,
					int input, int hidden, int projected, int layers,
					void *dropout, unsigned flags);
int frag_nogpu_cudnnSetRNNDataDescriptor(void *t, int type, int layout, int steps, int batch,
					 int width, const int *lengths, void *padding);
int frag_nogpu_cudnnGetRNNTempSpaceSizes(void *h, void *r, int mode, void *x, size_t *workspace,
					 size_t *reserve);

enum { TANH = 1, LSTM = 2, GRU = 3 };
enum { FLOAT = 0, BFLOAT = 9 };

/* padded: as PyTorch calls it for sequences of one length */
static const struct {
	int cell, bias, both, type, input, hidden, projected, layers, steps, batch, train;
	float drops;
	unsigned padded;
	size_t workspace, reserve;
} rows[] = {
	{ LSTM, 2, 1, FLOAT, 256, 512, 512, 2, 70, 32, 1, 0.1F, 1, 140968448, 101499136 },
	{ LSTM, 2, 1, FLOAT, 256, 512, 512, 2, 128, 32, 1, 0.1F, 1, 196084224, 185598208 },
	{ GRU, 2, 0, FLOAT, 1024, 512, 512, 1, 70, 32, 1, 0, 1, 59441664, 27525376 },
	{ LSTM, 2, 0, FLOAT, 1024, 160, 160, 1, 64, 32, 1, 0.2F, 0, 21180672, 6553856 },
	{ TANH, 2, 1, BFLOAT, 64, 256, 256, 2, 64, 8, 1, 0, 0, 36815104, 1573120 },
	{ LSTM, 0, 0, FLOAT, 100, 768, 768, 1, 256, 1, 0, 0, 0, 22219008, 0 },
};

static void *made(int (*make)(void **))
{
	void *d = NULL;

	assert_int_equal(make(&d), 0);
	return d;
}

static void as_a_card_answered(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *r = made(frag_nogpu_cudnnCreateRNNDescriptor);
		void *x = made(frag_nogpu_cudnnCreateRNNDataDescriptor);
		void *d = made(frag_nogpu_cudnnCreateDropoutDescriptor);
		size_t workspace = 0, reserve = 0;
		int lengths[256];

		for (int k = 0; k < rows[i].batch; k++)
			lengths[k] = rows[i].steps;
		frag_nogpu_cudnnSetDropoutDescriptor(d, NULL, rows[i].drops, NULL, 0, 0);
		frag_nogpu_cudnnSetRNNDescriptor_v8(r, 0, rows[i].cell, rows[i].bias, rows[i].both,
						    0, rows[i].type, 0, 0, rows[i].input,
						    rows[i].hidden, rows[i].projected,
						    rows[i].layers, d, rows[i].padded);
		frag_nogpu_cudnnSetRNNDataDescriptor(x, rows[i].type, 0, rows[i].steps,
						     rows[i].batch, rows[i].input, lengths, NULL);
		frag_nogpu_cudnnGetRNNTempSpaceSizes(NULL, r, rows[i].train, x, &workspace,
						     &reserve);
		assert_int_equal(workspace, rows[i].workspace);
		assert_int_equal(reserve, rows[i].reserve);
		free(r);
		free(x);
		free(d);
	}
}

static void a_generator_for_each_thread(void **state)
{
	size_t bytes = 0;

	(void)state;
	frag_nogpu_cudnnDropoutGetStatesSize(NULL, &bytes);
	assert_int_equal(bytes, 6488064);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_a_card_answered),
		cmocka_unit_test(a_generator_for_each_thread),
	};

	setenv("CUFRAG_NOGPU", "name=H200;total=150109880320;cc=9.0;sms=132", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
