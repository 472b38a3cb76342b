# --shard /N as Slurm, Kubernetes, Open MPI, MPICH, MVAPICH and srun number their processes; the program does not see what it could take for its own rank
cat > program << 'END'
env | grep -E '^(SLURM|OMPI|PMI|PMIX|MV2|JOB_COMPLETION)' > leaks
printf 'alloc,1,%d\nfree,1\n' $(($1 << 30)) > "$CUFRAG_RECORD/1.pickle"
END
shard() { # NAME FOLDER VARIABLES…: what this shard of three recorded
	local name=$1
	shift
	env "$@" "$CUFRAG" layout --no-gpu --jobs 1 --gpu h100 --vary '{n}=1..6' --keep "$name" --shard /3 -- sh program '{n}' > out 2> err; echo "$name exit $?"
	grep -o 'peak [0-9.]* GiB' err | sort -u | tr '\n' ' '; echo
	[ ! -s leaks ] || cat leaks
}
for i in 0 1 2; do
	shard slurm SLURM_JOB_ID=71 SLURM_ARRAY_JOB_ID=70 SLURM_ARRAY_TASK_ID=$i SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=2 SLURM_PROCID=0 SLURM_NTASKS=1 PMI_RANK=0
done
for i in 0 1 2; do shard kubernetes JOB_COMPLETION_INDEX=$i; done
shard openmpi OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_RANK=1 PMIX_RANK=1
shard mpich PMI_RANK=2 PMI_SIZE=3
shard mvapich MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_SIZE=3
shard srun SLURM_JOB_ID=7 SLURM_PROCID=2 SLURM_NTASKS=3 SLURM_LOCALID=2
shard none A=1; tail -1 err
shard high SLURM_ARRAY_TASK_ID=3; tail -1 err
"$CUFRAG" layout --no-gpu --jobs 1 --gpu h100 --vary '{n}=1..6' --keep slurm --shard all --check 0 -- sh program '{n}' 2> err | sed -n 2,3p
# values in files that the command names: JSON and YAML, several in one file, beside a preset's; the user's file stays as it is
cat > reads << 'END'
for word; do word=${word#*=}; [ ! -f "$word" ] || tr -d ' {}"\n' < "$word"; done >> seen; echo >> seen
printf 'alloc,1,%d\nfree,1\n' $((1 << 30)) > "$CUFRAG_RECORD/1.pickle"
END
mkdir conf
echo '{ "train_micro_batch_size_per_gpu": 4, "zero_optimization": { "stage": 2 } }' > conf/ds.json
printf 'distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 1\n' > fsdp.yaml
cp conf/ds.json ds.before
"$CUFRAG" layout --keep-writes --gpu h100 --jobs 1 --check 9 --preset deepspeed --vary mb=1,2 --vary zero=3 --vary '{v}=1' --set 'conf/ds.json:zero_optimization.offload_optimizer.device=cpu' \
	--set 'fsdp.yaml:fsdp_config.fsdp_version={v}' -- sh reads --deepspeed_config=conf/ds.json ./fsdp.yaml 2> err | grep '^h100: '; cat seen; cmp conf/ds.json ds.before
for set in ds.json conf/ds.json:=1 none.json:a=1 program:a=1 fsdp.yaml:fsdp_config=1 ds.before.json:a=1; do
	[ $set != ds.before.json:a=1 ] || cp ds.before ds.before.json
	"$CUFRAG" layout --no-gpu --vary '{n}=1' --set "$set" -- sh reads conf/ds.json '{n}' 2>&1 || echo "exit $?"
done
