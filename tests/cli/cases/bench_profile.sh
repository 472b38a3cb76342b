# the profile of the simulated card is the one that it has, up to three digits; of a card that records events
# in twice the time, twice that
"$CUFRAG" bench --device sim --profile profile.csv > /dev/null
grep -E '^(cudaMalloc|cuMemCreate|managed.fault),(2097152|4194304),' profile.csv
printf 'call,bytes,ns\ncudaEventRecord,0,834\n' > slow.csv
"$CUFRAG" bench --device sim --cost slow.csv --profile profile.csv > /dev/null
grep -E '^# (cudaEventRecord|cuMemCreate):|^cudaEventRecord' profile.csv
