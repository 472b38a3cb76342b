# the program's own failure comes through; nothing recorded is an error, and nothing is written
"$CUFRAG" record --no-gpu -o run.cft -- sh -c 'echo hello; exit 3' || echo $?
"$CUFRAG" record --no-gpu -o run.cft -- sh -c 'cp "$TRACES/seeddemo.default.cft" "$CUFRAG_RECORD/1.pickle"; kill -9 $$' || echo $?
"$CUFRAG" record --no-gpu -o bad.cft -- sh -c 'echo nonsense > "$CUFRAG_RECORD/1.pickle"' 2>&1 | sed "s|'/.*/1.pickle'|FILE|" || echo $?
# what took memory and was killed is missed, not overlooked
"$CUFRAG" record --no-gpu -o lost.cft -- sh -c 'touch "$CUFRAG_RECORD/2.begun"; kill -9 $$' || echo $?
"$CUFRAG" record --no-gpu -o run.cft -- sh -c 'touch "$CUFRAG_RECORD/2.begun"; cp "$TRACES/seeddemo.default.cft" "$CUFRAG_RECORD/1.pickle"; no-such-command 2> /dev/null' || echo $?
CUDA_VISIBLE_DEVICES= "$CUFRAG" record --no-gpu --gpus 2 -- sh -c 'test "${CUDA_VISIBLE_DEVICES-no}" = ""' || echo $?
CUDA_VISIBLE_DEVICES=1,0 "$CUFRAG" record --no-gpu --gpus 2 -- true || echo $? # all of them: nothing to say
CUDA_VISIBLE_DEVICES=1 "$CUFRAG" record --no-gpu -- sh -c 'test "${CUDA_VISIBLE_DEVICES-no}" = no' || echo $?
XDG_CACHE_HOME=/proc/none "$CUFRAG" record --no-gpu -- true || echo $?
"$CUFRAG" record --no-gpu -- ./no-such-program || echo $?
CUFRAG_CUPTI=none "$CUFRAG" record -- true || echo $?
"$CUFRAG" record --no-gpu || echo $?
"$CUFRAG" record --no-gpu --gpu mi300x -- true || echo $?
chmod 777 cache/cufrag
"$CUFRAG" record --no-gpu -- true 2>&1 | sed "s|'/.*'|FOLDER|" || echo $?
ls
