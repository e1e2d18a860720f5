/* profiler/cli/show.c - see cli/show.h. */
#include "profiler/cli/show.h"

#include "core/base/json.h"
#include "core/base/table.h"
#include "core/base/text.h"
#include "core/base/units.h"

#include <stdio.h>

static json_t *link_json(struct ghp_link link)
{
    return json_pack("{s:f, s:f}", "latency_s", link.latency_s, "bandwidth_Bps",
                     link.bandwidth_Bps);
}

enum ghp_status ghp_show_machine(const struct ghp_machine *machine, const char *output, bool json)
{
    struct ghp_table *table = NULL;
    char bytes[32];
    enum ghp_status status = GHP_OK;

    if (json)
        return ghp_json_print(
            json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:I, s:o, s:o}", "way", "machine",
                      "output", output, "name", machine->name, "nodes", machine->nodes, "packages",
                      machine->packages, "cores", machine->cores, "threads", machine->threads,
                      "memory_bytes", (json_int_t)machine->memory_bytes, "intra",
                      link_json(machine->intra), "inter", link_json(machine->inter)),
            stdout);
    table = ghp_table_open();
    ghp_table_note(table, "machine %s: %s", output, machine->name);
    ghp_table_column(table, "nodes", "", 'r');
    ghp_table_column(table, "packages", "a node", 'r');
    ghp_table_column(table, "cores", "a node", 'r');
    ghp_table_column(table, "threads", "a node", 'r');
    ghp_table_column(table, "memory", "a node", 'r');
    ghp_table_row(table);
    ghp_table_cell(table, "%d", machine->nodes);
    ghp_table_cell(table, "%d", machine->packages);
    ghp_table_cell(table, "%d", machine->cores);
    ghp_table_cell(table, "%d", machine->threads);
    ghp_table_cell(table, "%s",
                   ghp_bytes_format((double)machine->memory_bytes, bytes, sizeof bytes));
    status = ghp_table_print(table, stdout);
    ghp_table_close(table);
    return status;
}

enum ghp_status ghp_show_analytic(const struct ghp_profile *profile, const char *output, bool json)
{
    const struct ghp_link link = profile->machine.inter;
    char hash[17], line[1024];

    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)profile->hash);
    if (json)
        return ghp_json_print(
            json_pack("{s:s, s:s, s:s, s:f, s:o, s:o}", "way", "analytic", "output", output,
                      "profile_hash", hash, "flops_per_s", profile->analytic.flops_per_s, "intra",
                      link_json(profile->machine.intra), "inter", link_json(link)),
            stdout);
    snprintf(line, sizeof line,
             "# profile %.800s by the analytic model: %g FLOP/s, %g bytes/s, %g s", output,
             profile->analytic.flops_per_s, link.bandwidth_Bps, link.latency_s);
    ghp_text_printable(line);
    puts(line);
    return GHP_OK;
}

static json_t *measured_json(const struct ghp_profiling_result *r, const char *output)
{
    char hash[17];
    json_t *ops =
        json_pack("{s:i, s:i, s:i, s:i}", "measured", r->ops.measured, "kept", r->ops.kept,
                  "interpolated", r->ops.interpolated, "analytic", r->ops.analytic);
    json_t *comms = json_pack("{s:i, s:i, s:i}", "measured", r->comms_measured, "kept",
                              r->comms_kept, "analytic", r->comms_left);

    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->profile.hash);
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:b, s:s, s:f, s:o, s:o, "
        "s:o, s:o, s:{s:f, s:f, s:f, s:f, s:f, s:f, s:f}, s:s*, s:s*, s:f}",
        "way", "measured", "output", output, "profile_hash", hash, "backend", r->profile.backend,
        "numerics", r->profile.numerics, "precision",
        ghp_precision_name(ghp_profile_precision(&r->profile)), "workers", r->workers, "ranks",
        r->ranks, "nodes", r->nodes, "threads", r->threads, "oversubscribed", r->oversubscribed,
        "binding", r->binding, "seconds", r->seconds, "operations", ops, "collectives", comms,
        "intra", link_json(r->profile.machine.intra), "inter", link_json(r->profile.machine.inter),
        "overlap", "compute", r->profile.overlap.compute, "comm", r->profile.overlap.comm, "link",
        r->profile.overlap.link, "comm_large",
        ghp_overlap_comm(&r->profile.overlap, GHP_OVERLAP_LONG_BYTES), "queueing_delay_s",
        r->profile.overlap.queueing_delay_s, "arrival_delay_s", r->profile.overlap.arrival_delay_s,
        "launch_delay_s", r->profile.overlap.launch_delay_s, "overrun",
        r->overrun[0] != '\0' ? r->overrun : NULL, "cache", r->cache[0] != '\0' ? r->cache : NULL,
        "disturbed", r->profile.disturbed);
}

static void measured_row(struct ghp_table *table, const char *what, int measured, int kept,
                         int interpolated, int analytic)
{
    ghp_table_row(table);
    ghp_table_cell(table, "%s", what);
    ghp_table_cell(table, "%d", measured);
    ghp_table_cell(table, "%d", kept);
    ghp_table_cell(table, "%d", interpolated);
    ghp_table_cell(table, "%d", analytic);
}

static void note_speeds(struct ghp_table *table, const struct ghp_speeds *speeds)
{
    double most = 1;

    for (int i = 0; i < speeds->n; i++)
        if (speeds->of[i] > most) most = speeds->of[i];
    if (speeds->n > 0)
        ghp_table_note(
            table, "workers are not equally fast: up to %.3g times as fast as the slowest", most);
}

/* What the budget did not reach makes predictions that are worth less. */
static void note_missed(struct ghp_table *table, int analytic, bool fresh)
{
    if (analytic > 0)
        ghp_table_note(
            table,
            "%d operation%s by the analytic model, for lack of time: plans that need them are "
            "predicted worse; the same command%s continues from here, --budget gives more time",
            analytic, ghp_plural(analytic), fresh ? " without --fresh" : "");
}

enum ghp_status ghp_show_measured(const struct ghp_profiling_result *r, const char *output,
                                  bool json, bool fresh)
{
    static const char *const columns[] = {"measured", "kept", "interpolated",
                                          "by the analytic model"};
    struct ghp_table *table = NULL;
    char seconds[32];
    enum ghp_status status = GHP_OK;

    if (json) return ghp_json_print(measured_json(r, output), stdout);
    table = ghp_table_open();
    ghp_table_note(table, "profile %s: %s, %s, %s; %s", output, r->profile.backend,
                   r->profile.numerics, ghp_precision_name(ghp_profile_precision(&r->profile)),
                   ghp_seconds_format(r->seconds, seconds, sizeof seconds));
    ghp_table_note(table, "%d rank%s at once on %d node%s, %d thread%s each%s", r->ranks,
                   ghp_plural(r->ranks), r->nodes, ghp_plural(r->nodes), r->threads,
                   ghp_plural(r->threads), r->oversubscribed ? ", sharing cores" : "");
    ghp_table_note(table, "rank 0: %s", r->binding);
    note_speeds(table, &r->profile.speeds);
    if (r->cache[0] != '\0') ghp_table_note(table, "measurements are kept in %s", r->cache);
    note_missed(table, r->ops.analytic, fresh);
    if (r->disturbed[0] != '\0') ghp_table_note(table, "disturbed: %s", r->disturbed);
    if (r->overrun[0] != '\0') ghp_table_note(table, "over the budget: %s", r->overrun);
    ghp_table_column(table, "what", "", 'l');
    for (int i = 0; i < 4; i++)
        ghp_table_column(table, columns[i], "", 'r');
    measured_row(table, "operations", r->ops.measured, r->ops.kept, r->ops.interpolated,
                 r->ops.analytic);
    measured_row(table, "collectives", r->comms_measured, r->comms_kept, 0, r->comms_left);
    status = ghp_table_print(table, stdout);
    ghp_table_close(table);
    return status;
}
