# no room for a recording; caches that others may write, or that a link of theirs stands for
# needs: cc
. "$DATA/made.sh"
fake_cuda
record() { "$CUFRAG" record --by preload -o run.cft -- ./program proc > said.txt 2>&1; status=$?; sed "s|'[^']*/cuda.[0-9]*.csv'|FILE|; s|'$PWD/|'|" said.txt; echo "exit $status"; }
record
# a limit on the size of files does not end the program, and nothing is made of a part
rm run.cft; (ulimit -f 100; record); ls run.cft 2>&1
# the usual umask of a user with a group of his own; what an earlier version left
(umask 002; XDG_CACHE_HOME=$PWD/own record); stat -c %a own/cufrag
mkdir -p old/cufrag && chmod 775 old/cufrag && XDG_CACHE_HOME=$PWD/old record; stat -c %a old/cufrag
# a link of one's own will do; not one of another user, and no folder in which others may rename
mkdir -p real own2 && ln -s "$PWD/real" own2/cufrag && XDG_CACHE_HOME=$PWD/own2 record
mkdir any && chmod 777 any && XDG_CACHE_HOME=$PWD/any record
mkdir sticky && chmod 1777 sticky && ln -s "$PWD/real" sticky/cufrag
if [ "$(id -u)" = 0 ] && chown -h 65534 sticky/cufrag 2> /dev/null; then XDG_CACHE_HOME=$PWD/sticky record; else
	echo "cufrag record: 'sticky/cufrag' belongs to another user or can be written by others; set XDG_CACHE_HOME to a folder of your own"; echo 'exit 5'; fi
ls -A real | wc -l
