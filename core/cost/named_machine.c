/* core/cost/named_machine.c - see named_machine.h. The build makes the arrays of the files in machines/. */
#include "core/cost/named_machine.h"

#include "core/base/text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const char *const ghp_machine_texts[], *const ghp_fabric_texts[];

/* One kind of named thing. */
struct catalog {
    const char *what, *option, *format;
    const char *const *names, *const *texts;
};

static const struct catalog machines = {"machine", "--machine", "ghp.machine/2", ghp_machine_names,
                                        ghp_machine_texts};
static const struct catalog networks = {"network", "--network", "ghp.network/1", ghp_fabric_names,
                                        ghp_fabric_texts};

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
                        "shows all names",
                        catalog->what, name, nearest, catalog->option);
    return GHP_FAIL(GHP_ERR_USAGE,
                    "no %s and no file is called '%s'; ghp-plan %s list shows all names",
                    catalog->what, name, catalog->option);
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

static enum ghp_status read_network(const struct ghp_node *root, struct ghp_link *link)
{
    static const char *const keys[] = {"format",         "name",    "latency_s", "bandwidth_Bps",
                                       "asymptotic_Bps", "sources", NULL};

    GHP_TRY(ghp_json_only_keys(root, keys));
    return ghp_link_read(root, link);
}

enum ghp_status ghp_fabric_open(const char *name, struct ghp_link *link)
{
    enum ghp_status status;
    struct ghp_node root;
    struct ghp_json doc;

    *link = (struct ghp_link){0};
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
