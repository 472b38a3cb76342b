"$CUFRAG" explain "$TRACES/leak.frames.cft" --at noon
