/* probe_local: whether groups really have LOCAL_BYTES of local memory each, more than the driver
 * lists. Every turn, a group fills all of it with numbers of its own and reads each back through
 * another work-item than wrote it. out has a word a work-item: its global number plus 1, or 0 if it
 * ever read something else. Whether it builds, runs and gives that decides if kernels may declare
 * so much.
 * Group: 256. Grid: enough groups that some share a multiprocessor. */
#ifndef LOCAL_BYTES
#define LOCAL_BYTES 32768
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision: of no account here */
#endif

#define WORDS (LOCAL_BYTES / 4)
#define TURNS 4

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void
probe_local(__global uint *restrict out) {
    __local uint shared[WORDS];
    const uint lane = get_local_id(0), group = get_group_id(0);
    uint wrong = 0;
    for (uint turn = 0; turn < TURNS; turn++) {
        const uint first = (group * TURNS + turn) * WORDS;
        for (uint i = lane; i < WORDS; i += 256)
            shared[i] = first + i;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = lane; i < WORDS; i += 256)
            wrong |= shared[WORDS - 1 - i] ^ (first + WORDS - 1 - i);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const uint item = group * 256 + lane;
    out[item] = wrong ? 0 : item + 1;
}
