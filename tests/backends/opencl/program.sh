#!/bin/sh
# The whole program over spoilt OpenCL drivers: usage: program.sh WARMLAP SHIM FAKE_VENDORS FOLDER
# SHIM spoils a real driver's answers (tests/standin/shim_opencl.c); FAKE_VENDORS leads the loader to
# the fake driver (tests/standin/fake_opencl.c); what they do is in a script (tests/standin/script.h), which is
# written into FOLDER. Skipped (77) where there is no real device.
warmlap=$1 shim=$2 fake=$3
set -- "$4"
. "$(dirname "$0")/../../standin/told.sh"

run() {
    timeout 100 "$warmlap" run quick --device opencl:0:0 --set network:height=32 \
        --set network:width=32 --set verify:mode=quick --set run:modes=latency \
        --set run:kernels=naive "$@"
}

small() {
    timeout 100 "$warmlap" run --set network:height=32 --set network:width=32 --set verify:mode=off \
        --set run:modes=latency --set run:kernels=naive --set latency:repetitions=2 "$@"
}

spoilt() { (export LD_PRELOAD="$shim" && run "$@"); }

output=$("$warmlap" devices 2>&1)
case $output in
*opencl:0:0*) ;;
*) echo "skipped: no OpenCL device" && exit 77 ;;
esac

told "nothing spoilt" 0 "verified to" spoilt < /dev/null
told "zero stamps" 0 "by the host's clock" spoilt <<- end
	[opencl]
	stamps = zero
end
told "reversed stamps" 0 "by the host's clock" spoilt <<- end
	[opencl]
	stamps = reversed
end
told "stamps before their beginning are counted" 0 '"bad_stamps": 10' spoilt --json - <<- end
	[opencl]
	stamps = reversed
end
also '"impossible_spans": 0'
told "no stamps at all" 0 "by the host's clock" spoilt <<- end
	[opencl]
	stamps = missing
end
told "a wrong clock unit" 0 "by the host's clock" spoilt <<- end
	[opencl]
	slow_by = 42
end
told "a launch fails" 1 "CL_OUT_OF_RESOURCES (-5)" spoilt <<- end
	fail clEnqueueNDRangeKernel 60 -5
end
told "a launch fails in one of two rows" 1 '"status": "failed"' spoilt --set latency:batch=1,2 --json - <<- end
	fail clEnqueueNDRangeKernel 60 -5
end
also '"status": "failed"' 'CL_OUT_OF_RESOURCES (-5)' '"latency": null' '"status": "ok"' '"bad_stamps": 0'
told "the queue is lost" 1 "CL_INVALID_COMMAND_QUEUE (-36)" spoilt <<- end
	fail clFinish 3+ -36
end
told "no memory" 1 "CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)" spoilt <<- end
	fail clCreateBuffer 4 -4
end
told "a script with a mistake" 1 "script.txt:2: unknown key stmaps in [opencl]" spoilt <<- end
	[opencl]
	stmaps = zero
end

export OCL_ICD_VENDORS="$fake" OCL_ICD_PLATFORM_SORT=none
told "kernels that do nothing" 4 "values wrong" run < /dev/null
# A device that reports less memory than the row needs is tried all the same.
told "little memory reported" 0 "Fake device" run --set verify:mode=off --set latency:batch=1 <<- end
	[platform]
	[device]
	memory = 1048576
	max_alloc = 4294967296
end
told "a launch that does not return" 1 "no sign of life for 3" run --set run:watchdog=3 <<- end
	delay clEnqueueNDRangeKernel 30000
end
# CLBlast asks what the fake driver does not know.
for limit in 1 32 64; do
    for kernels in naive default; do
        told "kernels of at most $limit work-items, $kernels" 0 "Fake device" run --set verify:mode=off \
            --set run:kernels=$kernels --set run:exclude=fc_gemm <<- end
	[platform]
	[device]
	group = 1024
	kernel_group = $limit
end
    done
done
told "one device by two drivers" 0 "opencl:0:0" "$warmlap" devices <<- end
	[platform]
	[device]
	uuid = 000102030405060708090a0b0c0d0eff
	[platform]
	[device]
	uuid = 000102030405060708090a0b0c0d0eff
end
also "opencl:1:0"
once "uuid 00010203"
cp "$script" "$script.aliases"
told "one device by two drivers is run once" 0 '"selector": "opencl:0:0"' small --json - < "$script.aliases"
never '"selector": "opencl:1:0"'
told "one device by two drivers, each asked for" 0 '"selector": "opencl:1:0"' small --device all --json - < "$script.aliases"
told "bad platforms before a good one" 0 "opencl:2:0 Good one" run --device opencl --set verify:mode=off \
    --set latency:batch=1 <<- end
	[platform]
	[platform]
	error = -6
	[platform]
	[device]
	name = "Good one\0"
end
export OCL_ICD_VENDORS=/nonexistent
told "no platform" 3 "no OpenCL platform" "$warmlap" devices < /dev/null
told "no device" 3 "opencl" run < /dev/null

[ $failures -eq 0 ]
