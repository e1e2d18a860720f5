/* bench/runs/rows.h - rows of published training runs, as a file of comma-separated values has them.
 *
 * The first line names the columns; rows may have them in any order, and more than these. A field in double quotes may
 * hold commas, line ends and doubled quotes.
 *
 * Tested  tests/tools/bench/test_published_runs.sh */
#ifndef GHP_BENCH_RUNS_ROWS_H
#define GHP_BENCH_RUNS_ROWS_H

#include "core/base/status.h"

#include <stdbool.h>

#include <stdint.h>

/* Columns that are read: id, name in the file. */
#define GHP_COLUMN_LIST(X)                                                                         \
    X(ID, "id")                                                                                    \
    X(SOURCE, "source")                                                                            \
    X(MODEL, "model")                                                                              \
    X(PRECISION, "precision")                                                                      \
    X(GLOBAL_BATCH, "global_batch")                                                                \
    X(DEVICE_BATCH, "per_device_batch")                                                            \
    X(SIZE, "seq_or_image")                                                                        \
    X(DEVICES, "devices")                                                                          \
    X(DEVICE, "device")                                                                            \
    X(NODES, "nodes")                                                                              \
    X(LINK, "interconnect")                                                                        \
    X(DP, "dp")                                                                                    \
    X(TP, "tp")                                                                                    \
    X(PP, "pp")                                                                                    \
    X(VPP, "vpp")                                                                                  \
    X(CP, "cp")                                                                                    \
    X(EP, "ep")                                                                                    \
    X(SHARDING, "sharding")                                                                        \
    X(RECOMPUTE, "recompute")                                                                      \
    X(SPLIT, "split_kind")                                                                         \
    X(SYSTEM, "system")                                                                            \
    X(STEP, "step_s")                                                                              \
    X(NOTE, "note")

enum ghp_column {
#define GHP_COLUMN_ENUM(id, text) GHP_COLUMN_##id,
    GHP_COLUMN_LIST(GHP_COLUMN_ENUM)
#undef GHP_COLUMN_ENUM
        GHP_COLUMNS
};

struct ghp_run_row {
    const char *text[GHP_COLUMNS]; /* "" where the row has nothing; into the file's text */
    int line;
};

struct ghp_run_rows {
    int n;
    struct ghp_run_row *of; /* owned */
    char *file;             /* its text, owned */
};

/* Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_FORMAT naming a missing column, or the line of a row with too few fields */
enum ghp_status ghp_run_rows_load(const char *path, struct ghp_run_rows *rows);
void ghp_run_rows_release(struct ghp_run_rows *rows); /* accepts a zeroed one */

/* The field as a whole number; `usual` if it has none. */
int64_t ghp_run_row_number(const struct ghp_run_row *row, enum ghp_column column, int64_t usual);

/* The same as a number of devices, nodes or parts: of more than a million it is `usual`. */
int ghp_run_row_count(const struct ghp_run_row *row, enum ghp_column column, int usual);

/* The field as seconds; 0: it holds something else than a positive number. */
double ghp_run_row_seconds(const struct ghp_run_row *row, enum ghp_column column);

/* The number before a word in a field, as in "16 heads"; 0: there is none. */
int64_t ghp_run_row_before(const struct ghp_run_row *row, enum ghp_column column, const char *word);

/* Whether a field holds the word, whatever the case of its letters. */
bool ghp_run_row_has(const struct ghp_run_row *row, enum ghp_column column, const char *word);

#endif
