/* The table of every configuration key: section, type, range, default, help. Data only; a new key
 * is a row here, a field in lap_config and a line in conf/default.ini. */
#include "app/config_keys.h"
#include "measure/rounds.h"
#include "net/op.h"

#include <stddef.h>

/* Indices are the values of the enums, so a changed enum must change its words too. */
static const char *const modes[] = {"latency", "throughput", NULL};
static const char *const kernels[] = {"default", "unfused", "naive", "tuned", NULL};
static const char *const precisions[] = {"fp32", "fp32x3", "tf32", "fp16", "bf16", NULL};
static const char *const searches[] = {"doubling", "linear", "binary", "sweep", NULL};
static const char *const caches[] = {"hot", "cold", NULL};
static const char *const orders[] = {"auto", "interleaved", "sequential", NULL};
static const char *const fleets[] = {"auto", "yes", "no", NULL};
static const char *const stops[] = {"fixed", "relative_noise", NULL};
static const char *const verify_modes[] = {"full", "quick", "off", NULL};
_Static_assert(sizeof modes / sizeof *modes == LAP_RUN_MODE_COUNT + 1, "a word per lap_run_mode");
_Static_assert(sizeof precisions / sizeof *precisions == LAP_PRECISION_COUNT + 1,
               "a word per lap_precision");
_Static_assert(LAP_FP32 == 0 && LAP_FP32X3 == 1 && LAP_TF32 == 2 && LAP_FP16 == 3 && LAP_BF16 == 4,
               "the words stand in the order of lap_precision");
_Static_assert(LAP_SEARCH_DOUBLING == 0 && LAP_SEARCH_LINEAR == 1 && LAP_SEARCH_BINARY == 2 &&
                   LAP_SEARCH_SWEEP == 3,
               "the words stand in the order of lap_search");
_Static_assert(sizeof(lap_kernels) == sizeof(unsigned) && sizeof(lap_search) == sizeof(unsigned) &&
                   sizeof(lap_verify_mode) == sizeof(unsigned) &&
                   sizeof(lap_order) == sizeof(unsigned) && sizeof(lap_stop) == sizeof(unsigned) &&
                   sizeof(lap_fleet_mode) == sizeof(unsigned) &&
                   sizeof(lap_cache_mode) == sizeof(unsigned),
               "a CHOICE is stored as unsigned");

#define FIELD(member) .offset = offsetof(lap_config, member)

const lap_section lap_sections[] = {
    {"run", "What runs, and where."},
    {"network", "The network and what it computes on. Every combination is a row of its own."},
    {"latency", "One batch at a time, each run timed on its own."},
    {"throughput", "Images per second: a search for the best batch size, then a long run at it."},
    {"verify", "Every time is shown only after the device's results were found right."},
    {"output", "Result files besides the table on standard output."},
};
const size_t lap_section_count = sizeof lap_sections / sizeof *lap_sections;

const lap_key lap_keys[] = {
    {"run", "device", LAP_KEY_TEXT, FIELD(run.device), "auto",
     "Selector of the devices: auto (the best one), all, cuda[:i], opencl[:platform[:device]], "
     "name=TEXT, uuid=HEX, pci=ADDRESS, type=gpu|cpu|accelerator, or several of these separated by "
     "commas. `warmlap devices` lists what there is."},
    {"run", "modes", LAP_KEY_CHOICES, FIELD(run.modes), "latency, throughput",
     "What is measured; of a row, its latency before its throughput.", .choices = modes},
    {"run", "seed", LAP_KEY_COUNT, FIELD(run.seed), "1",
     "Seed of the order in which rows are timed, and of what tuning tries where it does not try "
     "all. Weights and input have seeds of their own.",
     .least = 0, .most = UINT64_MAX},
    {"run", "kernels", LAP_KEY_CHOICE, FIELD(run.kernels), "default",
     "default: the fastest kernel that accepts each layer, or a pair of layers. unfused: a kernel "
     "for every layer. naive: only the plain kernels that the others are compared with. tuned: as "
     "default, but kernels and parameters from the tune store where it knows this device, driver "
     "and layer; see docs/TUNING.md.",
     .choices = kernels},
    {"run", "order", LAP_KEY_CHOICE, FIELD(run.order), "auto",
     "interleaved: rows of one network and size take turns in random blocks (from seed), so that "
     "drift hits all alike; rows that do not fit together in memory are timed alone. sequential: "
     "one row after the other. auto: interleaved when several devices are selected.",
     .choices = orders},
    {"run", "concurrent", LAP_KEY_BOOL, FIELD(run.concurrent), "no",
     "After each device alone, also all selected devices at the same time, a thread for each: rows "
     "of their own, their sum, and what it is of the devices alone. Routes to the same device are "
     "not run at the same time; they make sets of their own. See docs/METHOD.md."},
    {"run", "rounds", LAP_KEY_COUNT, FIELD(run.rounds), "5",
     "With concurrent, or in a fleet: how often throughput alone and at the same time take turns. "
     "The interval of the sum is from these.",
     .least = 1, .most = LAP_ROUNDS_MOST},
    {"run", "round_seconds", LAP_KEY_REAL, FIELD(run.round_seconds), "0.5",
     "About how long each timed part of a round is; two batches at least.", .real_least = 0.001,
     .real_most = 3600},
    {"run", "fleet", LAP_KEY_CHOICE, FIELD(run.fleet), "auto",
     "auto: the processes that an MPI launcher started (mpirun -n 4 warmlap run ...) are one "
     "fleet: "
     "each takes a device of its host, all measure at the same time, rank 0 writes one result. "
     "yes: "
     "the same without looking for the launcher's variables. no: every process is on its own. See "
     "docs/FLEETS.md.",
     .choices = fleets},
    {"run", "fleet_timeout", LAP_KEY_REAL, FIELD(run.fleet_timeout), "120",
     "Seconds without a sign of life after which a rank of a fleet is left behind and named.",
     .real_least = 1, .real_most = 86400},
    {"run", "telemetry", LAP_KEY_BOOL, FIELD(run.telemetry), "yes",
     "Read clocks, temperature and power while a row is timed, where the system tells them."},
    {"run", "prefer", LAP_KEY_ROWS, FIELD(run.prefer), "",
     "Kernels that are tried before all others where they accept a layer, also those that are "
     "never "
     "chosen by themselves: conv_im2col_gemm (im2col and a product by CLBlast). Pairs of layers go "
     "first, "
     "so "
     "kernels = unfused lets a preferred kernel have every layer of its kind."},
    {"run", "exclude", LAP_KEY_ROWS, FIELD(run.exclude), "",
     "Kernels that are not chosen, to see what each of them buys; the layer table names those in "
     "use."},
    {"run", "overlap", LAP_KEY_BOOL, FIELD(run.overlap), "yes",
     "In a pass, a kernel may be started while the one before it comes to its end, and itself "
     "waits for what that writes: CUDA on compute capability 9.0 and newer (programmatic dependent "
     "launch), for kernels that can. Layers are timed and verified without."},
    {"run", "tune_store", LAP_KEY_PATH, FIELD(run.tune_store), "",
     "File that `warmlap tune` writes and kernels = tuned reads; empty: warmlap/tune.txt in "
     "XDG_DATA_HOME, or in ~/.local/share.",
     .stored = true},
    {"run", "cache", LAP_KEY_BOOL, FIELD(run.cache), "yes",
     "Keep built kernels in warmlap in XDG_CACHE_HOME, or in ~/.cache, so that the next start need "
     "not compile them. Each row says how many were compiled and how many came from there."},
    {"run", "isolate", LAP_KEY_BOOL, FIELD(run.isolate), "yes",
     "Work on the rows in a process of its own, so that a driver that crashes or hangs costs the "
     "row "
     "it was in and not the others (docs/RELIABILITY.md). no: for debuggers and profilers that do "
     "not follow a fork; there is no watchdog then."},
    {"run", "watchdog", LAP_KEY_REAL, FIELD(run.watchdog), "600",
     "Seconds without a sign of life, from a driver call that does not return, after which the row "
     "fails, its process is killed and the next row begins. 0: wait for ever.",
     .real_least = 0, .real_most = 86400},

    {"network", "model", LAP_KEY_CHOICES, FIELD(network.model), "resnet18", "The networks.",
     .choices = lap_net_model_names},
    {"network", "height", LAP_KEY_COUNTS, FIELD(network.height), "224",
     "Image heights in pixels. Entry i goes with entry i of width; a single one goes with every "
     "entry of the other list.",
     .least = 32, .most = 65535},
    {"network", "width", LAP_KEY_COUNTS, FIELD(network.width), "224",
     "Image widths in pixels; see height.", .least = 32, .most = 65535},
    {"network", "precision", LAP_KEY_CHOICES, FIELD(network.precision), "fp32",
     "Arithmetic and storage. A device that cannot do one says so in its row.",
     .choices = precisions},
    {"network", "weights", LAP_KEY_SOURCE, FIELD(network.weights), "synthetic:1",
     "Where the weights come from: generated from a seed, or a file with torchvision's names.",
     .suffix = ".safetensors"},
    {"network", "input", LAP_KEY_SOURCE, FIELD(network.input), "synthetic:1",
     "Where the images come from: generated from a seed, or a float32 NCHW array.",
     .suffix = ".npy"},

    {"latency", "batch", LAP_KEY_COUNTS, FIELD(latency.batch), "1",
     "Images per run; each entry is a row.", .least = 1, .most = 1048576, .distinct = true},
    {"latency", "warmup", LAP_KEY_AMOUNT, FIELD(latency.warmup), "20",
     "Untimed runs before the timed ones: how many, or for how long (2s, 0.5s), or auto: until the "
     "spans are steady (docs/METHOD.md says what that means), at most max_seconds.",
     .least = 0, .most = 1000000, .real_least = 0.001, .real_most = 3600, .automatic = true},
    {"latency", "burn_in", LAP_KEY_REAL, FIELD(latency.burn_in), "0",
     "Seconds of runs before the warm-up, for clocks and heat to settle.", .real_least = 0,
     .real_most = 3600},
    {"latency", "stop", LAP_KEY_CHOICE, FIELD(latency.stop), "fixed",
     "fixed: repetitions samples. relative_noise: until the standard error of the mean is at most "
     "noise_target of it.",
     .choices = stops},
    {"latency", "repetitions", LAP_KEY_COUNT, FIELD(latency.repetitions), "100",
     "Timed runs with stop = fixed.", .least = 1, .most = 1000000},
    {"latency", "noise_target", LAP_KEY_REAL, FIELD(latency.noise_target), "0.002",
     "Standard error of the mean over the mean, at which stop = relative_noise ends.",
     .real_least = 1e-6, .real_most = 1},
    {"latency", "min_samples", LAP_KEY_COUNT, FIELD(latency.min_samples), "30",
     "Fewest timed runs with stop = relative_noise.", .least = 2, .most = 1000000},
    {"latency", "max_samples", LAP_KEY_COUNT, FIELD(latency.max_samples), "10000",
     "Most timed runs with stop = relative_noise.", .least = 2, .most = 1000000},
    {"latency", "passes", LAP_KEY_AMOUNT, FIELD(latency.passes), "auto",
     "Passes of the network in one timed run. auto: one, unless the timer is too coarse for that; "
     "the row then says how many. With warmup = 0 auto is one.",
     .least = 1, .most = 1000, .automatic = true},
    {"latency", "max_seconds", LAP_KEY_REAL, FIELD(latency.max_seconds), "60",
     "The timed runs end after this time even if repetitions are left; the row then says how many "
     "there were.",
     .real_least = 0.001, .real_most = 86400},
    {"latency", "cache", LAP_KEY_CHOICE, FIELD(latency.cache), "hot",
     "hot: repetitions follow each other, and find in the device's last-level cache what the one "
     "before left there. cold: a buffer larger than that cache is copied before each timed run, "
     "outside of it: twice the cache's size on a CPU (128 MiB where it is not told), on other "
     "devices "
     "512 MiB or more, or an eighth of the memory where that is less.",
     .choices = caches},
    {"latency", "copies", LAP_KEY_BOOL, FIELD(latency.copies), "yes",
     "Time the copies of the input to the device and of the logits back, from pageable and from "
     "pinned host memory. They are in no latency."},

    {"throughput", "search", LAP_KEY_CHOICE, FIELD(throughput.search), "doubling",
     "How the batch size is searched. doubling: 1, 2, 4, ... up to the largest that fits. binary: "
     "the largest that fits, by bisection. linear: one more each time until it fails. sweep: 1, 2, "
     "3, 4, 6, 8, 12, ..., then the largest that fits, by bisection.",
     .choices = searches},
    {"throughput", "max_batch", LAP_KEY_COUNT, FIELD(throughput.max_batch), "1024",
     "The search tries no larger batch.", .least = 1, .most = 1048576},
    {"throughput", "batches", LAP_KEY_COUNT, FIELD(throughput.batches), "100",
     "Batches of the measurement at the batch size found.", .least = 1, .most = 1000000},
    {"throughput", "memory_fraction", LAP_KEY_REAL, FIELD(throughput.memory_fraction), "0.8",
     "The share of the device's memory that the search may use; where that is the host's memory, "
     "of what is available there.",
     .real_least = 0.01, .real_most = 1},
    {"throughput", "max_seconds", LAP_KEY_REAL, FIELD(throughput.max_seconds), "60",
     "Search and measurement each end after this time, which building kernels does not count "
     "against; the row then says so.",
     .real_least = 0.001, .real_most = 86400},
    {"throughput", "latency_limit_ms", LAP_KEY_REAL, FIELD(throughput.latency_limit_ms), "0",
     "Only batches that take no longer than this are measured at the end; the search goes no "
     "further than the first one that does, and where that is the first of all, there is no "
     "throughput. 0: no limit.",
     .real_least = 0, .real_most = 100000},
    {"throughput", "search_cost", LAP_KEY_REAL, FIELD(throughput.search_cost), "2",
     "The search tries no further batch once its timed runs took so many times as long as the "
     "measurement at the end will. 0: no limit.",
     .real_least = 0, .real_most = 1000},
    {"throughput", "streams", LAP_KEY_COUNTS, FIELD(throughput.streams), "1",
     "Queues at once, each with activations of its own, at the row's batch size: images per second "
     "and the latency under that load, for every entry. A single 1 measures nothing more.",
     .least = 1, .most = 64, .distinct = true},
    {"throughput", "pipeline", LAP_KEY_BOOL, FIELD(throughput.pipeline), "no",
     "Also measure the best batch size from end to end: uploads and downloads on queues of their "
     "own while another batch is computed."},

    {"verify", "mode", LAP_KEY_CHOICE, FIELD(verify.mode), "full",
     "full: every layer against the reference, then the logits. quick: each distinct kernel "
     "once, then the logits. off: "
     "nothing is checked, and the row says so.",
     .choices = verify_modes},
    {"verify", "images", LAP_KEY_COUNT, FIELD(verify.images), "2",
     "Distinct input images; a batch repeats them in turn.", .least = 1, .most = 1024},

    {"output", "json", LAP_KEY_PATH, FIELD(output.json), "", "Result file in JSON."},
    {"output", "csv", LAP_KEY_PATH, FIELD(output.csv), "", "Result file in CSV."},
    {"output", "markdown", LAP_KEY_PATH, FIELD(output.markdown), "", "Result table in Markdown."},
    {"output", "samples", LAP_KEY_BOOL, FIELD(output.samples), "yes",
     "Write every single timed run to the JSON file."},
    {"output", "layers", LAP_KEY_BOOL, FIELD(output.layers), "no",
     "Show the work, time and share of the roofline of each layer, and which kernel runs it; in "
     "the "
     "JSON and Markdown files too."},
    {"output", "force", LAP_KEY_BOOL, FIELD(output.force), "no",
     "Overwrite result files that exist already."},
};
const size_t lap_key_count = sizeof lap_keys / sizeof *lap_keys;
_Static_assert(sizeof lap_keys / sizeof *lap_keys <= LAP_CONFIG_KEY_MAX, "lap_config has room");

const char *lap_config_model(uint64_t index) {
    const char *const *name = lap_net_model_names;
    for (uint64_t i = 0; *name && i < index; i++)
        name++;
    return *name ? *name : "?";
}

const char *lap_kernels_name(lap_kernels choice) {
    return (unsigned)choice <= LAP_KERNELS_TUNED ? kernels[choice] : "?";
}

const char *lap_cache_mode_name(lap_cache_mode mode) {
    return (unsigned)mode <= LAP_CACHE_COLD ? caches[mode] : "?";
}

const char *lap_verify_mode_name(lap_verify_mode mode) {
    return (unsigned)mode <= LAP_VERIFY_OFF ? verify_modes[mode] : "?";
}
