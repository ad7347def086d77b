/* A kernel that does nothing: what a launch costs, and how finely events can be told apart. */
#ifndef PRECISION
#define PRECISION 0 /* lap_precision; makes no difference here */
#endif

extern "C" __global__ void nop(void) {}
