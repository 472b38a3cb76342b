# the program's own failure comes through; nothing recorded is an error, and nothing is written
export XDG_CACHE_HOME=$PWD/cache
"$CUFRAG" record --no-gpu -o run.cft -- sh -c 'echo hello; exit 3' || echo $?
"$CUFRAG" record --no-gpu -o run.cft -- sh -c 'cp "$TRACES/seeddemo.default.cft" "$CUFRAG_RECORD/1.pickle"; kill -9 $$' || echo $?
"$CUFRAG" record --no-gpu -o bad.cft -- sh -c 'echo nonsense > "$CUFRAG_RECORD/1.pickle"' 2>&1 | sed "s|'/.*/1.pickle'|FILE|" || echo $?
"$CUFRAG" record --no-gpu -- ./no-such-program || echo $?
CUFRAG_CUPTI=none "$CUFRAG" record -- true || echo $?
"$CUFRAG" record --no-gpu || echo $?
"$CUFRAG" record --no-gpu --gpu mi300x -- true || echo $?
chmod 777 cache/cufrag
"$CUFRAG" record --no-gpu -- true 2>&1 | sed "s|'/.*'|FOLDER|" || echo $?
ls
