/* ghp.h - plans of hybrid-parallel training from a program of your own: what ghp-plan decides, as a C library.
 *
 *     struct ghp_model *model = NULL;
 *     struct ghp_profile *profile = NULL;
 *     struct ghp_plan *plan = NULL;
 *     struct ghp_planning wanted = {.workers = 16, .batch = 512};
 *     int failed = ghp_model_open("vgg16.json", &model) || ghp_profile_open("profile.json", &profile) ||
 *                  ghp_plan_compute(model, profile, &wanted, &plan) || ghp_plan_store(plan, "plan.json");
 *
 *     if (failed) fprintf(stderr, "%s\n", ghp_error());
 *     ghp_plan_close(plan);
 *     ghp_profile_close(profile);
 *     ghp_model_close(model);
 *
 * For C11 and C++; link with `pkg-config --cflags --libs ghp`, or in CMake find_package(ghp) and ghp::ghp. A plan is
 * stored as ghp-run and ghp-inspect read it. examples/library/plan.c is a whole program.
 *
 * Functions that can fail return 0, or one of the GHP_FAILURE values, which are the exit codes of the tools. Then
 * ghp_error() has the reason and what to do, and what they were to fill in is NULL or zeroed. Pointers are not NULL
 * except if that is said; every ..._close takes NULL. Sizes are in bytes, times in seconds.
 *
 * Nothing is printed, and the library has no state but each thread's last error and one setting of Jansson: from the
 * first file on, that allocates by malloc and free. Threads may plan at once, also from the same model and profile.
 * A bug in the library itself (a broken assertion) prints a line and aborts.
 *
 * Licence: Apache-2.0. The library links GLPK, which is GPL-3: a program that is passed on linked to it is subject to
 * that.
 *
 * Tested  tests/planner/api/test_api.c, tests/tools/together/test_install.sh */
#ifndef GHP_H
#define GHP_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define GHP_API __attribute__((visibility("default")))
#else
#define GHP_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum {
    /* tried and failed: a file that cannot be read, a profile without what is asked for */
    GHP_FAILURE = 1,
    GHP_FAILURE_USAGE = 2, /* what is asked for cannot be: a split that a layer does not take */
    /* sound question, answer "no": nothing fits the memory; says how little would do */
    GHP_FAILURE_NO_PLAN = 3
};

struct ghp_model;   /* a network */
struct ghp_profile; /* what a machine was measured to do */
struct ghp_plan; /* a plan, with the network and the part of the profile that it is predicted by */

/* What is asked for. All zero but workers and batch: the fastest plan that is found in 25 seconds. */
struct ghp_planning {
    int workers;   /* ranks that will train, 1 to 2^20 */
    int64_t batch; /* global batch [samples], a multiple or a divisor of the workers */
    /* limit on one worker's memory; 0: none, or a GPU's if the profile knows it */
    int64_t memory_bytes;
    const char *strategy; /* "auto", "data", "model" or "owt"; NULL: auto */
    /* fixed splits, as of ghp-plan --force: "conv*=data,fc1=out:max"; NULL: none */
    const char *force;
    double time_limit_s; /* of the search; 0: 25 */
};

/* One training step by a plan, as predicted. */
struct ghp_step_cost {
    double step_s; /* the whole step */
    /* by how much that may be wrong, from the spread of measurements; 0: not known */
    double error_s;
    double compute_s; /* of the worker that computes longest */
    double comm_s;    /* gradient reductions, most of which hide behind computing */
    double exposed_s; /* what computing waits for them */
    /* of the seconds that were measured; the rest is by an analytic model; 0 to 1 */
    double measured_share;
    int64_t peak_bytes; /* of the worker that needs most */
    int64_t sent_bytes; /* by one worker */
};

/* "0.2.0". */
GHP_API const char *ghp_version(void);

/* The reason of this thread's last failure and what to do, one line; valid until the thread's next failure. */
GHP_API const char *ghp_error(void);

/* A network from a file of ghp, an ONNX file (NAME.onnx), a folder of Hugging Face's transformers, or a known name. */
GHP_API int ghp_model_open(const char *path, struct ghp_model **model);
GHP_API void ghp_model_close(struct ghp_model *model);

/* A profile from ghp-profile. */
GHP_API int ghp_profile_open(const char *path, struct ghp_profile **profile);
GHP_API void ghp_profile_close(struct ghp_profile *profile);

/* Finds a plan. A profile that was measured for other networks alone is refused, as by ghp-plan.
 *
 * plan   closed by the caller; needs neither model nor profile afterwards */
GHP_API int ghp_plan_compute(const struct ghp_model *model, const struct ghp_profile *profile,
                             const struct ghp_planning *wanted, struct ghp_plan **plan);

/* A plan from a file, and into one, which is replaced whole or not at all. */
GHP_API int ghp_plan_open(const char *path, struct ghp_plan **plan);
GHP_API int ghp_plan_store(const struct ghp_plan *plan, const char *path);
GHP_API void ghp_plan_close(struct ghp_plan *plan);

/* What a step costs by a plan.
 *
 * profile   of another machine or measurement, by which the plan is simulated; NULL: what the plan itself says */
GHP_API int ghp_plan_cost(const struct ghp_plan *plan, const struct ghp_profile *profile,
                          struct ghp_step_cost *cost);

/* Why the plan costs what it costs: the text of ghp-inspect --explain.
 *
 * layer   NULL: all layers
 * text    freed by the caller with free() */
GHP_API int ghp_plan_explain(const struct ghp_plan *plan, const char *layer, char **text);

/* The layers, from the input to the loss, with their names (the plan's own) and splits as files have them ("out:4"). */
GHP_API int ghp_plan_layers(const struct ghp_plan *plan);
GHP_API const char *ghp_plan_layer(const struct ghp_plan *plan, int layer);

/* Writes at most n bytes into text (32 are enough for every split), ended by NUL; returns text. */
GHP_API char *ghp_plan_split(const struct ghp_plan *plan, int layer, char *text, size_t n);

#ifdef __cplusplus
}
#endif

#endif
