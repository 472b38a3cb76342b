# every picture is drawn from one row of its table, and from rows without a number
# needs: gnuplot
mkdir bin
cp "$DATA/odd_gnuplot.py" bin/gnuplot
export PATH="$PWD/bin:$PATH" ODD_CHARTS="$PWD/odd"
: > odd
printf 'action,id,size,stream,time_us\nalloc,1,512,0,0\n' > one.csv
said() { "$CUFRAG" "$@" -q > /dev/null 2> err || cat err; }
said compare one.csv --out compare --formats svg
said explain one.csv --out explain
said fit "$TRACES/leak.frames.cft" --policy recorded --out fit
said scale --at 2,4,8 "$DATA/scale/batch2.cft" "$DATA/scale/batch4.cft" "$DATA/scale/batch8.cft" --to 32 --out scale
said kvcache --cache-tokens 4096 --step 25000 --lengths 64,64 --rate 3 --count 8 --out kvcache
ls compare/*.svg explain/*.svg fit/*.svg scale/*.svg kvcache/*.svg | wc -l
sort -u odd
