# names that a trace brings with it: no escape reaches a terminal, no scheme a link, no stray byte a page
# needs: python3 gnuplot
cp "$TRACES/leak.frames.cft" "javascript:alert(1).cft"
cp "$TRACES/leak.frames.cft" "$(printf 'e\033[31mx\377.cft')"
cp "$TRACES/leak.frames.cft" "=cmd()|x.cft"
for f in *.cft; do "$CUFRAG" verify "$f" "$f" && "$CUFRAG" info "$f"; done 2>&1 | grep -c "$(printf '[\033\377]')"
"$CUFRAG" verify "$(printf 'no\033[31msuch\377')" 2>&1
"$CUFRAG" "$(printf 'no\033[31msuch')" 2>&1
python3 "$DATA/hostile.py" conf_garbage > g.pickle
"$CUFRAG" info g.pickle | grep -c "$(printf '\033')"
# the name inside a .cft is what counts: import keeps it
for f in javascript* e* =*; do "$CUFRAG" import g.pickle -o x.cft > /dev/null; done
cp g.pickle 'javascript:alert(1).pickle'
cp g.pickle '=cmd()|x.pickle'
"$CUFRAG" compare javascript*.pickle =*.pickle --policies 'pytorch; buddy' --no-host --optimum bound --csv out.csv --formats svg --out results > /dev/null 2>&1
echo "exit $?"
grep -o 'href="[^"]*alert[^"]*"' results/report.html
cut -d, -f 1 out.csv | sort -u
python3 -c 'import glob, sys; [open(f, "rb").read().decode("utf-8") for f in glob.glob("results/**/*.html", recursive=True)]' && echo 'UTF-8'
