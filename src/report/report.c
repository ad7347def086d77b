/* What renderers share: the time of a document. */
#include "report/report.h"

#include <string.h>
#include <time.h>

void lap_report_time(char out[32]) {
    time_t now = time(NULL);
    struct tm utc;
    if (now == (time_t)-1 || !gmtime_r(&now, &utc) ||
        strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        strcpy(out, "1970-01-01T00:00:00Z");
}
