/* bench/runs/case_machine.c - machines and links by what publications call them. */
#include "bench/runs/case.h"

#include "core/cost/named_machine.h"
#include "core/cost/profile_peak.h"
#include "core/model/precision.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NODE_GPUS_MOST = 16 }; /* as in a DGX-2 */

/* Named machines by words of the device, the first that has all; NULL: none is that device. */
static const struct {
    const char *words[2], *machine;
} devices[] = {
    {{"nvl", ""}, NULL},
    {{"v100", "pcie"}, NULL},
    {{"v100", "32"}, "v100-sxm-32-8"},
    {{"v100", ""}, "v100-sxm-16-8"},
    {{"a100", "pcie"}, "a100-pcie-80-8"},
    {{"a100", "80"}, "a100-sxm-80-8"},
    {{"a100", ""}, "a100-sxm-40-8"},
    {{"h100", "pcie"}, "h100-pcie-8"},
    {{"h100", ""}, "h100-sxm-8"},
    {{"h200", ""}, "h200-sxm-8"},
    {{"l40s", ""}, "l40s-8"},
    {{"l4", ""}, "l4-8"},
    {{"a10", ""}, "a10-4"},
    {{"a30", ""}, "a30-4"},
    {{"a5000", ""}, "a5000-4"},
    {{"platinum 8180", ""}, "xeon-8180-2"},
    {{"platinum 8480", ""}, "xeon-8480plus-2"},
    {{"platinum 8480c", ""}, "xeon-8480plus-2"},
    {{"epyc 7763", ""}, "epyc-7763-2"},
};

/* Gigabits a second of one InfiniBand port, by its name. A number after it says another rate: "HDR100". */
static const struct {
    const char *name;
    double Gbps;
} rates[] = {{"ndr", 400}, {"hdr", 200}, {"edr", 100}, {"fdr", 56}};

/* Bytes a second of units of a network's rate: "25 GbE", "100 Gb/s", "10 GigE", "3.2 Tb/s". */
static const struct {
    const char *name;
    double Bps;
} units[] = {{"Gb", 1e9 / 8}, {"Gig", 1e9 / 8}, {"Tb", 1e12 / 8}};

/* The number that ends where `at` is, blanks left out; 0: there is none. */
static double number_up_to(const char *text, const char *at)
{
    while (at > text && at[-1] == ' ')
        at--;
    while (at > text && (isdigit((unsigned char)at[-1]) || at[-1] == '.'))
        at--;
    return strtod(at, NULL);
}

/* The number of cards in "2 x EDR" or "8 x 400 Gb/s", which stands before `at`; 1: none is given. */
static double cards_before(const char *text, const char *at)
{
    while (at > text && (isdigit((unsigned char)at[-1]) || at[-1] == ' ' || at[-1] == '.'))
        at--;
    if (at < text + 3 || at[-1] != 'x') return 1;
    return number_up_to(text, at - 1) >= 1 ? number_up_to(text, at - 1) : 1;
}

/* Bytes a second of a node's links to others, by the text; 0: it does not say. */
static double link_rate(const char *text)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        for (const char *at = text; (at = strstr(at, units[i].name)) != NULL; at++)
            if (number_up_to(text, at) > 0)
                return number_up_to(text, at) * units[i].Bps * cards_before(text, at);
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
        for (const char *at = text; *at != '\0'; at++)
            if (strncasecmp(at, rates[i].name, 3) == 0)
                return (isdigit((unsigned char)at[3]) ? strtod(at + 3, NULL) : rates[i].Gbps) *
                       1e9 / 8 * cards_before(text, at);
    return 0;
}

static enum ghp_status set_links(struct ghp_run_case *item)
{
    const char *text = item->row->text[GHP_COLUMN_LINK], *nvlink = strstr(text, "NVLink ");
    bool ethernet = ghp_run_row_has(item->row, GHP_COLUMN_LINK, "ethernet");
    double rate = link_rate(text);

    if (nvlink != NULL && strtod(nvlink + 7, NULL) > 0) {
        item->machine.intra.bandwidth_Bps = strtod(nvlink + 7, NULL) * 1e9;
        /* another node than the named one: each two of its GPUs have that */
        memset(item->machine.gpus.nvlinks, 0, sizeof item->machine.gpus.nvlinks);
    }
    if (item->machine.nodes < 2) return GHP_OK;
    if (rate > 0) {
        GHP_TRY(ghp_fabric_open(ethernet ? "eth-10" : "ib-100x1", &item->machine.inter));
        item->machine.inter.bandwidth_Bps = rate;
        item->machine.gpus.cards = 0;
    }
    if (!(item->machine.inter.bandwidth_Bps > 0) || (ethernet && !(rate > 0)))
        ghp_run_case_refuse(item, "no rate of the links between nodes is published");
    return GHP_OK;
}

/* "4 nodes of 4 x Xeon": sockets in place of the named machine's two. */
static void set_sockets(struct ghp_run_case *item)
{
    const char *of = strstr(item->row->text[GHP_COLUMN_DEVICE], "nodes of ");
    long sockets = of != NULL ? strtol(of + strlen("nodes of "), NULL, 10) : 0;
    double times = item->machine.packages > 0 ? (double)sockets / item->machine.packages : 1;

    if (item->machine.gpus.count > 0 || sockets < 1) return;
    item->machine.peak.memory_Bps *= times;
    for (int p = 0; p < GHP_PRECISIONS; p++)
        item->machine.peak.flops_per_s[p] *= times;
}

/* Whether the word stands alone: "8xA100-80GB" and "A100s" have "a100", "A1000" and "GA100" do not. */
static bool has_alone(const char *text, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = text; *at != '\0'; at++) {
        const char *after = at + n;

        if (strncasecmp(at, word, n) != 0) continue;
        if (at > text && isalpha((unsigned char)at[-1]) && at[-1] != 'x') continue;
        after += strncasecmp(after, "sxm", 3) == 0 ? 4 : *after == 's';
        if (!isalnum((unsigned char)*after)) return true;
    }
    return false;
}

/* The named machine of the row's devices; NULL: there is none. */
static const char *find_machine(const struct ghp_run_row *row)
{
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++)
        if (has_alone(row->text[GHP_COLUMN_DEVICE], devices[i].words[0]) &&
            ghp_run_row_has(row, GHP_COLUMN_DEVICE, devices[i].words[1]))
            return devices[i].machine;
    return NULL;
}

/* Nodes as the row says, or as few as hold its devices; a node of more GPUs than the named one has a switch. */
static void set_nodes(struct ghp_run_case *item)
{
    struct ghp_machine *machine = &item->machine;
    int nodes = ghp_peak_nodes(machine, item->devices), each;

    machine->nodes = ghp_run_row_count(item->row, GHP_COLUMN_NODES, nodes);
    if (machine->nodes < 1) machine->nodes = nodes;
    if (item->devices % machine->nodes != 0)
        ghp_run_case_refuse(item, "%d devices are not as many on each of %d nodes", item->devices,
                            machine->nodes);
    each = ghp_machine_workers_per_node(machine, item->devices);
    if (machine->gpus.count == 0 || each <= machine->gpus.count || each > NODE_GPUS_MOST) return;
    machine->gpus.count = each;
    memset(machine->gpus.nvlinks, 0, sizeof machine->gpus.nvlinks);
}

enum ghp_status ghp_run_case_machine(struct ghp_run_case *item)
{
    const char *name = find_machine(item->row);

    if (name == NULL) {
        ghp_run_case_refuse(item, "no named machine is '%s'", item->row->text[GHP_COLUMN_DEVICE]);
        return GHP_OK;
    }
    GHP_TRY(ghp_machine_open(name, &item->machine));
    set_nodes(item);
    if (item->fp16) ghp_peak_take_fp16(&item->machine.peak);
    set_sockets(item);
    if (!(item->machine.peak.flops_per_s[ghp_precision_index(item->precision)] > 0))
        ghp_run_case_refuse(item, "machine '%s' has no figure for %s", name,
                            item->fp16 ? "fp16" : ghp_precision_name(item->precision));
    return set_links(item);
}
