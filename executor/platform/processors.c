/* executor/platform/processors.c - see processors.h. */
#include "executor/platform/processors.h"

#include <sched.h>
#include <unistd.h>

static void add(struct ghp_processors *p, int number)
{
    p->words[number / 64] |= UINT64_C(1) << number % 64;
}

struct ghp_processors ghp_processors_of(int process)
{
    enum { SETS = GHP_PROCESSORS_MOST / CPU_SETSIZE };
    cpu_set_t sets[SETS]; /* the kernel takes as many as there are */
    struct ghp_processors found = {0};
    bool known;

    CPU_ZERO_S(sizeof sets, sets);
    known = sched_getaffinity(process, sizeof sets, sets) == 0;
    for (int i = 0; known && i < GHP_PROCESSORS_MOST; i++)
        if (CPU_ISSET_S((size_t)i, sizeof sets, sets)) add(&found, i);
    for (int i = 0; !known && i < sysconf(_SC_NPROCESSORS_ONLN) && i < GHP_PROCESSORS_MOST; i++)
        add(&found, i);
    return found;
}

void ghp_processors_join(struct ghp_processors *all, const struct ghp_processors *more)
{
    for (int i = 0; i < GHP_PROCESSORS_MOST / 64; i++)
        all->words[i] |= more->words[i];
}

bool ghp_processors_has(const struct ghp_processors *p, int number)
{
    return number >= 0 && number < GHP_PROCESSORS_MOST &&
           (p->words[number / 64] >> number % 64 & 1) != 0;
}

int ghp_processors_count(const struct ghp_processors *p)
{
    int n = 0;

    for (int i = 0; i < GHP_PROCESSORS_MOST; i++)
        n += ghp_processors_has(p, i);
    return n;
}
