/* executor/backend/cuda/choice.c - see cuda/choice.h. */
#include "executor/backend/cuda/choice.h"

#include "core/base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double NEAR = 1.03; /* as good as the best: as much as timings differ by chance */

int ghp_choice_best(const struct ghp_timed_choice *candidates, int n)
{
    int fastest = -1, best = -1;

    for (int i = 0; i < n; i++)
        if (candidates[i].seconds >= 0 &&
            (fastest < 0 || candidates[i].seconds < candidates[fastest].seconds))
            fastest = i;
    for (int i = 0; fastest >= 0 && i < n; i++) {
        const struct ghp_timed_choice *c = &candidates[i];

        if (c->seconds < 0 || c->seconds > NEAR * candidates[fastest].seconds) continue;
        if (best < 0 || c->workspace_bytes < candidates[best].workspace_bytes ||
            (c->workspace_bytes == candidates[best].workspace_bytes &&
             c->seconds < candidates[best].seconds))
            best = i;
    }
    return best;
}

/* ---- what was chosen ---- */

struct ghp_choice_entry {
    char key[GHP_KEY_BYTES];
    enum ghp_pass pass;
    bool bias, relu, sums;
    char name[GHP_CHOICE_NAME_BYTES];
};

static struct ghp_choice_entry *find(const struct ghp_choices *choices, struct ghp_chosen chosen,
                                     const char *key)
{
    for (int i = 0; i < choices->n; i++) {
        struct ghp_choice_entry *e = &choices->entries[i];

        if (e->pass == chosen.pass && e->bias == chosen.bias && e->relu == chosen.relu &&
            e->sums == chosen.sums && strcmp(e->key, key) == 0)
            return e;
    }
    return NULL;
}

const char *ghp_choices_find(const struct ghp_choices *choices, struct ghp_chosen chosen)
{
    char key[GHP_KEY_BYTES];
    const struct ghp_choice_entry *entry;

    ghp_local_key(chosen.local, key);
    entry = find(choices, chosen, key);
    return entry != NULL ? entry->name : NULL;
}

enum ghp_status ghp_choices_keep(struct ghp_choices *choices, struct ghp_chosen chosen,
                                 const char *name)
{
    char key[GHP_KEY_BYTES];
    struct ghp_choice_entry *entry;

    ghp_local_key(chosen.local, key);
    entry = find(choices, chosen, key);
    if (entry == NULL) {
        GHP_TRY_ROOM(choices->entries, choices->n, choices->max);
        entry = &choices->entries[choices->n++];
    }
    memcpy(entry->key, key, sizeof key);
    entry->pass = chosen.pass;
    entry->bias = chosen.bias;
    entry->relu = chosen.relu;
    entry->sums = chosen.sums;
    snprintf(entry->name, sizeof entry->name, "%s", name);
    return GHP_OK;
}

void ghp_choices_release(struct ghp_choices *choices)
{
    free(choices->entries);
    *choices = (struct ghp_choices){0};
}

/* ---- names ---- */

void ghp_choice_text(char text[GHP_CHOICE_NAME_BYTES], const char *library, int64_t version,
                     const char *rest)
{
    snprintf(text, GHP_CHOICE_NAME_BYTES, "%s %lld %s", library, (long long)version, rest);
}

const char *ghp_choice_rest(const char *text, const char *library, int64_t version)
{
    char head[64];
    size_t n = (size_t)snprintf(head, sizeof head, "%s %lld ", library, (long long)version);

    return text != NULL && n < sizeof head && strncmp(text, head, n) == 0 ? text + n : NULL;
}

void ghp_choice_split(char *text, char **fused)
{
    static const char between[] = " & ";
    char *at = strstr(text, between);

    *fused = at != NULL ? at + strlen(between) : NULL;
    if (at != NULL) *at = '\0';
}
