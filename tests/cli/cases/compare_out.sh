# needs: gnuplot
"$CUFRAG" compare "$DATA/seeddemo.pickle.xz" --policies 'pytorch;native' --formats svg,png --out results > /dev/null
ls
[ -s results/report.html ] && [ -s results/results.csv ] && [ -s results/results.json ] && echo complete
# CSV, SVG and PNG of each chart, once more over existing files, and nothing else
"$CUFRAG" compare "$DATA/seeddemo.pickle.xz" --policies 'pytorch;native' --formats svg,png --out results > /dev/null
grep -o "At its peak of reserved memory (event [0-9]*)" results/report.html | head -1
ls results | sed 's/.*\.//' | sort | uniq -c | awk '{ n[$2] = $1 } END { print (n["svg"] >= 3 && n["csv"] == n["svg"] + 1 && n["png"] == n["svg"] ? "charts" : "not all charts"), length(n) }'
