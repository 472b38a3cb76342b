# -h, help and --help are one, for the program and for each command
"$CUFRAG" --help > a && "$CUFRAG" -h > b && "$CUFRAG" help > c && cmp a b && cmp a c
"$CUFRAG" list --help > a && "$CUFRAG" list -h > b && "$CUFRAG" help list > c && cmp a b && cmp a c
# it wins over anything else that is given
"$CUFRAG" verify no-such-file --limit 3 --help > d && head -n 1 d
