#!/bin/sh
# The whole program over the stand-ins for the CUDA runtime and NVRTC, whose kernels do nothing: what its user is
# told of drivers that lack, fail, lie and hang. Usage: program.sh WARMLAP_OVER_STANDINS NVRTC_STANDIN FOLDER
warmlap=$1
export LAP_NVRTC="$2" LAP_NVML=none OCL_ICD_VENDORS=/nonexistent XDG_CACHE_HOME="$3/cache"
unset OCL_ICD_FILENAMES
set -- "$3"
. "$(dirname "$0")/../../standin/told.sh"

row() { # kernels are compiled each time
    rm -rf "$XDG_CACHE_HOME"
    timeout 100 "$warmlap" run --device cuda --set network:height=32 --set network:width=32 --set run:modes=latency \
        --set latency:batch=1 --set latency:repetitions=2 --set latency:warmup=0 --set verify:mode=off \
        --set run:kernels=naive "$@"
}

any() {
    timeout 100 "$warmlap" run --set network:height=32 --set network:width=32 --set run:modes=latency \
        --set latency:batch=1 --set latency:repetitions=2 --set latency:warmup=0 --set verify:mode=off \
        --set run:kernels=naive "$@"
}
without_nvml() { (export LAP_NVML=/nowhere/libnvidia-ml.so.1 && row "$@"); }

told "sound drivers" 0 "Stand-in GPU through CUDA runs ResNet-18" row < /dev/null
told "no OpenCL: CUDA is taken" 0 '"selector": "cuda:0"' any --json - < /dev/null
told "OpenCL asked for, where there is none" 3 "no OpenCL platform" any --device opencl < /dev/null
never "runs ResNet-18"
told "no NVML" 0 '"status": "ok"' without_nvml --json - < /dev/null
also '"n": 2' '"telemetry": null'
told "kernels that do nothing" 4 "values wrong" row --set verify:mode=quick < /dev/null
told "no device" 3 "no CUDA device" "$warmlap" devices <<- end
	[cuda]
	count_error = 100
end
told "no device in a run" 3 "cudaErrorNoDevice, 100" row <<- end
	[cuda]
	count_error = 100
end
once "cudaErrorNoDevice, 100"
told "a broken driver" 3 "cudaErrorUnknown, 999" row <<- end
	[cuda]
	count_error = 999
end
once "cudaErrorUnknown, 999"
told "a broken driver, any device" 3 "cudaErrorUnknown, 999" any <<- end
	[cuda]
	count_error = 999
end
once "cudaErrorUnknown, 999"
told "a device that cannot be opened" 1 "opening cuda:0 (Stand-in GPU)" row --json - <<- end
	fail cudaFree 1 999
end
also '"status": "failed"' '"latency": null'
told "a part of a GPU" 0 "NVIDIA H200 MIG 1g.18gb through CUDA runs ResNet-18" row <<- end
	[cuda]
	name = "NVIDIA H200 MIG 1g.18gb"
end
told "whose address stands beside which index" 0 "pci 0001:3b:02.0 cuda:0" "$warmlap" devices <<- end
	[cuda]
	devices = 2
end
also "pci 0001:3c:02.0 cuda:1"
told "one device of two is lost" 0 "cuda:1 not listed" "$warmlap" devices <<- end
	[cuda]
	devices = 2
	fail cudaGetDeviceProperties 2 999
end
told "both devices" 0 "cuda:1 Stand-in GPU" row --set run:device=cuda <<- end
	[cuda]
	devices = 2
end
told "a kernel faults" 1 "cudaErrorIllegalAddress (700)" row <<- end
	fail cudaLaunchKernel 20 700
end
# A context that is lost stays so for its process: the next row has another one.
told "a context is lost" 1 '"status": "ok"' row --set latency:batch=1,2,3 --json - <<- end
	fail cudaLaunchKernel 165+ 700
end
also '"status": "ok"' '"status": "failed"' 'cudaErrorIllegalAddress (700)' '"latency": null' '"status": "ok"'
told "no memory" 1 "cudaErrorMemoryAllocation (2)" row <<- end
	fail cudaMalloc 3+ 2
end
told "a launch that does not return" 1 "no sign of life for 3" row --set run:watchdog=3 <<- end
	delay cudaLaunchKernel 30000
end
told "kernels that may be started early" 1 "cudaLaunchKernelExC: cudaErrorIllegalAddress (700)" row --set run:kernels=default <<- end
	fail cudaLaunchKernelExC 1 700
end
told "all of them behind a launch" 0 "Stand-in GPU through CUDA runs ResNet-18" row --set run:kernels=default < /dev/null
told "none when that is turned off" 0 "runs ResNet-18" row --set run:kernels=default --set run:overlap=no <<- end
	fail cudaLaunchKernelExC 1+ 700
end
told "none on an older device" 0 "runs ResNet-18" row --set run:kernels=default <<- end
	[cuda]
	capability = 8.9
	fail cudaLaunchKernelExC 1+ 700
end
told "none of the plain kernels" 0 "runs ResNet-18" row <<- end
	fail cudaLaunchKernelExC 1+ 700
end
told "an old NVRTC" 1 "is version 11.8, 12.0 or newer is needed" row <<- end
	[nvrtc]
	version = 11.8
end
told "a compiler that fails" 1 "NVRTC_ERROR_COMPILATION (6)" row <<- end
	fail nvrtcCompileProgram 1+ 6
end
told "a device newer than NVRTC" 0 "Stand-in GPU through CUDA runs ResNet-18" row <<- end
	[cuda]
	capability = 12.9
end
told "a device older than NVRTC" 1 "has compute capability 2.1, and NVRTC 13.0" row <<- end
	[cuda]
	capability = 2.1
end
told "PTX newer than the driver" 1 "newer than the driver" row <<- end
	[cuda]
	capability = 12.9
	driver = 12040
	fail cudaLibraryLoadData 1+ 222
end
told "a script with a mistake" 1 "script.txt:2: unknown key cababilty in [cuda]" row <<- end
	[cuda]
	cababilty = 9.0
end

[ $failures -eq 0 ]
