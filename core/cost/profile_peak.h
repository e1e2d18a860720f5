/* core/cost/profile_peak.h - a profile of a machine that nobody measured, from what its data sheets promise.
 *
 * Rules of thumb: fractions of the peaks that training commonly reaches. They are the same for all machines. No entry
 * is measured, and every source is `analytic`.
 *
 * Tested  tests/core/cost/test_named_machine.c */
#ifndef GHP_CORE_COST_PROFILE_PEAK_H
#define GHP_CORE_COST_PROFILE_PEAK_H

#include "core/cost/profile.h"

/* Fractions of the peak, in per cent. Dense networks' training is reported at 30 to 60 % of the peak FLOPs; copies
 * reach 80 to 90 % of the memory's rate, and long collectives 70 to 90 % of a link's. */
enum { GHP_PEAK_FLOPS = 50, GHP_PEAK_BANDWIDTH = 80 };

/* Makes the profile for a number of workers: one for each GPU, or without GPUs equal parts of the nodes' processors.
 *
 * machine   copied, with the links' bandwidths times their fraction
 *
 * Returns   GHP_OK, finalized; GHP_ERR_INPUT (no figures for the precision, more workers than GPUs, or no network
 *           between several nodes); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_profile_peak(const struct ghp_machine *machine, int workers,
                                 struct ghp_precision precision, struct ghp_profile *profile);

/* Between these fractions of the step by the rules of thumb lie nine tenths of the steps of published runs, of each
 * family as many.
 *
 * Source   docs/results/published-runs.md, which bench/published prints */
extern const double ghp_peak_range[2];

/* Makes the machine's figure of fp16 that of bf16. By rule of thumb one stands for the other: both take two bytes. */
void ghp_peak_take_fp16(struct ghp_peak *peak);

/* Nodes that these workers fill with a GPU for each; 1 if the machine does not have GPUs. */
int ghp_peak_nodes(const struct ghp_machine *machine, int workers);

/* Whether ghp_profile_peak made it. */
bool ghp_profile_is_peak(const struct ghp_profile *profile);

/* What the profile is taken from, as a sentence without its end. */
const char *ghp_peak_sentence(void);

#endif
