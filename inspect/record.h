/* inspect/record.h - reads the file of a run: what was run, and each instruction's predicted and measured time.
 *
 * Reads "ghp.run/2" (written by ghp-run --run). Other keys are ignored. Files of versions that did not say what each
 * instruction is are refused, with a remedy.
 *
 * Tested  tests/tools/plan/test_why.sh */
#ifndef GHP_INSPECT_RECORD_H
#define GHP_INSPECT_RECORD_H

#include "core/base/json.h"
#include "core/model/precision.h"
#include "core/sharding/split.h"

struct ghp_record_instr {
    const char *name;       /* ghp_instr_name */
    const char *layer;      /* NULL: of no layer */
    const char *key;        /* local operation; NULL: no computation */
    const char *collective; /* NULL: sends nothing */
    bool concurrent;        /* on the communication stream */
    int64_t ranks;          /* of the group that exchanges; 1: sends nothing */
    int64_t bytes, copy_bytes;
    double predicted_s;               /* slowdowns included; NAN: no prediction */
    double measured_start_s;          /* since the step's start */
    double measured_s;                /* worker 0, waiting for stragglers included */
    double measured_wait_s;           /* the compute stream stood still for it */
    double measured_own_s;            /* over the workers, without waiting for stragglers */
    double measured_straggler_wait_s; /* over the workers */
};

struct ghp_record_layer {
    const char *name;
    struct ghp_split split;
    double predicted_s, measured_s; /* NAN: no prediction */
};

struct ghp_record { /* texts belong to doc */
    struct ghp_json doc;
    uint64_t hash;    /* of the file's content */
    const char *path; /* of the file; borrowed from the caller */
    const char *model, *strategy, *backend, *numerics, *fault;
    uint64_t model_hash;
    struct ghp_problem problem;
    struct ghp_precision precision;
    int64_t bucket_bytes;
    double predicted_step_s, measured_step_s;                       /* NAN: no prediction */
    double predicted_exposed_s, measured_exposed_s;                 /* waiting for reductions */
    double predicted_launch_overhead_s, measured_launch_overhead_s; /* outside any instruction */
    int n_layers;
    struct ghp_record_layer *layers; /* owned */
    int n_instrs;
    struct ghp_record_instr *instrs; /* owned; program order */
};

/* Reads a run file.
 *
 * Returns   GHP_OK; GHP_ERR_IO; GHP_ERR_FORMAT; GHP_ERR_INPUT (of an older version; nothing measured);
 *           GHP_ERR_NO_MEMORY */
enum ghp_status ghp_record_load(const char *path, struct ghp_record *record);
void ghp_record_release(struct ghp_record *record); /* accepts a zeroed one */

/* Whether a run file says of each instruction what it is. */
bool ghp_record_is_whole(const struct ghp_json *doc);

#endif
