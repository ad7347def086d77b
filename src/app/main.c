/* Entry point: dispatches to the commands. */
#include "app/commands.h"
#include "base/text.h"
#include "tune/worker.h"

#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *about;
} command;

static const command commands[] = {
    {"devices", cmd_devices, "list every device of every backend"},
    {"run", cmd_run, "verify and time a network on one or more devices"},
    {"verify", cmd_verify, "verify every layer and the logits, without timing"},
    {"spans", cmd_spans, "submission, wall and device spans of an elementwise workload"},
    {"pitfalls", cmd_pitfalls, "common mistakes of timing, measured beside the right way"},
    {"tune", cmd_tune, "find the best kernels and parameters for a device, and keep them"},
    {"weights", cmd_weights, "write the synthetic weights as a safetensors file"},
    {"compare", cmd_compare, "result files side by side: which is faster, how surely; a gate"},
    {"report", cmd_report, "result files as one HTML page with charts, to keep or to mail"},
    {"history", cmd_history, "result files kept in a database, shown and followed over time"},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void help(FILE *to) {
    fputs("warmlap: how fast does a device run a real network?\n\n"
          "Usage: warmlap COMMAND [OPTION...]\n"
          "       warmlap --version | --help\n\n",
          to);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].about);
    fputs("\n`warmlap COMMAND --help` explains a command.\n"
          "Exit status: 0 all rows ok, 1 a row failed, 2 usage or configuration,\n"
          "3 no matching device, 4 verification failed, 5 slower than a gate allows,\n"
          "130 interrupted.\n",
          to);
}

static void version(void) {
    puts("warmlap " LAP_VERSION);
    const char *name, *text;
    for (size_t i = 0; lap_app_library(i, &name, &text); i++)
        printf("  %s: %s\n", name, text);
}

static int unknown(const char *word) {
    const char *names[COMMANDS];
    for (size_t i = 0; i < COMMANDS; i++)
        names[i] = commands[i].name;
    const char *closest = lap_text_closest(word, names, COMMANDS);
    fprintf(stderr, "warmlap: unknown command '%s'", word);
    if (closest)
        fprintf(stderr, ": did you mean '%s'?\n", closest);
    else
        fputs(": see warmlap --help\n", stderr);
    return LAP_EXIT_USAGE;
}

static int unexpected(const char *option, const char *word) {
    fprintf(stderr,
            "warmlap: %s takes no argument, but there is '%s'; to ask about a command: "
            "warmlap COMMAND --help\n",
            option, word);
    return LAP_EXIT_USAGE;
}

/* A closed or full standard output must not look like success. */
static int flushed(int status) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    fputs("warmlap: standard output could not be written\n", stderr);
    return status == LAP_EXIT_OK ? LAP_EXIT_FAILED : status;
}

/* A stream that came closed must not become the number of the next file that is opened, a driver's
 * say, and be written into. Standard output is held by something that cannot be written, so that
 * the loss is noticed. A reader that went away is an error of that one write, not the end of the
 * run. */
static void secure_streams(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) == -1)
            (void)!open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR);
    signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv) {
    secure_streams();
    signal(SIGCHLD, SIG_DFL); /* inherited as ignored, it would hide how a worker has ended */
    setlocale(LC_CTYPE, "");  /* widths of characters in tables; numbers stay in the C locale */
    if (argc < 2) {
        help(stderr);
        return LAP_EXIT_USAGE;
    }
    bool asks_version = strcmp(argv[1], "--version") == 0;
    if (asks_version || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        if (argc > 2) return unexpected(argv[1], argv[2]);
        if (asks_version)
            version();
        else
            help(stdout);
        return flushed(LAP_EXIT_OK);
    }
    if (strcmp(argv[1], LAP_TUNE_WORKER) == 0) return lap_tune_worker(argc - 1, argv + 1);
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return flushed(commands[i].run(argc - 1, argv + 1));
    return unknown(argv[1]);
}
