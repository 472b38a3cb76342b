# A file that is no recording: the error says what it is and what to do.
exec 2>&1
try() { echo "$1" > "$2"; "$CUFRAG" "$3" "$2" || echo "exit $?"; }
try 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.' oom.txt explain
try 'step 1 loss=2.3' screen.log summary
printf 'PK\003\004model.pt/data.pkl' > model.pt; "$CUFRAG" summary model.pt || echo "exit $?"
printf '\100\0\0\0\0\0\0\0{"a":1}' > a.safetensors; "$CUFRAG" summary a.safetensors || echo "exit $?"
echo 'INFO 07-22 [kv_cache_utils.py:634] GPU KV cache size: 444,864 tokens' > server.log
"$CUFRAG" tune server.log || echo "exit $?"
"$CUFRAG" server.log --tokens 4096 | tail -1
"$CUFRAG" server.log | tail -1
