# the dashboard asks for metrics that monitor has
# needs: cc python3
. "$DATA/made.sh"
fake_nvml processes
"$CUFRAG" monitor --count 1 --textfile metrics.prom > out.txt
python3 -m json.tool "$ROOT/docs/grafana/cufrag.json" | grep -oE 'cufrag_[a-z_]+' | sort -u > asked
sed -n 's/^# TYPE \([^ ]*\) gauge/\1/p' metrics.prom | sort > have
echo "asked for, not there: $(comm -23 asked have)"
echo "there, not asked for: $(comm -13 asked have)"
