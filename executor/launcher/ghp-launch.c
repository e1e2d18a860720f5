/* executor/launcher/ghp-launch.c - the tool that keeps a training going: it starts ghp-run under mpirun, watches it,
 * and starts it again from the last checkpoint, under a plan for the workers that are left.
 *
 * It is outside of MPI, so that nothing that ends a run ends it. It restarts and does not repair. */
#include "core/base/log.h"
#include "core/base/opts.h"
#include "core/plan/plan.h"
#include "executor/launcher/family.h"
#include "executor/launcher/job.h"
#include "executor/launcher/restart.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PLANS = 16, MAX_WORDS = 256, PATH_BYTES = 4096, EXIT_USAGE = 2 };

static struct {
    const char *checkpoint, *mpirun, *workers_left;
    bool resume;
    int64_t restarts;
    double pause_s, silence_s;
} chosen = {.mpirun = "mpirun", .restarts = 3, .pause_s = 1, .silence_s = 600};

static const struct ghp_opt options[] = {
    {.name = "checkpoint",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.checkpoint,
     .argument = "DIR",
     .help = "where checkpoints are written and gone on from; needed"},
    {.name = "resume",
     .kind = GHP_OPT_FLAG,
     .target = &chosen.resume,
     .help = "the first start, too, goes on from the checkpoint in --checkpoint"},
    {.name = "mpirun",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.mpirun,
     .argument = "COMMAND",
     .help = "what starts the workers, with its options, divided by blanks; -n N follows"},
    {.name = "workers-left",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.workers_left,
     .argument = "COMMAND",
     .help = "run by sh before each restart: prints how many workers there can be; the first plan "
             "that needs no more is taken"},
    {.name = "restarts",
     .kind = GHP_OPT_INT,
     .target = &chosen.restarts,
     .argument = "R",
     .min = 0,
     .max = 1e6,
     .help = "failures in a row, without a newer checkpoint, that are followed by a restart"},
    {.name = "pause",
     .kind = GHP_OPT_REAL,
     .target = &chosen.pause_s,
     .argument = "SECONDS",
     .min = 0,
     .max = 1e5,
     .help = "before a restart; doubled with each further failure in a row, up to a minute"},
    {.name = "silence",
     .kind = GHP_OPT_REAL,
     .target = &chosen.silence_s,
     .argument = "SECONDS",
     .min = 1,
     .max = 1e6,
     .help = "end a run that gives no sign of life for so long: while it starts, for a step, for a "
             "checkpoint; more than ghp-run's --watchdog"},
};

static const struct ghp_tool tool = {
    .name = "ghp-launch",
    .purpose = "keeps a training going: starts ghp-run under mpirun, and after a failure again, "
               "from the last checkpoint",
    .usage = "ghp-launch PLAN [PLAN2 ...] --checkpoint DIR [options] -- [ghp-run's options]",
    .example = "ghp-launch four.json three.json --checkpoint kept -- --steps 1000 "
               "--checkpoint-every 100",
    .opts = options,
    .n_opts = (int)(sizeof(options) / sizeof(options[0])),
    .notes =
        "Plans are for one model and one global batch, each for fewer workers than the one before. "
        "The first is started.\n"
        "After a failure without progress the same plan is tried again, then the next one; with "
        "--workers-left the\n"
        "first that fits. Each sample is seen when an undisturbed run sees it.\n"
        "SIGTERM, SIGINT or SIGUSR1 ends the run with a checkpoint, and exit code 4; --resume goes "
        "on. A second one\n"
        "kills it. Exit code 1: given up, with the reason; 2 also where ghp-run refuses its "
        "options.\n"
        "See docs/recovery.md."};

static volatile sig_atomic_t stop_requests;

static void note_request(int number)
{
    (void)number;
    stop_requests++;
}

struct launch {
    int n_plans;
    const char *plans[MAX_PLANS];
    int workers[MAX_PLANS];
    int n_run; /* ghp-run's options */
    char **run;

    char tool_path[PATH_BYTES], heartbeat[PATH_BYTES];
    struct ghp_restart restart;
    int64_t kept; /* steps of the newest checkpoint that is to be gone on from; -1: none */
};

/* ---- what to start ---- */

/* Of what a plan must have alike with the first. */
static enum ghp_status take_plan(struct launch *l, int i, const struct ghp_plan *plan,
                                 const struct ghp_plan *first)
{
    l->workers[i] = plan->problem.workers;
    if (i == 0) return GHP_OK;
    if (plan->model_hash != first->model_hash ||
        plan->problem.global_batch != first->problem.global_batch)
        return GHP_FAIL(GHP_ERR_INPUT,
                        "plans '%s' and '%s' are not for one model and one global batch; make both "
                        "from the same model with the same --batch",
                        l->plans[0], l->plans[i]);
    if (l->workers[i] < l->workers[i - 1]) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "plan '%s' is for %d workers, and '%s' before it for %d; give plans from the "
                    "most workers to the fewest, one for each number",
                    l->plans[i], l->workers[i], l->plans[i - 1], l->workers[i - 1]);
}

static enum ghp_status read_plans(struct launch *l)
{
    struct ghp_plan first = {0};
    enum ghp_status status = ghp_plan_load(l->plans[0], &first);

    if (status == GHP_OK) status = take_plan(l, 0, &first, &first);
    for (int i = 1; status == GHP_OK && i < l->n_plans; i++) {
        struct ghp_plan plan = {0};

        status = ghp_plan_load(l->plans[i], &plan);
        if (status == GHP_OK) status = take_plan(l, i, &plan, &first);
        ghp_plan_release(&plan);
    }
    ghp_plan_release(&first);
    return status;
}

/* ghp-run beside this program, else the one on the path. */
static void find_tool(struct launch *l)
{
    static const char name[] = "ghp-run";
    char *slash;
    ssize_t n = readlink("/proc/self/exe", l->tool_path, PATH_BYTES - sizeof(name));

    l->tool_path[n > 0 ? n : 0] = '\0';
    slash = strrchr(l->tool_path, '/');
    snprintf(slash != NULL ? slash + 1 : l->tool_path, sizeof(name), "%s", name);
    if (access(l->tool_path, X_OK) != 0) snprintf(l->tool_path, PATH_BYTES, "%s", name);
}

/* Options of ghp-run that are ghp-launch's to give, or that make no training that could be gone on with. */
static enum ghp_status check_run_options(const struct launch *l)
{
    static const char *const taken[] = {"--checkpoint", "--resume", "--heartbeat", "--verify",
                                        "--compare"};

    for (int i = 0; i < l->n_run; i++) {
        for (size_t t = 0; t < sizeof(taken) / sizeof(taken[0]); t++) {
            size_t n = strcspn(l->run[i], "=");

            if (n == strlen(taken[t]) && strncmp(l->run[i], taken[t], n) == 0)
                return GHP_FAIL(GHP_ERR_USAGE,
                                "%s behind '--' is not ghp-run's here; give --checkpoint and "
                                "--resume before '--', and run --verify and --compare without "
                                "ghp-launch",
                                taken[t]);
        }
    }
    return GHP_OK;
}

static enum ghp_status prepare(struct launch *l)
{
    if (l->n_plans < 1) return GHP_FAIL(GHP_ERR_USAGE, "no plan was given; usage: %s", tool.usage);
    if (chosen.checkpoint == NULL)
        return GHP_FAIL(GHP_ERR_USAGE, "a run is started again from its checkpoints; give "
                                       "--checkpoint DIR");
    if (l->n_run + 16 > MAX_WORDS)
        return GHP_FAIL(GHP_ERR_USAGE, "more than %d options for ghp-run; give fewer",
                        MAX_WORDS - 16);
    GHP_TRY(check_run_options(l));
    GHP_TRY(read_plans(l));
    if (mkdir(chosen.checkpoint, 0777) != 0 && errno != EEXIST)
        return GHP_FAIL(GHP_ERR_IO, "cannot make '%s': %s; name a folder that may be written",
                        chosen.checkpoint, strerror(errno));
    snprintf(l->heartbeat, sizeof(l->heartbeat), "%s/heartbeat", chosen.checkpoint);
    find_tool(l);
    l->restart = (struct ghp_restart){.workers = l->workers,
                                      .n = l->n_plans,
                                      .most_failures = (int)chosen.restarts,
                                      .pause_s = chosen.pause_s};
    l->kept = chosen.resume ? 0 : -1;
    return ghp_family_adopt();
}

/* argv of one attempt, into `words`; `text` is cut into and lives as long. */
static void make_command(struct launch *l, char *text, char number[16], char **words)
{
    int n = 0;
    char *rest = NULL;

    for (char *word = strtok_r(text, " ", &rest); word != NULL && n < MAX_WORDS / 2;
         word = strtok_r(NULL, " ", &rest))
        words[n++] = word;
    snprintf(number, 16, "%d", l->workers[l->restart.plan]);
    words[n++] = (char *)(uintptr_t) "-n";
    words[n++] = number;
    words[n++] = l->tool_path;
    words[n++] = (char *)(uintptr_t)l->plans[l->restart.plan];
    for (int i = 0; i < l->n_run; i++)
        words[n++] = l->run[i];
    words[n++] = (char *)(uintptr_t) "--checkpoint";
    words[n++] = (char *)(uintptr_t)chosen.checkpoint;
    words[n++] = (char *)(uintptr_t) "--heartbeat";
    words[n++] = l->heartbeat;
    if (l->kept >= 0) words[n++] = (char *)(uintptr_t) "--resume";
    words[n] = NULL;
}

/* ---- one attempt after the other ---- */

static enum ghp_status attempt(struct launch *l, struct ghp_job *job)
{
    char *text = strdup(chosen.mpirun), number[16], *words[2 * MAX_WORDS];
    enum ghp_status status;

    if (text == NULL) return GHP_NO_MEMORY();
    make_command(l, text, number, words);
    *job = (struct ghp_job){
        .command = words, .heartbeat = l->heartbeat, .silence_s = chosen.silence_s};
    status = ghp_job_start(job);
    if (status == GHP_OK) ghp_job_watch(job, &stop_requests);
    job->command = NULL;
    free(text);
    if (status == GHP_OK && job->left > 0)
        ghp_warn("%d process(es) of the run cannot be killed", job->left);
    return status;
}

/* What the command prints; -1 where there is no command. */
static enum ghp_status count_workers(int *left)
{
    FILE *out;
    int found = 0, ended;

    *left = -1;
    if (chosen.workers_left == NULL) return GHP_OK;
    out = popen(chosen.workers_left, "re");
    if (out != NULL) found = fscanf(out, "%d", left);
    ended = out != NULL ? pclose(out) : -1;
    if (ended == 0 && found == 1 && *left >= 0) return GHP_OK;
    return GHP_FAIL(GHP_ERR_INPUT,
                    "--workers-left '%s' prints no number of workers; give a command that does, "
                    "and exits with 0",
                    chosen.workers_left);
}

/* How an attempt failed, for people. */
static void describe(const struct ghp_job *job, char *text, size_t n)
{
    if (job->silent)
        snprintf(text, n, "no sign of life for %.0f s", chosen.silence_s);
    else if (ghp_job_tells(job))
        snprintf(text, n, "%s", job->said);
    else if (job->signal != 0)
        snprintf(text, n, "mpirun ended by signal %d (%s)", job->signal, strsignal(job->signal));
    else
        snprintf(text, n, "mpirun ended with exit code %d", job->exit_code);
}

/* What follows a failed attempt: says it, sets the plan, and waits. */
static enum ghp_status recover(struct launch *l, const struct ghp_job *job)
{
    bool progress = job->beat.kept > (l->kept > 0 ? l->kept : 0);
    int left = -1, workers = l->workers[l->restart.plan];
    char why[GHP_JOB_TEXT_BYTES + 64];
    struct timespec pause;
    double pause_s;

    describe(job, why, sizeof(why));
    if (job->beat.kept > 0) l->kept = job->beat.kept;
    ghp_note("%d workers failed after %lld steps, with a checkpoint of %lld: %s", workers,
             (long long)job->beat.step, (long long)(l->kept > 0 ? l->kept : 0), why);
    GHP_TRY(count_workers(&left));
    switch (ghp_restart_next(&l->restart, progress, left)) {
    case GHP_RESTART: break;
    case GHP_RESTART_TOO_OFTEN:
        return GHP_FAIL(GHP_ERR_COMM,
                        "gave up: %d failures in a row without a newer checkpoint, the last: %s; "
                        "see why, then go on with --resume",
                        l->restart.failures, why);
    case GHP_RESTART_TOO_FEW_LEFT:
        return GHP_FAIL(GHP_ERR_COMM,
                        "gave up: %d workers are left, and the smallest plan is for %d; go on with "
                        "--resume and a plan for fewer",
                        left, l->workers[l->n_plans - 1]);
    }
    pause_s = ghp_restart_pause_s(&l->restart);
    ghp_note("in %g s %d workers go on by '%s' from step %lld", pause_s,
             l->workers[l->restart.plan], l->plans[l->restart.plan],
             (long long)(l->kept > 0 ? l->kept : 0));
    pause = (struct timespec){(time_t)pause_s, (long)((pause_s - (double)(time_t)pause_s) * 1e9)};
    nanosleep(&pause, NULL); /* a signal ends it early */
    return GHP_OK;
}

static enum ghp_status keep_going(struct launch *l, int *exit_code)
{
    struct ghp_job job;

    for (;;) {
        GHP_TRY(attempt(l, &job));
        *exit_code = job.exit_code;
        if (job.exit_code == 0 || job.exit_code == EXIT_USAGE || job.exit_code == GHP_EXIT_STOPPED)
            return GHP_OK;
        *exit_code = GHP_EXIT_STOPPED;
        if (stop_requests > 0) return GHP_OK;
        GHP_TRY(recover(l, &job));
        if (stop_requests > 0) return GHP_OK;
    }
}

static void listen(void)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP};
    struct sigaction action = {.sa_handler = note_request};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        sigaction(numbers[i], &action, NULL);
}

int main(int argc, char **argv)
{
    struct launch launch = {.n_plans = 0};
    enum ghp_status status;
    int own = 1, exit_code = 0;

    ghp_log_open(tool.name, true);
    while (own < argc && strcmp(argv[own], "--") != 0)
        own++;
    launch.run = own < argc ? argv + own + 1 : NULL;
    launch.n_run = own < argc ? argc - own - 1 : 0;
    status = ghp_opts_parse(&tool, own, argv, launch.plans, MAX_PLANS, &launch.n_plans);
    if (status == GHP_OK && ghp_opts_done()) return 0;
    if (status == GHP_OK) status = prepare(&launch);
    if (status == GHP_OK) {
        listen();
        status = keep_going(&launch, &exit_code);
        unlink(launch.heartbeat);
    }
    if (status == GHP_OK) return exit_code;
    fprintf(stderr, "ghp-launch: %s\n", ghp_status_message());
    return ghp_status_exit_code(status);
}
