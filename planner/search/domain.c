/* planner/search/domain.c - flags over choices and pairs. */
#include "planner/search/domain.h"

#include <stdlib.h>
#include <string.h>

static size_t flags_of(const struct ghp_instance *in)
{
    return (size_t)in->first_choice[in->n_layers] + (size_t)in->first_pair[in->n_edges];
}

enum ghp_status ghp_domain_init(const struct ghp_instance *instance, struct ghp_domain *domain)
{
    size_t n = flags_of(instance);

    *domain = (struct ghp_domain){.instance = instance};
    domain->choice = ghp_alloc(n, 1);
    if (domain->choice == NULL) return GHP_NO_MEMORY();
    memset(domain->choice, 1, n);
    domain->pair = domain->choice + instance->first_choice[instance->n_layers];
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
         i < domain->instance->first_choice[layer + 1]; ++i)
        n += domain->choice[i];
    return n;
}

bool ghp_domain_has(const struct ghp_domain *domain, const int *choice)
{
    const struct ghp_instance *in = domain->instance;

    for (int v = 0; v < in->n_layers; ++v)
        if (!domain->choice[in->first_choice[v] + choice[v]]) return false;
    for (int e = 0; e < in->n_edges; ++e)
        if (!domain->pair[ghp_instance_pair(in, e, choice)]) return false;
    return true;
}

void ghp_domain_fix(struct ghp_domain *domain, int layer, int choice)
{
    const struct ghp_instance *in = domain->instance;

    for (int i = 0; i < in->n_choices[layer]; ++i)
        domain->choice[in->first_choice[layer] + i] = i == choice;
}

void ghp_domain_drop(struct ghp_domain *domain, int layer, int choice)
{
    domain->choice[domain->instance->first_choice[layer] + choice] = 0;
}

void ghp_domain_limit_tp_size(struct ghp_domain *domain, int tp_size)
{
    const struct ghp_instance *in = domain->instance;

    for (int i = 0; i < in->first_choice[in->n_layers]; ++i)
        if (tp_size % in->choices[i].tp_size != 0) domain->choice[i] = 0;
}
