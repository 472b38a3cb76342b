"""Jobs of two ranks (results/programs/ranks.py) need what an H200 measured, to the byte."""
# case: fsdp2_offload
# python: job("fsdp2_offload", 5)
# case: tensor_parallel
# python: job("tensor_parallel_generates", 5)
# case: accelerate_fsdp2
# python: job("accelerate_fsdp2", 5, "accelerate")
# blocks wait for another stream, and on a shared card they wait longer
# case: pipeline
# python: job("pipeline_interleaved", 2)
