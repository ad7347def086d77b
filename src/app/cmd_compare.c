/* `warmlap compare`: result files in, one comparison out. Opens no device. The document goes to
 * standard output or the file asked for, everything else to standard error. */
#include "app/commands.h"
#include "app/compare_options.h"
#include "app/inputs.h"
#include "compare/words.h"
#include "report/output.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Everything the command holds. */
typedef struct job {
    const lap_compare_command *command;
    lap_compare_options options;
    lap_inputs inputs; /* the baseline's file is the first */
    lap_comparison comparison;
} job;

static void job_free(job *j) {
    lap_comparison_free(&j->comparison);
    lap_inputs_free(&j->inputs);
}

static lap_status load_all(job *j, lap_error *err) {
    const lap_compare_command *c = j->command;
    if (c->baseline && lap_inputs_is_file(c->baseline)) {
        LAP_TRY(lap_inputs_add_baseline(&j->inputs, c->baseline, err));
        j->options.baseline_document = j->inputs.documents[0];
        if (!c->axis_given) j->options.axis = LAP_BY_FILE;
    } else {
        j->options.baseline = c->baseline;
    }
    for (int i = 0; i < c->file_count; i++)
        LAP_TRY(lap_inputs_add(&j->inputs, c->files[i], err));
    return LAP_OK;
}

static lap_status select_columns(const job *j, lap_selection *out, lap_error *err) {
    if (j->command->columns) return lap_columns_parse(j->command->columns, out, err);
    if (j->command->format == LAP_FORMAT_CSV)
        lap_columns_for_programs(out);
    else
        lap_columns_for_people(&j->comparison, out);
    return LAP_OK;
}

/* For a file: no colours, and the whole width. */
static lap_status render_table(const job *j, const lap_selection *columns, lap_text *out,
                               lap_error *err) {
    lap_style style;
    lap_style_query(STDOUT_FILENO, &style);
    if (strcmp(j->command->output, "-") != 0) {
        style.terminal = style.colour = false;
        style.width = LAP_TABLE_WIDTH;
    }
    return lap_compare_table(&j->comparison, columns, &style, out, err);
}

static lap_status render(const job *j, lap_text *out, lap_error *err) {
    lap_selection columns;
    LAP_TRY(select_columns(j, &columns, err));
    const lap_comparison *c = &j->comparison;
    switch (j->command->format) {
    case LAP_FORMAT_MARKDOWN:
        return lap_compare_markdown(c, &columns, out, err);
    case LAP_FORMAT_CSV:
        return lap_compare_csv(c, &columns, out, err);
    case LAP_FORMAT_HTML:
        return lap_compare_html(c, &columns, out, err);
    case LAP_FORMAT_LATEX:
        return lap_compare_latex(c, &columns, out, err);
    case LAP_FORMAT_JSON:
        return lap_compare_json(c, out, err);
    default:
        return render_table(j, &columns, out, err);
    }
}

static int gate_status(const lap_comparison *c) {
    switch (lap_gate_of(c)) {
    case LAP_GATE_NOT_VERIFIED:
        return LAP_EXIT_WRONG;
    case LAP_GATE_SLOWER:
        return LAP_EXIT_SLOWER;
    case LAP_GATE_NOT_COMPARED:
        return LAP_EXIT_FAILED;
    case LAP_GATE_PASSED:
        break;
    }
    return LAP_EXIT_OK;
}

static lap_status carry_out(job *j, lap_error *err) {
    const lap_compare_command *c = j->command;
    lap_selection columns;
    if (c->columns) LAP_TRY(lap_columns_parse(c->columns, &columns, err));
    LAP_TRY(lap_inputs_spare(c->output, c->files, c->file_count, c->baseline, c->database, err));
    LAP_TRY(lap_output_check(c->output, c->force, err));
    LAP_TRY(load_all(j, err));
    LAP_TRY(lap_compare((const lap_document *const *)j->inputs.documents, j->inputs.count,
                        &j->options, &j->comparison, err));
    lap_text text = {0};
    lap_status status = render(j, &text, err);
    if (status == LAP_OK)
        status = lap_output_write(c->output, lap_text_get(&text), text.length, c->force, err);
    lap_text_free(&text);
    return status;
}

/* A log that shows only standard error must say why the status is not 0. */
static void explain(const lap_comparison *c) {
    lap_text text = {0};
    lap_words_summary(&text, c);
    fprintf(stderr, "warmlap: %s\n", lap_text_get(&text));
    lap_text_free(&text);
}

int cmd_compare(int argc, char **argv) {
    lap_compare_command command;
    lap_error err = {0};
    if (lap_compare_command_parse(argc, argv, &command, &err) != LAP_OK)
        return lap_app_complain(&err);
    if (command.help) {
        lap_text text = {0};
        lap_compare_command_help(&text);
        fputs(lap_text_get(&text), stdout);
        lap_text_free(&text);
        return LAP_EXIT_OK;
    }
    job j = {
        .command = &command, .options = command.options, .inputs = {.database = command.database}};
    int status;
    if (carry_out(&j, &err) != LAP_OK) {
        status = lap_app_complain(&err);
    } else {
        status = gate_status(&j.comparison);
        if (status != LAP_EXIT_OK) explain(&j.comparison);
    }
    job_free(&j);
    return status;
}
