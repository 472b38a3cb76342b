# a CUDA runtime inside of the program's libraries: what is replaced, and what is left alone
# needs: cc python3
[ "$(uname -m)" = x86_64 ] || { echo 'x86-64 only' >&2; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
cat > own.c << 'E'
#define LONG __asm__ volatile("nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop")
#ifndef INSIDE
#define INSIDE __attribute__((visibility("hidden")))
#endif
/* the runtime */
INSIDE int cudaGetDeviceCount(int *n) { LONG; *n = 0; return 35; }
#ifndef WRAPPER
INSIDE void **__cudaRegisterFatBinary(void *p) { LONG; return p; }
#endif
INSIDE __attribute__((naked)) int cudaGetDevice(int *n) { __asm__("mov $35,%eax; ret"); }
/* the user's */
__attribute__((naked)) int behind(void) { __asm__("mov $8,%eax; ret"); }
int cuda_answer(int x) { LONG; return x + 42; }
int cudaless_mode(void) { LONG; return 7; }
static __attribute__((noinline)) int cudaHelper(int x) { LONG; return x * 3; }
int helped(int x) { return cudaHelper(x); }
int cudaMallocPitch(void) { LONG; return 4711; }
int runtime(void) { int n = -1, rc = cudaGetDeviceCount(&n); return 100 * rc + n; }
int short_one(void) { return cudaGetDevice(0); }
E
build() { "$cc" -O0 -w -shared -fPIC -Wl,-Bsymbolic -o "$@" own.c; }
build libown.so
build libcudnn_graph.so.9
build libcudart-a7b3c2d1.so.12
build wrapper.so -DWRAPPER
build exported.so -DINSIDE=
build stripped.so -s
build other.so
build mapped.so
build newer.so -falign-functions=64 -DINSIDE='__attribute__((visibility("hidden"), aligned(64)))'
cat > see.py << 'E'
import ctypes, mmap, os, sys
import cufrag_static
adopt = cufrag_static.Libraries(os.environ["CUFRAG_PRETEND_HOME"] + "/libcufrag_pretend.so").look
raw = mmap.mmap(os.open("mapped.so", os.O_RDONLY), 0, prot=mmap.PROT_READ)  # a file, not a library
for name in sys.argv[1:]:
    own = ctypes.CDLL(os.path.join("." if name == "libown.so" else os.getcwd(), name))
    if name == "other.so":  # its file is another one by now
        os.replace("newer.so", name)
    adopt()
    print(name, own.runtime(), own.short_one(), own.behind(), own.cuda_answer(1), own.cudaless_mode(), own.helped(5), own.cudaMallocPitch())
E
"$CUFRAG" record --no-gpu -o none.cft -- python3 see.py libown.so libcudnn_graph.so.9 libcudart-a7b3c2d1.so.12 wrapper.so exported.so stripped.so other.so 2> /dev/null
rm -rf ./*.so* own.c see.py
