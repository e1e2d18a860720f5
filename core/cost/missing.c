/* core/cost/missing.c - see core/cost/missing.h. */
#include "core/cost/missing.h"

#include "core/base/array.h"
#include "core/base/json_lines.h"
#include "core/cost/profile_private.h"

#include <stdlib.h>
#include <string.h>

#define FORMAT "ghp.wanted/1"

enum {
    MOST_RANKS = 1 << 20,
    LONG_BYTES = 1 << 20, /* of a table's last size: the line after it is the link's rate */
    LONGER = 4            /* than that size, and costed by the line */
};

#define MOST_SECONDS 1e9

static bool same(const struct ghp_missing_item *a, const struct ghp_missing_item *b)
{
    if (a->is_comm != b->is_comm) return false;
    if (!a->is_comm) return a->pass == b->pass && strcmp(a->key, b->key) == 0;
    return a->op == b->op && a->count == b->count && a->stride == b->stride && a->bytes == b->bytes;
}

/* Its place in the list; a new one at the end. NULL: no memory. */
static struct ghp_missing_item *place_of(struct ghp_missing *missing,
                                         const struct ghp_missing_item *item)
{
    struct ghp_missing_item *grown;

    for (int i = 0; i < missing->n; i++)
        if (same(&missing->items[i], item)) return &missing->items[i];
    grown = ghp_array_grow(missing->items, missing->n, &missing->max, sizeof *missing->items);
    if (grown == NULL) return NULL;
    missing->items = grown;
    missing->items[missing->n] = *item;
    return &missing->items[missing->n++];
}

static bool is_collective(const struct ghp_instr *instr)
{
    return instr->comm != GHP_COMM_NONE && instr->comm != GHP_COMM_TRANSFER &&
           instr->ranks.count > 1 && instr->bytes > 0;
}

/* Whether a collective is little longer than the longest of its kind that was measured, which was long. */
static bool follows_table(const struct ghp_profile *profile, const struct ghp_instr *instr,
                          int workers)
{
    const struct ghp_comm_interpolation points =
        ghp_profile_comm_points(profile, instr->comm, instr->bytes, instr->ranks, workers);
    const struct ghp_comm_entry *last = points.n == 2 ? points.entry[1] : NULL;

    return points.own && last != NULL && last->source == GHP_SOURCE_MEASURED &&
           last->bytes >= LONG_BYTES && points.bytes <= LONGER * last->bytes;
}

static enum ghp_status add_instr(struct ghp_missing *missing, const struct ghp_profile *profile,
                                 const struct ghp_instr *instr, int workers)
{
    struct ghp_missing_item item = {.pass = instr->pass}, *place;
    struct ghp_cost cost;

    if (instr->kind == GHP_INSTR_COMPUTE) {
        GHP_TRY(ghp_profile_cost(profile, instr, workers, &cost));
        ghp_local_key(&instr->local, item.key);
    } else if (is_collective(instr)) {
        GHP_TRY(ghp_profile_comm(profile, instr->comm, instr->bytes, instr->ranks, workers, &cost));
        item.is_comm = true;
        item.op = instr->comm;
        item.count = instr->ranks.count;
        item.stride = instr->ranks.stride;
        item.bytes = instr->bytes;
        if (cost.source == GHP_SOURCE_INTERPOLATED) return GHP_OK; /* between two sizes */
        if (follows_table(profile, instr, workers)) return GHP_OK;
    } else {
        return GHP_OK;
    }
    if (cost.source == GHP_SOURCE_MEASURED || !(cost.seconds > 0)) return GHP_OK;
    place = place_of(missing, &item);
    if (place == NULL) return GHP_NO_MEMORY();
    place->so_far_s += cost.seconds;
    return GHP_OK;
}

enum ghp_status ghp_missing_add(struct ghp_missing *missing, const struct ghp_profile *profile,
                                const struct ghp_program *programs, int n)
{
    for (int i = 0; i < missing->n; i++)
        missing->items[i].so_far_s = 0;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < programs[k].n_instrs; i++)
            GHP_TRY(
                add_instr(missing, profile, &programs[k].instrs[i], programs[k].problem.workers));
    for (int i = 0; i < missing->n; i++)
        if (missing->items[i].so_far_s > missing->items[i].seconds)
            missing->items[i].seconds = missing->items[i].so_far_s;
    return GHP_OK;
}

static int by_seconds(const void *a, const void *b)
{
    const struct ghp_missing_item *x = a, *y = b;

    if (x->seconds < y->seconds || x->seconds > y->seconds) return x->seconds > y->seconds ? -1 : 1;
    if (x->is_comm != y->is_comm) return x->is_comm - y->is_comm;
    if (x->is_comm) return (x->bytes > y->bytes) - (x->bytes < y->bytes);
    return x->pass != y->pass ? (int)x->pass - (int)y->pass : strcmp(x->key, y->key);
}

void ghp_missing_trim(struct ghp_missing *missing, double least_s)
{
    double dropped_s = 0;

    if (missing->n > 0)
        qsort(missing->items, (size_t)missing->n, sizeof *missing->items, by_seconds);
    while (missing->n > 0) {
        const struct ghp_missing_item *last = &missing->items[missing->n - 1];

        dropped_s +=
            (last->is_comm ? GHP_MISSING_COMM_ERROR : GHP_MISSING_LAW_ERROR) * last->seconds;
        if (dropped_s > least_s) return;
        --missing->n;
    }
}

void ghp_missing_release(struct ghp_missing *missing)
{
    free(missing->items);
    *missing = (struct ghp_missing){0};
}

/* ---- the file ---- */

static json_t *item_json(const struct ghp_missing_item *item)
{
    if (!item->is_comm)
        return json_pack("{s:s, s:s, s:f}", "key", item->key, "pass", ghp_pass_name(item->pass),
                         "step_s", item->seconds);
    return json_pack("{s:s, s:i, s:i, s:I, s:f}", "op", ghp_comm_name(item->op), "ranks",
                     item->count, "stride", item->stride, "bytes", (json_int_t)item->bytes,
                     "step_s", item->seconds);
}

enum ghp_status ghp_missing_save(const char *path, const struct ghp_missing *missing)
{
    json_t *root = json_object(), *items = json_array();
    bool failed = root == NULL || items == NULL;

    for (int i = 0; i < missing->n; i++)
        ghp_json_append(items, item_json(&missing->items[i]), &failed);
    ghp_json_put(root, "format", json_string(FORMAT), &failed);
    ghp_json_put(root, "wanted", items, &failed);
    if (!failed) return ghp_json_lines_save(path, root);
    json_decref(root);
    return GHP_NO_MEMORY();
}

static enum ghp_status read_comm(const struct ghp_node *at, struct ghp_missing_item *item)
{
    static const char *const keys[] = {"op", "ranks", "stride", "bytes", "step_s", NULL};
    const char *ops[GHP_COMM_COUNT] = {NULL};
    int64_t count = 0, stride = 0;
    int op = 0;

    for (int i = 1; i < GHP_COMM_COUNT; i++)
        ops[i - 1] = ghp_comm_name((enum ghp_comm_op)i);
    GHP_TRY(ghp_json_only_keys(at, keys));
    GHP_TRY(ghp_json_choice(at, "op", ops, &op));
    GHP_TRY(ghp_json_int(at, "ranks", 2, MOST_RANKS, &count));
    GHP_TRY(ghp_json_int(at, "stride", 1, MOST_RANKS, &stride));
    GHP_TRY(ghp_json_int(at, "bytes", 1, INT64_MAX, &item->bytes));
    item->is_comm = true;
    item->op = (enum ghp_comm_op)(op + 1);
    item->count = (int)count;
    item->stride = (int)stride;
    return ghp_json_real(at, "step_s", 0, MOST_SECONDS, &item->seconds);
}

static enum ghp_status read_op(const struct ghp_node *at, struct ghp_missing_item *item)
{
    static const char *const keys[] = {"key", "pass", "step_s", NULL};
    const char *passes[GHP_PASS_COUNT + 1] = {NULL};
    int pass = 0;

    for (int i = 0; i < GHP_PASS_COUNT; i++)
        passes[i] = ghp_pass_name((enum ghp_pass)i);
    GHP_TRY(ghp_json_only_keys(at, keys));
    GHP_TRY(ghp_json_text_n(at, "key", item->key, sizeof item->key));
    GHP_TRY(ghp_json_choice(at, "pass", passes, &pass));
    item->pass = (enum ghp_pass)pass;
    return ghp_json_real(at, "step_s", 0, MOST_SECONDS, &item->seconds);
}

static enum ghp_status read_items(const struct ghp_node *root, struct ghp_missing *missing)
{
    static const char *const keys[] = {"format", "wanted", NULL};
    struct ghp_node array, at;
    size_t n;

    GHP_TRY(ghp_json_only_keys(root, keys));
    GHP_TRY(ghp_json_array(root, "wanted", &array, &n));
    for (size_t i = 0; i < n; i++) {
        struct ghp_missing_item item = {0};

        GHP_TRY(ghp_json_item(&array, i, &at));
        GHP_TRY(ghp_json_has(&at, "key") ? read_op(&at, &item) : read_comm(&at, &item));
        if (place_of(missing, &item) == NULL) return GHP_NO_MEMORY();
    }
    return GHP_OK;
}

enum ghp_status ghp_missing_load(const char *path, struct ghp_missing *missing)
{
    struct ghp_json doc;
    struct ghp_node root;
    enum ghp_status status;

    *missing = (struct ghp_missing){0};
    GHP_TRY(ghp_json_load(path, FORMAT, &doc));
    root = ghp_json_root(&doc);
    status = read_items(&root, missing);
    ghp_json_release(&doc);
    if (status != GHP_OK) ghp_missing_release(missing);
    return status;
}
