/* executor/train/losses.c - see losses.h. */
#include "executor/train/losses.h"

/* Drops every second value that is kept. */
static void thin(struct ghp_losses *l)
{
    for (int i = 0; i < GHP_LOSSES_KEPT / 2; i++)
        l->kept[i] = l->kept[2 * i];
    l->n = GHP_LOSSES_KEPT / 2;
    l->every *= 2;
}

void ghp_losses_add(struct ghp_losses *l, double loss)
{
    if (l->every == 0) l->every = 1;
    if (l->steps % l->every == 0 && l->n == GHP_LOSSES_KEPT) thin(l);
    if (l->steps % l->every == 0) l->kept[l->n++] = loss;
    l->last = loss;
    l->steps++;
}
