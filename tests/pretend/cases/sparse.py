"""2:4 sparsity: CUTLASS works; what cuSPARSELt takes is not known, and the program is told so."""
from support.small import cuda, torch

# needs: from torch.sparse import SparseSemiStructuredTensor as s; s._FORCE_CUTLASS
# run: record --gpu a100-80
# expect: product (256, 512)
# expect: error True
# match: missing from the pretended card, and failed: cusparseLtInit
from torch.sparse import SparseSemiStructuredTensor, to_sparse_semi_structured

for cutlass in True, False:
    SparseSemiStructuredTensor._FORCE_CUTLASS = cutlass
    try:
        weight = to_sparse_semi_structured(torch.tensor([0, 0, 1, 1]).tile((512, 128)).half().cuda())
        x = cuda.randn(256, 512, dtype=torch.half)
        print("product", tuple(torch.nn.functional.linear(x, weight).shape))
    except RuntimeError as error:
        print("error", "cusparseLtInit" in str(error))
