/* executor/platform/local_peers.c - see local_peers.h. */
#include "executor/platform/local_peers.h"

#include "core/base/file.h"
#include "executor/platform/launch.h"
#include "executor/platform/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS_MOST = 4096 };

struct local_peers {
    const char *job; /* Open MPI's name for this launch; NULL: another launcher's */
    long size;
    char seen[RANKS_MOST]; /* 0: not, 'T': stopped, else it lives */
};

/* The value of a variable in the text of /proc/PID/environ, n bytes with a NUL after each variable; NULL: it is not
 * set. */
static const char *value_of(const char *text, size_t n, const char *name)
{
    size_t length = strlen(name);

    for (size_t at = 0; at < n; at += strlen(text + at) + 1)
        if (strncmp(text + at, name, length) == 0 && text[at + length] == '=')
            return text + at + length + 1;
    return NULL;
}

static bool is_of_launch(const struct local_peers *m, const struct ghp_process *p, const char *text,
                         size_t n)
{
    const char *job = value_of(text, n, "PMIX_NAMESPACE");

    if (m->job == NULL) return p->parent == getppid();
    return job != NULL && strcmp(job, m->job) == 0;
}

static bool note(void *context, const struct ghp_process *p)
{
    struct local_peers *m = context;
    const char *rank = NULL;
    char path[64], *text = NULL;
    size_t n = 0;

    snprintf(path, sizeof path, "/proc/%ld/environ", (long)p->pid);
    if (!ghp_process_lives(p) || ghp_file_read(path, &text, &n) != GHP_OK) return true;
    if (is_of_launch(m, p, text, n))
        for (int i = 0; rank == NULL && ghp_launched_rank_name(i) != NULL; i++)
            rank = value_of(text, n, ghp_launched_rank_name(i));
    if (rank != NULL) {
        long r = strtol(rank, NULL, 10);

        if (r >= 0 && r < m->size && m->seen[r] != 'T') m->seen[r] = p->state;
    }
    free(text);
    return true;
}

/* format: with a %ld */
static void say(char *text, size_t n, const char *format, long number)
{
    size_t used = strlen(text);

    if (used + 64 > n) return; /* some say enough */
    if (used > 0) used += (size_t)snprintf(text + used, n - used, ", ");
    snprintf(text + used, n - used, format, number);
}

bool ghp_local_peers_missing(char *text, size_t n)
{
    struct local_peers m = {.job = getenv("PMIX_NAMESPACE"), .size = ghp_launched_size()};
    long here = ghp_launched_here(), self = ghp_launched_rank(), seen = 0, first = -1;

    text[0] = '\0';
    if (m.size > RANKS_MOST) m.size = RANKS_MOST;
    ghp_processes_visit(note, &m);
    for (long r = 0; r < m.size; r++) {
        if (m.seen[r] != 0) seen++;
        if (m.seen[r] == 'T') say(text, n, "%ld stopped", r);
        if (m.seen[r] == 0 && here == m.size) say(text, n, "%ld exited", r);
        if (first < 0 && m.seen[r] != 0 && m.seen[r] != 'T') first = r;
    }
    if (here < m.size && seen < here) say(text, n, "%ld of this host exited", here - seen);
    return self == first;
}
