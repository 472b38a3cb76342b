"$CUFRAG" explain "$TRACES/leak.frames.cft" --at oom
