/* core/cost/named_machine.c - see named_machine.h. The build makes the arrays of the files in machines/. */
#include "core/cost/named_machine.h"

#include "core/base/text.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const char *const ghp_machine_texts[], *const ghp_fabric_texts[];

/* One kind of named thing. */
struct catalog {
    const char *what, *option, *other, *format; /* other: what to give in place of a name */
    const char *const *names, *const *texts;
};

static const struct catalog machines = {
    "machine",       "--machine",       "docs/how-to/expect.md says how to describe another one",
    "ghp.machine/2", ghp_machine_names, ghp_machine_texts};
static const struct catalog networks = {
    "network",       "--network",      "a rate such as 2.5Gbit/s will do, too",
    "ghp.network/1", ghp_fabric_names, ghp_fabric_texts};

/* The first name that begins so, or else the nearest; NULL: none is near. */
static const char *guess(const char *text, const char *const *names)
{
    for (int i = 0; names[i] != NULL && text[0] != '\0'; i++)
        if (ghp_text_begins(names[i], text)) return names[i];
    return ghp_text_nearest(text, names);
}

static enum ghp_status fail_name(const struct catalog *catalog, const char *name)
{
    const char *nearest = guess(name, catalog->names);

    if (nearest != NULL)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "no %s and no file is called '%s'; did you mean '%s'? ghp-plan %s list "
                        "shows all names; %s",
                        catalog->what, name, nearest, catalog->option, catalog->other);
    return GHP_FAIL(GHP_ERR_USAGE,
                    "no %s and no file is called '%s'; ghp-plan %s list shows all names; %s",
                    catalog->what, name, catalog->option, catalog->other);
}

/* The document of that file or name; released by the caller. */
static enum ghp_status open_json(const struct catalog *catalog, const char *name,
                                 struct ghp_json *doc)
{
    *doc = (struct ghp_json){0};
    if (access(name, F_OK) == 0 || strchr(name, '/') != NULL)
        return ghp_json_load(name, catalog->format, doc);
    for (int i = 0; catalog->names[i] != NULL; i++)
        if (strcmp(catalog->names[i], name) == 0)
            return ghp_json_parse(catalog->texts[i], name, catalog->format, doc);
    return fail_name(catalog, name);
}

enum ghp_status ghp_machine_open(const char *name, struct ghp_machine *machine)
{
    enum ghp_status status;
    struct ghp_node root;
    struct ghp_json doc;

    *machine = (struct ghp_machine){0};
    GHP_TRY(open_json(&machines, name, &doc));
    root = ghp_json_root(&doc);
    status = ghp_machine_read(&root, machine);
    ghp_json_release(&doc);
    return status;
}

bool ghp_machine_is_named(const char *name)
{
    for (int i = 0; ghp_machine_names[i] != NULL; i++)
        if (strcmp(ghp_machine_names[i], name) == 0) return access(name, F_OK) != 0;
    return false;
}

static enum ghp_status read_network(const struct ghp_node *root, struct ghp_link *link)
{
    static const char *const keys[] = {"format",         "name",    "latency_s", "bandwidth_Bps",
                                       "asymptotic_Bps", "sources", NULL};

    GHP_TRY(ghp_json_only_keys(root, keys));
    return ghp_link_read(root, link);
}

/* Bytes a second of "2.5Gbit/s", "100 Mb/s" or "25Gbps"; 0: the text is something else. */
static double rate_of(const char *text)
{
    static const char *const ends[] = {"bit/s", "b/s", "bps", "bit"};
    char *unit;
    double rate = strtod(text, &unit);

    unit += strspn(unit, " ");
    if (strchr("GgMm", unit[0]) == NULL || unit[0] == '\0') return 0;
    rate *= tolower((unsigned char)unit[0]) == 'g' ? 1e9 / 8 : 1e6 / 8;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (strcmp(unit + 1, ends[i]) == 0 && rate >= 1 && rate < 1e18) return rate;
    return 0;
}

/* Ethernet of that rate. */
static enum ghp_status open_rate(double bandwidth_Bps, struct ghp_link *link)
{
    double least = INFINITY;

    for (int i = 0; ghp_fabric_names[i] != NULL; i++) {
        struct ghp_link named;

        if (!ghp_text_begins(ghp_fabric_names[i], "eth-")) continue;
        GHP_TRY(ghp_fabric_open(ghp_fabric_names[i], &named));
        if (fabs(log(named.bandwidth_Bps / bandwidth_Bps)) >= least) continue;
        least = fabs(log(named.bandwidth_Bps / bandwidth_Bps));
        *link = named;
    }
    link->bandwidth_Bps = bandwidth_Bps;
    return GHP_OK;
}

enum ghp_status ghp_fabric_open(const char *name, struct ghp_link *link)
{
    enum ghp_status status;
    struct ghp_node root;
    struct ghp_json doc;

    *link = (struct ghp_link){0};
    if (access(name, F_OK) != 0 && rate_of(name) > 0) return open_rate(rate_of(name), link);
    if (access(name, F_OK) != 0 && ghp_text_ends(name, "/s")) return fail_name(&networks, name);
    GHP_TRY(open_json(&networks, name, &doc));
    root = ghp_json_root(&doc);
    status = read_network(&root, link);
    ghp_json_release(&doc);
    return status;
}

static enum ghp_status print(const struct catalog *catalog, FILE *out)
{
    for (int i = 0; catalog->names[i] != NULL; i++) {
        struct ghp_json doc;
        struct ghp_node root;
        char *text = NULL;
        enum ghp_status status;

        GHP_TRY(ghp_json_parse(catalog->texts[i], catalog->names[i], catalog->format, &doc));
        root = ghp_json_root(&doc);
        status = ghp_json_text(&root, "name", &text);
        if (status == GHP_OK) fprintf(out, "%-16s  %s\n", catalog->names[i], text);
        free(text);
        ghp_json_release(&doc);
        GHP_TRY(status);
    }
    return GHP_OK;
}

enum ghp_status ghp_machines_print(FILE *out)
{
    return print(&machines, out);
}

enum ghp_status ghp_fabrics_print(FILE *out)
{
    return print(&networks, out);
}
