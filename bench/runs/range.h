/* bench/runs/range.h - the ratios of predicted steps between which measured ones lie, by families.
 *
 * Tested  tests/tools/bench/test_published_runs.sh */
#ifndef GHP_BENCH_RUNS_RANGE_H
#define GHP_BENCH_RUNS_RANGE_H

struct ghp_run_ratio {
    int family;
    double of; /* measured step / predicted step */
};

/* The middle nine tenths, where each family counts as much as each other, whatever its rows.
 *
 * ratios   sorted here, n > 0
 * without  a family that is left out; -1: none */
void ghp_run_range(struct ghp_run_ratio *ratios, int n, int without, double range[2]);

/* How many of the ratios lie in the range that all other families give; -1: all are of one family. */
int ghp_run_range_holds(struct ghp_run_ratio *ratios, int n, int families);

#endif
