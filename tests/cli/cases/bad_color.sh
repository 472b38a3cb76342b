"$CUFRAG" list gpus --color pink
