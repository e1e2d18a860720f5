/* executor/launcher/process_tree.c - see executor/launcher/process_tree.h. */
#include "executor/launcher/process_tree.h"

#include "core/base/array.h"
#include "executor/platform/process.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_TURNS = 3000 }; /* of 10 ms */

struct process {
    pid_t pid, parent;
    bool alive, ours;
};

struct processes {
    int n, room;
    struct process *items;
};

enum ghp_status ghp_process_tree_adopt(void)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L) == 0) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INTERNAL,
                    "orphaned processes cannot be found on this system; it takes Linux 3.4");
}

static bool add(void *context, const struct ghp_process *is)
{
    struct processes *all = context;
    struct process *items = ghp_array_grow(all->items, all->n, &all->room, sizeof *items);

    if (items == NULL) return false;
    all->items = items;
    all->items[all->n++] =
        (struct process){.pid = is->pid, .parent = is->parent, .alive = ghp_process_lives(is)};
    return true;
}

/* Marks those whose parent is this process or marked, until there is no further one. */
static void mark_ours(struct processes *all)
{
    pid_t self = getpid();
    bool found = true;

    while (found) {
        found = false;
        for (int i = 0; i < all->n; i++) {
            bool ours = all->items[i].parent == self;

            for (int k = 0; k < all->n && !ours; k++)
                ours = all->items[k].ours && all->items[k].pid == all->items[i].parent;
            if (!ours || all->items[i].ours) continue;
            all->items[i].ours = found = true;
        }
    }
}

/* Kills those alive. Returns how many they were. */
static int kill_alive(void)
{
    struct processes all = {0};
    int alive = 0;

    ghp_processes_visit(add, &all);
    mark_ours(&all);
    for (int i = 0; i < all.n; i++) {
        if (!all.items[i].ours || !all.items[i].alive) continue;
        alive++;
        kill(all.items[i].pid, SIGKILL);
    }
    free(all.items);
    return alive;
}

int ghp_process_tree_kill(void)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    int alive = kill_alive();

    /* a process may start another one while it is looked for; one in the kernel's hands dies a little later */
    for (int turn = 0; alive > 0 && turn < MOST_TURNS; turn++) {
        nanosleep(&moment, NULL);
        alive = kill_alive();
    }
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    return alive;
}
