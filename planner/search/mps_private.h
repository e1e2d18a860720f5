/* planner/search/mps_private.h - private to planner/search/mps*.c: the program as it is put together. */
#ifndef GHP_PLANNER_SEARCH_MPS_PRIVATE_H
#define GHP_PLANNER_SEARCH_MPS_PRIVATE_H

#include "planner/search/mps.h"

enum { GHP_MPS_NAME_SIZE = 48 };

struct ghp_mps_row {
    char type; /* E, L or G */
    double right;
    char name[GHP_MPS_NAME_SIZE];
};

struct ghp_mps_column {
    bool integer;
    char name[GHP_MPS_NAME_SIZE];
};

struct ghp_mps_entry {
    int column, row;
    double value;
};

struct ghp_mps {
    const struct ghp_mps_job *job;
    const struct ghp_instance *in;
    int n_rows, n_columns;
    size_t n_entries, room_rows, room_columns, room_entries;
    struct ghp_mps_row *rows;
    struct ghp_mps_column *columns;
    struct ghp_mps_entry *entries;
    bool failed;    /* there was no memory */
    int *x, *y;     /* a flat choice, a flat pair: its column; -1: not in play */
    int *slot_row;  /* a slot: the row that its work is counted in; -1: none */
    int *before;    /* a slot: the column of the time before it; -1: nothing comes before */
    double *most_s; /* a slot: no plan has more work before it, of what counts on a path */
    int *waiter;    /* layers that some choice reduces, from the first; n_waiters */
    int *
        idle; /* a waiter: the column that is 1 only if neither it nor one before it waits; -1: one surely does */
    int n_waiters;
    int step, reductions,
        work[GHP_WORK_COUNT]; /* columns; work: -1 if it counts nowhere off a path */
};

/* ---- mps_private.c ---- */

/* Adds a row, such as 'E' for equal, or a column; its name is printed. Returns its number, 0 if out of memory. */
int ghp_mps_add_row(struct ghp_mps *m, char type, double right, const char *format, ...);
int ghp_mps_add_column(struct ghp_mps *m, bool integer, const char *format, ...);

/* Adds an entry, unless there is no column (-1) or the value is 0. Entries of one place add up. */
void ghp_mps_put(struct ghp_mps *m, int row, int column, double value);

/* ---- mps_time.c ---- */

/* Adds the rows of the time, after those of the choices. */
void ghp_mps_add_time(struct ghp_mps *m);

#endif
