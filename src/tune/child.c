/* A worker process as its parent sees it (see child.h). */
#include "tune/child.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* A process stuck in its driver does not die at once, if ever: it is left behind then. */
static const double DYING_S = 5.0, LEAVING_S = 10.0;

static int spawn(lap_child *child, int in, int out) {
    char *argv[LAP_CHILD_ARGS + 1] = {"warmlap"};
    for (int i = 0; i + 1 < LAP_CHILD_ARGS && child->args[i]; i++)
        argv[i + 1] = (char *)child->args[i];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    /* What a driver shouts while it dies is not for the user. */
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    /* An interrupt from the terminal is the parent's to handle. */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    int code = posix_spawn(&child->pid, "/proc/self/exe", &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return code;
}

static void close_pipes(lap_child *child) {
    close(child->to);
    close(child->from);
}

lap_status lap_child_start(lap_child *child, lap_error *err) {
    if (child->pid) return LAP_OK;
    int down[2], up[2], code;
    if (pipe2(down, O_CLOEXEC) != 0)
        return LAP_FAIL(err, LAP_E_INTERNAL, "a pipe for the tuning process: %s", strerror(errno));
    if (pipe2(up, O_CLOEXEC) != 0) {
        code = errno;
        close(down[0]);
        close(down[1]);
        return LAP_FAIL(err, LAP_E_INTERNAL, "a pipe for the tuning process: %s", strerror(code));
    }
    child->to = down[1];
    child->from = up[0];
    child->have = 0;
    code = spawn(child, down[0], up[1]);
    close(down[0]);
    close(up[1]);
    if (code == 0) return LAP_OK;
    child->pid = 0;
    close_pipes(child);
    return LAP_FAIL(err, LAP_E_INTERNAL, "starting the tuning process: %s", strerror(code));
}

/* Waits until it is gone; false when it is still there after so long. */
static bool reap(lap_child *child, double seconds) {
    int status = 0;
    double end = lap_clock_now() + seconds;
    for (;;) {
        pid_t got = waitpid(child->pid, &status, WNOHANG);
        if (got == child->pid || (got < 0 && errno != EINTR)) break;
        if (lap_clock_now() > end) return false;
        lap_clock_sleep(0.002);
    }
    if (child->death[0] == '\0') {
        if (WIFSIGNALED(status))
            snprintf(child->death, sizeof child->death, "killed by signal %d (%s)",
                     WTERMSIG(status), strsignal(WTERMSIG(status)));
        else
            snprintf(child->death, sizeof child->death, "ended with status %d",
                     WEXITSTATUS(status));
    }
    return true;
}

static void bury(lap_child *child, bool kill_it) {
    close_pipes(child);
    if (kill_it) kill(child->pid, SIGKILL);
    if (!reap(child, DYING_S)) {
        kill(child->pid, SIGKILL);
        (void)reap(child, DYING_S);
    }
    child->pid = 0;
}

bool lap_child_send(lap_child *child, const char *text) {
    size_t n = strlen(text);
    while (n > 0) {
        ssize_t put = write(child->to, text, n);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false; /* SIGPIPE is ignored by the program */
        text += put;
        n -= (size_t)put;
    }
    return true;
}

/* A line out of what was read. */
static bool take_line(lap_child *child, char *line, size_t size) {
    char *end = memchr(child->pending, '\n', child->have);
    if (!end) return false;
    size_t n = (size_t)(end - child->pending);
    size_t kept = n < size ? n : size - 1;
    memcpy(line, child->pending, kept);
    line[kept] = '\0';
    child->have -= n + 1;
    memmove(child->pending, end + 1, child->have);
    return true;
}

lap_child_line lap_child_read(lap_child *child, double limit_s, char *line, size_t size) {
    double end = lap_clock_now() + limit_s;
    child->death[0] = '\0';
    while (!take_line(child, line, size)) {
        double left = end - lap_clock_now();
        struct pollfd waiting = {.fd = child->from, .events = POLLIN};
        int ready = left > 0 ? poll(&waiting, 1, left < 1e6 ? (int)(left * 1000) + 1 : -1) : 0;
        if (ready < 0 && errno == EINTR) continue;
        if (ready == 0) {
            snprintf(child->death, sizeof child->death, "no sign of life for %.3g s", limit_s);
            bury(child, true);
            return LAP_CHILD_HUNG;
        }
        size_t room = sizeof child->pending - child->have;
        ssize_t got = room ? read(child->from, child->pending + child->have, room) : 0;
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            bury(child, room == 0);
            return LAP_CHILD_DEAD;
        }
        child->have += (size_t)got;
    }
    return LAP_CHILD_LINE;
}

void lap_child_stop(lap_child *child) {
    if (!child->pid) return;
    close(child->to); /* the end of its input is the end of its work */
    child->to = -1;
    bool gone = reap(child, LEAVING_S);
    close(child->from);
    if (!gone) {
        kill(child->pid, SIGKILL);
        (void)reap(child, DYING_S);
    }
    child->pid = 0;
}
