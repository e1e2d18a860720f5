/* executor/launcher/family.c - see executor/launcher/family.h. */
#include "executor/launcher/family.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
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

enum ghp_status ghp_family_adopt(void)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L) == 0) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INTERNAL,
                    "orphaned processes cannot be found on this system; it takes Linux 3.4");
}

/* What /proc says of a process; false where it has gone. The command's name, in parentheses, may hold anything. */
static bool read_process(const char *pid, struct process *p)
{
    char path[64], text[512];
    const char *after = NULL;
    FILE *file;
    size_t n;
    char state;
    int parent;

    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    file = fopen(path, "re");
    if (file == NULL) return false;
    n = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[n] = '\0';
    for (size_t i = 0; i < n; i++)
        if (text[i] == ')') after = text + i + 1;
    if (after == NULL || sscanf(after, " %c %d", &state, &parent) != 2) return false;
    *p = (struct process){.pid = (pid_t)strtol(pid, NULL, 10),
                          .parent = (pid_t)parent,
                          .alive = state != 'Z' && state != 'X'};
    return true;
}

static void list_all(struct processes *all)
{
    DIR *folder = opendir("/proc");
    const struct dirent *entry;

    *all = (struct processes){0};
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        struct process p;

        if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
        if (!read_process(entry->d_name, &p)) continue;
        if (all->n == all->room) {
            int room = 2 * all->room + 256;
            struct process *items = realloc(all->items, (size_t)room * sizeof(*items));

            if (items == NULL) break;
            all->items = items;
            all->room = room;
        }
        all->items[all->n++] = p;
    }
    if (folder != NULL) closedir(folder);
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
    struct processes all;
    int alive = 0;

    list_all(&all);
    mark_ours(&all);
    for (int i = 0; i < all.n; i++) {
        if (!all.items[i].ours || !all.items[i].alive) continue;
        alive++;
        kill(all.items[i].pid, SIGKILL);
    }
    free(all.items);
    return alive;
}

int ghp_family_kill(void)
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
