/* From a configuration to what the measuring code is asked for: every key that is about latency or
 * throughput, and nothing that only a running case knows (its device, its callbacks). */
#ifndef LAP_APP_CASE_OPTIONS_H
#define LAP_APP_CASE_OPTIONS_H

#include "app/config.h"
#include "measure/floor.h"
#include "measure/protocol.h"
#include "measure/throughput.h"

/* floor: of the device's route. rewarm_s: of rows that take turns. Telemetry, interruption,
 * progress and prepare are left empty. */
lap_latency_options lap_case_latency_options(const lap_config *config, const lap_floor *floor,
                                             double rewarm_s);

/* Interruption, progress and the callbacks are left empty. */
lap_throughput_options lap_case_throughput_options(const lap_config *config);

#endif
