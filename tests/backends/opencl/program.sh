#!/bin/sh
# The whole program over spoilt OpenCL drivers: usage: program.sh WARMLAP SHIM FAKE_VENDORS
# SHIM spoils a real driver's answers (tests/standin/shim_opencl.c); FAKE_VENDORS leads the loader to
# the fake driver (tests/standin/fake_opencl.c). Skipped (77) where there is no real device.
warmlap=$1 shim=$2 fake=$3
failures=0

run() {
    timeout 100 "$warmlap" run quick --device opencl:0:0 --set network:height=32 \
        --set network:width=32 --set verify:mode=quick --set run:modes=latency \
        --set run:kernels=naive 2>&1
}

# expect TITLE STATUS WANTED_STATUS TEXT OUTPUT. Lines are joined: the program wraps its sentences.
expect() {
    joined=$(printf '%s' "$5" | tr -s '\n ' '  ')
    case $joined in
    *"$4"*) said=yes ;;
    *) said=no ;;
    esac
    if [ "$2" -ne "$3" ] || [ $said = no ]; then
        printf '%s: exit status %s (expected %s), "%s" said: %s\n%s\n\n' "$1" "$2" "$3" "$4" \
            $said "$5"
        failures=$((failures + 1))
    fi
}

spoilt() { # TITLE VARIABLE=VALUE WANTED_STATUS TEXT
    output=$(export LD_PRELOAD="$shim" "$2" && run)
    expect "$1" $? "$3" "$4" "$output"
}

output=$("$warmlap" devices 2>&1)
case $output in
*opencl:0:0*) ;;
*) echo "skipped: no OpenCL device" && exit 77 ;;
esac

spoilt "nothing spoilt" LAP_SHIM_CL_STAMPS= 0 "verified to"
spoilt "zero stamps" LAP_SHIM_CL_STAMPS=zero 0 "by the host's clock"
spoilt "reversed stamps" LAP_SHIM_CL_STAMPS=reversed 0 "by the host's clock"
spoilt "a wrong clock unit" LAP_SHIM_CL_STAMPS=/42 0 "by the host's clock"
spoilt "a launch fails" LAP_SHIM_CL_FAIL=launch:60:-5 1 "CL_OUT_OF_RESOURCES (-5)"
spoilt "the queue is lost" LAP_SHIM_CL_FAIL=finish:3+:-36 1 "CL_INVALID_COMMAND_QUEUE (-36)"
spoilt "no memory" LAP_SHIM_CL_FAIL=alloc:4:-4 1 "CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)"

output=$(export OCL_ICD_VENDORS="$fake" && run)
expect "kernels that do nothing" $? 4 "values wrong" "$output"
# A device that reports less memory than the row needs is tried all the same.
output=$(export OCL_ICD_VENDORS="$fake" LAP_FAKE_CL_MEMORY=1048576 LAP_FAKE_CL_MAX_ALLOC=4294967296 &&
    timeout 100 "$warmlap" run quick --device opencl:0:0 --set network:height=32 \
        --set network:width=32 --set verify:mode=off --set run:modes=latency \
        --set run:kernels=naive --set latency:batch=1 2>&1)
expect "little memory reported" $? 0 "Fake device" "$output"
output=$(export OCL_ICD_VENDORS=/nonexistent && "$warmlap" devices 2>&1)
expect "no platform" $? 3 "no OpenCL platform" "$output"
output=$(export OCL_ICD_VENDORS=/nonexistent && run)
expect "no device" $? 3 "opencl" "$output"

[ $failures -eq 0 ]
