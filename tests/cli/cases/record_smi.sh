# a program of --no-gpu finds an nvidia-smi that knows its cards
cat > program.sh << 'P'
nvidia-smi
nvidia-smi -L
nvidia-smi --query-gpu=name,memory.total,count --format=csv
nvidia-smi -i 1 --query-gpu uuid,memory.used,fan.speed,pci.bus_id --format csv,noheader,nounits
P
"$CUFRAG" record --no-gpu --gpu l4 --gpus 2 -o run.cft -- sh program.sh 2> log || true
