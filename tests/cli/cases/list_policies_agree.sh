"$CUFRAG" list policies | sed -n 's/^\([a-z0-9-]*\): .*/\1/p' > text
"$CUFRAG" list policies --json - | sed -n 's/^      "name": "\(.*\)",/\1/p' > json
"$CUFRAG" list policies --markdown | sed -n 's/^### //p' > markdown
cmp text json && cmp text markdown && sort -c text && grep -x pytorch text
