# what PyTorch cannot be set to but cufrag run serves: named beside the best setting where it needs less and costs little
said() { "$CUFRAG" compare "$1" --no-host --optimum off --json out.json --policies "$2" 2> err | grep -oE "^(to use it|or): .*|'[a-z:]*' would do with [^,]*, .*"; grep '"run"' out.json | sed 's/^ *//'; }
said "$TRACES"/gnn.default.cft 'pytorch; expandable; vmm'
echo '--- the cheapest is no policy of a running program, or too dear'
said "$TRACES"/gnn.default.cft 'pytorch; native; planned'
echo '--- no setting needs more'
said "$TRACES"/leak.frames.cft 'pytorch; expandable; rmm-pool'
echo '--- a text for the shell'
said "$TRACES"/gnn.default.cft 'pytorch; limit:bytes=8G/vmm'
echo '--- not of PyTorch'
printf 'id,lower,upper,size\n0,0,5,4096\n1,2,5,4096\n' > one.csv
said one.csv 'pytorch; tlsf'
