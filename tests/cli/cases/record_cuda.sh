# any CUDA program: a made-up CUPTI tells the recorder of a program's calls
# needs: cc
export CUFRAG_CUPTI=$PWD/libcupti.so
. "$DATA/made.sh"
library libcupti.so "$DATA/fake_cupti.c" -DLIBRARY
compiled program "$DATA/fake_cupti.c"
"$CUFRAG" record -o run.cft -- ./program
"$CUFRAG" info run.cft | grep -E '^(format|not in it|device)|^  (events|streams|never freed)'
# by itself, as any program can be started; and one that dies: what was written stays
CUDA_INJECTION64_PATH=$recorder CUFRAG_RECORD_CUDA=own ./program
cut -d, -f 1-4,6- own.*.csv
"$CUFRAG" record -o killed.cft -- ./program killed
echo "exit $?"
"$CUFRAG" record -o three.cft -- ./program 3
echo "exit $?"
"$CUFRAG" record -o none.cft -- ./program nothing
echo "exit $?"
FAKE_TAKEN=1 "$CUFRAG" record -o none.cft -- ./program
echo "exit $?"
CUFRAG_CUPTI=./none.so "$CUFRAG" record -o none.cft -- ./program nothing
"$CUFRAG" record --torch -- ./program
"$CUFRAG" record --torch --no-gpu -- python3 x.py
# what the program sees of --no-pool
"$CUFRAG" record --no-pool -o none.cft -- sh -c 'env | grep -E "^(PYTORCH_NO|XLA_|TF_GPU)" | sort' 2> /dev/null
ls -- *.cft
