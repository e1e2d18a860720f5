/* executor/engine/pace.c - see pace.h. */
#include "executor/engine/pace.h"

#include "core/base/clock.h"
#include "executor/platform/emulation.h"

#include <math.h>
#include <stdlib.h>

static const double late_fraction = 0.05; /* of a step */

struct ghp_pace {
    double *part_s; /* of each instruction; 0: it is not paced */
    double step_s, begin_s;
    double behind_s; /* of what was computed so far in the step, >= 0 */
    int64_t late_steps;
};

static bool is_paced(const struct ghp_instr *instr)
{
    return instr->stream == GHP_STREAM_COMPUTE && !ghp_kind_of(instr)->waits &&
           !ghp_instr_sends(instr);
}

static double cost_of(const struct ghp_program *program, const struct ghp_profile *profile, int i)
{
    struct ghp_cost cost = {0};

    if (profile == NULL ||
        ghp_profile_cost(profile, &program->instrs[i], program->problem.workers, &cost) != GHP_OK)
        return 0;
    return cost.seconds;
}

enum ghp_status ghp_pace_open(const struct ghp_program *program, const struct ghp_profile *profile,
                              double step_s, struct ghp_pace **pace)
{
    struct ghp_pace *p = ghp_alloc(1, sizeof *p);
    double sum_s = 0;
    int paced = 0;

    *pace = p;
    if (p == NULL) return GHP_NO_MEMORY();
    p->step_s = step_s;
    p->part_s = ghp_alloc((size_t)program->n_instrs, sizeof *p->part_s);
    if (p->part_s == NULL) return GHP_NO_MEMORY();
    for (int i = 0; i < program->n_instrs; i++) {
        if (!is_paced(&program->instrs[i])) continue;
        p->part_s[i] = cost_of(program, profile, i);
        sum_s += p->part_s[i];
        paced++;
    }
    for (int i = 0; i < program->n_instrs; i++)
        if (is_paced(&program->instrs[i]))
            p->part_s[i] = sum_s > 0 ? p->part_s[i] * step_s / sum_s : step_s / paced;
    return GHP_OK;
}

void ghp_pace_close(struct ghp_pace *pace)
{
    if (pace == NULL) return;
    free(pace->part_s);
    free(pace);
}

/* A last sleep's excess goes over to the next step. */
void ghp_pace_step(struct ghp_pace *pace)
{
    if (pace == NULL || pace->behind_s <= late_fraction * pace->step_s) return;
    pace->late_steps++;
    pace->behind_s = 0;
}

void ghp_pace_begin(struct ghp_pace *pace, int i)
{
    if (pace != NULL && pace->part_s[i] > 0) pace->begin_s = ghp_now_s();
}

void ghp_pace_end(struct ghp_pace *pace, int i)
{
    double due_s;

    if (pace == NULL || !(pace->part_s[i] > 0)) return;
    due_s = pace->begin_s + pace->part_s[i] - pace->behind_s;
    ghp_emulation_sleep_until(due_s);
    pace->behind_s = fmax(0, ghp_now_s() - due_s);
}

int64_t ghp_pace_late_steps(const struct ghp_pace *pace)
{
    return pace != NULL ? pace->late_steps : 0;
}

double ghp_pace_behind_s(const struct ghp_pace *pace)
{
    return pace->behind_s;
}
