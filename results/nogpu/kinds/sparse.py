# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors: graph convolution by COO and CSR, sparse gradients with SparseAdam, coalescing, sampled products, blocks, semi-structured conversion."""
import torch
import torch.nn as nn


def main():
    torch.manual_seed(0)
    nodes, edges = 60000, 900000
    i = torch.randint(0, nodes, (2, edges), device="cuda")
    a = torch.sparse_coo_tensor(i, torch.ones(edges, device="cuda"), (nodes, nodes)).coalesce()
    degree = torch.sparse.sum(a, 1).to_dense().clamp(min=1)
    a = torch.sparse_coo_tensor(a.indices(), a.values() / degree[a.indices()[0]], a.shape, is_coalesced=True)
    w1, w2 = nn.Linear(256, 256).cuda(), nn.Linear(256, 40).cuda()
    x, y = torch.randn(nodes, 256, device="cuda"), torch.randint(0, 40, (nodes,), device="cuda")
    o = torch.optim.Adagrad([*w1.parameters(), *w2.parameters()], lr=0.01)
    for _ in range(3):
        h = torch.sparse.mm(a, w1(x)).relu()
        loss = nn.functional.cross_entropy(torch.sparse.mm(a, w2(nn.functional.dropout(h, 0.5))), y)
        loss.backward()
        o.step()
        o.zero_grad()
    csr = a.to_sparse_csr()
    with torch.no_grad():
        for _ in range(3):
            x = 0.9 * (csr @ x) + 0.1 * x
    dense = torch.randn(4096, 256, device="cuda")
    sampled = torch.sparse.sampled_addmm(torch.sparse_coo_tensor(i[:, :4096] % 4096, torch.ones(4096, device="cuda"), (4096, 4096)).coalesce().to_sparse_csr(),
                                         dense, dense.t().contiguous())
    sampled.to_dense()
    del csr, sampled, dense, h, loss, x
    emb = nn.Embedding(1000000, 128, sparse=True).cuda()
    bag = nn.EmbeddingBag(300000, 64, mode="sum", sparse=True).cuda()
    so = torch.optim.SparseAdam([*emb.parameters(), *bag.parameters()], lr=1e-3)
    for _ in range(3):
        ids = torch.randint(0, 1000000, (4096, 30), device="cuda")
        bags, offsets = torch.randint(0, 300000, (80000,), device="cuda"), torch.arange(0, 80000, 20, device="cuda")
        loss = emb(ids).mean(1).square().mean() + bag(bags, offsets).square().mean()
        loss.backward()
        so.step()
        so.zero_grad()
    del loss
    p = torch.sparse_coo_tensor(torch.randint(0, 2000, (2, 20000), device="cuda"), torch.randn(20000, device="cuda"), (2000, 2000))
    q = (p + p.t()).coalesce()
    torch.sparse.mm(q, q)
    torch.sparse.softmax(q, 1)
    masked = torch.randn(2048, 2048, device="cuda") * (torch.arange(2048, device="cuda") % 4 == 0)
    s = masked.to_sparse()
    s.to_sparse_csr().to_dense()
    blocks = torch.eye(2048, device="cuda").to_sparse_bsr(64)
    blocks.to_dense()
    hybrid = torch.sparse_coo_tensor(torch.arange(1000, device="cuda")[None] * 7 % 5000, torch.randn(1000, 32, device="cuda"), (5000, 32))
    hybrid.coalesce().to_dense()
    torch.cuda.synchronize()


def report():
    import json
    torch.cuda.synchronize()
    s = torch.cuda.memory_stats()
    print(json.dumps({k: s[k + ".all.peak"] for k in ("requested_bytes", "allocated_bytes", "reserved_bytes")}), flush=True)


if __name__ == "__main__":
    main()
    report()
