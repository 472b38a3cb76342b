"$CUFRAG" export "$TRACES/leak.frames.cft" --to perfeto
