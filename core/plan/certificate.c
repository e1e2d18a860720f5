/* core/plan/certificate.c - a certificate's status as text. */
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
    const char *before, *behind;
} trials[GHP_TRIAL_COUNT] = {
#define TRIAL_TEXT(id, before, behind) {before, behind},
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

bool ghp_certificate_parse(const char *text, enum ghp_proof *proof, enum ghp_trial *trial)
{
    char status[GHP_CERTIFICATE_STATUS_SIZE];

    for (int p = 0; p < GHP_PROOF_COUNT; ++p)
        for (int t = 0; t < GHP_TRIAL_COUNT; ++t) {
            *proof = (enum ghp_proof)p;
            *trial = (enum ghp_trial)t;
            if (strcmp(ghp_certificate_status(*proof, *trial, status), text) == 0) return true;
        }
    return false;
}
