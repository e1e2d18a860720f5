/* core/plan/overrides.c - the list of plan/overrides.h and its array in a plan file. */
#include "core/plan/overrides.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum ghp_status ghp_edits_add(struct ghp_edits *edits, const char *key, const char *from,
                              const char *to)
{
    struct ghp_edit *grown = realloc(edits->edit, ((size_t)edits->n + 1) * sizeof *grown);
    struct ghp_edit *last;

    if (grown == NULL) return GHP_NO_MEMORY();
    edits->edit = grown;
    last = &edits->edit[edits->n++];
    *last = (struct ghp_edit){strdup(key), strdup(from), strdup(to)};
    return last->key == NULL || last->from == NULL || last->to == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

enum ghp_status ghp_edits_copy(const struct ghp_edits *from, struct ghp_edits *to)
{
    enum ghp_status status = GHP_OK;

    *to = (struct ghp_edits){0};
    for (int i = 0; i < from->n && status == GHP_OK; ++i)
        status = ghp_edits_add(to, from->edit[i].key, from->edit[i].from, from->edit[i].to);
    if (status != GHP_OK) ghp_edits_release(to);
    return status;
}

void ghp_edits_release(struct ghp_edits *edits)
{
    if (edits == NULL) return;
    for (int i = 0; i < edits->n; ++i) {
        free(edits->edit[i].key);
        free(edits->edit[i].from);
        free(edits->edit[i].to);
    }
    free(edits->edit);
    *edits = (struct ghp_edits){0};
}

char *ghp_edits_text(const struct ghp_edits *edits, char *out, size_t n)
{
    size_t used = 0;

    out[0] = '\0';
    for (int i = 0; i < edits->n && used < n; ++i) {
        const struct ghp_edit *e = &edits->edit[i];
        int wrote = snprintf(out + used, n - used, "%s%s %s -> %s", i > 0 ? ", " : "", e->key,
                             e->from, e->to);

        if (wrote < 0) break;
        used += (size_t)wrote;
    }
    if (used >= n && n >= 4) memcpy(out + n - 4, "...", 4);
    return out;
}

json_t *ghp_edits_json(const struct ghp_edits *edits)
{
    json_t *array = json_array();

    for (int i = 0; i < edits->n; ++i) {
        const struct ghp_edit *e = &edits->edit[i];

        if (json_array_append_new(array, json_pack("{s:s, s:s, s:s}", "key", e->key, "from",
                                                   e->from, "to", e->to)) == 0)
            continue;
        json_decref(array);
        return NULL;
    }
    return array;
}

static enum ghp_status read_items(const struct ghp_node *array, size_t n, struct ghp_edits *edits)
{
    static const char *const keys[] = {"key", "from", "to", NULL};

    for (size_t i = 0; i < n; ++i) {
        char key[64], from[4096], to[4096];
        struct ghp_node item;

        GHP_TRY(ghp_json_item(array, i, &item));
        GHP_TRY(ghp_json_only_keys(&item, keys));
        GHP_TRY(ghp_json_text_n(&item, "key", key, sizeof key));
        GHP_TRY(ghp_json_text_n(&item, "from", from, sizeof from));
        GHP_TRY(ghp_json_text_n(&item, "to", to, sizeof to));
        GHP_TRY(ghp_edits_add(edits, key, from, to));
    }
    return GHP_OK;
}

enum ghp_status ghp_edits_read(const struct ghp_node *object, const char *key,
                               struct ghp_edits *edits)
{
    struct ghp_node array;
    enum ghp_status status;
    size_t n;

    *edits = (struct ghp_edits){0};
    if (!ghp_json_has(object, key)) return GHP_OK;
    GHP_TRY(ghp_json_array(object, key, &array, &n));
    status = read_items(&array, n, edits);
    if (status != GHP_OK) ghp_edits_release(edits);
    return status;
}
