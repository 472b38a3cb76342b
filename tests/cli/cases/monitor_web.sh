# the page for browsers: only with the token, under this machine's names
# needs: cc curl python3
. "$DATA/made.sh"
bash -c 'exec -a "<img src=x onerror=alert(1)> \"train\".py" sleep 300' & victim=$!
fake_nvml these
export FAKE_PIDS="$victim:5 $$:30"
for where in 0.0.0.0:0 '[::]:0' nowhere; do "$CUFRAG" monitor --count 1 --web "$where" 2>&1 > out.txt | cut -c -90; done
watch --web 0
token=${url%/} token=${token##*/} root=${url%"$token"/}
echo "$url" | sed -E 's/:[0-9]+/:PORT/; s/[0-9a-f]{28}\/$/28 DIGITS/'
code() { curl -s -o body.txt -w '%{http_code}\n' "$@"; }
soon answers "${url}live.json" '"cards"'
echo "page $(code "$url") live $(code "${url}live.json") other $(code "${url}metrics")"
echo "without $(code "$root") wrong $(code "$root${token%?}0$token/live.json") almost $(code "$root${token%??}zz/") POST $(code -X POST -d x "$url")"
for host in localhost evil.example; do echo "$host $(code -H "Host: $host" "$url")"; done
curl -s -D - -o body.txt "$url" | tr -d '\r' | grep -iE '^(cache-control|referrer-policy|content-security-policy)' | sort
python3 - "$url" "$victim" << 'END'
import json, socket, sys, urllib.parse, urllib.request
base, victim = sys.argv[1:]
port = urllib.parse.urlparse(base).port
slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]  # many silent clients do not block others
for one in slow:
    one.sendall(b"G")
live = json.load(urllib.request.urlopen(base + "live.json", timeout=60))
card = live["cards"][0]
process = [p for p in card["processes"] if p["pid"] == int(victim)][0]
print(process["command"], process["used_bytes"] >> 30, live["interval_ms"])
print([(c["looks"], len(c["used"]), c["used"][-1], c["busy"][-1]) for c in card["curves"]])
END
kill $pid $victim
wait $pid; echo "exit $?"
