/* Ctrl-C and SIGTERM: the first one asks, the second one leaves. A worker process is asked by its
 * parent instead, and tells it that it is alive whenever it looks whether it was. */
#include "app/commands.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t stop_requested; /* how often */
static bool on_terminal;                     /* the progress bar stands in the line */
static sig_atomic_t leave_at;                /* the request that ends the process at once */
static lap_app_shared *with_parent;          /* NULL but in a worker */

/* A hung driver cannot be asked. What takes a while to stop is at least acknowledged. */
static void on_signal(int number) {
    static const char alone[] =
        "\nwarmlap: stopping; press again to leave at once, without results\n";
    static const char with_worker[] = "\nwarmlap: stopping; press again to leave at once, without "
                                      "the rows that are not finished\n";
    (void)number;
    if (stop_requested + 1 >= leave_at) _exit(LAP_EXIT_INTERRUPTED);
    stop_requested = stop_requested + 1;
    if (stop_requested > 1) return;
    int kept = errno;
    const char *text = leave_at == 2 ? alone : with_worker;
    const char *from = on_terminal ? text : text + 1;
    if (write(STDERR_FILENO, from, strlen(from)) < 0) errno = kept; /* it stops all the same */
    errno = kept;
}

bool lap_app_interrupted(void *context) {
    (void)context;
    lap_app_beat();
    return stop_requested != 0 || (with_parent && atomic_load(&with_parent->stop) != 0);
}

int lap_app_interruptions(void) {
    return stop_requested;
}

void lap_app_beat(void) {
    if (with_parent) atomic_fetch_add_explicit(&with_parent->beats, 1, memory_order_relaxed);
}

static void watch(void (*handler)(int), int number) {
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    sigaction(number, &action, NULL);
}

static void watch_terminal(sig_atomic_t leave) {
    on_terminal = isatty(STDERR_FILENO);
    leave_at = leave;
    watch(on_signal, SIGINT);
    watch(on_signal, SIGTERM);
}

void lap_app_watch_signals(void) {
    watch_terminal(2);
}

void lap_app_watch_signals_for_worker(void) {
    watch_terminal(3); /* the second one is the caller's to see: it ends the worker */
}

void lap_app_become_worker(lap_app_shared *shared) {
    with_parent = shared;
    watch(SIG_IGN, SIGINT);
    watch(SIG_IGN, SIGTERM);
}
