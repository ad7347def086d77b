#!/bin/sh
# The compile cache and the tuner as a user meets them, on an OpenCL device.
# Usage: cli.sh WARMLAP JSON_CHECK FOLDER (made anew); 77 when there is no OpenCL device.
set -u
warmlap=$1 check=$2 dir=$3
rm -rf "$dir" && mkdir -p "$dir" && cd "$dir" || exit 1
unset LAP_FAULT NO_COLOR
export XDG_CACHE_HOME="$PWD/cache" XDG_DATA_HOME="$PWD/data"
"$warmlap" run --device opencl:99 > none.out 2> none.err
grep -q 'opencl:0:0' none.err || { echo "skipped: no OpenCL device"; exit 77; }

small="--device opencl:0:0 --set network:height=32 --set network:width=32"
quick="$small --set verify:mode=quick --set verify:images=1 --set run:modes=latency
  --set latency:repetitions=2 --set latency:warmup=0 --force"
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

expect() { # expect STATUS COMMAND...
  wanted=$1
  shift
  "$@" > out 2> err
  got=$?
  [ "$got" = "$wanted" ] || { fail "exit $got, expected $wanted: $*"; sed 's/^/  | /' err; }
}

says() { # says FILE TEXT
  grep -qF -- "$2" "$1" || { fail "$1 does not say '$2'"; sed 's/^/  | /' "$1"; }
}

value() { # value FILE PATH
  "$check" "$1" "$2" || echo nothing
}

# ---- the cache: plain kernels, which compile fast -----------------------------------------------
plain="$quick --set run:kernels=naive"
none() { # none FILE KEY: the count is 0
  case $(value "$1" "rows.0.cold.$2") in 0 | 0.0) return 0 ;; *) return 1 ;; esac
}
expect 0 "$warmlap" run $plain --json first.json
expect 0 "$warmlap" run $plain --json second.json
none first.json build_cached || fail "a hit in an empty cache"
none second.json build_compiled || fail "compiled again"
none second.json build_cached && fail "nothing came from the cache"
set -- cache/warmlap/*.built
printf 'xx' | dd of="$1" bs=1 seek=200 conv=notrunc 2> dd.err
expect 0 "$warmlap" run $plain --json spoiled.json
none spoiled.json build_compiled && fail "a damaged entry was used"
expect 0 "$warmlap" run $plain --json third.json --no-cache
none third.json build_cached || fail "--no-cache used the cache"
expect 0 env -u XDG_CACHE_HOME -u HOME "$warmlap" run $plain --json homeless.json
says homeless.json 'built kernels are not kept'

# ---- the tuner -----------------------------------------------------------------------------------
expect 2 "$warmlap" tune --seconds 0
says err 'expected a number from 0.1'
expect 3 "$warmlap" tune --device opencl:99
expect 0 "$warmlap" tune --help
says out 'Usage: warmlap tune'
expect 0 "$warmlap" tune $small --seconds 0.1
says out 'default us'
says data/warmlap/tune.txt warmlap-tune/1
cp data/warmlap/tune.txt before.txt
expect 0 "$warmlap" tune $small --seconds 0.1 --dry-run --set run:seed=2
says out 'nothing was stored'
cmp -s before.txt data/warmlap/tune.txt || fail "--dry-run wrote the store"
expect 0 "$warmlap" run $quick --set run:kernels=tuned --json tuned.json
[ "$(value tuned.json rows.0.kernels.0.choice)" = tuned ] || fail "the store was not used"
expect 0 "$warmlap" run $quick --json default.json
[ "$(value default.json rows.0.kernels.0.choice)" = default ] || fail "default used the store"
expect 0 "$warmlap" run $quick --set run:kernels=tuned --set verify:mode=off --set latency:batch=2 --json other.json
[ "$(value other.json rows.0.kernels.0.choice)" = default ] || fail "an entry of another batch was used"
says other.json 'the store has kernels for 0 of'
sed 's/warmlap-tune\/1/warmlap-tune\/2/' data/warmlap/tune.txt > future.txt
expect 2 "$warmlap" run $quick --set run:kernels=tuned --store future.txt
says err 'future.txt:1:'
expect 2 "$warmlap" tune $small --store future.txt
says err warmlap-tune/2

[ "$failures" = 0 ] || { echo "$failures failures"; exit 1; }
