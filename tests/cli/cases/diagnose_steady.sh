"$CUFRAG" diagnose "$TRACES/serve.default.cft" --fail-on leak,spike,fragmentation,oom-needed | head -4
