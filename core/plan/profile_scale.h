/* core/plan/profile_scale.h - another machine in thought: a profile with a faster or slower link or processor.
 *
 * What was measured is not forgotten: a measured collective changes as the ring model of its link does, so a profile
 * that is half as fast as the analytic model stays half as fast. Scaled entries call themselves `analytic`.
 *
 * Tested  tests/core/plan/test_profile_scale.c */
#ifndef GHP_CORE_PLAN_PROFILE_SCALE_H
#define GHP_CORE_PLAN_PROFILE_SCALE_H

#include "core/cost/profile.h"

enum ghp_link_kind { GHP_LINK_INTRA, GHP_LINK_INTER };

/* The whole profile again: entries, machine, hash, finalized if it was.
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY (`to` is zeroed) */
enum ghp_status ghp_profile_copy(const struct ghp_profile *from, struct ghp_profile *to);

/* Scales one link of the machine, and each measured collective that this link bounds.
 *
 *     seconds' = seconds * analytic_of(link') / analytic_of(link)         docs/explanation/time-model.md 3
 *
 * with the link as the groups of the entry shared it while they were measured. Entries keep their order, so a
 * finalized profile stays finalized and plans can be costed by it. Its hash is 0 until it is finalized again, as it is
 * no longer the file's.
 *
 * which              an entry belongs to `inter` if its groups cross nodes, else to `intra`
 * bandwidth_factor   > 0; 2: twice the bytes a second
 * latency_factor     >= 0; 2: twice the seconds
 *
 * Returns   GHP_OK; GHP_ERR_INPUT (a factor that cannot be; the link has no bandwidth, so no analytic model says how
 *           its entries change): the profile is untouched
 * Local */
enum ghp_status ghp_profile_scale_link(struct ghp_profile *profile, enum ghp_link_kind which,
                                       double bandwidth_factor, double latency_factor);

/* Makes every local operation `factor` times as fast: entries and analytic model; rates and links stay. The hash as
 * above.
 *
 * factor   > 0
 *
 * Returns   GHP_OK; GHP_ERR_INPUT */
enum ghp_status ghp_profile_scale_compute(struct ghp_profile *profile, double factor);

/* Which link bounds a collective over `ranks` of `workers`. */
enum ghp_link_kind ghp_profile_link_of(const struct ghp_profile *profile, struct ghp_ranks ranks,
                                       int workers);

#endif
