#!/bin/sh
# Fleets under mpirun on PoCL: two and four ranks, and what may go wrong with one of them.
# Usage: fleet.sh WARMLAP JSON_CHECK FOLDER (made anew); 77 without mpirun or an OpenCL device.
set -u
warmlap=$1 check=$2 dir=$3
rm -rf "$dir" && mkdir -p "$dir" && cd "$dir" || exit 1
export XDG_CACHE_HOME="$PWD/cache" XDG_DATA_HOME="$PWD/data"
command -v mpirun >/dev/null || { echo "skipped: no mpirun (openmpi-bin)"; exit 77; }
[ -e "$(dirname "$warmlap")/warmlap-mpi.so" ] || { echo "skipped: built without MPI"; exit 77; }
"$warmlap" devices 2>/dev/null | grep -q 'opencl:0:0' || { echo "skipped: no OpenCL device"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
small="--device opencl:0:0 --set network:height=32 --set network:width=32 --set verify:mode=quick
  --set verify:images=1 --set latency:repetitions=5 --set latency:warmup=1 --set latency:copies=no
  --set throughput:max_batch=2 --set throughput:batches=2 --set run:rounds=2
  --set run:round_seconds=0.02 --set run:fleet_timeout=60"
small=$(echo $small) # one line
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
value() { seen=$("$check" "$1" "$2") || seen="(nothing)"; [ "$seen" = "$3" ] || fail "$1: $2 is $seen, expected $3"; }
status() { [ "$1" = "$2" ] || { fail "$3: exit $1, expected $2"; sed 's/^/  | /' err; }; }
says() { grep -q -- "$2" "$1" || { fail "$1 does not say '$2'"; sed 's/^/  | /' "$1"; }; }
bounded() { timeout 150 "$@" > out 2> err; } # never a hang

for n in 2 4; do
  bounded mpirun -n $n "$warmlap" run $small --json f$n.json --csv f$n.csv --markdown f$n.md
  status $? 0 "$n ranks"
  "$check" f$n.json > keys || { fail "keys"; cat keys; }
  value f$n.json fleet.ranks_ok $n
  value f$n.json 'rows.#' $((2 * n))
  value f$n.json sets.0.members_rated $n
  value f$n.json rows.3.rank 1
  value f$n.json rows.3.concurrent.others $((n - 1))
  value f$n.json rows.3.concurrent.alone_row 2
  [ "$("$check" f$n.json run_id)" != null ] || fail "no run_id"
  says out "sum of $n"
  says f$n.md "sum of $n"
  [ "$(grep -c 'At the same time' out)" = 1 ] || fail "not only rank 0 prints"
  [ "$(wc -l < f$n.csv)" = $((2 * n + 2)) ] || fail "records of $n ranks"
  [ "$(grep -c ',sum,' f$n.csv)" = 1 ] || fail "sums of $n ranks"
  for r in 0 1; do value f$n.rank$r.json 'rows.#' 2; done
done
"$warmlap" compare f2.json --clock wall --format csv > compared.csv 2> err || fail "compare"

# A rank without a device.
bounded mpirun -n 1 "$warmlap" run $small --json nodev.json : -n 1 env OCL_ICD_VENDORS=/nonexistent "$warmlap" run $small --json nodev.json
status $? 1 "a rank without a device"
value nodev.json fleet.ranks_ok 1
value nodev.json fleet.ranks.1.status failed
says out 'rank 1 on .* failed: '
value nodev.json sets.0.members_planned 2
value nodev.json sets.0.members_rated 1
value nodev.json sets.0.members.1.ok false

# Rank 0 without one: it still gathers.
bounded mpirun -n 1 env OCL_ICD_VENDORS=/nonexistent "$warmlap" run $small --json nodev0.json : -n 1 "$warmlap" run $small --json nodev0.json
status $? 1 "rank 0 without a device"
value nodev0.json fleet.ranks_ok 1
value nodev0.json fleet.ranks.0.status failed

# Another configuration.
bounded mpirun -n 1 "$warmlap" run $small --json other.json : -n 1 "$warmlap" run $small --set latency:repetitions=6 --json other.json
status $? 1 "another configuration"
value other.json fleet.ranks.1.status refused
says out 'refused: another configuration: \[latency\] repetitions = 6, and rank 0 has 5'

# A rank that dies while the launcher keeps the others: lost, named, everything else is there.
cat > dies.sh <<END
#!/bin/sh
"$warmlap" run $small --set run:fleet_timeout=5 --set latency:max_seconds=60 --json dies.json &
pid=\$!
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  [ -e dies.rank1.json ] && break
  sleep 0.2
done
kill -9 \$pid
wait \$pid
exit 0
END
chmod +x dies.sh
bounded mpirun --enable-recovery -n 1 "$warmlap" run $small --set run:fleet_timeout=5 --set latency:max_seconds=60 --json dies.json : -n 1 ./dies.sh
value dies.json fleet.ranks.1.status lost
value dies.json fleet.ranks_ok 1
says out 'rank 1 on .* lost: no sign of life for'

# The same where the launcher ends them all: what was measured stays in the ranks' own files.
bounded mpirun -n 1 "$warmlap" run $small --set latency:repetitions=100000 --set latency:max_seconds=30 --json killed.json : -n 1 sh -c 'sleep 4; exit 1'
[ $? != 0 ] || fail "a job that was ended: exit 0"

# A file that exists: refused, by everybody, before anything is measured.
bounded mpirun -n 2 "$warmlap" run $small --json f2.json
status $? 2 "a file that exists"
says err 'exists already'

# Without a launcher nothing of MPI is touched, even where the module is broken.
LAP_FLEET_MODULE=/nonexistent.so bounded "$warmlap" run $small --json alone.json
status $? 0 "alone"
value alone.json rows.0.rank null
# With one, that is said.
LAP_FLEET_MODULE=/nonexistent.so bounded mpirun -n 2 "$warmlap" run $small --json none.json
[ $? != 0 ] || fail "no module: exit 0"
says err 'MPI module cannot be loaded'
# One process of a launcher is no fleet; and everybody may be on his own.
bounded mpirun -n 1 "$warmlap" run $small --json one.json
status $? 0 "one rank"
value one.json 'rows.#' 1
bounded mpirun -n 2 "$warmlap" run $small --set run:fleet=no
status $? 0 "fleet = no"
[ "$(grep -c '^Latency' out)" = 2 ] || fail "fleet = no: two tables"
echo "$failures failed"
[ "$failures" = 0 ]
