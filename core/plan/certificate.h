/* core/plan/certificate.h - what is proven of a plan: its simulated step, the lower bound of all plans, and the gap.
 *
 * The three numbers are of one search. What was found by trial on top of it is not in its bound, and the status says
 * so (docs/explanation/planner.md 2, Buckets).
 *
 * Tested  tests/core/plan/test_plan.c, tests/planner/make/test_certificate.c */
#ifndef GHP_CORE_PLAN_CERTIFICATE_H
#define GHP_CORE_PLAN_CERTIFICATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far a search got: id, name in files. */
#define GHP_PROOF_LIST(X)                                                                          \
    X(GIVEN, "given")               /* nothing was searched */                                     \
    X(OPTIMAL, "optimal")           /* no plan is faster */                                        \
    X(WITHIN_GAP, "within the gap") /* none is by more than the gap that was asked for */          \
    X(TIME_LIMIT, "time limit")                                                                    \
    X(NOTHING_FITS, "nothing fits") /* no plan without the trial does */

enum ghp_proof {
#define GHP_PROOF_ENUM(id, text) GHP_PROOF_##id,
    GHP_PROOF_LIST(GHP_PROOF_ENUM)
#undef GHP_PROOF_ENUM
        GHP_PROOF_COUNT
};

/* What a plan has that was found by trying, so that the proof does not cover it. A row has the id, what a status says
 * before and after the proof's name, and for a sentence the plans that the proof covers and what was tried on top. */
#define GHP_TRIAL_LIST(X)                                                                          \
    X(NONE, "", "", "", "")                                                                        \
    X(BUCKETS, "", " with each layer reduced alone; bucket size by trial",                         \
      " with each layer reduced alone", "; the bucket size was then chosen by trial")              \
    X(RECOMPUTE, "layers recomputed by trial; with all layers kept ", "", " with all layers kept", \
      "; the layers to recompute were chosen by trial")                                            \
    X(LOAD_BALANCE, "shares by the workers' speeds, by trial; with equal shares ", "",             \
      " with equal shares", "; shares by the workers' speeds were chosen by trial")                \
    X(INTERLEAVED, "virtual stages by trial; without ", "", " without virtual stages",             \
      "; virtual stages were chosen by trial")

enum ghp_trial {
#define GHP_TRIAL_ENUM(id, before, behind, searched, tried) GHP_TRIAL_##id,
    GHP_TRIAL_LIST(GHP_TRIAL_ENUM)
#undef GHP_TRIAL_ENUM
        GHP_TRIAL_COUNT
};

struct ghp_certificate {
    double step_s;  /* simulated step of the best plan of what was searched */
    double bound_s; /* no plan of it is faster than this; what was tried on top may be */
    double gap;     /* (step_s - bound_s) / step_s, 0 when equal to rounding */
    enum ghp_proof proof;
    enum ghp_trial trial;
    int64_t plans;   /* plans simulated */
    int64_t nodes;   /* branch-and-bound nodes */
    double seconds;  /* spent searching */
    char *preferred; /* why a simpler plan than the fastest was taken, or NULL */
    /* which step after the search was left out, for lack of time or promise; or NULL */
    char *unfinished;
    char *sync; /* what a sharded update saves and costs, and why it was taken; or NULL */
    /* the gain over data parallelism and the error of it, and which plan was taken; or NULL */
    char *margin;
};

enum { GHP_CERTIFICATE_STATUS_SIZE = 128, GHP_CERTIFICATE_SENTENCE_SIZE = 512 };

const char *ghp_proof_name(enum ghp_proof proof); /* "optimal", ... */

/* The status in files and tables: "optimal with each layer reduced alone; bucket size by trial".
 *
 * text   GHP_CERTIFICATE_STATUS_SIZE bytes
 *
 * Returns   text */
const char *ghp_certificate_status(enum ghp_proof proof, enum ghp_trial trial, char *text);

/* What is proven, for people: "optimal: the best plan takes 4.000 ms a step, and none takes less".
 *
 * text   GHP_CERTIFICATE_SENTENCE_SIZE bytes
 *
 * Returns   text */
const char *ghp_certificate_sentence(const struct ghp_certificate *certificate, char *text);

/* The reverse of a status; whether the text is one. */
bool ghp_certificate_parse(const char *text, enum ghp_proof *proof, enum ghp_trial *trial);

#endif
