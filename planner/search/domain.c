/* planner/search/domain.c - flags over choices and pairs. */
#include "planner/search/domain.h"

#include <stdlib.h>
#include <string.h>

static size_t flags_of(const struct ghp_instance *in)
{
    return (size_t)in->first_choice[in->n_layers] + (size_t)in->first_pair[in->n_edges];
}

static bool has_partner(const struct ghp_instance *in, int layer, int i, int other)
{
    int tp_size = in->choices[in->first_choice[layer] + i].tp_size;

    return ghp_instance_tied_choice(in, layer, i, other) >= 0 &&
           ghp_stage_partner_takes(in->lowering->model, in->lowering->staging, layer, tp_size);
}

/* Drops the choices of a tied layer and its owner that the other has none for. */
static void drop_unpaired(struct ghp_domain *domain, int owner, int tied)
{
    const int ends[2][2] = {{owner, tied}, {tied, owner}};

    for (int k = 0; k < 2; k++)
        for (int i = 0; i < domain->instance->n_choices[ends[k][0]]; i++)
            if (!has_partner(domain->instance, ends[k][0], i, ends[k][1]))
                ghp_domain_drop(domain, ends[k][0], i);
}

enum ghp_status ghp_domain_init(const struct ghp_instance *instance, struct ghp_domain *domain)
{
    size_t n = flags_of(instance);

    *domain = (struct ghp_domain){.instance = instance};
    domain->choice = ghp_alloc(n, 1);
    if (domain->choice == NULL) return GHP_NO_MEMORY();
    memset(domain->choice, 1, n);
    domain->pair = domain->choice + instance->first_choice[instance->n_layers];
    for (int v = 0; v < instance->n_layers; v++)
        if (instance->lowering->model->layers[v].tied > 0)
            drop_unpaired(domain, ghp_model_owner(instance->lowering->model, v), v);
    return GHP_OK;
}

enum ghp_status ghp_domain_copy(const struct ghp_domain *from, struct ghp_domain *to)
{
    GHP_TRY(ghp_domain_init(from->instance, to));
    memcpy(to->choice, from->choice, flags_of(from->instance));
    return GHP_OK;
}

void ghp_domain_release(struct ghp_domain *domain)
{
    if (domain == NULL) return;
    free(domain->choice);
    memset(domain, 0, sizeof *domain);
}

int ghp_domain_count(const struct ghp_domain *domain, int layer)
{
    int n = 0;

    for (int i = domain->instance->first_choice[layer];
         i < domain->instance->first_choice[layer + 1]; i++)
        n += domain->choice[i];
    return n;
}

bool ghp_domain_has(const struct ghp_domain *domain, const int *choice)
{
    int excluded = 0;

    return ghp_domain_has_still(domain, choice, &excluded);
}

bool ghp_domain_has_still(const struct ghp_domain *domain, const int *choice, int *excluded)
{
    const struct ghp_instance *in = domain->instance;

    if (!domain->choice[in->first_choice[*excluded] + choice[*excluded]]) return false;
    for (int v = 0; v < in->n_layers; v++) {
        if (domain->choice[in->first_choice[v] + choice[v]]) continue;
        *excluded = v;
        return false;
    }
    for (int e = 0; e < in->n_edges; e++)
        if (!domain->pair[ghp_instance_pair(in, e, choice)]) return false;
    for (int v = 0; v < in->n_layers; v++) {
        int owner = ghp_model_owner(in->lowering->model, v);

        if (owner != v && ghp_instance_tied_choice(in, owner, choice[owner], v) != choice[v])
            return false;
    }
    return true;
}

void ghp_domain_fix(struct ghp_domain *domain, int layer, int choice)
{
    const struct ghp_instance *in = domain->instance;

    for (int i = 0; i < in->n_choices[layer]; i++)
        domain->choice[in->first_choice[layer] + i] = i == choice;
}

bool ghp_domain_fix_tied(struct ghp_domain *domain, int owner, int choice)
{
    const struct ghp_instance *in = domain->instance;
    bool all = true;

    for (int v = owner; v < in->n_layers; v++) {
        if (ghp_model_owner(in->lowering->model, v) != owner) continue;
        int i = ghp_instance_tied_choice(in, owner, choice, v);

        all = all && i >= 0 && domain->choice[in->first_choice[v] + i];
        ghp_domain_fix(domain, v, i);
    }
    return all;
}

void ghp_domain_drop(struct ghp_domain *domain, int layer, int choice)
{
    domain->choice[domain->instance->first_choice[layer] + choice] = 0;
}

/* A place at which bits are written or read. */
struct bits {
    unsigned char *byte;
    size_t n;
};

static void put_bit(struct bits *bits, unsigned char flag)
{
    bits->byte[bits->n / 8] |= (unsigned char)(flag << bits->n % 8);
    bits->n++;
}

static unsigned char get_bit(const unsigned char *byte, size_t *n)
{
    unsigned char flag = byte[*n / 8] >> *n % 8 & 1;

    ++*n;
    return flag;
}

/* Which classes of a layer have a choice in play; how many. */
static int find_classes(const struct ghp_domain *domain, int layer, bool *in_play)
{
    const struct ghp_instance *in = domain->instance;
    int n = 0;

    memset(in_play, 0, GHP_MAX_CHOICES * sizeof *in_play);
    for (int flat = in->first_choice[layer]; flat < in->first_choice[layer + 1]; flat++) {
        n += domain->choice[flat] && !in_play[in->class_of[flat]];
        in_play[in->class_of[flat]] |= domain->choice[flat];
    }
    return n;
}

static size_t count_packed(const struct ghp_domain *domain)
{
    const struct ghp_instance *in = domain->instance;
    bool in_play[GHP_MAX_CHOICES];
    size_t n = (size_t)in->first_choice[in->n_layers];

    for (int e = 0; e < in->n_edges; e++)
        n += (size_t)find_classes(domain, in->edges[e].from, in_play) *
             (size_t)find_classes(domain, in->edges[e].to, in_play);
    return n;
}

/* Writes (or, to `bits` NULL, reads at *at) the flags of an edge's pairs whose classes are in play. */
static void pass_pairs(const struct ghp_domain *domain, int e, struct bits *bits,
                       const unsigned char *packed, size_t *at)
{
    const struct ghp_instance *in = domain->instance;
    bool from[GHP_MAX_CHOICES], to[GHP_MAX_CHOICES];
    unsigned char *pair = &domain->pair[in->first_pair[e]];

    find_classes(domain, in->edges[e].from, from);
    find_classes(domain, in->edges[e].to, to);
    for (int a = 0; a < in->n_classes[in->edges[e].from]; a++)
        for (int b = 0; b < in->n_classes[in->edges[e].to]; ++b, pair++) {
            if (!from[a] || !to[b]) continue;
            if (bits != NULL)
                put_bit(bits, *pair);
            else
                *pair = get_bit(packed, at);
        }
}

enum ghp_status ghp_domain_pack(const struct ghp_domain *domain, unsigned char **packed)
{
    const struct ghp_instance *in = domain->instance;
    struct bits bits = {.byte = ghp_alloc(count_packed(domain) / 8 + 1, 1)};

    *packed = bits.byte;
    if (bits.byte == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < in->first_choice[in->n_layers]; i++)
        put_bit(&bits, domain->choice[i]);
    for (int e = 0; e < in->n_edges; e++)
        pass_pairs(domain, e, &bits, NULL, NULL);
    return GHP_OK;
}

void ghp_domain_unpack(const unsigned char *packed, struct ghp_domain *domain)
{
    const struct ghp_instance *in = domain->instance;
    size_t n = 0;

    for (int i = 0; i < in->first_choice[in->n_layers]; i++)
        domain->choice[i] = get_bit(packed, &n);
    for (int e = 0; e < in->n_edges; e++)
        pass_pairs(domain, e, NULL, packed, &n);
}

void ghp_domain_limit_tp_size(struct ghp_domain *domain, int tp_size)
{
    const struct ghp_instance *in = domain->instance;

    for (int i = 0; i < in->first_choice[in->n_layers]; i++)
        if (tp_size % in->choices[i].tp_size != 0) domain->choice[i] = 0;
}
