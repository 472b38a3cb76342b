# requests and their addresses alone cannot be compared with anything: said, not called different
# needs: python3
python3 -c '
import pickle
entry = lambda action, i: {"action": action, "addr": 0x7f0000000000 + i * 4096, "size": 4096, "stream": 0, "time_us": 1795186186043381 + i}
pickle.dump({"segments": [], "device_traces": [[entry("alloc", i) for i in range(3)] + [entry("free_completed", i) for i in range(3)]]}, open("plain.pickle", "wb"), 2)'
"$CUFRAG" verify plain.pickle
echo "exit $?"
"$CUFRAG" compare plain.pickle --policies 'pytorch' --no-host | grep -c '^pytorch '
