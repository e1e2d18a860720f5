/* executor/backend/cuda/choice.h - which of a library's implementations runs a pass, and what it is called.
 *
 * Candidates are timed; the fastest wins, and of those within 3 % of it the one with the least workspace (memory is
 * what plans are short of). The names of what was chosen are kept, so that an operation is timed once a process, and
 * go into profiles, so that runs take what was measured. Nothing here needs a GPU.
 *
 * Tested tests/executor/backend/cuda/test_cuda_choice.c */
#ifndef GHP_EXECUTOR_BACKEND_CUDA_CHOICE_H
#define GHP_EXECUTOR_BACKEND_CUDA_CHOICE_H

#include "core/sharding/local.h"

enum { GHP_CHOICE_NAME_BYTES = 256 };

struct ghp_timed_choice {
    double seconds; /* < 0: it failed */
    int64_t workspace_bytes;
};

/* Index of the winner; -1 if all failed. */
int ghp_choice_best(const struct ghp_timed_choice *candidates, int n);

struct ghp_choices { /* of a backend; zeroed: none */
    struct ghp_choice_entry *entries;
    int n, max;
};

struct ghp_chosen { /* what is chosen for */
    const struct ghp_local *local;
    enum ghp_pass pass;
    bool bias, relu, sums; /* fused */
};

/* The name kept for it; NULL: none. */
const char *ghp_choices_find(const struct ghp_choices *choices, struct ghp_chosen chosen);
/* Returns GHP_OK; GHP_ERR_NO_MEMORY */
enum ghp_status ghp_choices_keep(struct ghp_choices *choices, struct ghp_chosen chosen,
                                 const char *name);
void ghp_choices_release(struct ghp_choices *choices);

/* "library version rest" -> rest, if the text is of this library and version; else NULL. The same engine number
 * means something else in another version. */
const char *ghp_choice_rest(const char *text, const char *library, int64_t version);
void ghp_choice_text(char text[GHP_CHOICE_NAME_BYTES], const char *library, int64_t version,
                     const char *rest);

/* What runs an operation alone, and what runs it with all that it fuses: "alone" or "alone & fused". One name serves
 * both kernels, for a profile has one name for a pass. Cuts the text; *fused is NULL if there is none. */
void ghp_choice_split(char *text, char **fused);

#endif
