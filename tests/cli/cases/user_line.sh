# the interpreter, the unwinder, PyTorch's C++, what it compiled, and cufrag are never the user's line
tab=$(printf '\t')
log() { # LINE
	cat <<END
#frame 0x1${tab}torch::unwind::unwind()${tab}??${tab}0x0
#frame 0x2${tab}cfunction_vectorcall_FASTCALL${tab}/usr/local/src/conda/python-3.12.2/Objects/methodobject.c${tab}:434
#frame 0x3${tab}_PyEval_EvalFrameDefault${tab}??${tab}0x0
#frame 0x4${tab}empty${tab}/opt/share/cufrag/inject/hooks/inductor.py${tab}:135
#frame 0x5${tab}empty${tab}/opt/share/cufrag/inject/cufrag_card.py${tab}:10
#frame 0x6${tab}call${tab}/scratch/cache/f2/cf2r7mzs7rnanza3lw7c2a4ad6ehbykc75mhfmh6qr4cwyu62kit.py${tab}:143
#frame 0x7${tab}forward${tab}/env/lib/python3.12/site-packages/torch/nn/modules/linear.py${tab}:125
#frame 0x8${tab}<module>${tab}/home/me/train.py${tab}:$1
#frame 0x9${tab}at::_ops::mm::call${tab}??${tab}0x0
#frame 0xa${tab}execute_native_thread_routine${tab}../nptl/pthread_create.c${tab}:442
#frame 0xb${tab}std::function<void ()>::operator()${tab}/usr/include/c++/12/bits/std_function.h${tab}:590
#stack 1 1 2 3 4 5 6 7 8
#stack 2 1 5 8
#stack 3 1 9 b a
action,id,size,stack
alloc,1,1048576,1
alloc,2,2097152,2
alloc,3,4194304,3
END
}
log 8 > a.csv
log 9 > b.csv
"$CUFRAG" explain a.csv --quiet --at event:2 --stacks -
"$CUFRAG" explain a.csv --quiet --at event:2 | sed -n '/Live memory/,/^$/p'
"$CUFRAG" explain a.csv --quiet --at event:2 --by stack --json - | grep '"site"'
"$CUFRAG" diff a.csv b.csv --quiet | grep train
# C++ alone: the first frame that is neither PyTorch's nor libc's, with and without debug information
{
	printf '#frame 0x%s\t%s\t%s\t%s\n' 1 'at::Tensor& at::native::zero_<float>(at::Tensor&)' '??' 0x0 \
		2 'torch::autograd::VariableType::(anonymous namespace)::mul(at::Tensor const&)' '??' 0x0 \
		3 'cudaMalloc' /usr/local/cuda/lib64/libcudart.so.12 0x0 4 'at::Tensor Trainer::step<float>(int)' '??' 0x0 5 main '??' 0x0 \
		6 'Net::forward()' /home/me/net.cpp :31 7 'c10::impl::call' /build/pytorch/c10/core/impl.h :5
	printf '#stack %s\n' '1 1 2 4 5' '2 3 7 1 6 5'
	printf '%s\n' action,id,size,stack alloc,1,1048576,1 alloc,2,2097152,2
} > cpp.csv
"$CUFRAG" explain cpp.csv --quiet --at event:1 | sed -n '/Live memory/,/^$/p'
