/* For kernels that may begin while the launch before them is still ending (programmatic dependent
 * launch, compute capability 9.0 and newer; elsewhere the macro is nothing).
 *
 * WAIT_FOR_EARLIER() is the first statement of such a kernel, so that every thread executes it
 * whatever it does then. It returns when the launch before this one has ended and what that wrote
 * can be read. That no launch ends without it makes this mean all launches before it, and not only
 * the one in front.
 *
 * The variable is how the backend knows code with the wait in it; nothing reads it. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
extern "C" __device__ char warmlap_waits_for_earlier;
#define WAIT_FOR_EARLIER() asm volatile("griddepcontrol.wait;" ::: "memory")
#else
#define WAIT_FOR_EARLIER()
#endif
