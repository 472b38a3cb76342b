# what the simulated card is measured to take for managed memory is what it was told that this takes
"$CUFRAG" bench --device sim --profile profile.csv > /dev/null
grep -E '^managed\.(touch|fault)' profile.csv
