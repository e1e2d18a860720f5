/* planner/search/domain.h - which choices of an instance are still in play: one flag a choice, one a pair.
 *
 * A search narrows a copy of its parent's domain; a plan belongs to a domain when all its choices and pairs do, and
 * layers that share parameters hold the same parts of them.
 * Flags are indexed as in planner/search/instance.h (flat choice, flat pair of classes).
 *
 * Tested  tests/planner/search/test_branch.c, test_exact.c */
#ifndef GHP_PLANNER_SEARCH_DOMAIN_H
#define GHP_PLANNER_SEARCH_DOMAIN_H

#include "planner/search/instance.h"

struct ghp_domain {
    const struct ghp_instance *instance; /* borrowed */
    unsigned char *choice;               /* 1: in play; owned, one block with `pair` */
    unsigned char *pair;
};

/* Everything in play, but choices of layers that share parameters with one that has no choice to go with them. */
enum ghp_status ghp_domain_init(const struct ghp_instance *instance, struct ghp_domain *domain);
enum ghp_status ghp_domain_copy(const struct ghp_domain *from, struct ghp_domain *to);
void ghp_domain_release(struct ghp_domain *domain);

int ghp_domain_count(const struct ghp_domain *domain, int layer); /* choices of a layer in play */
/* Whether a plan belongs. */
bool ghp_domain_has(const struct ghp_domain *domain, const int *choice);
/* The same, quick for plans that stay out for the same reason: *excluded is the layer whose choice was out last time
 * (0: none was yet), and receives the one that is now. */
bool ghp_domain_has_still(const struct ghp_domain *domain, const int *choice, int *excluded);
void ghp_domain_fix(struct ghp_domain *domain, int layer, int choice); /* this choice only */
/* Fixes a layer and those that use its parameters; returns whether these have choices in play that go with it. */
bool ghp_domain_fix_tied(struct ghp_domain *domain, int owner, int choice);
void ghp_domain_drop(struct ghp_domain *domain, int layer, int choice);

/* A domain in few bytes: bits of its choices, and of the pairs of classes in play.
 *
 * packed   receives them; to be freed
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_domain_pack(const struct ghp_domain *domain, unsigned char **packed);
/* Sets a domain of the same instance; pairs of classes that are not in play stay as they are. */
void ghp_domain_unpack(const unsigned char *packed, struct ghp_domain *domain);

/* Keeps only splits of this TP size's divisors. */
void ghp_domain_limit_tp_size(struct ghp_domain *domain, int tp_size);

#endif
