/* profiler/cli/way.c - see way.h. */
#include "profiler/cli/way.h"

#include <stdlib.h>
#include <string.h>

/* The ways that have a use for an option; options not named here: measuring alone. */
static const struct {
    const char *name;
    int ways;
} uses[] = {
    {"model", GHP_WAY_MEASURING | GHP_WAY_ANALYTIC},
    {"folded-batch-norm", GHP_WAY_MEASURING | GHP_WAY_ANALYTIC},
    {"batch-norm", GHP_WAY_MEASURING | GHP_WAY_ANALYTIC},
    {"freeze", GHP_WAY_MEASURING | GHP_WAY_ANALYTIC},
    {"freeze-except", GHP_WAY_MEASURING | GHP_WAY_ANALYTIC},
    {"lora", GHP_WAY_MEASURING | GHP_WAY_ANALYTIC},
    {"lora-targets", GHP_WAY_MEASURING | GHP_WAY_ANALYTIC},
    {"workers", GHP_WAY_MEASURING | GHP_WAY_ANALYTIC},
    {"batch", GHP_WAY_MEASURING | GHP_WAY_ANALYTIC},
    {"numerics", GHP_WAY_MEASURING | GHP_WAY_ANALYTIC},
    {"precision", GHP_WAY_MEASURING | GHP_WAY_ANALYTIC},
    {"analytic", GHP_WAY_ANALYTIC},
    {"machine-only", GHP_WAY_MACHINE_ONLY},
    {"hwloc", GHP_WAY_MACHINE_ONLY},
    {"nodes", GHP_WAY_MACHINE_ONLY},
    {"memory", GHP_WAY_MEASURING | GHP_WAY_MACHINE_ONLY},
    {"intra-latency", GHP_WAY_MEASURING | GHP_WAY_MACHINE_ONLY},
    {"intra-bandwidth", GHP_WAY_MEASURING | GHP_WAY_MACHINE_ONLY},
    {"inter-latency", GHP_WAY_MEASURING | GHP_WAY_MACHINE_ONLY},
    {"inter-bandwidth", GHP_WAY_MEASURING | GHP_WAY_MACHINE_ONLY},
    {"validate", GHP_WAY_HELD_OUT},
    {"bind", GHP_WAY_MEASURING | GHP_WAY_HELD_OUT},
    {"budget", GHP_WAY_MEASURING | GHP_WAY_HELD_OUT},
    {"sample", GHP_WAY_MEASURING | GHP_WAY_HELD_OUT},
    {"watchdog", GHP_WAY_MEASURING | GHP_WAY_HELD_OUT},
    {"output", GHP_WAY_MEASURING | GHP_WAY_ANALYTIC | GHP_WAY_MACHINE_ONLY},
    {"progress", GHP_WAY_MEASURING | GHP_WAY_HELD_OUT},
    {"json", GHP_WAY_MEASURING | GHP_WAY_ANALYTIC | GHP_WAY_MACHINE_ONLY | GHP_WAY_HELD_OUT},
};

static void take_value(const char *name, const char *value, void *context)
{
    struct ghp_way_defaults *defaults = context;

    (void)name;
    GHP_ASSERT(defaults->n < (int)(sizeof defaults->values / sizeof defaults->values[0]));
    defaults->values[defaults->n++] = strdup(value != NULL ? value : "");
}

void ghp_way_defaults_take(const struct ghp_tool *tool, struct ghp_way_defaults *defaults)
{
    *defaults = (struct ghp_way_defaults){.n = 0};
    ghp_opts_each(tool, take_value, defaults);
}

void ghp_way_defaults_release(struct ghp_way_defaults *defaults)
{
    for (int i = 0; i < defaults->n; i++)
        free(defaults->values[i]);
    defaults->n = 0;
}

/* One option after the other is looked at. */
struct check {
    const struct ghp_way_defaults *defaults;
    int at, way;
    enum ghp_status status;
};

static void check_value(const char *name, const char *value, void *context)
{
    struct check *check = context;
    const char *before = check->defaults->values[check->at++];
    int ways = GHP_WAY_MEASURING;

    if (check->status != GHP_OK || before == NULL ||
        strcmp(before, value != NULL ? value : "") == 0)
        return;
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++)
        if (strcmp(uses[i].name, name) == 0) ways = uses[i].ways;
    if ((ways & check->way) != 0) return;
    check->status = GHP_FAIL(GHP_ERR_USAGE, "--%s has no use %s; leave it out, or see --help", name,
                             check->way == GHP_WAY_MEASURING      ? "without --machine-only"
                             : check->way == GHP_WAY_MACHINE_ONLY ? "with --machine-only"
                             : check->way == GHP_WAY_HELD_OUT     ? "with --validate"
                                                                  : "with --analytic");
}

enum ghp_status ghp_way_check(const struct ghp_tool *tool, const struct ghp_way_defaults *defaults,
                              int way)
{
    struct check check = {.defaults = defaults, .way = way};

    ghp_opts_each(tool, check_value, &check);
    return check.status;
}
