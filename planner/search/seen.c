/* planner/search/seen.c - see seen.h. */
#include "planner/search/seen.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_PLANS = 512 };

static uint64_t fnv1a(const int *choice, int n)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (int v = 0; v < n; ++v)
        h = (h ^ (uint64_t)(unsigned)choice[v]) * UINT64_C(0x100000001b3);
    return h;
}

static const int *plan_of(const struct ghp_seen *s, size_t k)
{
    return s->choices + k * (size_t)s->n_layers;
}

static size_t plan_bytes(const struct ghp_seen *s)
{
    return (size_t)s->n_layers * sizeof *s->choices;
}

/* The slot of a plan, or the free one where it belongs. */
static size_t find_slot(const struct ghp_seen *s, const int *choice)
{
    uint64_t hash = s->hash != NULL ? s->hash(choice, s->n_layers) : fnv1a(choice, s->n_layers);
    size_t at = (size_t)hash & (s->n_slots - 1);

    while (s->slots[at] != 0 && memcmp(plan_of(s, s->slots[at] - 1), choice, plan_bytes(s)) != 0)
        at = (at + 1) & (s->n_slots - 1);
    return at;
}

/* Room for twice as many plans, and twice as many slots as plans. */
static enum ghp_status grow(struct ghp_seen *s)
{
    size_t max = s->max > 0 ? 2 * s->max : FIRST_PLANS;
    size_t *slots = ghp_alloc(2 * max, sizeof *slots);
    int *choices = ghp_alloc(max, plan_bytes(s));

    if (slots == NULL || choices == NULL) {
        free(slots);
        free(choices);
        return GHP_NO_MEMORY();
    }
    if (s->n > 0) memcpy(choices, s->choices, s->n * plan_bytes(s));
    free(s->slots);
    free(s->choices);
    s->slots = slots;
    s->choices = choices;
    s->n_slots = 2 * max;
    s->max = max;
    for (size_t k = 0; k < s->n; ++k)
        s->slots[find_slot(s, plan_of(s, k))] = k + 1;
    return GHP_OK;
}

enum ghp_status ghp_seen_add(struct ghp_seen *s, const int *choice, bool *added)
{
    size_t at;

    if (s->n == s->max) GHP_TRY(grow(s));
    at = find_slot(s, choice);
    *added = s->slots[at] == 0;
    if (!*added) return GHP_OK;
    memcpy(s->choices + s->n * (size_t)s->n_layers, choice, plan_bytes(s));
    s->slots[at] = ++s->n;
    return GHP_OK;
}

void ghp_seen_release(struct ghp_seen *s)
{
    if (s == NULL) return;
    free(s->slots);
    free(s->choices);
    s->slots = NULL;
    s->choices = NULL;
    s->n = s->max = s->n_slots = 0;
}
