# The text of an out-of-memory error alone, as people paste it: the verdict and what would help follow from its figures.
# @ASKED|TOTAL|FREE|PROCESSES|ALLOCATED|UNALLOCATED: PyTorch's from 2.1 on
long() {
	sed 's/this \([0-9.]* .iB\)/Including non-PyTorch memory, this process has \1 memory in use/
	s/pid \([0-9]*\) \([0-9.]* .iB\)/Process \1 has \2 memory in use/g
	s/^@\(.*\)|\(.*\)|\(.*\)|\(.*\)|\(.*\)|\(.*\)/CUDA out of memory. Tried to allocate \1. GPU 0 has a total capacity of \2 of which \3 is free. \4 Of the allocated memory \5 is allocated by PyTorch, and \6 is reserved by PyTorch but unallocated./'
}
while IFS= read -r text; do
	printf '%s\n' "$text" | long > text.log
	"$CUFRAG" summary text.log 2>&1 | sed -n '1s/^answer: //p;/record --torch/!s/^next:/  &/p'
done <<'E'
RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 11.17 GiB total capacity; 10.63 GiB already allocated; 4.19 MiB free; 233.00 MiB cached)
Traceback (most recent call last): File "/home/u/train.py", line 10, in step y = f(x) File "/usr/lib/python3.8/site-packages/torch/nn/functional.py", line 1847, in linear return torch._C._nn.linear(input, weight, bias) RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 23.70 GiB total capacity; 12.40 GiB already allocated; 1.10 GiB free; 21.60 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.
torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1024.00 MiB. GPU 0 has a total capacty of 79.15 GiB of which 512.00 MiB is free. Process 111 has 30.00 GiB memory in use. Including non-PyTorch memory, this process has 48.60 GiB memory in use. Of the allocated memory 47.50 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated. If reserved
@2.00 GiB|79.15 GiB|60.00 GiB|this 19.00 GiB. 19.79 GiB allowed;|18.00 GiB|500.00 MiB
@2.00 GiB|23.69 GiB|1.31 GiB|this 22.36 GiB.|20.12 GiB|1.75 GiB
@20.00 MiB|23.69 GiB|12.00 MiB|pid 1 20.00 GiB. pid 2 3.50 GiB.|2.90 GiB|30.00 MiB
tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[256,1024,1024] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc
2023 [E:onnxruntime:, sequential_executor.cc:369 Execute] Non-zero status code returned while running Conv node. Name:'Conv_0' Status Message: /onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:342 void* onnxruntime::BFCArena::AllocateRawInternal(size_t, bool) Available memory of 1073741824 is smaller than requested bytes of 2147483648
(EngineCore pid=12) ValueError: Free memory on device cuda:0 (14.2/23.64 GiB) on startup is less than desired GPU memory utilization (0.9, 21.28 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.
ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is needed, which is larger than the available KV cache memory (5.42 GiB). Based on the available memory, the estimated maximum model length is 44384. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.
ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in KV cache (19664). Try increasing `gpu_memory_utilization`
ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.
RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.
RuntimeError: CUDA error: out of memory CUDA kernel errors might be asynchronously reported at some other API call
[E:onnxruntime:, sequential_executor.cc:514 Execute] bfc_arena.cc:376 Failed to allocate memory for requested buffer of size 4585490524328388608
cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 25,600,000 bytes (allocated so far: 3,635,267,072 bytes).
torch.cuda.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory) Currently allocated : 13.74 GiB Requested : 640.00 MiB Device limit : 14.75 GiB Free (according to CUDA): 27.06 MiB PyTorch limit (set by user-supplied memory fraction) : 17179869184.00 GiB
Allocation on device 0 would exceed allowed memory. (out of memory) Currently allocated : 9.28 GiB Requested : 8.00 GiB Device limit : 16.00 GiB Free (according to CUDA): 0 bytes PyTorch limit (set by user-supplied memory fraction) : 17179869184.00 GiB
ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9866.00 MiB on device 1: cudaMalloc failed: out of memory ggml_gallocr_reserve_n: failed to allocate CUDA1 buffer of size 10345253120
MemoryError: std::bad_alloc: out_of_memory: RMM failure at:/x/include/rmm/mr/device/pool_memory_resource.hpp:196: Maximum pool size exceeded (failed to allocate 1.00 GiB)
@86.00 MiB|23.64 GiB|264.00 MiB|pid 2086283 419.48 MiB. this 8.04 GiB. pid 2797307 14.85 GiB.|7.63 GiB|40.11 MiB
RuntimeError: CUDA out of memory. Tried to allocate 8.13 GiB (GPU 0; 10.76 GiB total capacity; 643.57 MiB already allocated; 8.20 GiB free; 32.43 MiB cached)
File "C:\x\Lib\site-packages\torch\f.py", line 1, in f RuntimeError: CUDA error: out of memory
RuntimeError: Prefill out of memory. Try to lower your batch size.
@64.00 MiB|23.69 GiB|20.00 MiB|pid 11 15.20 GiB. pid 12 8.40 GiB.|14.60 GiB|90.00 MiB
@20.00 MiB|23.69 GiB|18.21 GiB|this 5.40 GiB. 4.75 GiB allowed;|4.60 GiB|137.00 MiB
ValueError: To serve at least one request with the models's max seq len (131072), (10.00 GiB KV cache is needed, which is larger than the available KV cache memory (5.42 GiB). Based on the available memory, the estimated maximum model length is 71024.
@20.00 MiB|23.69 GiB|9.50 MiB|this 23.66 GiB.|23.10 GiB|60.00 MiB
{"error":"CUDA out of memory. Tried to allocate 546.00 MiB. GPU 0 has a total capacity of 15.77 GiB of which 514.19 MiB is free."}
CUDA out of memory. Tried to allocate 546.00 MiB. GPU 0 has a total capacity of 15.
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 546.00 MiB. GPU 0 has a total capacity of 15.77 GiB of which 514.19 MiB is free. Process 562167 has 15.25 GiB memory in use.
@546.00 MiB|15.77 GiB|514.19 MiB|pid 562167 15.25 GiB.|13.73 GiB|46.00 MiB allocated in private pools (e.g., CUDA Graphs), and 736.86 MiB
RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine.
ncclUnhandledCudaError: Call to CUDA function failed. Last error: Cuda failure 2 'out of memory'
RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`
RuntimeError: MPS backend out of memory (MPS allocated: 17.80 GB, other allocations: 220.00 MB, max allowed: 18.13 GB). Tried to allocate 512.00 MB on private pool.
MemoryError: std::bad_alloc: out_of_memory: CUDA error (failed to allocate 4294967296 bytes) at: /opt/conda/include/rmm/mr/device/cuda_memory_resource.hpp:62: cudaErrorMemoryAllocation out of memory
ollama: cudaMalloc failed: out of memory ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 5637144576
RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12884901888 bytes. BufferAssignment OOM Debugging. preallocated temp allocation: 12.00GiB
INFO step 1 loss 2.3 INFO this setting avoids running out of memory on small cards INFO step 2 loss 2.2
E
{ echo "RuntimeError: CUDA error: out of memory"; head -c 3000000 /dev/zero | tr "\0" x; } > one.bin; "$CUFRAG" summary one.bin | cut -c1-60
cat > dump.log <<'E'
2024-05-01 W external/xla/xla/tsl/framework/bfc_allocator.cc:501] Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.00GiB (rounded to 3221225472)requested by op 
2024-05-01 I external/xla/bfc_allocator.cc:1057] Free  at 7f0000 of size 2147483648 next 5
2024-05-01 I external/xla/bfc_allocator.cc:1057] InUse at 7f0000 of size 2147483648 next 5
2024-05-01 I external/xla/bfc_allocator.cc:1071] Sum Total of in-use chunks: 8.00GiB
2024-05-01 I external/xla/bfc_allocator.cc:1073] total_region_allocated_bytes_: 12750397440 memory_limit_: 12750397440 available bytes: 0 curr_region_allocation_bytes_: 25500794880
Limit:                     12750397440
InUse:                      8589934592
jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 3221225472 bytes.
E
"$CUFRAG" diagnose dump.log
# of several GPUs in one log, each with its own figures; a second one of a GPU is not told
printf '%s\n' 'CUDA out of memory. Tried to allocate 3' '@2.00 GiB|79.15 GiB|1.90 GiB|this 77.20 GiB.|60.00 GiB|16.30 GiB' | long > one.log
sed '1d;s/GPU 0/GPU 5/;s/this process has 77/Process 777 has 67.00 GiB memory in use. this process has 10/;s/60/9/;s/16.30 G/300 M/' one.log | cat one.log - one.log > two.log
"$CUFRAG" two.log | sed 's/ (from.*//'
# TensorFlow 1 writes its dump before the error, and says of some refusals that they are no failure
W=tensorflow/core/common_runtime/bfc_allocator.cc
cat > dump.log <<E
W $W:217] Ran out of memory trying to allocate 1.09GiB. The caller indicates that this is not a failure, but may mean that there could be performance gains if more memory is available.
I $W:643] Bin (256): 	Total Chunks: 2, Chunks in use: 0 512B allocated for chunks. 16B client-requested for chunks. 0B in use in bin.
I $W:687] Free at 0x10487e8f00 next 17 of size 412000000
I $W:693] Sum Total of in-use chunks: 3.10GiB
I $W:700] Stats: 
Limit:                  4229129831
InUse:                  3328599654
W $W:276] Ran out of memory trying to allocate 592.00MiB.  See logs for memory state.
E
"$CUFRAG" summary dump.log | head -1
# memory_summary(), the last of each device; cut, of a device that cannot be, of bytes that cannot be
printf '%s\n' '| PyTorch CUDA memory summary, device ID 1 |' '|   CUDA OOMs: 2   |  cudaMalloc retries: 3  |' '| Allocated memory  |   1200 MiB |   1800 MiB | 1 |' \
	'| GPU reserved memory   |   1802 MB |   2802 MB |' '| Non-releasable memory |   2044 KiB | 3 MiB |' > sum.txt
sed 's/ID 1/ID 0/;s/Usage/&/;s/1200 MiB.*/9e99 EiB |/' sum.txt | cat - sum.txt > two.txt
sed 's/ID 1/ID 99999999999999999999/' sum.txt > far.txt
for f in sum two far; do "$CUFRAG" $f.txt 2>&1; done
echo '{"segments": [{"device": 0, "segment_type": "large"}]}' > s.json && "$CUFRAG" fit s.json 2>&1
