/* The parent of a worker process (see supervise.h). */
#include "app/supervise.h"
#include "app/commands.h"
#include "base/clock.h"
#include "report/format.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Leaving is closing the device and the driver's own good-bye. A process stuck in its driver does
 * not even die at once, if ever: it is left behind then. */
static const double LEAVING_S = 30, DYING_S = 5, LOOK_S = 0.2;

typedef struct worker {
    const lap_supervision *s;
    pid_t pid;
    lap_link link;
    lap_app_shared *shared; /* with the worker */
    unsigned long seen;
    double seen_s; /* when it was another */
} worker;

/* ---- the worker's side ---------------------------------------------------------------------- */

/* When memory runs out, the process that needs it all should be the one to go. Asks only. */
static void offer_to_die_first(void) {
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    (void)!write(fd, "500", 3);
    close(fd);
}

static _Noreturn void be_worker(worker *w, int write_end, pid_t parent, const sigset_t *mask) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1); /* it died before that was said */
    lap_app_become_worker(w->shared);
    sigprocmask(SIG_SETMASK, mask, NULL);
    offer_to_die_first();
    /* What drivers print must not get between the results. */
    dup2(STDERR_FILENO, STDOUT_FILENO);
    lap_link link = {.fd = write_end, .lock = PTHREAD_MUTEX_INITIALIZER};
    exit(w->s->work(w->s->context, &link));
}

/* ---- the parent's side ---------------------------------------------------------------------- */

static lap_status no_process(int code, lap_error *err) {
    return LAP_FAIL(err, LAP_E_INTERNAL,
                    "a process for the rows: %s (run:isolate = no does without)", strerror(code));
}

static void release(worker *w) {
    close(w->link.fd);
    lap_text_free(&w->link.pending);
    munmap(w->shared, sizeof *w->shared);
}

static lap_status start(worker *w, lap_error *err) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return no_process(errno, err);
    w->link.fd = ends[0];
    w->shared =
        mmap(NULL, sizeof *w->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (w->shared == MAP_FAILED || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
        int code = errno;
        close(ends[0]);
        close(ends[1]);
        return no_process(code, err);
    }
    sigset_t all, mask;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask); /* until the worker handles them its own way */
    fflush(NULL);                          /* or it would write it a second time */
    pid_t parent = getpid();
    w->pid = fork();
    int code = errno;
    if (w->pid == 0) {
        close(ends[0]);
        be_worker(w, ends[1], parent, &mask);
    }
    sigprocmask(SIG_SETMASK, &mask, NULL);
    close(ends[1]);
    w->seen_s = lap_clock_now();
    if (w->pid > 0) return LAP_OK;
    release(w);
    return no_process(code, err);
}

static void pass_on(worker *w) {
    lap_message message;
    while (lap_link_take(&w->link, &message))
        w->s->take(w->s->context, &message);
}

/* Seconds without a sign of life. */
static double silence(worker *w) {
    unsigned long now = atomic_load_explicit(&w->shared->beats, memory_order_relaxed);
    if (now != w->seen) w->seen_s = lap_clock_now();
    w->seen = now;
    return lap_clock_now() - w->seen_s;
}

static bool too_silent(worker *w) {
    double most = w->s->silence_s, seconds = silence(w);
    if (!(most > 0)) return false;
    if (*w->s->finished && most > LEAVING_S) most = LEAVING_S;
    return seconds > most;
}

static void describe(int status, lap_worker_outcome *out) {
    if (WIFSIGNALED(status)) {
        int number = WTERMSIG(status);
        out->end = LAP_WORKER_DIED;
        snprintf(out->text, sizeof out->text, "was killed by signal %d (%s)%s", number,
                 strsignal(number),
                 number == SIGKILL ? "; the system does so when memory runs out" : "");
    } else if (WEXITSTATUS(status) != 0) {
        out->end = LAP_WORKER_DIED;
        snprintf(out->text, sizeof out->text, "ended by itself with status %d",
                 WEXITSTATUS(status));
    }
}

static bool gone(worker *w, int *status) {
    pid_t got = waitpid(w->pid, status, WNOHANG);
    return got == w->pid || (got < 0 && errno != EINTR);
}

/* Ends it; false when it is still there. */
static bool put_down(worker *w) {
    int status;
    kill(w->pid, SIGKILL);
    for (double end = lap_clock_now() + DYING_S; lap_clock_now() < end; lap_clock_sleep(0.005))
        if (gone(w, &status)) return true;
    return false;
}

static void end_hung(worker *w, lap_worker_outcome *out) {
    char seconds[40];
    lap_format_rate(seconds, sizeof seconds, lap_clock_now() - w->seen_s, false);
    out->end = LAP_WORKER_HUNG;
    bool down = put_down(w);
    snprintf(out->text, sizeof out->text, "gave no sign of life for %s s%s", seconds,
             down ? " and was killed" : ", and did not even end when it was killed");
}

/* Until it has ended or was ended. */
static void attend(worker *w, lap_worker_outcome *out) {
    for (int status = 0;;) {
        struct pollfd waiting = {.fd = w->link.fd, .events = POLLIN};
        int ready = poll(&waiting, 1, (int)(LOOK_S * 1000));
        int got = ready > 0 ? lap_link_read(&w->link) : 0;
        if (got > 0) w->seen_s = lap_clock_now();
        pass_on(w);
        if (gone(w, &status)) {
            while (lap_link_read(&w->link) > 0)
                pass_on(w);
            describe(status, out);
            return;
        }
        if (got < 0) lap_clock_sleep(0.01); /* at its end, and leaving */
        if (lap_app_interruptions() > 0) atomic_store(&w->shared->stop, 1);
        if (lap_app_interruptions() > 1) {
            out->end = LAP_WORKER_LEFT;
            snprintf(out->text, sizeof out->text, "was ended at the user's second request");
            put_down(w);
            return;
        }
        if (too_silent(w)) {
            end_hung(w, out);
            return;
        }
    }
}

lap_status lap_supervise(const lap_supervision *s, lap_worker_outcome *out, lap_error *err) {
    worker w = {.s = s};
    *out = (lap_worker_outcome){0};
    LAP_TRY(start(&w, err));
    attend(&w, out);
    release(&w);
    return LAP_OK;
}
