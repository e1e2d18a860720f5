/* core/plan/certificate.c - a certificate's status as text, and what it proves as a sentence. */
#include "core/plan/certificate.h"

#include "core/base/status.h"

#include <stdio.h>
#include <string.h>

static const char *const proofs[GHP_PROOF_COUNT] = {
#define PROOF_NAME(id, text) text,
    GHP_PROOF_LIST(PROOF_NAME)
#undef PROOF_NAME
};

static const struct {
    const char *before, *behind, *searched, *tried;
} trials[GHP_TRIAL_COUNT] = {
#define TRIAL_TEXT(id, before, behind, searched, tried) {before, behind, searched, tried},
    GHP_TRIAL_LIST(TRIAL_TEXT)
#undef TRIAL_TEXT
};

const char *ghp_proof_name(enum ghp_proof proof)
{
    GHP_ASSERT((int)proof >= 0 && proof < GHP_PROOF_COUNT);
    return proofs[proof];
}

const char *ghp_certificate_status(enum ghp_proof proof, enum ghp_trial trial, char *text)
{
    GHP_ASSERT((int)trial >= 0 && trial < GHP_TRIAL_COUNT);
    snprintf(text, GHP_CERTIFICATE_STATUS_SIZE, "%s%s%s", trials[trial].before,
             ghp_proof_name(proof), trials[trial].behind);
    return text;
}

const char *ghp_certificate_sentence(const struct ghp_certificate *c, char *text)
{
    const char *searched = trials[c->trial].searched, *tried = trials[c->trial].tried;
    const double step_ms = 1e3 * c->step_s, bound_ms = 1e3 * c->bound_s;

    if (!(c->step_s > 0) || c->proof == GHP_PROOF_GIVEN)
        snprintf(text, GHP_CERTIFICATE_SENTENCE_SIZE,
                 "the plan was given, not searched for, so nothing is proven of it");
    else if (c->proof == GHP_PROOF_NOTHING_FITS)
        snprintf(text, GHP_CERTIFICATE_SENTENCE_SIZE,
                 "no plan that fits was found%s, so no bound is known%s", searched, tried);
    else if (c->proof == GHP_PROOF_OPTIMAL)
        snprintf(text, GHP_CERTIFICATE_SENTENCE_SIZE,
                 "optimal: the best plan%s takes %.3f ms a step, and none takes less%s", searched,
                 step_ms, tried);
    else if (!(c->bound_s > 0))
        snprintf(text, GHP_CERTIFICATE_SENTENCE_SIZE,
                 "the time limit came first: the best plan found%s takes %.3f ms a step, and no "
                 "bound on others is known%s",
                 searched, step_ms, tried);
    else
        snprintf(
            text, GHP_CERTIFICATE_SENTENCE_SIZE,
            "%s: the best plan found%s takes %.3f ms a step, and none takes less than %.3f ms, "
            "which is %.*g %% less%s",
            c->proof == GHP_PROOF_TIME_LIMIT ? "the time limit came first"
                                             : "within the gap that was asked for",
            searched, step_ms, bound_ms, c->gap < 0.995 ? 2 : 3, 100 * c->gap, tried);
    return text;
}

bool ghp_certificate_parse(const char *text, enum ghp_proof *proof, enum ghp_trial *trial)
{
    char status[GHP_CERTIFICATE_STATUS_SIZE];

    for (int p = 0; p < GHP_PROOF_COUNT; p++)
        for (int t = 0; t < GHP_TRIAL_COUNT; t++) {
            *proof = (enum ghp_proof)p;
            *trial = (enum ghp_trial)t;
            if (strcmp(ghp_certificate_status(*proof, *trial, status), text) == 0) return true;
        }
    return false;
}
