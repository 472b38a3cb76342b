# served to the real Prometheus, which scrapes it, and checked by promtool
# needs: cc curl promtool prometheus
mkdir lib && "$cc" -w -std=gnu17 -O1 -shared -fPIC -o lib/libnvidia-ml.so.1 "$ROOT/tests/cli/data/fake_nvml.c" || exit
export LD_LIBRARY_PATH=$PWD/lib FAKE_NVML=eight
"$CUFRAG" monitor --interval 20ms --count 2 --textfile metrics.prom > out.txt
promtool check metrics < metrics.prom
: > err.txt
"$CUFRAG" monitor --interval 100ms --listen 127.0.0.1:0 > out.txt 2> err.txt & pid=$!
for i in $(seq 600); do
	port=$(sed -nE 's/.*on port ([0-9]+),.*/\1/p' err.txt)
	[ -n "$port" ] && break
	sleep 0.1
done
for i in $(seq 600); do
	curl -s "http://127.0.0.1:$port/metrics" > metrics.txt
	grep -q used_bytes metrics.txt && break
	sleep 0.1
done
promtool check metrics < metrics.txt 2>&1
printf 'global: {scrape_interval: 200ms}\nscrape_configs: [{job_name: c, static_configs: [{targets: ["127.0.0.1:%s"]}]}]\n' "$port" > p.yml
prometheus --config.file=p.yml --storage.tsdb.path=tsdb --web.listen-address=127.0.0.1:$((port + 1)) > prom.txt 2>&1 & prom=$!
for i in $(seq 100); do
	sleep 0.3
	curl -s "http://127.0.0.1:$((port + 1))/api/v1/query?query=sum(cufrag_gpu_memory_used_bytes)" > answer.txt
	grep -q '"[0-9]*"\]' answer.txt && break
done
# 10 to 17 GiB on eight cards
grep -o '"115964116992"' answer.txt || { cat answer.txt; tail -n 5 prom.txt; }
kill $prom $pid
wait $prom
wait $pid; echo "exit $?"
