/* Fault injection: makes the nth fallible device call fail, so that every error path above the
 * device layer can be walked through without a broken device. Counts calls that passed their
 * argument checks; lap_device_close is not counted, since no backend can fail it. */
#include "device/objects.h"

#include "base/text.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    uint64_t calls, target; /* target 0: disarmed */
    lap_status status;
    bool bad; /* LAP_FAULT is set and cannot be read */
    char text[64];
} fault = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static bool parse_word(const char *word, lap_status *out) {
    static const struct {
        const char *word;
        lap_status status;
    } words[] = {{"oom", LAP_E_OOM},
                 {"launch", LAP_E_LAUNCH},
                 {"device", LAP_E_DEVICE},
                 {"build", LAP_E_BUILD},
                 {"timer", LAP_E_TIMER}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i].word) == 0) {
            *out = words[i].status;
            return true;
        }
    }
    return false;
}

/* "N:word", N >= 1, nothing else. */
static bool parse_fault(const char *text, uint64_t *nth, lap_status *status) {
    const char *colon = strchr(text, ':');
    char number[24];
    size_t digits = strspn(text, "0123456789");
    if (!colon || digits == 0 || digits != (size_t)(colon - text) || digits >= sizeof number)
        return false;
    memcpy(number, text, digits);
    number[digits] = '\0';
    return lap_parse_u64(number, nth) && *nth > 0 && parse_word(colon + 1, status);
}

static void read_environment(void) {
    const char *text = getenv("LAP_FAULT");
    if (!text || !*text) return;
    uint64_t nth;
    lap_status status;
    if (parse_fault(text, &nth, &status)) {
        fault.target = nth;
        fault.status = status;
    } else {
        fault.bad = true;
        snprintf(fault.text, sizeof fault.text, "%s", text);
    }
}

lap_status lap_fault_config(lap_error *err) {
    pthread_once(&fault.once, read_environment);
    if (!fault.bad) return LAP_OK;
    return LAP_FAIL(err, LAP_E_CONFIG,
                    "LAP_FAULT=\"%s\": expected N:WORD with N at least 1 and WORD one of oom, "
                    "launch, device, build, timer",
                    fault.text);
}

lap_status lap_fault_check(const char *call, lap_error *err) {
    pthread_once(&fault.once, read_environment);
    pthread_mutex_lock(&fault.lock);
    uint64_t number = ++fault.calls;
    lap_status status = number == fault.target ? fault.status : LAP_OK;
    pthread_mutex_unlock(&fault.lock);
    if (status == LAP_OK) return LAP_OK;
    return LAP_FAIL(err, status, "%s: planted fault at device call %llu (%s)", call,
                    (unsigned long long)number, lap_status_name(status));
}

uint64_t lap_device_fault_arm(uint64_t nth, lap_status status) {
    pthread_once(&fault.once, read_environment);
    pthread_mutex_lock(&fault.lock);
    uint64_t calls = fault.calls;
    fault.calls = 0;
    fault.target = status == LAP_OK ? 0 : nth;
    fault.status = status;
    pthread_mutex_unlock(&fault.lock);
    return calls;
}
