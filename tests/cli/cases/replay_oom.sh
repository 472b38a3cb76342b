data=$ROOT/tests/cli/data/seeddemo.pickle.xz
"$CUFRAG" replay "$data" --policy pytorch --limit 300M > /dev/null; echo $?
"$CUFRAG" replay "$data" --policy pytorch --limit 300M --fail-on-oom > /dev/null; echo $?
"$CUFRAG" replay "$data" --policy pytorch --limit 500M --fail-on-oom > /dev/null; echo $?
