/* Batch search and throughput: a plan per batch size, verified before its speed counts, freed
 * before the next. A lost device is replaced by a fresh session for what comes after. */
#include "app/case_options.h"
#include "app/runner_internal.h"

#include "base/clock.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

lap_status run_fits(lap_case_run *run, const lap_plan *plan, uint64_t batch, lap_error *err) {
    uint64_t free_bytes = 0, total = 0;
    lap_status known = lap_device_memory(run->session->device, &free_bytes, &total, NULL);
    lap_host_memory host;
    lap_host_memory_read("", &host);
    lap_device_info device = *run->c->device;
    uint64_t piece = lap_plan_largest_bytes(plan), most = device.max_alloc_bytes;
    /* Beyond it some drivers refuse, and some give memory that does not hold what is written. */
    if (batch > 1 && most > 0 && piece > most)
        return LAP_FAIL(err, LAP_E_OOM,
                        "needs %.2f GiB in one piece, the device's largest allocation is %.2f GiB",
                        (double)piece / (1 << 30), (double)most / (1 << 30));
    /* One image is tried whatever a device says of its memory: some say less than they have. Only
     * what is seen to be free counts then. */
    bool seen = known == LAP_OK || (device.host_memory && host.known);
    if (batch == 1) {
        if (!seen) return LAP_OK;
        device.memory_bytes = 0;
    }
    uint64_t safe = lap_safe_bytes(&device, known == LAP_OK, free_bytes, &host,
                                   run->runner->config->throughput.memory_fraction);
    uint64_t need = lap_plan_weight_bytes(plan) + lap_plan_activation_bytes(plan);
    if (need <= safe) return LAP_OK;
    return LAP_FAIL(err, LAP_E_OOM,
                    "needs %.2f GiB of device memory, the safe share is %.2f GiB "
                    "([throughput] memory_fraction)",
                    (double)need / (1 << 30), (double)safe / (1 << 30));
}

static lap_status run_plan(void *context, lap_error *err) {
    return lap_plan_run(context, err);
}

void run_drop_session(lap_case_run *run) {
    lap_session_close(run->session, NULL);
    run->session = NULL;
}

lap_status run_make_plan(lap_case_run *run, uint64_t batch, lap_queue *queue, lap_plan **out,
                         lap_error *err) {
    lap_runner *runner = run->runner;
    lap_plan_options options = run->options;
    options.batch = batch;
    options.queue = queue;
    if (!run->session) LAP_TRY(run_open(run, err));
    double start = lap_clock_now();
    lap_status status = lap_plan_new(run->session, runner->net, &options, NULL, NULL, out, err);
    run->build_s += lap_clock_now() - start;
    if (status != LAP_OK) return status;
    if (batch > 1) LAP_TRY(run_fits(run, *out, batch, err));
    LAP_TRY(lap_plan_upload(*out, runner->weights, err));
    LAP_TRY(lap_plan_bind(*out, err));
    LAP_TRY(lap_plan_set_input(*out, runner->expected.images, runner->expected.count, err));
    bool captured;
    return lap_plan_capture(*out, &captured, err);
}

bool run_interrupted(void *context) {
    const lap_case_run *run = context;
    return run->runner->interrupted && run->runner->interrupted(NULL);
}

typedef struct batch_job {
    lap_case_run *run;
    uint64_t batch, batches; /* batches 0: as many as a short look needs */
    double seconds;
    double timed_s; /* in timed runs, the first one too */
    uint64_t done;  /* batches timed */
} batch_job;

/* Enough runs for a rate that can be compared: a tenth of a second, or an eighth of what the
 * measurement at the end would take if that is less; at least two. */
static lap_status short_look(batch_job *job, const lap_workload *workload, const lap_timing *timing,
                             lap_error *err) {
    double once;
    LAP_TRY(lap_measure_once(workload, timing, &once, err));
    double wanted = once > 0 ? 0.1 / once : 2;
    double most = (double)job->run->runner->config->throughput.batches / 8;
    if (wanted > most) wanted = most;
    job->done = wanted < 2 ? 2 : wanted > 200 ? 200 : (uint64_t)wanted;
    LAP_TRY(lap_measure_batches(workload, timing, job->done, run_interrupted, job->run,
                                &job->seconds, err));
    job->timed_s = once + job->seconds;
    return LAP_OK;
}

static lap_status timed(batch_job *job, lap_plan *plan, lap_error *err) {
    lap_timing timing;
    LAP_TRY(lap_timing_open(job->run->session->queue, &timing, err));
    lap_workload workload = {run_plan, plan};
    lap_status status;
    double ignored;
    if (job->batches == 0) {
        status = short_look(job, &workload, &timing, err);
    } else {
        job->done = job->batches;
        status = lap_measure_once(&workload, &timing, &ignored, err); /* warm */
        if (status == LAP_OK)
            status = lap_measure_batches(&workload, &timing, job->batches, run_interrupted,
                                         job->run, &job->seconds, err);
    }
    lap_timing_close(&timing);
    return status;
}

/* Verify, time, verify again that nothing moved. */
static lap_status verified_run(batch_job *job, lap_plan *plan, lap_error *err) {
    lap_case_run *run = job->run;
    lap_runner *runner = run->runner;
    if (runner->config->verify.mode == LAP_VERIFY_OFF) return timed(job, plan, err);
    lap_check_report report = {.mode = run->report.mode};
    float *logits = NULL;
    lap_status status = lap_check_logits(plan, runner->net, &runner->expected, job->batch,
                                         run->c->precision, &logits, &report, err);
    if (status == LAP_OK) status = timed(job, plan, err);
    if (status == LAP_OK)
        status = lap_check_unchanged(plan, runner->net, job->batch, logits, &report, err);
    free(logits);
    if (status == LAP_E_VERIFY) {
        lap_error_prefix(err, "batch %" PRIu64 ": ", job->batch);
        run->row->verified.passed = false;
        snprintf(run->row->verified.first_wrong, sizeof run->row->verified.first_wrong, "%s",
                 report.first_wrong);
    }
    return status;
}

static lap_status do_batch(batch_job *job, lap_error *err) {
    lap_plan *plan = NULL;
    lap_status status = run_make_plan(job->run, job->batch, NULL, &plan, err);
    if (status == LAP_OK) status = verified_run(job, plan, err);
    lap_plan_free(plan);
    /* After an allocation or launch failed some drivers refuse everything that follows. */
    if (status == LAP_E_OOM || status == LAP_E_LAUNCH || status == LAP_E_DEVICE)
        run_drop_session(job->run);
    return status;
}

static lap_status try_batch(void *context, uint64_t batch, lap_trial *out, lap_error *err) {
    batch_job job = {.run = context, .batch = batch};
    double built = job.run->build_s;
    lap_status status = do_batch(&job, err);
    out->build_s = job.run->build_s - built;
    if (status != LAP_OK) return status;
    out->images_per_s = (double)batch * (double)job.done / job.seconds;
    out->batch_s = job.seconds / (double)job.done;
    out->timed_s = job.timed_s;
    return LAP_OK;
}

static lap_status measure(void *context, uint64_t batch, uint64_t batches, double *seconds,
                          lap_error *err) {
    batch_job job = {.run = context, .batch = batch, .batches = batches};
    LAP_TRY(do_batch(&job, err));
    *seconds = job.seconds;
    return LAP_OK;
}

static void progress(void *context, const char *what, size_t done, size_t total) {
    const lap_case_run *run = context;
    lap_meter_progress(run->runner->meter, what, done, total);
}

lap_status run_throughput(lap_case_run *run, lap_error *err) {
    lap_meter_step(run->runner->meter, "%s: throughput", run->label);
    lap_throughput_options options = lap_case_throughput_options(run->runner->config);
    options.interrupted = run_interrupted;
    options.progress = progress;
    options.try_batch = try_batch;
    options.measure = measure;
    options.context = run;
    LAP_TRY(lap_throughput_search(&options, &run->row->throughput, err));
    return lap_throughput_measure(&options, &run->row->throughput, err);
}
