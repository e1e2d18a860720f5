/* core/plan/integer_program.c - see integer_program.h. */
#include "core/plan/integer_program.h"

#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char unit_key[] = "* unit_s: ", exact_key[] = "* exact: ", hash_key[] = "* hash: ";

double ghp_integer_program_unit_s(const struct ghp_plan *plan)
{
    return plan->certificate.step_s > 0 ? pow(10, floor(log10(plan->certificate.step_s)) - 2) : 1;
}

/* The first line: what the program was made of. */
static int format_owner(const struct ghp_plan *plan, char *text, size_t n)
{
    char sync[GHP_SYNC_TEXT_BYTES];

    ghp_sync_format(plan->method.sync, sync);
    return snprintf(text, n,
                    "* certificate: model %016" PRIx64 " profile %016" PRIx64
                    ", %d workers, batch %" PRId64 ", %s, %s, %" PRId64 " bytes\n",
                    plan->model_hash, plan->profile_hash, plan->problem.workers,
                    plan->problem.global_batch, sync, ghp_strategy_name(plan->strategy),
                    plan->memory_limit_bytes);
}

void ghp_integer_program_format(const struct ghp_plan *plan, const char *below, char *head)
{
    int n = format_owner(plan, head, GHP_INTEGER_PROGRAM_HEAD_SIZE);

    snprintf(head + n, (size_t)(GHP_INTEGER_PROGRAM_HEAD_SIZE - n), "%s%.0e\n%s%s%s\n", unit_key,
             ghp_integer_program_unit_s(plan), exact_key, below == NULL ? "yes" : "no, ",
             below == NULL ? "" : below);
}

void ghp_integer_program_seal(const char *program, size_t n, char *line)
{
    snprintf(line, GHP_INTEGER_PROGRAM_SEAL_SIZE, "%s%016" PRIx64 "\n", hash_key,
             ghp_hash(program, n, GHP_HASH_SEED));
}

/* Whether the program is the one that the head's last line was made of. */
static bool is_sealed(const char *text)
{
    const char *at = strstr(text, hash_key), *program = at != NULL ? strchr(at, '\n') : NULL;
    char line[GHP_INTEGER_PROGRAM_SEAL_SIZE];

    if (program == NULL) return false;
    ghp_integer_program_seal(program + 1, strlen(program + 1), line);
    return ghp_text_begins(at, line);
}

enum ghp_status ghp_integer_program_read(const struct ghp_plan *plan, const char *path,
                                         struct ghp_integer_program *program)
{
    char owner[GHP_INTEGER_PROGRAM_HEAD_SIZE], *text, *unit, *exact;
    enum ghp_status status = GHP_OK;

    GHP_TRY(ghp_file_read(path, &text, NULL));
    format_owner(plan, owner, sizeof owner);
    unit = strstr(text, unit_key);
    exact = strstr(text, exact_key);
    if (unit == NULL || exact == NULL)
        status = GHP_FAIL(GHP_ERR_INPUT,
                          "%s: no integer program of a certificate; give what ghp-plan --write-mps "
                          "wrote",
                          path);
    else if (!ghp_text_begins(text, owner))
        status = GHP_FAIL(GHP_ERR_INPUT,
                          "%s: the integer program is of another plan's certificate; make plan and "
                          "program together, by ghp-plan --output and --write-mps",
                          path);
    else if (strstr(text, "\nENDATA") == NULL)
        status =
            GHP_FAIL(GHP_ERR_INPUT,
                     "%s: the integer program ends before its last line, ENDATA; make plan and "
                     "program again, by ghp-plan --output and --write-mps",
                     path);
    else if (!is_sealed(text))
        status = GHP_FAIL(GHP_ERR_INPUT,
                          "%s: the integer program was changed after ghp-plan wrote it; make plan "
                          "and program again, by ghp-plan --output and --write-mps",
                          path);
    else if (!(strtod(unit + strlen(unit_key), NULL) > 0) ||
             !isfinite(strtod(unit + strlen(unit_key), NULL)))
        status = GHP_FAIL(GHP_ERR_INPUT,
                          "%s: the second line gives no unit of seconds; make plan and program "
                          "again, by ghp-plan --output and --write-mps",
                          path);
    else
        *program = (struct ghp_integer_program){
            .unit_s = strtod(unit + strlen(unit_key), NULL),
            .exact = ghp_text_begins(exact + strlen(exact_key), "yes")};
    free(text);
    return status;
}
