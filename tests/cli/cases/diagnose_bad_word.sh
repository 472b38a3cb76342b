"$CUFRAG" diagnose "$TRACES/leak.frames.cft" --fail-on leek
