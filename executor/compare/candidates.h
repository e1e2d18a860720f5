/* executor/compare/candidates.h - who was faster: rounds in which every contestant was timed once, and what they prove.
 *
 * Pure numbers; who is timed, and how, is executor/compare/compare.h's. A machine's speed drifts, so contestants are
 * compared round by round, by their ratio within the round, and each comes first as often as the others. Intervals
 * are order statistics: they assume nothing of the distribution but that rounds are independent. */
#ifndef GHP_EXECUTOR_COMPARE_CANDIDATES_H
#define GHP_EXECUTOR_COMPARE_CANDIDATES_H

#include "core/base/status.h"

#include <stdbool.h>

enum { GHP_CANDIDATES_ROUNDS = 1000 }; /* at most */

/* The order in which `n` contestants take their turns in a round: rotated by half the round's number, odd rounds
 * reversed. Two: AB BA BA AB ...; three: all six orders in six rounds.
 *
 * order   receives n indices
 *
 * Tested   tests/executor/compare/test_candidates.c */
void ghp_candidates_order(int round, int n, int *order);

/* The q-quantile of ascending values, between two of them by proportion; n >= 1, 0 <= q <= 1. */
double ghp_candidates_quantile(const double *ascending, int n, double q);

struct ghp_interval {
    double median;
    double low, high; /* the median lies between with at least 95 %; NaN if n is too small */
    double coverage;  /* with which probability it does; 0 if n is too small: below 6 */
};

/* Median and its interval: the k-th value from each end, for the greatest k with
 *
 *     coverage = 1 - 2 P(X < k) >= 0.95,  X binomial (n, 1/2)
 *
 * values   in any order, 1 <= n <= GHP_CANDIDATES_ROUNDS
 *
 * Source   order statistics: a value lies below the median with probability 1/2
 * Tested   tests/executor/compare/test_candidates.c */
struct ghp_interval ghp_candidates_interval(const double *values, int n);

struct ghp_standing {          /* of one contestant */
    double measured_s;         /* median over the rounds */
    double spread;             /* interquartile range by the median */
    struct ghp_interval ratio; /* its seconds by the first contestant's, of each round */
};

struct ghp_contest {
    int n, rounds;
    const double *seconds; /* [rounds][n], borrowed */
    /* found */
    struct ghp_standing *standings; /* [n], owned by the caller */
    int winner;                     /* least median */
    bool certain; /* every other's ratio to the winner has its whole interval above 1 */
};

/* Fills in what is found; standings has room for n. Local. Tested tests/executor/compare/test_candidates.c */
void ghp_candidates_evaluate(struct ghp_contest *candidates);

#endif
