/* What the environment of Open MPI's mpirun, MPICH's and Slurm's srun says of a launch. */
#include "executor/platform/launch.h"
#include "tests/check.h"

extern char **environ;

static void check_one(char **variables, long here, long size, long rank, bool allotted)
{
    char **before = environ;

    environ = variables;
    CHECK_EQ(ghp_launched_here(), here);
    CHECK_EQ(ghp_launched_size(), size);
    CHECK_EQ(ghp_launched_rank(), rank);
    CHECK_EQ(ghp_launched_allotted(), allotted);
    CHECK_TEXT(ghp_launched_by(), allotted ? "srun" : "mpirun");
    environ = before;
}

CHECK_TEST(launch_environment)
{
    char *none[] = {NULL};
    char *openmpi[] = {(char[]){"OMPI_COMM_WORLD_LOCAL_SIZE=2"},
                       (char[]){"OMPI_COMM_WORLD_SIZE=4"},
                       (char[]){"OMPI_COMM_WORLD_RANK=3"},
                       (char[]){"SLURM_STEP_NUM_TASKS=2"}, /* of its daemons */
                       (char[]){"SLURM_STEP_TASKS_PER_NODE=1(x2)"},
                       NULL};
    char *mpich[] = {(char[]){"MPI_LOCALNRANKS=3"}, (char[]){"PMI_SIZE=5"}, (char[]){"PMI_RANK=1"},
                     NULL};
    char *even[] = {(char[]){"SLURM_STEP_NUM_TASKS=4"}, (char[]){"SLURM_STEP_TASKS_PER_NODE=2(x2)"},
                    (char[]){"SLURM_NODEID=1"}, (char[]){"SLURM_PROCID=2"}, NULL};
    char *uneven[] = {(char[]){"SLURM_STEP_NUM_TASKS=8"},
                      (char[]){"SLURM_STEP_TASKS_PER_NODE=3,2(x2),1"}, (char[]){"SLURM_NODEID=3"},
                      (char[]){"SLURM_PROCID=7"}, NULL};
    char *batch[] = {(char[]){"SLURM_NTASKS=8"}, (char[]){"SLURM_PROCID=0"}, NULL};

    check_one(none, 0, 0, 0, false);
    check_one(openmpi, 2, 4, 3, false);
    check_one(mpich, 3, 5, 1, false);
    check_one(even, 2, 4, 2, true);
    check_one(uneven, 1, 8, 7, true);
    uneven[2] = (char[]){"SLURM_NODEID=0"};
    check_one(uneven, 3, 8, 7, true);
    uneven[2] = (char[]){"SLURM_NODEID=2"};
    check_one(uneven, 2, 8, 7, true);
    check_one(batch, 0, 0, 0, false);
    return check_end();
}
