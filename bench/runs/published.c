/* bench/runs/published.c - ghp-published: the published runs of a file, each by its own plan, compared with the steps
 * that ghp predicts (bench/runs/report.h). bench/published starts it.
 *
 * Tested  tests/tools/bench/test_published_runs.sh */
#include "bench/runs/report.h"
#include "core/base/opts.h"

#include <stdio.h>

static const char *models = "models";

static const struct ghp_opt options[] = {
    {.name = "models",
     .kind = GHP_OPT_TEXT,
     .target = &models,
     .argument = "FOLDER",
     .help = "folder of the networks"},
};

static const struct ghp_tool tool = {
    .name = "ghp-published",
    .purpose = "prints published training runs beside the steps that ghp predicts for them",
    .usage = "ghp-published FILE",
    .example = "build/bin/ghp-published tests/tools/bench/published_runs.csv",
    .opts = options,
    .n_opts = (int)(sizeof options / sizeof options[0]),
};

int main(int argc, char **argv)
{
    const char *file = NULL;
    int n_files = 0;
    enum ghp_status status = ghp_opts_parse(&tool, argc, argv, &file, 1, &n_files);

    if (status == GHP_OK && !ghp_opts_done())
        status = n_files > 0 ? ghp_runs_report(file, models)
                             : GHP_FAIL(GHP_ERR_USAGE, "no file of published runs is named; give "
                                                       "one with the columns that "
                                                       "docs/results/published-runs.md lists");
    if (status != GHP_OK) fprintf(stderr, "%s: %s\n", tool.name, ghp_status_message());
    return ghp_status_exit_code(status);
}
