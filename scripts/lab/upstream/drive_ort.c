/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ONNX Runtime's own BFCArena, as it is in the wheel (CPU), through the C API:
 *	drive_ort OPS SEGMENTS LIBONNXRUNTIME [ARENA_EXTEND_STRATEGY]
 * The arena takes its regions with aligned operator new and touches none of them, so that is where the
 * pretended device stands. Trim is a run of the session that asks for the arena to be shrunk afterwards; its input and
 * output are not of the arena.
 * The wheel comes without headers: functions are taken by their place in OrtApi, which is part of
 * its binary interface and only ever grows at the end.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

#include "drive.h"

enum { CREATE_ENV = 3, GET_MESSAGE = 2, CREATE_CPU_INFO = 69, CREATE_AND_REGISTER = 144,
       CREATE_ARENA_CFG_V2 = 164, RUN = 9, RUN_OPTIONS = 39, TENSOR_AROUND = 49, RUN_CONFIG = 165, FROM_ARRAY = 8, SESSION_OPTIONS = 10, CONFIG_ENTRY = 130, CREATE_ALLOCATOR = 131, ALLOC = 75, FREE = 76 };

extern void __libc_free(void *);
extern void *__libc_memalign(size_t, size_t);
static int armed;

/* operator new(size_t, std::align_val_t), which the arena asks for regions */
void *_ZnwmSt11align_val_t(size_t bytes, size_t alignment);
void *_ZnwmSt11align_val_t(size_t bytes, size_t alignment)
{
	void *out = armed ? dev_take(bytes) : __libc_memalign(alignment, bytes);

	if (!out && armed)
		((void (*)(void))dlsym(RTLD_DEFAULT, "_ZSt17__throw_bad_allocv"))();
	return out;
}

void free(void *ptr)
{
	if (!armed || !dev_give(ptr))
		__libc_free(ptr);
}

/* A model: y = Identity(x). A session knows the arena. */
static const char model[] =
	"\x08\x08\x3a\x37\x0a\x10\x0a\x01\x78\x12\x01\x79\x22\x08\x49\x64\x65\x6e\x74\x69"
	"\x74\x79\x12\x01\x67\x5a\x0f\x0a\x01\x78\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02"
	"\x08\x01\x62\x0f\x0a\x01\x79\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x01\x42"
	"\x04\x0a\x00\x10\x0d";

struct api_base {
	void *const *(*get_api)(uint32_t version);
	const char *(*version)(void);
};
static void *const *api;
static void *arena, *session, *run_options, *x, *y;

static void must(void *status, const char *what)
{
	if (!status)
		return;
	fprintf(stderr, "%s: %s\n", what,
		((const char *(*)(const void *))api[GET_MESSAGE])(status));
	_exit(4);
}

static void *take(size_t bytes, unsigned stream)
{
	void *out = NULL, *status;

	(void)stream;
	armed = 1;
	status = ((void *(*)(void *, size_t, void **))api[ALLOC])(arena, bytes, &out);
	armed = 0;
	return status ? NULL : out;
}

static void give(void *ptr, size_t bytes, unsigned stream)
{
	(void)bytes;
	(void)stream;
	((void *(*)(void *, void *))api[FREE])(arena, ptr);
}

static void shrink(void)
{
	const char *in[] = { "x" }, *out[] = { "y" };

	armed = 1;
	must(((void *(*)(void *, void *, const char *const *, void *const *, size_t, const char *const *, size_t,
			 void **))api[RUN])(session, run_options, in, (void *const *)&x, 1, out, 1, &y),
	     "run");
	armed = 0;
}

/* What shrink needs. */
static void make_run(void *info)
{
	static float numbers[2];
	int64_t shape[] = { 1 };

	must(((void *(*)(void **))api[RUN_OPTIONS])(&run_options), "run options");
	must(((void *(*)(void *, const char *, const char *))api[RUN_CONFIG])(
		     run_options, "memory.enable_memory_arena_shrinkage", "cpu:0"),
	     "run options");
	for (int i = 0; i < 2; i++)
		must(((void *(*)(void *, void *, size_t, const int64_t *, size_t, int, void **))api[TENSOR_AROUND])(
			     info, &numbers[i], sizeof(float), shape, 1, 1, i ? &y : &x),
		     "tensor");
}

int main(int argc, char **argv)
{
	static const struct drive_ops ops = { take, give, shrink };
	const char *keys[] = { "arena_extend_strategy", "max_mem" };
	size_t values[] = { 0, 0 };
	void *env, *info, *cfg, *options;
	void *lib = argc > 3 ? dlopen(argv[3], RTLD_NOW) : NULL;
	const struct api_base *(*base)(void);

	if (!lib)
		return fprintf(stderr, "drive_ort: %s\n", dlerror()), 2;
	dev_load(argv[2]);
	base = (const struct api_base *(*)(void))dlsym(lib, "OrtGetApiBase");
	api = base()->get_api(23);
	if (!api)
		return 4;
	if (argc > 4)
		values[0] = (size_t)strtoull(argv[4], NULL, 0);
	must(((void *(*)(int, const char *, void **))api[CREATE_ENV])(3, "drive", &env), "env");
	must(((void *(*)(int, int, void **))api[CREATE_CPU_INFO])(1, 0, &info), "memory info");
	must(((void *(*)(const char **, const size_t *, size_t, void **))api[CREATE_ARENA_CFG_V2])(
		     keys, values, 2, &cfg),
	     "arena");
	must(((void *(*)(void *, void *, void *))api[CREATE_AND_REGISTER])(env, info, cfg), "register");
	must(((void *(*)(void **))api[SESSION_OPTIONS])(&options), "options");
	must(((void *(*)(void *, const char *, const char *))api[CONFIG_ENTRY])(
		     options, "session.use_env_allocators", "1"),
	     "options");
	must(((void *(*)(void *, const void *, size_t, void *, void **))api[FROM_ARRAY])(
		     env, model, sizeof(model) - 1, options, &session),
	     "session");
	must(((void *(*)(void *, void *, void **))api[CREATE_ALLOCATOR])(session, info, &arena),
	     "allocator");
	make_run(info);
	if (!arena)
		return fprintf(stderr, "drive_ort: no arena\n"), 4;
	fprintf(stderr, "onnxruntime %s\n", base()->version());
	fflush(stderr);
	drive(argv[1], &ops);
	_exit(0);
}
