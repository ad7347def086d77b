/* Ctrl-C and SIGTERM: the first one asks, the second one leaves. */
#include "app/commands.h"

#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t stop_requested;

/* A hung driver cannot be asked. */
static void on_signal(int number) {
    (void)number;
    if (stop_requested) _exit(LAP_EXIT_INTERRUPTED);
    stop_requested = 1;
}

bool lap_app_interrupted(void *context) {
    (void)context;
    return stop_requested != 0;
}

void lap_app_watch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}
