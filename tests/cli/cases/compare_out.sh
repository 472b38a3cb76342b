# needs: gnuplot
"$CUFRAG" compare "$DATA/seeddemo.pickle.xz" --policies 'pytorch;native' --formats svg --out results > /dev/null
ls
[ -s results/report.html ] && [ -s results/results.csv ] && [ -s results/results.json ] && echo complete
ls results | grep -c '\.svg$' | awk '{ print ($1 >= 3 ? "charts" : "only " $1 " charts") }'
