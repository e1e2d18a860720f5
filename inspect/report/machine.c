/* inspect/report/machine.c - the machine's section: which node and cores each worker has, coloured by group. */
#include "inspect/report/report_private.h"

#include "core/base/units.h"

enum { NODES_MOST = 32, WORKERS_MOST = 128, CORES_MOST = 16, COLOURS = 8 };

static void put_link(struct ghp_page *page, const char *name, struct ghp_link link)
{
    char latency[32];

    ghp_seconds_format(link.latency_s, latency, sizeof latency);
    if (link.bandwidth_Bps > 0)
        ghp_page_add(page, "<li><b>%s</b> %.3g GB/s, latency %s</li>", name,
                     link.bandwidth_Bps * 1e-9, latency);
    else
        ghp_page_add(page, "<li><b>%s</b> not known</li>", name);
}

static void put_worker(struct ghp_page *page, const struct ghp_report *report, int rank)
{
    const struct ghp_plan *plan = report->plan;
    const struct ghp_machine *machine = &plan->profile.machine;
    struct ghp_place place = ghp_machine_place(machine, plan->problem.workers, rank);
    int group = rank / plan->group_size;

    ghp_page_add(page, "<li class=\"worker g%d\"><b>worker %d</b><span>group %d", group % COLOURS,
                 rank, group);
    if (place.oversubscribed)
        ghp_page_add(page, ", shares core %d", place.first_core);
    else if (place.n_cores == 1)
        ghp_page_add(page, ", core %d", place.first_core);
    else
        ghp_page_add(page, ", cores %d to %d", place.first_core,
                     place.first_core + place.n_cores - 1);
    ghp_page_add(page, "</span><span class=\"cores\" aria-hidden=\"true\">");
    for (int c = 0; c < place.n_cores && c < CORES_MOST; c++)
        ghp_page_add(page, "<i></i>");
    ghp_page_add(page, "</span></li>\n");
}

static void put_nodes(struct ghp_page *page, const struct ghp_report *report)
{
    const struct ghp_plan *plan = report->plan;
    const struct ghp_machine *machine = &plan->profile.machine;
    int workers = plan->problem.workers;
    int a_node = ghp_machine_workers_per_node(machine, workers), nodes = 0, rank = 0;
    int used = (workers + a_node - 1) / a_node;

    ghp_page_add(page, "<div class=\"nodes\">\n");
    while (rank < workers && nodes < NODES_MOST && rank < WORKERS_MOST) {
        ghp_page_add(page, "<div class=\"node\"><h3>node %d</h3><ul>\n", nodes++);
        for (int i = 0; i < a_node && rank < workers; ++i, rank++)
            if (i < WORKERS_MOST) put_worker(page, report, rank);
        ghp_page_add(page, "</ul></div>\n");
    }
    ghp_page_add(page, "</div>\n");
    if (rank < workers)
        ghp_page_add(page,
                     "<p class=\"small\">%d more nodes with the workers %d to %d are laid "
                     "out alike.</p>\n",
                     used - nodes, rank, workers - 1);
    if (used < machine->nodes)
        ghp_page_add(page, "<p class=\"small\">The machine's other nodes have no workers.</p>\n");
}

/* Writes where the group's exchanges run. */
static void put_span(struct ghp_page *page, const struct ghp_plan *plan)
{
    const struct ghp_machine *machine = &plan->profile.machine;
    int a_node = ghp_machine_workers_per_node(machine, plan->problem.workers);
    int k = plan->group_size, crossing = 0;

    for (int g = 0; g < plan->groups; g++)
        crossing += g * k / a_node != ((g + 1) * k - 1) / a_node;
    if (k == 1)
        ghp_page_add(page, "<p>Each worker is a group of its own: workers exchange gradients "
                           "only.</p>\n");
    else if (crossing == 0 && plan->groups == 1)
        ghp_page_add(page, "<p>All %d workers are one group within one node.</p>\n", k);
    else if (crossing == 0)
        ghp_page_add(page,
                     "<p>Each group of %d is within one node: its exchanges stay inside; "
                     "gradients are reduced across groups.</p>\n",
                     k);
    else if (plan->groups == 1)
        ghp_page_add(
            page, "<p>All %d workers are one group: its exchanges pass the nodes' links.</p>\n", k);
    else
        ghp_page_add(page,
                     "<p>%d of %d groups of %d workers cross nodes: their exchanges pass "
                     "the nodes' links.</p>\n",
                     crossing, plan->groups, k);
}

void ghp_report_put_machine(struct ghp_page *page, const struct ghp_report *report)
{
    const struct ghp_plan *plan = report->plan;
    const struct ghp_machine *machine = &plan->profile.machine;
    char memory[32];

    ghp_page_add(page, "<section><h2>Groups and workers on the machine</h2>\n<ul class=\"facts\">"
                       "<li><b>machine</b> ");
    ghp_page_text(page, machine->name);
    ghp_page_add(page, "</li><li><b>a node</b> %d package%s, %d core%s, %s</li>", machine->packages,
                 ghp_plural(machine->packages), machine->cores, ghp_plural(machine->cores),
                 machine->memory_bytes > 0
                     ? ghp_bytes_format((double)machine->memory_bytes, memory, sizeof memory)
                     : "memory not known");
    put_link(page, "inside a node", machine->intra);
    put_link(page, "between nodes", machine->inter);
    ghp_page_add(page, "</ul>\n");
    put_span(page, plan);
    put_nodes(page, report);
    ghp_page_add(page, "</section>\n");
}
