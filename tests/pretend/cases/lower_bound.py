"""What ended out of memory is a lower bound: COUNT blocks of SIZE GiB."""
from support.small import cuda, sys, torch

# case: recorded
# fails: record --capacity 2G --context 512M --frames -- 4 1
# fails 6: fit run.cft --policy pytorch
# match: need is unknown above 2 GiB: .* ended out of memory at event 1 \(.*lower_bound.py:<1>\b

# with a program, it is recorded again with enough of it, on the card that is advised, too
# case: again
# python: write("cards.csv", "name,memory\nt4,2G\na100-40,6G\n")
# run: fit --gpu t4 --capacity 2G --context 512M --cards cards.csv --margin 0 --policy pytorch -- 4 1
# match: ^answer: a100-40 .*reserves 4 GiB
# match 2: (t4 .*does not fit|a100-40 .*fits)  *yes

# also where nothing was ever allocated
# case: first
# fails: record --gpu h100 -- 1 100
# run: explain run.cft
# match: a request for 100 GiB was refused; the program needs more memory: \
#   0 B was live and 0 B was reserved under a limit of 78.66 GiB
# python:
#   run("layout --gpu h100 --fresh --jobs 1 --vary {g}=20,100 --csv rows.csv -- 1 {g}", status=...)
#   assert [r.split(",")[2:4] for r in lines("rows.csv")[-2:]] == [["g=20", "fits"], ["g=100", "does not fit"]]
count, size = map(int, sys.argv[1:])
kept = [cuda.empty(size << 30, dtype=torch.uint8) for _ in range(count)]  # <1>
