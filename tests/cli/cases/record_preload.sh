# without CUPTI: the driver's entry points, interposed, of a made-up driver
# needs: cc
. "$DATA/made.sh"
fake_cuda -g
compiled linked "$DATA/fake_cuda.c" -DLINKED -Llib -l:libcuda.so.1
# by cuGetProcAddress as the runtime, by dlsym, linked: by itself, with one sentence; the same events
"$CUFRAG" record -o proc.cft -- ./program proc
"$CUFRAG" record --by preload -o dlsym.cft -- ./program dlsym
"$CUFRAG" record --by preload -o linked.cft -- ./linked
"$CUFRAG" info proc.cft | grep -E '^(device|  events)'
"$CUFRAG" info linked.cft | grep '  events'
# by hand; the lines themselves
recorded own ./program dlsym
cut -d, -f 1-4,6- own.*.csv
recorded proc ./program proc
cut -d, -f 1-4,6- own.*.csv > a.txt; cut -d, -f 1-4,6- proc.*.csv | cmp - a.txt
# nothing else of the program changes: RTLD_NEXT, programs without CUDA, children
recorded next ./program next; echo "next $?"
"$CUFRAG" record -o children.cft -- sh -c './program proc; ./program dlsym; true'
# only CUPTI: nothing is recorded, and it says so
"$CUFRAG" record --by cupti -o none.cft -- ./program proc; echo "exit $?"
"$CUFRAG" record --by both -- ./program; echo "exit $?"
mkdir "with blank"
cp -r "${CUFRAG%/*}/share/cufrag/inject" "with blank/"
FRAG_SHARE="$PWD/with blank" "$CUFRAG" record --by preload -o none.cft -- ./program proc 2>&1 | sed "s|'/.*/with|'HERE/with|"
# stacks: by source line where there is debug information
"$CUFRAG" record --by preload --stacks -o stacks.cft -- ./program proc
"$CUFRAG" explain stacks.cft --json - 2> out.txt | grep '"site"' | grep -oE 'fake_cuda.c:[0-9]+ [a-z_]+' | sed 's/:[0-9]*/:LINE/' | sort | uniq -c
CUFRAG_RECORD_STACKS=1 recorded own2 ./linked
grep -c '^#stack 1 0x' own2.*.csv; grep '^#frame' own2.*.csv | grep -c '/linked	0x'
