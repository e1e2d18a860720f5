/* executor/launcher/job.h - one attempt: a command that is started, watched and ended.
 *
 * The command runs in a process group of its own, so that the terminal's Ctrl-C reaches ghp-launch alone. Its stdout
 * and stderr go through this process, which keeps the sentence that says why it failed. Processes that are left when it
 * ends are killed (executor/launcher/process_tree.h).
 *
 * Call order: start -> watch. */
#ifndef GHP_EXECUTOR_LAUNCHER_JOB_H
#define GHP_EXECUTOR_LAUNCHER_JOB_H

#include "core/base/heartbeat.h"

#include <signal.h>
#include <sys/types.h>

enum { GHP_JOB_TEXT_BYTES = 600 };

struct ghp_job {
    /* given */
    char **command;        /* argv, ended by NULL */
    const char *heartbeat; /* the file that it writes */
    double silence_s;      /* longest time without a beat */
    /* asked ten times a second: whether to end it in order, for something better; NULL: never */
    bool (*enough)(void *context, const struct ghp_job *job);
    void *context;
    /* found */
    pid_t pid;
    int out, pipe;   /* its stdout and stderr */
    int exit_code;   /* -1: it was killed, see `signal` */
    int signal;      /* that killed it; 0: none */
    bool silent;     /* it was ended because its heart stood still */
    bool had_enough; /* it was asked to end, for something better */
    double begun_s;  /* when it was started, and when its first step was seen; 0: not */
    double trains_s;
    int asked;                     /* how often it was asked to stop */
    int left;                      /* processes that could not be killed */
    struct ghp_beat beat;          /* the last one */
    char said[GHP_JOB_TEXT_BYTES]; /* why it failed, in its own words; "": it did not say */
    int rank_of_said;              /* how much these words tell */
    char line[GHP_JOB_TEXT_BYTES];
    size_t line_bytes;
};

/* Returns   GHP_OK; GHP_ERR_INPUT (the command cannot be run); GHP_ERR_INTERNAL (no process, no pipe) */
enum ghp_status ghp_job_start(struct ghp_job *job);

/* Until the command and all that it started have ended. *stop_requests: how often a signal asked this process to stop;
 * the first is handed on as SIGUSR1, which ends ghp-run with a checkpoint; a second one kills. */
void ghp_job_watch(struct ghp_job *job, const volatile sig_atomic_t *stop_requests);

/* Whether `said` is why it failed. What mpirun or the watchdog says is. The last words of ghp-run are if it has ended
 * by itself. */
bool ghp_job_tells(const struct ghp_job *job);

/* Whether numbers that were not finite have ended it: it would end the same again. */
bool ghp_job_diverged(const struct ghp_job *job);

/* Whether it could not begin for what trying again does not mend, such as a launcher that is not there. */
bool ghp_job_is_lasting(const struct ghp_job *job);

/* Whether `said` is that a host cannot be reached, or was lost. */
bool ghp_job_misses_host(const struct ghp_job *job);

/* One line of the command's stderr, as far as it tells why it failed. For job.c and its test. */
void ghp_job_hear(struct ghp_job *job, const char *line);

#endif
