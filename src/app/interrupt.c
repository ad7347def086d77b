/* Ctrl-C and SIGTERM: the first one asks, the second one leaves. */
#include "app/commands.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t stop_requested;
static bool on_terminal; /* the progress bar stands in the line */

/* A hung driver cannot be asked. What takes a while to stop is at least acknowledged. */
static void on_signal(int number) {
    static const char text[] =
        "\nwarmlap: stopping; press again to leave at once, without results\n";
    (void)number;
    if (stop_requested) _exit(LAP_EXIT_INTERRUPTED);
    stop_requested = 1;
    int kept = errno;
    const char *from = on_terminal ? text : text + 1;
    if (write(STDERR_FILENO, from, strlen(from)) < 0) errno = kept; /* it stops all the same */
    errno = kept;
}

bool lap_app_interrupted(void *context) {
    (void)context;
    return stop_requested != 0;
}

void lap_app_watch_signals(void) {
    on_terminal = isatty(STDERR_FILENO);
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}
