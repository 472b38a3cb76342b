# what the page for browsers shows in a real one
# needs: cc curl
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || { echo 'no chromium' >&2; exit 77; }
. "$DATA/made.sh"
bash -c 'exec -a "<img src=x onerror=alert(1)> \"train\".py" sleep 300' & victim=$!
fake_nvml these
export FAKE_PIDS="$victim:5 $$:30"
watch --web 0
soon answers "${url}live.json" '"cards"'
"$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" --virtual-time-budget=3000 --enable-logging=stderr --dump-dom "$url" > dom.txt 2> console.txt
grep -o 'memory 10.00 GiB of 100.00 GiB, 10.0 %' dom.txt | head -n 1
grep -oE '>&lt;img src=x onerror=alert\(1\)&gt; "train".py 300<' dom.txt | head -n 1
grep -c '<img' dom.txt
grep -o '<polyline class="[a-z]*"' dom.txt | sort -u
grep 'CONSOLE' console.txt
kill $pid $victim
wait $pid; echo "exit $?"
