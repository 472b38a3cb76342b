# served to Prometheus: read with curl
# needs: cc curl
. "$DATA/made.sh"
fake_nvml eight
watch --listen 127.0.0.1:0
url=http://127.0.0.1:$port
soon answers "$url/metrics" used_bytes
curl -s -D head.txt "$url/metrics" > metrics.txt; grep -iE '^(HTTP|content-type)' head.txt | tr -d '\r'
grep -E 'used_bytes\{gpu="[07]"' metrics.txt; grep -c EOF metrics.txt
curl -s -D head.txt -H 'Accept: application/openmetrics-text' "$url/metrics" > open.txt; grep -i '^content-type' head.txt | tr -d '\r'
tail -n 1 open.txt
curl -s -w '%{http_code}\n' "$url/"; curl -s -X POST -d x -w '%{http_code}\n' "$url/metrics"
# its own names only: a name that somebody else made resolve to us is none
for host in localhost "127.0.0.1:$port" '[::1]:9' evil.example; do echo "$host $(curl -s -o body.txt -w '%{http_code}' -H "Host: $host" "$url/metrics")"; done | sed "s/$port/PORT/"
cat body.txt
# many that send a byte now and then do not block others
python3 - "$port" << 'END'
import socket, sys, time
address = ("127.0.0.1", int(sys.argv[1]))
slow = []
for i in range(200):
    slow.append(socket.create_connection(address))
    slow[-1].sendall(b"G")
good = 0
for i in range(20):
    asked = socket.create_connection(address, 60)
    asked.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    good += asked.recv(100).startswith(b"HTTP/1.1 200")
print("answered", good)
deadline, left = time.time() + 100, slow[-10:]
while left and time.time() < deadline:  # a byte a second is no request
    time.sleep(1)
    for one in list(left):
        try:
            one.setblocking(False)
            if one.recv(1) == b"":
                left.remove(one)
        except BlockingIOError:
            try:
                one.sendall(b"E")
            except OSError:
                left.remove(one)
        except OSError:
            left.remove(one)
print("slow ones left", len(left))
END
"$CUFRAG" monitor --listen 127.0.0.1:$port 2>&1 | sed "s/$port/PORT/"
kill $pid
wait $pid; echo "exit $?"
