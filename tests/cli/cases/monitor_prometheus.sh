# served to the real Prometheus, which scrapes it, and checked by promtool
# needs: cc curl promtool prometheus
. "$DATA/made.sh"
fake_nvml eight
"$CUFRAG" monitor --interval 20ms --count 2 --textfile metrics.prom > out.txt
promtool check metrics < metrics.prom
watch --listen 127.0.0.1:0
soon answers "http://127.0.0.1:$port/metrics" used_bytes
promtool check metrics < answer.txt 2>&1
printf 'global: {scrape_interval: 200ms}\nscrape_configs: [{job_name: c, static_configs: [{targets: ["127.0.0.1:%s"]}]}]\n' "$port" > p.yml
prometheus --config.file=p.yml --storage.tsdb.path=tsdb --web.listen-address=127.0.0.1:$((port + 1)) > prom.txt 2>&1 & prom=$!
soon answers "http://127.0.0.1:$((port + 1))/api/v1/query?query=sum(cufrag_gpu_memory_used_bytes)" '"[0-9]*"\]'
# 10 to 17 GiB on eight cards
grep -o '"115964116992"' answer.txt || { cat answer.txt; tail -n 5 prom.txt; }
kill $prom $pid
wait $prom
wait $pid; echo "exit $?"
