/* core/plan/overrides.c - the list of plan/overrides.h and its array in a plan file. */
#include "core/plan/overrides.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum ghp_status ghp_overrides_add(struct ghp_overrides *overrides, const char *key,
                                  const char *from, const char *to)
{
    struct ghp_override *grown =
        realloc(overrides->override, ((size_t)overrides->n + 1) * sizeof *grown);
    struct ghp_override *last;

    if (grown == NULL) return GHP_NO_MEMORY();
    overrides->override = grown;
    last = &overrides->override[overrides->n++];
    *last = (struct ghp_override){strdup(key), strdup(from), strdup(to)};
    return last->key == NULL || last->from == NULL || last->to == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

enum ghp_status ghp_overrides_copy(const struct ghp_overrides *from, struct ghp_overrides *to)
{
    enum ghp_status status = GHP_OK;

    *to = (struct ghp_overrides){0};
    for (int i = 0; i < from->n && status == GHP_OK; i++)
        status = ghp_overrides_add(to, from->override[i].key, from->override[i].from,
                                   from->override[i].to);
    if (status != GHP_OK) ghp_overrides_release(to);
    return status;
}

void ghp_overrides_release(struct ghp_overrides *overrides)
{
    if (overrides == NULL) return;
    for (int i = 0; i < overrides->n; i++) {
        free(overrides->override[i].key);
        free(overrides->override[i].from);
        free(overrides->override[i].to);
    }
    free(overrides->override);
    *overrides = (struct ghp_overrides){0};
}

char *ghp_overrides_format(const struct ghp_overrides *overrides, char *out, size_t n)
{
    size_t used = 0;

    out[0] = '\0';
    for (int i = 0; i < overrides->n && used < n; i++) {
        const struct ghp_override *e = &overrides->override[i];
        int wrote = snprintf(out + used, n - used, "%s%s %s -> %s", i > 0 ? ", " : "", e->key,
                             e->from, e->to);

        if (wrote < 0) break;
        used += (size_t)wrote;
    }
    if (used >= n && n >= 4) memcpy(out + n - 4, "...", 4);
    return out;
}

json_t *ghp_overrides_json(const struct ghp_overrides *overrides)
{
    json_t *array = json_array();

    for (int i = 0; i < overrides->n; i++) {
        const struct ghp_override *e = &overrides->override[i];

        if (json_array_append_new(array, json_pack("{s:s, s:s, s:s}", "key", e->key, "from",
                                                   e->from, "to", e->to)) == 0)
            continue;
        json_decref(array);
        return NULL;
    }
    return array;
}

static enum ghp_status read_items(const struct ghp_node *array, size_t n,
                                  struct ghp_overrides *overrides)
{
    static const char *const keys[] = {"key", "from", "to", NULL};

    for (size_t i = 0; i < n; i++) {
        char key[64], from[4096], to[4096];
        struct ghp_node item;

        GHP_TRY(ghp_json_item(array, i, &item));
        GHP_TRY(ghp_json_only_keys(&item, keys));
        GHP_TRY(ghp_json_text_n(&item, "key", key, sizeof key));
        GHP_TRY(ghp_json_text_n(&item, "from", from, sizeof from));
        GHP_TRY(ghp_json_text_n(&item, "to", to, sizeof to));
        GHP_TRY(ghp_overrides_add(overrides, key, from, to));
    }
    return GHP_OK;
}

enum ghp_status ghp_overrides_read(const struct ghp_node *object, const char *key,
                                   struct ghp_overrides *overrides)
{
    struct ghp_node array;
    enum ghp_status status;
    size_t n;

    *overrides = (struct ghp_overrides){0};
    if (!ghp_json_has(object, key)) return GHP_OK;
    GHP_TRY(ghp_json_array(object, key, &array, &n));
    status = read_items(&array, n, overrides);
    if (status != GHP_OK) ghp_overrides_release(overrides);
    return status;
}
