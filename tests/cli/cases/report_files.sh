# What is in the address-space map; names that a shell or gnuplot would run; a report and its files are whole, or not there.
# needs: gnuplot
printf '%s\n' action,id,size,time_us alloc,0,4194304,0 alloc,1,8388608,10 alloc,2,8388608,20 \
	free,1,,60 free,0,,100 free,2,,120 alloc,3,4194304,180 > k.csv
"$CUFRAG" compare k.csv --policies pytorch --out map --formats svg > said || cat said
# MiB x us: 4 until 100, 8 from 10 to 60, 8 from 20 to 120; free beside them until 120, and then all of it
awk -F, 'NR > 1 { area[$3] += ($9 - $8) * ($7 - $6) * 1e6 / 1048576 } END { for (use in area) print use, area[use] }' map/addresses.csv | sort
name="a'b\`touch made\`\"; system('touch made') #@x.csv"
mv k.csv "$name"
"$CUFRAG" compare "$name" --policies native --pdf --out pdf > said || cat said
head -c 5 pdf/charts.pdf; echo; test -e made && echo 'a name was run'
test -e pdf/pareto.csv && echo 'one policy has no rival'
mkdir -p share/plot none
for script in "$ROOT"/scripts/plot/*.gp; do echo 'nonsense here' > "share/plot/${script##*/}"; done
: > share/plot/style.gp
FRAG_SHARE=share "$CUFRAG" compare "$name" --policies native --out failed 2>&1 > said | sed 's/"[^"]*\//"/'
PATH=$PWD/none "$CUFRAG" compare "$name" --policies native --out failed > said
test -e failed || echo 'nothing is left'
# a folder that is a file, a file that is a folder: and nothing beside it
"$CUFRAG" list devices --json said/devices.json > /dev/null
"$CUFRAG" list devices --json none > /dev/null
ls -A none; ls
