/* executor/launcher/job.c - see executor/launcher/job.h. */
#include "executor/launcher/job.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "executor/launcher/process_tree.h"
#include "executor/launcher/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_MS = 100, CANNOT_RUN = 127 };
static const double grace_s = 5;  /* from a request to end to a kill */
static const double failed_s = 2; /* the same of a failed run: mpirun kills its own after one */
static const double ending_s = 5; /* that mpirun has to end a run that has said why it fails */

/* ---- start ---- */

/* In the child, up to the command: stdout and stderr into pipes, no terminal to read from, dead when ghp-launch
 * dies. */
static _Noreturn void become(char **command, int out, int pipe, pid_t parent)
{
    int null = open("/dev/null", O_RDONLY);

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, (long)SIGTERM, 0L, 0L, 0L);
    if (getppid() != parent || null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 ||
        dup2(pipe, 2) < 0)
        _exit(CANNOT_RUN);
    execvp(command[0], command);
    ghp_log_failure("cannot run '%s': %s; name another one with --mpirun", command[0],
                    strerror(errno));
    _exit(CANNOT_RUN);
}

enum ghp_status ghp_job_start(struct ghp_job *job)
{
    pid_t self = getpid();
    int out[2], ends[2];

    unlink(job->heartbeat);
    GHP_TRY(ghp_relay_open(out));
    GHP_TRY(ghp_relay_open(ends));
    fflush(NULL);
    job->begun_s = ghp_now_s();
    job->pid = fork();
    if (job->pid == 0) become(job->command, out[1], ends[1], self);
    close(out[1]);
    close(ends[1]);
    job->out = out[0];
    job->pipe = ends[0];
    if (job->pid > 0) return GHP_OK;
    close(out[0]);
    close(ends[0]);
    return GHP_FAIL(GHP_ERR_INTERNAL, "cannot start a process: %s; raise the limit of processes",
                    strerror(errno));
}

/* ---- what it says ---- */

/* What tells more comes later in this list: any failure that ghp-run or ghp-launch reports; from mpirun, that it starts
 * nothing for want of cores, cannot reach a host or run the program there, lost a host, or which rank exited before
 * its time or died; the watchdog's sentence, which names worker, layer and instruction; which workers MPI's start lacks,
 * which only workers of one host may see; what is wrong with the command or the machine; and numbers that are not
 * finite, which the same training would come to again. Among lines of one kind the first counts. For the first kind the
 * last counts, since a failure comes after notes. */
static const struct {
    const char *words; /* of the line */
    const char *after; /* which its word of interest follows; NULL: there is not one */
    const char *say;   /* instead of the line, with that word; NULL: the line itself */
    enum { PASSES, LASTS, HOSTS } kind; /* trying again may mend it; does not; a host is missing */
} telling[] = {
    {"ghp-", NULL, NULL, PASSES},
    {"not enough slots available", NULL,
     "mpirun has too few slots for the workers; give --mpirun 'mpirun --oversubscribe', or hosts "
     "with more slots",
     PASSES},
    {"unable to reliably start one or more daemons", NULL,
     "mpirun lost a host, or cannot start its daemon on one", HOSTS},
    {"Could not resolve hostname ", "resolve hostname ",
     "host '%.*s' is not known; correct its name in the host file or in --mpirun", HOSTS},
    {"ssh: connect to host ", "to host ",
     "host '%.*s' does not let ssh in; it must, without a password", HOSTS},
    {"Executable: ", "Executable: ",
     "mpirun cannot run '%.*s' on a host; install ghp there under the same name, or name another "
     "program with --mpirun",
     PASSES},
    {"Application name: ", "Application name: ",
     "mpirun cannot run '%.*s' on a host; see that it is a program", PASSES},
    {"Remote daemon: ", " on node ", "mpirun lost host '%.*s'", HOSTS},
    {"has exited due to process rank ", "due to process rank ",
     "process rank %.*s exited before the training's end", PASSES},
    {"noticed that process rank", NULL, NULL, PASSES},
    {" waited ", NULL, NULL, PASSES},
    {"cannot start without rank", NULL, NULL, PASSES},
    {"unable to open the hostfile", NULL,
     "mpirun cannot open the host file; give --mpirun one that is there", LASTS},
    {"unable to open host file: ", "host file: ",
     "mpirun cannot open the host file '%.*s'; give --mpirun one that is there", LASTS},
    {"mpirun: Error: unknown option", NULL, NULL, LASTS},
    {"; name another one with --mpirun", NULL, NULL, LASTS},
    {", and each is alone: ", NULL, NULL, LASTS},
    {"use --backend onednn", NULL, NULL, LASTS}, /* no GPU, or no driver */
    {"this build has no backend", NULL, NULL, LASTS},
    {"not finite", NULL, NULL, PASSES},
    {"training diverged", NULL, NULL, PASSES}};
enum { N_TELLING = sizeof telling / sizeof telling[0], REPEATS = 2 /* the last ones */ };

void ghp_job_hear(struct ghp_job *job, const char *line)
{
    const char *word = "";
    int rank = 0;

    for (int i = 0; i < N_TELLING; i++) {
        const char *found = strstr(line, telling[i].words);

        if (found != NULL && (i > 0 || found == line)) rank = i + 1;
    }
    if (strstr(line, ": warning: ") != NULL || rank < job->rank_of_said || rank == 0) return;
    if (rank == job->rank_of_said && rank > 1) return;
    job->rank_of_said = rank;
    if (telling[rank - 1].after != NULL) word = strstr(line, telling[rank - 1].after);
    if (word != NULL && *word != '\0') word += strlen(telling[rank - 1].after);
    while (word != NULL && *word == ' ')
        word++;
    if (strncmp(line, "ghp-run: ", 9) == 0) line += 9;
    if (strncmp(line, "ghp-launch: ", 12) == 0) line += 12;
    if (telling[rank - 1].say == NULL || word == NULL)
        snprintf(job->said, sizeof job->said, "%s", line);
    else
        snprintf(job->said, sizeof job->said, telling[rank - 1].say, (int)strcspn(word, " :"),
                 word);
}

bool ghp_job_diverged(const struct ghp_job *job)
{
    return job->rank_of_said > N_TELLING - REPEATS;
}

bool ghp_job_is_lasting(const struct ghp_job *job)
{
    return job->rank_of_said > 0 && telling[job->rank_of_said - 1].kind == LASTS &&
           job->trains_s <= 0;
}

bool ghp_job_misses_host(const struct ghp_job *job)
{
    return job->rank_of_said > 0 && telling[job->rank_of_said - 1].kind == HOSTS;
}

bool ghp_job_tells(const struct ghp_job *job)
{
    return job->rank_of_said > 1 || (job->rank_of_said == 1 && job->exit_code == 1);
}

/* Passes on what is there. False at the pipe's end. */
static bool pass_on(struct ghp_job *job)
{
    char bytes[4096];
    ssize_t n = read(job->pipe, bytes, sizeof(bytes));

    if (n < 0) return errno == EINTR || errno == EAGAIN;
    if (n == 0) return false;
    fwrite(bytes, 1, (size_t)n, stderr);
    fflush(stderr);
    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] != '\n' && job->line_bytes + 1 < sizeof job->line)
            job->line[job->line_bytes++] = bytes[i];
        if (bytes[i] != '\n') continue;
        job->line[job->line_bytes] = '\0';
        ghp_job_hear(job, job->line);
        job->line_bytes = 0;
    }
    return true;
}

/* ---- watch ---- */

struct watch {
    double heard_s; /* when the last beat was seen */
    double told_s;  /* when it said why it fails; 0: it did not */
    double kill_s;  /* when it is killed; 0: not yet decided */
};

/* Asks the command to end, and gives it a while before a kill. */
static void ask(struct ghp_job *job, struct watch *watch, int number, double before_kill_s)
{
    kill(job->pid, number);
    kill(job->pid, SIGCONT);
    if (number == SIGTERM) watch->kill_s = ghp_now_s() + before_kill_s;
}

static void look(struct ghp_job *job, struct watch *watch, int requests)
{
    double before_s = job->beat.changed_s, now_s = ghp_now_s();

    job->beat = ghp_heartbeat_read(job->heartbeat);
    if (job->beat.changed_s > before_s || job->beat.changed_s < before_s) watch->heard_s = now_s;
    if (job->trains_s <= 0 && job->beat.step > 0) job->trains_s = now_s;
    if (!job->had_enough && job->asked == 0 && job->enough != NULL &&
        job->enough(job->context, job)) {
        job->had_enough = true;
        ask(job, watch, SIGUSR1, grace_s);
    }
    if (job->asked < requests) {
        ask(job, watch, job->asked == 0 ? SIGUSR1 : SIGTERM, grace_s);
        job->asked++;
    }
    if (watch->kill_s > 0 && now_s > watch->kill_s) ghp_process_tree_kill();
    if (job->rank_of_said > 1 && watch->told_s <= 0) watch->told_s = now_s;
    if (watch->kill_s > 0) return;
    job->silent = watch->told_s <= 0 && now_s - watch->heard_s >= job->silence_s;
    if (job->silent || (watch->told_s > 0 && now_s - watch->told_s >= ending_s))
        ask(job, watch, SIGTERM, failed_s); /* mpirun waits for ever for a host that is gone */
}

void ghp_job_watch(struct ghp_job *job, const volatile sig_atomic_t *stop_requests)
{
    struct watch watch = {.heard_s = ghp_now_s()};
    struct pollfd streams[2] = {{.fd = job->pipe, .events = POLLIN},
                                {.fd = job->out, .events = POLLIN}};
    int ended = 0;
    pid_t pid = 0;

    while (pid != job->pid) {
        if (poll(streams, 2, LOOK_MS) > 0) {
            if (streams[0].revents != 0 && !pass_on(job)) streams[0].fd = -1;
            if (streams[1].revents != 0 && !ghp_relay_pass(job->out)) streams[1].fd = -1;
        }
        look(job, &watch, *stop_requests);
        pid = waitpid(job->pid, &ended, WNOHANG);
        if (pid < 0 && errno != EINTR) break; /* ghp_process_tree_kill has seen its end */
    }
    job->exit_code = pid > 0 && WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
    job->signal = pid > 0 && WIFSIGNALED(ended) ? WTERMSIG(ended) : SIGKILL;
    if (job->exit_code >= 0) job->signal = 0;
    job->left = ghp_process_tree_kill();
    while (streams[0].fd >= 0 && pass_on(job)) {
    }
    while (streams[1].fd >= 0 && ghp_relay_pass(job->out)) {
    }
    close(job->pipe);
    close(job->out);
    job->beat = ghp_heartbeat_read(job->heartbeat);
}
