/* executor/train/rank_plan.h - what a rank does of a plan: what is lowered for it, and how its program is run. A worker
 * sees the program alone. What opens a worker has its program lowered here, once, for the kernels at hand. */
#ifndef GHP_EXECUTOR_TRAIN_RANK_PLAN_H
#define GHP_EXECUTOR_TRAIN_RANK_PLAN_H

#include "executor/engine/server.h"

struct ghp_rank_plan {
    struct ghp_lowering lowering;   /* but for scratch and formats, which are the kernels' */
    const struct ghp_split *splits; /* one a layer; borrowed */
    int rank;
    struct ghp_run_options run;
};

/* Its kernels, its program and its worker (ghp_worker_open). All that it points to is borrowed until the worker is
 * closed.
 *
 * Returns   GHP_OK; GHP_ERR_INPUT also for what is in host memory alone if the backend's tensors are on a device;
 *           failures of lowering and of opening a worker
 * Local */
enum ghp_status ghp_rank_plan_open(const struct ghp_exec_context *exec,
                                   const struct ghp_rank_plan *rank_plan,
                                   struct ghp_worker **worker);

/* A server's programs, for ghp_server_open or ghp_mix_server_open. Returns as ghp_rank_plan_open. Local */
enum ghp_status ghp_rank_plan_lower_server(const struct ghp_exec_context *exec,
                                           const struct ghp_rank_plan *rank_plan, int server,
                                           struct ghp_server_programs *programs);

#endif
