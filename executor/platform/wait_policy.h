/* executor/platform/wait_policy.h - how OpenMP threads wait: threads that spin starve workers that share their cores.
 *
 * The OpenMP library reads its wait policy when it is loaded, so a program that needs another one starts itself again
 * with the policy set. */
#ifndef GHP_EXECUTOR_PLATFORM_WAIT_POLICY_H
#define GHP_EXECUTOR_PLATFORM_WAIT_POLICY_H

/* Starts this program again with passive waiting if the workers of this node have more threads than processors;
 * returns if that is not needed, was chosen by OMP_WAIT_POLICY, or fails.
 *
 * threads   of each worker
 * argv      of main
 *
 * Local; before MPI starts
 * Tested    tests/tools/run/test_affinity.sh */
void ghp_wait_passively(long threads, char **argv);

#endif
