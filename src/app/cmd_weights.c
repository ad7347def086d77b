/* warmlap weights: writes the synthetic weights to a file that PyTorch can load. Parses, calls
 * src/net, prints; computes nothing itself. */
#include "app/commands.h"
#include "base/text.h"
#include "net/weights.h"
#include "report/output.h"

#include <stdio.h>
#include <string.h>

enum { EXIT_OK = 0, EXIT_WRITE = 1, EXIT_USAGE = 2 };

static const char usage[] =
    "Usage: warmlap weights --export FILE [--seed N] [--model NAME] [--force]\n"
    "\n"
    "Write a network's synthetic weights as a .safetensors state dict with\n"
    "torchvision's names, batch norm not folded;\n"
    "the model of that name there takes it by load_state_dict, strictly. Prints the\n"
    "number of parameters and the hash of the folded set, as result files show it.\n"
    "\n"
    "  --export FILE   where to write, FILE.safetensors; an existing file is refused\n"
    "  --seed N        the set weights = synthetic:N uses (default 1)\n"
    "  --model NAME    the network (default: that of run)\n"
    "  --force         overwrite an existing file\n"
    "  --help          this text\n"
    "\n"
    "Exit status: 0 written, 1 writing failed, 2 usage, or a file that exists already\n"
    "or cannot be made.\n";

typedef struct options {
    const char *path, *model;
    uint64_t seed;
    bool force, help;
} options;

static void complain(const lap_error *err) {
    char text[2048];
    lap_error_text(err, text, sizeof text);
    fprintf(stderr, "warmlap weights: %s\n", text);
}

static bool has_suffix(const char *text, const char *suffix) {
    size_t n = strlen(text), end = strlen(suffix);
    return n > end && strcmp(text + n - end, suffix) == 0;
}

static lap_status parse(int argc, char **argv, options *to, lap_error *err) {
    static const char *const known[] = {"--export", "--seed", "--model", "--force", "--help"};
    *to = (options){.model = lap_net_model_names[0], .seed = 1};
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value;
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            to->help = true;
            return LAP_OK;
        }
        if (strcmp(word, "--force") == 0) {
            to->force = true;
        } else if ((value = lap_app_option_value(argc, argv, &i, "--export"))) {
            to->path = value;
        } else if ((value = lap_app_option_value(argc, argv, &i, "--model"))) {
            to->model = value;
        } else if ((value = lap_app_option_value(argc, argv, &i, "--seed"))) {
            if (!lap_parse_u64(value, &to->seed))
                return LAP_FAIL(err, LAP_E_CONFIG,
                                "--seed \"%s\": expected a whole number, 0 to 2^64-1", value);
        } else {
            const char *near = lap_text_closest(word, known, sizeof known / sizeof known[0]);
            return LAP_FAIL(err, LAP_E_CONFIG, "unknown argument \"%s\"%s%s%s (see --help)", word,
                            near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
        }
    }
    if (!to->path || !to->path[0])
        return LAP_FAIL(err, LAP_E_CONFIG, "--export FILE is needed (see --help)");
    if (strcmp(to->path, "-") == 0)
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "--export -: weights are not written to standard output; expected a file "
                        "name that ends in .safetensors");
    /* Under another name they could not be read again. */
    if (!has_suffix(to->path, ".safetensors"))
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "--export %s: expected a file name that ends in .safetensors", to->path);
    return LAP_OK;
}

static lap_status export_weights(const options *how, const lap_net *net, lap_error *err) {
    char spec[48];
    snprintf(spec, sizeof spec, "synthetic:%llu", (unsigned long long)how->seed);
    lap_weights *weights;
    LAP_TRY(lap_weights_load(net, spec, &weights, err));
    lap_status status = lap_weights_export(net, how->seed, how->path, how->force, err);
    if (status == LAP_OK)
        printf("%s: %s, %s, %llu parameters, hash %s\n", how->path, net->model, spec,
               (unsigned long long)lap_net_parameters(net), weights->hash);
    lap_weights_free(weights);
    return status;
}

int cmd_weights(int argc, char **argv) {
    options how;
    lap_error err = {0};
    if (parse(argc, argv, &how, &err) != LAP_OK) {
        complain(&err);
        return EXIT_USAGE;
    }
    if (how.help) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    if (lap_output_check(how.path, how.force, &err) != LAP_OK) {
        complain(&err);
        return EXIT_USAGE;
    }
    /* The weights do not depend on the image size. */
    lap_net *net;
    lap_status status = lap_net_build(how.model, 224, 224, &net, &err);
    if (status == LAP_OK) {
        status = export_weights(&how, net, &err);
        lap_net_free(net);
    }
    if (status == LAP_OK) return EXIT_OK;
    complain(&err);
    return status == LAP_E_CONFIG ? EXIT_USAGE : EXIT_WRITE;
}
