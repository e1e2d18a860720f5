/* inspect/check_with.c - see check_with.h. A solver is run with its output in a pipe; the last line that begins with
 * the words of its row has its optimum. */
#include "inspect/check_with.h"

#include "core/base/clock.h"
#include "core/base/text.h"
#include "core/plan/integer_program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_ARGS = 14, CANNOT_RUN = 127, LATE_S = 5 };

/* Solvers are told to work to 1e-9 in their variables. A choice that is off 0 by 1e-9 lets a step be shorter by that
 * fraction of all reductions, and reductions can last 1000 times as long as the step. */
static const double tolerance = 1e-5;

static const char file_here[] = "FILE", limit_here[] = "LIMIT";

/* name; program; its arguments; what it reads from its standard input; words in the line that says the program was
 * solved; words before the optimum; how to get it. */
static const struct solver {
    const char *name, *program, *args[MOST_ARGS], *input, *solved, *optimum, *install;
} solvers[] = {
    {"highs",
     "highs",
     {file_here, "--options_file", "/dev/stdin", "--time_limit", limit_here},
     "mip_rel_gap = 1e-8\nmip_abs_gap = 1e-9\nmip_feasibility_tolerance = 1e-9\n"
     "primal_feasibility_tolerance = 1e-9\n",
     "  Status            Optimal",
     "  Primal bound ",
     "pip install highsbox, and give --check-with \"$(python3 -c 'import highsbox; "
     "print(highsbox.highs_bin_path())')\""},
    {"cbc",
     "cbc",
     {file_here, "-sec", limit_here, "-ratioGap", "1e-8", "-allowableGap", "1e-9",
      "-integerTolerance", "1e-9", "-primalTolerance", "1e-9", "-solve"},
     "",
     "Result - Optimal solution found",
     "Objective value: ",
     "install Debian's package coinor-cbc"},
    {"glpk",
     "glpsol",
     {"--freemps", file_here, "--tmlim", limit_here, "-w", "/dev/stdout"},
     "",
     "INTEGER OPTIMAL SOLUTION FOUND",
     "s mip ", /* rows, columns and status stand between */
     "install Debian's package glpk-utils"},
};

static enum ghp_status find_solver(const char *name, const struct solver **found)
{
    const char *base = strrchr(name, '/');

    base = base == NULL ? name : base + 1;
    for (size_t k = 0; k < sizeof solvers / sizeof solvers[0]; k++)
        if (strcmp(base, solvers[k].name) == 0 || strcmp(base, solvers[k].program) == 0) {
            *found = &solvers[k];
            return GHP_OK;
        }
    return GHP_FAIL(GHP_ERR_USAGE,
                    "--check-with does not know the solver '%s'; give highs, cbc, glpk or the path "
                    "of one",
                    name);
}

/* ---- running it ---- */

struct run {
    const struct solver *solver;
    const char *program, *args[MOST_ARGS + 2];
    char limit[32];
    double most_s; /* CBC counts seconds of a processor, which are fewer than those of a clock */
    pid_t pid;
    int output;
    bool solved;
    double optimum; /* as the solver says it; NAN: it says none */
    char last[160]; /* its last line that is not empty */
};

/* A solver unpacked into DIR/bin finds its libraries in DIR/lib. */
static void add_libraries(const char *program)
{
    const char *had = getenv("LD_LIBRARY_PATH"), *slash = strrchr(program, '/');
    char path[2 * PATH_MAX];

    if (slash == NULL) return;
    snprintf(path, sizeof path, "%.*s/../lib%s%.*s", (int)(slash - program), program,
             had != NULL ? ":" : "", PATH_MAX, had != NULL ? had : "");
    setenv("LD_LIBRARY_PATH", path, 1);
}

/* In the child, up to the solver. */
static _Noreturn void become(const struct run *run, int input, int output)
{
    if (dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0) _exit(CANNOT_RUN);
    add_libraries(run->program);
    alarm((unsigned)run->most_s); /* ends a solver that does not end by itself */
    execvp(run->program, (char **)(uintptr_t)run->args);
    _exit(CANNOT_RUN);
}

static enum ghp_status fail_start(void)
{
    return GHP_FAIL(GHP_ERR_IO,
                    "cannot start a process: %s; raise the limits of processes and "
                    "open files",
                    strerror(errno));
}

static enum ghp_status start(struct run *run)
{
    size_t n = strlen(run->solver->input);
    int input[2], output[2];

    if (pipe2(input, O_CLOEXEC) != 0) return fail_start();
    if (pipe2(output, O_CLOEXEC) != 0 || write(input[1], run->solver->input, n) != (ssize_t)n) {
        close(input[0]);
        close(input[1]);
        return fail_start();
    }
    close(input[1]);
    fflush(NULL);
    run->pid = fork();
    if (run->pid == 0) become(run, input[0], output[1]);
    close(input[0]);
    close(output[1]);
    run->output = output[0];
    if (run->pid > 0) return GHP_OK;
    close(output[0]);
    return fail_start();
}

/* The number of an optimum's line; NAN: there is none. */
static double optimum_of(const struct solver *solver, const char *line)
{
    const char *at = line + strlen(solver->optimum);
    char *end;
    double value;

    if (strcmp(solver->name, "glpk") == 0) {
        at = strstr(at, " o "); /* o: optimal */
        if (at == NULL) return NAN;
        at += 3;
    }
    value = strtod(at, &end);
    return end == at || value < 0 || !isfinite(value) ? NAN : value;
}

static void read_line(struct run *run, char *line)
{
    line[strcspn(line, "\r\n")] = '\0';
    if (line[0] == '\0') return;
    if (strstr(line, run->solver->solved) != NULL) run->solved = true;
    if (ghp_text_begins(line, run->solver->optimum)) run->optimum = optimum_of(run->solver, line);
    if (ghp_text_begins(line, "s ") || ghp_text_begins(line, "j ")) return; /* GLPK's columns */
    snprintf(run->last, sizeof run->last, "%s", line);
    ghp_text_printable(run->last);
}

static enum ghp_status read_output(struct run *run)
{
    FILE *in = fdopen(run->output, "r");
    size_t room = 0;
    char *line = NULL;

    if (in == NULL) {
        close(run->output);
        return GHP_NO_MEMORY();
    }
    while (getline(&line, &room, in) >= 0)
        read_line(run, line);
    free(line);
    fclose(in);
    return GHP_OK;
}

static enum ghp_status fail_missing(const struct run *run)
{
    return GHP_FAIL(GHP_ERR_IO, "cannot run the solver '%s'; %s", run->program,
                    run->solver->install);
}

static enum ghp_status run_solver(struct run *run)
{
    enum ghp_status status;
    int ended = 0;

    GHP_TRY(start(run));
    status = read_output(run);
    while (waitpid(run->pid, &ended, 0) < 0 && errno == EINTR)
        continue;
    GHP_TRY(status);
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == CANNOT_RUN && !run->solved)
        return fail_missing(run);
    return GHP_OK;
}

static void set_args(const struct ghp_check_with *check, const char *file, struct run *run)
{
    const struct solver *s = run->solver;
    int n = 0;

    run->program = strcmp(check->solver, s->name) == 0 ? s->program : check->solver;
    snprintf(run->limit, sizeof run->limit, "%.0f", ceil(check->time_limit_s));
    run->most_s = ceil(2 * check->time_limit_s) + LATE_S;
    run->args[n++] = run->program;
    for (int k = 0; k < MOST_ARGS && s->args[k] != NULL; k++)
        run->args[n++] = s->args[k] == file_here    ? file
                         : s->args[k] == limit_here ? run->limit
                                                    : s->args[k];
}

/* ---- what it says of the certificate ---- */

/* Whether the certificate's own numbers agree with each other. */
static enum ghp_status check_alone(const struct ghp_certificate *c)
{
    double gap = c->step_s > 0 ? fmax(0, 1 - c->bound_s / c->step_s) : 0;

    if (c->bound_s <= c->step_s * (1 + tolerance) && fabs(c->gap - gap) <= tolerance) return GHP_OK;
    return GHP_FAIL(
        GHP_ERR_INPUT,
        "the certificate does not hold: a step of %.6f ms, a bound of %.6f ms and a gap "
        "of %.4f %% do not agree; make the plan again with ghp-plan",
        1e3 * c->step_s, 1e3 * c->bound_s, 100 * c->gap);
}

static enum ghp_status compare(const struct ghp_certificate *c, const char *name, double optimum_s,
                               bool exact)
{
    if (optimum_s > c->step_s * (1 + tolerance))
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the certificate does not hold: its best plan takes %.6f ms, and %s proves "
                        "that none takes less than %.6f ms; make the plan again with ghp-plan",
                        1e3 * c->step_s, name, 1e3 * optimum_s);
    if (optimum_s >= c->bound_s * (1 - tolerance)) return GHP_OK;
    if (exact)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "the certificate does not hold: it says that no plan takes less than %.6f "
                        "ms, and %s has one of %.6f ms; make the plan again with ghp-plan",
                        1e3 * c->bound_s, name, 1e3 * optimum_s);
    return GHP_FAIL(GHP_ERR_INFEASIBLE,
                    "%s proves that no plan takes less than %.6f ms, and the certificate says %.6f "
                    "ms: ghp-plan simulated the plans between, which the program cannot say (its "
                    "third line has the reason)",
                    name, 1e3 * optimum_s, 1e3 * c->bound_s);
}

static void show(struct ghp_display *report, const struct ghp_plan *plan,
                 const struct ghp_integer_program *program, const char *name, double optimum_s,
                 double seconds)
{
    const struct ghp_certificate *c = &plan->certificate;

    ghp_display_text(report, "solver", name);
    ghp_display_real(report, "optimum_s", optimum_s);
    ghp_display_real(report, "step_s", c->step_s);
    ghp_display_real(report, "bound_s", c->bound_s);
    ghp_display_real(report, "solver_seconds", seconds);
    ghp_display_real(report, "search_seconds", c->seconds);
    ghp_display_line(report,
                     "confirmed: %s %.6f ms by %s, %.6f to %.6f ms by the "
                     "certificate",
                     program->exact ? "the best plan takes" : "no plan takes less than",
                     1e3 * optimum_s, name, 1e3 * c->bound_s, 1e3 * c->step_s);
    ghp_display_line(report, "%s took %.2f s, ghp-plan's search %.2f s", name, seconds, c->seconds);
}

/* The plan's file with .mps in place of .json. */
static void default_program(const char *path, char *text, size_t n)
{
    size_t length = strlen(path) - (ghp_text_ends(path, ".json") ? strlen(".json") : 0);

    snprintf(text, n, "%.*s.mps", (int)length, path);
}

enum ghp_status ghp_inspect_check_with(struct ghp_display *report, const struct ghp_plan *plan,
                                       const char *path, const char *program,
                                       const struct ghp_check_with *check)
{
    char file[PATH_MAX];
    struct ghp_integer_program head;
    struct run run = {.optimum = NAN};
    double began_s, seconds;

    GHP_TRY(find_solver(check->solver, &run.solver));
    if (program == NULL) default_program(path, file, sizeof file);
    if (program == NULL && access(file, F_OK) != 0)
        return GHP_FAIL(GHP_ERR_IO,
                        "the plan's integer program '%s' is not there; make plan and program "
                        "together, by ghp-plan --output %s --write-mps %s, or name the program "
                        "after the plan",
                        file, path, file);
    if (program == NULL) program = file;
    GHP_TRY(ghp_integer_program_read(plan, program, &head));
    GHP_TRY(check_alone(&plan->certificate));
    set_args(check, program, &run);
    began_s = ghp_now_s();
    GHP_TRY(run_solver(&run));
    seconds = ghp_now_s() - began_s;
    if (!run.solved || isnan(run.optimum))
        return GHP_FAIL(GHP_ERR_INFEASIBLE,
                        "%s did not solve the program in %.0f s (it ended with: %s); give "
                        "--solver-limit more seconds, or another solver",
                        run.solver->name, seconds, run.last);
    GHP_TRY(compare(&plan->certificate, run.solver->name, run.optimum * head.unit_s, head.exact));
    /* a solver cannot know whether that step is the plan's, nor whether the plan's splits take it */
    GHP_TRY(ghp_plan_verify(plan, &plan->profile));
    show(report, plan, &head, run.solver->name, run.optimum * head.unit_s, seconds);
    return GHP_OK;
}
