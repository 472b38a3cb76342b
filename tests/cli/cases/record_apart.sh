# without pools: what cuBLAS and its like take for themselves is no request of the framework; freed or refused, too
# needs: cc
. "$DATA/made.sh"
fake_cuda
cat > blas.c << 'E'
#include <dlfcn.h>
typedef unsigned long u64;
static int (*take)(u64 *, u64), (*give)(u64);
static u64 own;
static void find(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	take = dlsym(driver, "cuMemAlloc_v2");
	give = dlsym(driver, "cuMemFree_v2");
	((int (*)(int))dlsym(driver, "cuInit"))(0);
}
#ifdef LIBRARY
int cublasCreate(u64 bytes) { find(); int bad = take(&own, bytes); return bad + 0; }
int cublasDestroy(void) { int bad = give(own); return bad + 0; }
#else
int cublasCreate(u64), cublasDestroy(void);
int main(int argc, char **argv)
{
	u64 p;
	int bad = cublasCreate(64ul << 20);
	find();
	bad += take(&own, 1000) + take(&p, 3000) + give(own) + cublasDestroy() + (cublasCreate(1ul << 41) != 2);
	return bad + cublasCreate(100) + (take(&own, 1ul << 41) != 2) + give(p);
}
#endif
E
library lib/libcublas.so.99 blas.c -DLIBRARY
compiled program blas.c -Llib -l:libcublas.so.99
for more in --no-pool "--no-pool --stacks" ""; do
	"$CUFRAG" record --by preload $more -o run.cft -- ./program
	"$CUFRAG" info run.cft | grep -E '  events|never'
done
CUFRAG_RECORD_APART=1 recorded own ./program
cut -d, -f 1,3 own.*.csv
# the runtime between them makes no difference
cat > rt.c << 'E'
int cuMemAlloc_v2(unsigned long *, unsigned long);
int cudaMalloc(unsigned long *p, unsigned long n) { int bad = cuMemAlloc_v2(p, n); return bad + 0; }
E
library lib/libcudart.so.99 rt.c -Llib -l:libcuda.so.1
sed -i 's/cuMemAlloc_v2/cudaMalloc/; s/take = dlsym(driver/take = dlsym(dlopen("libcudart.so.99", RTLD_NOW)/' blas.c
library lib/libcublas.so.99 blas.c -DLIBRARY
"$CUFRAG" record --by preload --no-pool -o run.cft -- ./program
