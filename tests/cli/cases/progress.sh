# no work is silent on a terminal: every command says what it does, from reading on
# needs: python3
says() { echo "$1 $(python3 "$DATA/progress.py" "$CUFRAG" "$@")"; }
cp "$TRACES/leak.frames.cft" a.cft
cp "$TRACES/seeddemo.default.cft" b.cft
says info a.cft
says import a.cft -o out.cft
says verify a.cft
says replay a.cft --policy buddy
says compare a.cft b.cft
says fit a.cft --policies native
says tune a.cft --budget 3
says plan a.cft
says explain a.cft
says diagnose a.cft b.cft
says diff a.cft b.cft
says export a.cft --to csv -o out.csv
says scale a.cft a.cft --at 2,4 --to 8
says gen repeat a.cft --times 2 -o twice.cft
# nothing of it without a terminal
TERM=xterm "$CUFRAG" verify a.cft
