/* executor/launcher/ghp-launch.c - the tool that keeps a training going: it starts ghp-run under mpirun, watches it,
 * and starts it again from the last checkpoint, under a plan for the workers that are left.
 *
 * It is outside of MPI, so that nothing that ends a run ends it. It restarts and does not repair. */
#include "core/base/clock.h"
#include "core/base/folder.h"
#include "core/base/log.h"
#include "core/base/opts.h"
#include "core/base/units.h"
#include "core/model/safetensors.h"
#include "executor/launcher/command.h"
#include "executor/launcher/tool_path.h"
#include "executor/launcher/worker_count.h"
#include "executor/launcher/checkpoint_check.h"
#include "executor/launcher/process_tree.h"
#include "executor/launcher/job.h"
#include "executor/launcher/ladder.h"
#include "executor/launcher/replan.h"
#include "executor/launcher/restart.h"
#include "executor/launcher/scratch.h"
#include "executor/platform/folder_lock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { OWN_ARGS = 16, PATH_BYTES = GHP_CHECKPOINT_PATH_BYTES, EXIT_USAGE = 2 };

static struct {
    const char *checkpoint, *mpirun, *workers_left, *replan;
    bool resume, overwrite;
    int64_t restarts;
    double pause_s, silence_s, ask_every_s, ask_limit_s;
} chosen = {.mpirun = GHP_MPIRUN,
            .restarts = 3,
            .pause_s = 1,
            .silence_s = 600,
            .ask_every_s = 60,
            .ask_limit_s = 60};

static const struct ghp_opt options[] = {
    {.name = "checkpoint",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.checkpoint,
     .argument = "DIR",
     .help = "folder of the training's checkpoints; needed"},
    {.name = "resume",
     .kind = GHP_OPT_FLAG,
     .target = &chosen.resume,
     .help = "continue from the checkpoint in --checkpoint at the first start, too"},
    {.name = "overwrite",
     .kind = GHP_OPT_FLAG,
     .target = &chosen.overwrite,
     .help = "replace the training that --checkpoint, or --metrics after '--', holds"},
    {.name = "mpirun",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.mpirun,
     .argument = "COMMAND",
     .help = "launcher with its options, split at spaces (no quoting); -n N is appended"},
    {.name = "workers-left",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.workers_left,
     .argument = "COMMAND",
     .help = "shell command that prints the number of available workers, run before each restart "
             "and while fewer train than at first; the largest plan that fits is taken"},
    {.name = "ask-every",
     .kind = GHP_OPT_REAL,
     .target = &chosen.ask_every_s,
     .argument = "SECONDS",
     .min = 0.1,
     .max = 1e6,
     .help = "time between two such questions; if a larger plan makes up for a restart, the run "
             "stops with a checkpoint and continues with that plan"},
    {.name = "ask-limit",
     .kind = GHP_OPT_REAL,
     .target = &chosen.ask_limit_s,
     .argument = "SECONDS",
     .min = 0.1,
     .max = 1e6,
     .help = "longest wait for --workers-left; after it the plan is chosen without an answer"},
    {.name = "replan",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.replan,
     .argument = "COMMAND",
     .help = "call of ghp-plan, without --output, for $GHP_WORKERS workers; run by sh when a "
             "worker or the links become slower, with --set for what is slow. If its plan makes up "
             "for a restart, the run continues with it"},
    {.name = "restarts",
     .kind = GHP_OPT_INT,
     .target = &chosen.restarts,
     .argument = "R",
     .min = 0,
     .max = 1e6,
     .help = "restarts in a row without a newer checkpoint"},
    {.name = "pause",
     .kind = GHP_OPT_REAL,
     .target = &chosen.pause_s,
     .argument = "SECONDS",
     .min = 0,
     .max = 1e5,
     .help = "wait before a restart; doubled with each further failure in a row, up to a minute"},
    {.name = "silence",
     .kind = GHP_OPT_REAL,
     .target = &chosen.silence_s,
     .argument = "SECONDS",
     .min = 1,
     .max = 1e6,
     .help = "longest time without a sign of life, for a start, a step or a checkpoint; then the "
             "run is ended and restarted. Give more than ghp-run's --watchdog"},
};

static const struct ghp_exit_code exit_codes[] = {
    {GHP_EXIT_STOPPED, "ended early by a signal, with a checkpoint"},
    {GHP_EXIT_DIVERGED, "the training diverged, and would again"},
    {0, NULL}};

static const struct ghp_tool tool = {
    .name = "ghp-launch",
    .purpose = "keeps a training alive: restarts ghp-run from the last checkpoint after a failure",
    .usage = "ghp-launch PLANS --checkpoint DIR [options] -- [ghp-run's options]\n"
             "       ghp-launch PLAN [PLAN2 ...] --checkpoint DIR [options] -- [...]",
    .example = "ghp-launch plans.json --checkpoint kept -- --epochs 9",
    .opts = options,
    .n_opts = (int)(sizeof options / sizeof options[0]),
    .exit_codes = exit_codes,
    .notes =
        "PLANS is a file of ghp-plan --elastic. Plans are for one model and one global batch, each "
        "for fewer workers than the one before. The first is started. After a failure without "
        "progress the same plan is tried again, then the next one; with --workers-left the first "
        "that fits. Each sample is seen when an undisturbed run sees it.\n"
        "SIGTERM, SIGINT or SIGUSR1 ends the run with a checkpoint; --resume continues it. A "
        "second signal kills it, except SIGTERM again. ghp-launch ends with 2 if ghp-run refuses "
        "its options.\n"
        "See docs/how-to/restarts.md.",
};

static volatile sig_atomic_t stop_requests;

static void note_request(int number)
{
    (void)number;
    stop_requests++;
}

/* What is trained by: a plan as given, or one that was made in its place for a machine that has changed. */
struct choice {
    int plan;                         /* -1: none */
    char path[GHP_REPLAN_PATH_BYTES]; /* of the one in its place; "": as given */
    double step_s;                    /* expected of it, if it is for a changed machine */
};

struct launch {
    int n_files;
    const char *files[GHP_PLAN_SET_MOST]; /* on the command line */
    struct ghp_ladder plans;
    int n_run; /* ghp-run's options */
    char **run;

    char tool_path[GHP_TOOL_PATH_BYTES], heartbeat[PATH_BYTES];
    struct ghp_folder_lock *lock; /* owned; for all attempts */
    struct ghp_restart restart;
    struct ghp_worker_count worker_count;
    struct ghp_replan replan;
    struct choice replanned; /* holds while its plan is the present one */
    double as_given_s;  /* a step by the plan as given, before anything was slow; 0: nothing was */
    struct choice next; /* for which an attempt was ended in order */
    /* the checkpoint that was there before, of another training; zeroed: none */
    struct stat foreign;
    bool began;   /* an attempt has opened its outputs: what they hold is this training's */
    int64_t kept; /* steps of the newest checkpoint, from which to continue; -1: none */
};

/* ---- what to start ---- */

/* Refuses options of ghp-run that ghp-launch itself gives, or that make no training that could continue. */
static enum ghp_status check_run_options(const struct launch *l)
{
    static const char *const taken[] = {"--checkpoint", "--resume", "--overwrite",
                                        "--heartbeat",  "--verify", "--compare"};

    for (int i = 0; i < l->n_run; i++) {
        for (size_t t = 0; t < sizeof taken / sizeof taken[0]; t++) {
            size_t n = strcspn(l->run[i], "=");

            if (n == strlen(taken[t]) && strncmp(l->run[i], taken[t], n) == 0)
                return GHP_FAIL(GHP_ERR_USAGE,
                                "%s cannot follow '--' here; give --checkpoint, --resume "
                                "and --overwrite before '--', and run --verify and --compare "
                                "without ghp-launch",
                                taken[t]);
        }
    }
    return GHP_OK;
}

static enum ghp_status prepare(struct launch *l)
{
    char path[PATH_BYTES];

    if (l->n_files < 1)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "no plan was given; name one: ghp-launch PLAN --checkpoint DIR");
    if (chosen.checkpoint == NULL)
        return GHP_FAIL(GHP_ERR_USAGE, "a run is started again from its checkpoints; give "
                                       "--checkpoint DIR");
    GHP_TRY(check_run_options(l));
    GHP_TRY(ghp_ladder_load(l->files, l->n_files, &l->plans));
    if (chosen.resume) GHP_TRY(ghp_launcher_check_resumable(chosen.checkpoint));
    GHP_TRY(ghp_folder_make(chosen.checkpoint, NULL));
    GHP_TRY(ghp_folder_lock_take(chosen.checkpoint, ghp_folder_lock_usual, &l->lock));
    snprintf(l->heartbeat, sizeof l->heartbeat, "%s/heartbeat", chosen.checkpoint);
    ghp_tool_path("ghp-run", l->tool_path);
    l->restart = (struct ghp_restart){.workers = l->plans.workers,
                                      .n = l->plans.n,
                                      .most_failures = (int)chosen.restarts,
                                      .pause_s = chosen.pause_s};
    l->worker_count = (struct ghp_worker_count){.command = chosen.workers_left,
                                                .every_s = chosen.ask_every_s,
                                                .limit_s = chosen.ask_limit_s};
    l->replan = (struct ghp_replan){.command = chosen.replan, .folder = chosen.checkpoint};
    l->replanned.plan = -1;
    l->kept = chosen.resume ? 0 : -1;
    if (!chosen.resume && !ghp_launcher_find_checkpoint(chosen.checkpoint, path, &l->foreign))
        l->foreign = (struct stat){0};
    return ghp_process_tree_adopt();
}

static bool is_replanned(const struct launch *l)
{
    return l->replanned.plan == l->restart.plan && l->replanned.path[0] != '\0';
}

static const char *present_path(const struct launch *l)
{
    return is_replanned(l) ? l->replanned.path : l->plans.files[l->restart.plan];
}

/* argv of one attempt, into `args`, which has room for those of `text`, ghp-run's and OWN_ARGS. `text` is cut into
 * and lives as long. */
static void make_command(struct launch *l, char *text, char number[16], char **args)
{
    int n = 0;
    char *rest = NULL;

    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        args[n++] = word;
    snprintf(number, 16, "%d", l->plans.workers[l->restart.plan]);
    args[n++] = (char *)(uintptr_t) "-n";
    args[n++] = number;
    args[n++] = l->tool_path;
    args[n++] = (char *)(uintptr_t)present_path(l);
    for (int i = 0; i < l->n_run; i++)
        args[n++] = l->run[i];
    args[n++] = (char *)(uintptr_t) "--checkpoint";
    args[n++] = (char *)(uintptr_t)chosen.checkpoint;
    args[n++] = (char *)(uintptr_t) "--checkpoint-lock"; /* it is ghp-launch's */
    args[n++] = (char *)(uintptr_t) "off";
    args[n++] = (char *)(uintptr_t) "--heartbeat";
    args[n++] = l->heartbeat;
    if (l->kept >= 0)
        args[n++] = (char *)(uintptr_t) "--resume";
    else if (chosen.overwrite || l->began)
        args[n++] = (char *)(uintptr_t) "--overwrite";
    args[n] = NULL;
}

/* ---- one attempt after the other ---- */

/* Whether more workers answer than train, and a larger plan for them has paid off since this one began to train. */
static bool is_larger_due(struct launch *l, const struct ghp_job *job)
{
    int left = -1, larger;

    if (l->restart.plan == 0 || job->trains_s <= 0 ||
        !ghp_worker_count_poll(&l->worker_count, &left))
        return false;
    larger = ghp_restart_larger(&l->restart, left);
    if (larger < 0) return false;
    if (ghp_now_s() - job->trains_s < ghp_restart_pays_s(l->plans.step_s[l->restart.plan],
                                                         l->plans.step_s[larger],
                                                         job->trains_s - job->begun_s))
        return false;
    l->next = (struct choice){.plan = larger};
    ghp_note("%d workers answer, %d train: the run stops with a checkpoint and continues with more",
             left, l->plans.workers[l->restart.plan]);
    return true;
}

/* Whether another plan makes up for a restart; says so either way. */
static bool is_better(const struct launch *l, const struct ghp_job *job, const struct choice *other)
{
    const char *path = other->path[0] != '\0' ? other->path : l->plans.files[other->plan];
    double now_s = l->replan.change.now_s, restart_s = job->trains_s - job->begun_s;
    int64_t left = job->beat.of - job->beat.step;
    bool pays = ghp_replan_pays(now_s, other->step_s, left, restart_s);
    char now[32], then[32], restart[32];

    ghp_note("by '%s' a step takes about %s, now %s, with %lld left; a restart takes %s: %s", path,
             ghp_seconds_format(other->step_s, then, sizeof then),
             ghp_seconds_format(now_s, now, sizeof now), (long long)left,
             ghp_seconds_format(restart_s, restart, sizeof restart),
             pays ? "the run stops with a checkpoint and continues with it"
                  : "the run continues as it is");
    return pays;
}

/* The plan that was made. Its step is to the present one's, as measured now, as their predictions for the machine as it
 * is. */
static enum ghp_status take_other(const struct launch *l, struct choice *other)
{
    int workers = l->plans.workers[l->restart.plan];
    struct ghp_plan given = {0}, plan = {0};
    double present_s = 0;
    enum ghp_status status;

    GHP_TRY(ghp_replan_predict(present_path(l), workers, &l->replan.change, &present_s));
    GHP_TRY(ghp_plan_load_for(l->plans.files[other->plan], workers, &given));
    status = ghp_plan_load(l->replan.path, &plan);
    if (status == GHP_OK) status = ghp_plan_check_alike(&given, &plan);
    ghp_plan_release(&given);
    if (status == GHP_OK && plan.problem.workers != workers)
        status =
            GHP_FAIL(GHP_ERR_INPUT, "it is for %d worker%s, not %d; say --workers $GHP_WORKERS",
                     plan.problem.workers, ghp_plural(plan.problem.workers), workers);
    snprintf(other->path, sizeof other->path, "%s", l->replan.path);
    other->step_s = l->replan.change.now_s * plan.predicted.step_s / present_s;
    ghp_plan_release(&plan);
    return status;
}

/* Whether the machine has changed, and there is a plan that is worth a restart. */
static bool is_other_due(struct launch *l, const struct ghp_job *job)
{
    struct choice other = {.plan = l->restart.plan, .step_s = l->as_given_s};
    enum ghp_status status = GHP_OK;

    if (job->trains_s <= 0) return false;
    switch (ghp_replan_look(&l->replan, &job->beat)) {
    case GHP_REPLAN_NOTHING: return false;
    case GHP_REPLAN_RECOVERED:
        if (!is_replanned(l)) return false;
        break;
    case GHP_REPLAN_MADE: status = take_other(l, &other); break;
    case GHP_REPLAN_FAILED: status = GHP_FAIL(GHP_ERR_INPUT, "the command failed"); break;
    }
    if (status != GHP_OK)
        ghp_warn("--replan makes no plan, the run continues as it is: %s", ghp_status_message());
    if (status != GHP_OK || !is_better(l, job, &other)) return false;
    if (!is_replanned(l)) l->as_given_s = l->replan.change.before_s;
    l->next = other;
    return true;
}

static bool enough(void *context, const struct ghp_job *job)
{
    return is_larger_due(context, job) || is_other_due(context, job);
}

static enum ghp_status attempt(struct launch *l, struct ghp_job *job)
{
    char *text = strdup(chosen.mpirun), number[16];
    char **args = ghp_alloc(strlen(chosen.mpirun) / 2 + (size_t)l->n_run + OWN_ARGS, sizeof *args);
    struct ghp_scratch scratch;
    enum ghp_status status;

    if (text == NULL || args == NULL) {
        free(args);
        free(text);
        return GHP_NO_MEMORY();
    }
    make_command(l, text, number, args);
    *job = (struct ghp_job){.command = args,
                            .heartbeat = l->heartbeat,
                            .silence_s = chosen.silence_s,
                            .enough = enough,
                            .context = l};
    l->next.plan = -1;
    ghp_replan_begin(&l->replan, l->plans.workers[l->restart.plan]);
    ghp_scratch_open(&scratch);
    status = ghp_job_start(job);
    if (status == GHP_OK) ghp_job_watch(job, &stop_requests);
    l->began = l->began || job->beat.changed_s > 0;
    ghp_scratch_close(&scratch);
    job->command = NULL;
    free(args);
    free(text);
    if (status == GHP_OK && job->left > 0)
        ghp_warn("%d process(es) of the run cannot be killed", job->left);
    return status;
}

/* The steps of the newest checkpoint of this training, as its file says; what was known before if it cannot be read,
 * as a damaged one. */
static void find_kept(struct launch *l)
{
    struct ghp_safetensors *file = NULL;
    const char *step = NULL;
    char path[PATH_BYTES];
    struct stat is;

    if (!ghp_launcher_find_checkpoint(chosen.checkpoint, path, &is)) return;
    if (is.st_ino == l->foreign.st_ino && is.st_mtim.tv_sec == l->foreign.st_mtim.tv_sec &&
        is.st_mtim.tv_nsec == l->foreign.st_mtim.tv_nsec)
        return;
    if (l->kept < 0) l->kept = 0;
    if (ghp_safetensors_open(path, &file) != GHP_OK) return;
    step = ghp_safetensors_metadata(file, "step");
    if (step != NULL) l->kept = strtoll(step, NULL, 10);
    ghp_safetensors_close(file);
}

/* How an attempt with that number of workers failed, for people. */
static void describe(const struct ghp_job *job, int workers, char *text, size_t n)
{
    char name[GHP_PROGRAM_TEXT];

    ghp_command_program(chosen.mpirun, name);
    if (job->silent)
        snprintf(text, n, "no sign of life for %.0f s", chosen.silence_s);
    else if (ghp_job_tells(job) && ghp_job_misses_host(job))
        snprintf(text, n, "%s; try the hosts by '%s -n %d hostname'", job->said, chosen.mpirun,
                 workers);
    else if (ghp_job_tells(job))
        snprintf(text, n, "%s", job->said);
    else if (job->signal != 0)
        snprintf(text, n, "%s ended by signal %d (%s)", name, job->signal, strsignal(job->signal));
    else if (job->exit_code > 128 && job->exit_code < 128 + NSIG)
        snprintf(text, n, "a worker was ended by signal %d (%s); %s does not say which",
                 job->exit_code - 128, strsignal(job->exit_code - 128), name);
    else
        snprintf(text, n, "%s ended with exit code %d", name, job->exit_code);
}

/* After an attempt that was to continue from a checkpoint and failed before its first step: checks that a checkpoint is
 * still readable. */
static enum ghp_status check_checkpoints(struct launch *l, const struct ghp_job *job)
{
    char path[PATH_BYTES];
    struct stat about;

    if (l->kept < 0 || job->trains_s > 0) return GHP_OK;
    GHP_TRY(ghp_launcher_check_checkpoints(chosen.checkpoint, !chosen.resume));
    if (!ghp_launcher_find_checkpoint(chosen.checkpoint, path, &about) && !chosen.resume)
        l->kept = -1;
    return GHP_OK;
}

/* What to do after ghp-launch has ended: --resume, if this training has a checkpoint. */
static const char *continue_hint(const struct launch *l)
{
    if (l->kept >= 0) return "continue with --resume";
    return l->began ? "start it again with --overwrite, as it has no checkpoint yet"
                    : "start it again, as it has no checkpoint yet";
}

/* Says why the training is not tried again. */
static void say_diverged(struct launch *l, struct ghp_job *job)
{
    find_kept(l);
    ghp_note("gave up, as a restart would end the same: %s; then %s", job->said, continue_hint(l));
}

/* What follows a failed attempt: says it, sets the plan, and waits. */
static enum ghp_status recover(struct launch *l, const struct ghp_job *job)
{
    int64_t before = l->kept > 0 ? l->kept : 0;
    int left = -1, workers = l->plans.workers[l->restart.plan];
    char why[2 * GHP_JOB_TEXT_BYTES];
    struct timespec pause;
    double pause_s;

    describe(job, workers, why, sizeof why);
    find_kept(l);
    if (ghp_job_is_lasting(job) && l->worker_count.command == NULL) /* which may mend the machine */
        return GHP_FAIL(GHP_ERR_COMM, "gave up, as trying again would end the same: %s; then %s",
                        why, continue_hint(l));
    ghp_note("%d worker%s failed after %lld step%s, with a checkpoint of %lld: %s", workers,
             ghp_plural(workers), (long long)job->beat.step, ghp_plural(job->beat.step),
             (long long)(l->kept > 0 ? l->kept : 0), why);
    GHP_TRY(check_checkpoints(l, job));
    GHP_TRY(ghp_worker_count_ask(&l->worker_count, &stop_requests, &left));
    if (stop_requests > 0) return GHP_OK;
    switch (ghp_restart_next(&l->restart, l->kept > before, left)) {
    case GHP_RESTART: break;
    case GHP_RESTART_TOO_OFTEN:
        return GHP_FAIL(GHP_ERR_COMM,
                        "gave up: %d failure%s in a row without a newer checkpoint, the last: %s; "
                        "see why, then %s",
                        l->restart.failures, ghp_plural(l->restart.failures), why,
                        continue_hint(l));
    case GHP_RESTART_TOO_FEW_LEFT:
        return GHP_FAIL(GHP_ERR_COMM,
                        "gave up: %d worker%s left, and the smallest plan is for %d; make a "
                        "plan for fewer, then %s",
                        left, left == 1 ? " is" : "s are", l->plans.workers[l->plans.n - 1],
                        continue_hint(l));
    }
    pause_s = ghp_restart_pause_s(&l->restart);
    workers = l->plans.workers[l->restart.plan];
    ghp_note("in %g s %d worker%s with '%s' from step %lld", pause_s, workers,
             workers == 1 ? " continues" : "s continue", present_path(l),
             (long long)(l->kept > 0 ? l->kept : 0));
    pause = (struct timespec){(time_t)pause_s, (long)((pause_s - (double)(time_t)pause_s) * 1e9)};
    nanosleep(&pause, NULL); /* a signal ends it early */
    return GHP_OK;
}

/* Switches to the next plan, for which an attempt was ended in order. That does not count as a failure. */
static void go_over(struct launch *l)
{
    int workers;

    find_kept(l);
    l->restart.plan = l->next.plan;
    l->replanned = l->next;
    l->restart.failures = 0;
    workers = l->plans.workers[l->restart.plan];
    ghp_note("%d worker%s with '%s' from step %lld", workers,
             workers == 1 ? " continues" : "s continue", present_path(l),
             (long long)(l->kept > 0 ? l->kept : 0));
}

/* ghp-run refused its options: the same again would end as this did. */
static enum ghp_status refused(const struct ghp_job *job)
{
    if (job->rank_of_said == 0)
        return GHP_FAIL(GHP_ERR_USAGE, "ghp-run refuses its options, and says above why");
    return GHP_FAIL(GHP_ERR_USAGE, "ghp-run refuses its options: %s", job->said);
}

static void say_stopped(struct launch *l)
{
    find_kept(l);
    if (l->kept > 0)
        ghp_note("ended by a signal; --resume continues from step %lld", (long long)l->kept);
    else
        ghp_note("ended by a signal, before there was a checkpoint; %s", continue_hint(l));
}

static enum ghp_status keep_going(struct launch *l, int *exit_code)
{
    struct ghp_job job;

    for (;;) {
        GHP_TRY(attempt(l, &job));
        *exit_code = job.exit_code;
        if (job.exit_code == 0) return GHP_OK;
        if (job.exit_code == EXIT_USAGE) return refused(&job);
        if (ghp_job_diverged(&job) && stop_requests == 0) {
            say_diverged(l, &job);
            if (job.exit_code < 0) *exit_code = 1;
            return GHP_OK;
        }
        if (job.exit_code == GHP_EXIT_STOPPED && job.had_enough && stop_requests == 0) {
            go_over(l);
            continue;
        }
        if (job.exit_code != GHP_EXIT_STOPPED && stop_requests == 0) GHP_TRY(recover(l, &job));
        if (job.exit_code != GHP_EXIT_STOPPED && stop_requests == 0) continue;
        *exit_code = GHP_EXIT_STOPPED;
        say_stopped(l);
        return GHP_OK;
    }
}

int main(int argc, char **argv)
{
    struct launch launch = {.n_files = 0};
    enum ghp_status status;
    int own = 1, exit_code = 0;

    ghp_log_open(tool.name, true);
    while (own < argc && strcmp(argv[own], "--") != 0)
        own++;
    launch.run = own < argc ? argv + own + 1 : NULL;
    launch.n_run = own < argc ? argc - own - 1 : 0;
    status = ghp_opts_parse(&tool, own, argv, launch.files, GHP_PLAN_SET_MOST, &launch.n_files);
    if (status == GHP_OK && ghp_opts_done()) return 0;
    if (status == GHP_OK) status = prepare(&launch);
    if (status == GHP_OK) {
        ghp_command_on_signals(note_request);
        status = keep_going(&launch, &exit_code);
        unlink(launch.heartbeat);
    }
    ghp_folder_lock_release(launch.lock);
    if (status == GHP_OK) status = ghp_opts_printed();
    if (status == GHP_OK) return exit_code;
    fprintf(stderr, "ghp-launch: %s\n", ghp_status_message());
    return ghp_status_exit_code(status);
}
