/* ghp-test: timeout=60
 *
 * tests/executor/launcher/test_job.c - a command is watched to its end, however it ends: by itself, by a signal,
 * because it is silent, because it is asked to stop; processes that it leaves are killed; which of its words are
 * kept. */
#include "executor/launcher/process_tree.h"
#include "executor/launcher/job.h"

#include "core/base/clock.h"
#include "tests/check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char beat[64], pid_file[64], script[512];
static volatile sig_atomic_t requests;

static void raise_request(int number)
{
    (void)number;
    requests++;
}

static struct ghp_job run(const char *text, double silence_s)
{
    static char *command[] = {"/bin/sh", "-c", script, NULL};
    struct ghp_job job = {.command = command, .heartbeat = beat, .silence_s = silence_s};

    snprintf(script, sizeof script, text, pid_file);
    if (CHECK_STATUS(ghp_job_start(&job), GHP_OK)) ghp_job_watch(&job, &requests);
    CHECK_EQ(job.left, 0);
    return job;
}

/* The process whose number the script wrote is gone. */
static void check_gone(void)
{
    FILE *file = fopen(pid_file, "r");
    int pid = 0;

    CHECK(file != NULL && fscanf(file, "%d", &pid) == 1 && fclose(file) == 0);
    CHECK(pid > 1 && kill(pid, 0) != 0);
    unlink(pid_file);
}

static void check_words(void)
{
    struct ghp_job job = {.exit_code = -1};

    ghp_job_hear(&job, "ghp-run: resuming after step 7");
    CHECK(!ghp_job_tells(&job)); /* killed: not its reason */
    ghp_job_hear(&job, "ghp-run: cannot read 'x': no such file; see that it is there");
    ghp_job_hear(&job, "ghp-run: warning: no checkpoint after 3 steps");
    job.exit_code = 1;
    CHECK(ghp_job_tells(&job));
    CHECK_TEXT(job.said, "cannot read 'x': no such file; see that it is there");
    ghp_job_hear(&job, "ORTE was unable to reliably start one or more daemons.");
    CHECK_TEXT(job.said, "mpirun lost a host, or cannot start its daemon on one");
    ghp_job_hear(&job, "ssh: Could not resolve hostname node9: Name or service not known");
    CHECK_TEXT(job.said, "host 'node9' is not known; correct its name in the host file or in --mpirun");
    ghp_job_hear(&job, "ssh: connect to host node8 port 22: Connection refused");
    CHECK_TEXT(job.said, "host 'node8' does not let ssh in; it must, without a password");
    CHECK(ghp_job_misses_host(&job));
    ghp_job_hear(&job, "Executable: /opt/ghp-run");
    CHECK(strstr(job.said, "mpirun cannot run '/opt/ghp-run' on a host; install ghp") == job.said);
    CHECK(!ghp_job_misses_host(&job));
    ghp_job_hear(&job, "  Application name:  ./bad.sh");
    CHECK(strstr(job.said, "mpirun cannot run './bad.sh' on a host; see") == job.said);
    ghp_job_hear(&job, "  HNP daemon   : [[25480,0],0] on node a");
    ghp_job_hear(&job, "  Remote daemon: [[25480,0],2] on node host2");
    CHECK_TEXT(job.said, "mpirun lost host 'host2'");
    ghp_job_hear(&job, "mpirun has exited due to process rank 1 with PID 0 on");
    CHECK_TEXT(job.said, "process rank 1 exited before the training's end");
    ghp_job_hear(
        &job,
        "mpirun noticed that process rank 2 with PID 7 on node n exited on signal 9 (Killed).");
    ghp_job_hear(&job, "ghp-run: and more");
    CHECK(strstr(job.said, "rank 2") != NULL);
    ghp_job_hear(
        &job, "ghp-run: worker 0 waited 5 s in 'all_reduce conv1': nothing arrived from rank(s) 1");
    ghp_job_hear(&job, "ghp-run: worker 3 waited 5 s in 'ending'");
    CHECK(strstr(job.said, "worker 0 waited 5 s in 'all_reduce conv1'") == job.said);
    ghp_job_hear(&job, "ghp-run: worker 2 waited 5 s in 'starting MPI': MPI cannot start without "
                       "rank(s) 3 stopped");
    CHECK(strstr(job.said, "worker 2 waited") == job.said);
    CHECK(!ghp_job_diverged(&job) && !ghp_job_is_lasting(&job));
    ghp_job_hear(&job, "Open RTE was unable to open the hostfile:");
    CHECK(strstr(job.said, "mpirun cannot open the host file; give") == job.said);
    CHECK(ghp_job_is_lasting(&job));
    ghp_job_hear(&job, "[mpiexec@a] HYDU_parse_hostfile (args.c:319): unable to open host file: x");
    CHECK(strstr(job.said, "mpirun cannot open the host file 'x'; give") == job.said);
    ghp_job_hear(&job, "ghp-launch: cannot run 'x': No such file or directory; name another one "
                       "with --mpirun");
    CHECK(strstr(job.said, "cannot run 'x'") == job.said && ghp_job_is_lasting(&job));
    ghp_job_hear(&job, "ghp-run: 2 workers were started, and each is alone: their launcher is");
    ghp_job_hear(&job, "ghp-run: no NVIDIA driver was found; install it, or use --backend onednn");
    CHECK(strstr(job.said, "no NVIDIA driver") == job.said && ghp_job_is_lasting(&job));
    ghp_job_hear(&job, "ghp-run: warning: the training diverged"); /* no failure */
    CHECK(!ghp_job_diverged(&job));
    ghp_job_hear(&job, "ghp-run: the weights of 'fc' are not finite after step 3: lower --lr");
    ghp_job_hear(&job, "mpirun has exited due to process rank 1 with PID 0 on");
    CHECK(ghp_job_diverged(&job) && !ghp_job_is_lasting(&job));
    CHECK_TEXT(job.said, "the weights of 'fc' are not finite after step 3: lower --lr");
}

CHECK_TEST(job)
{
    struct ghp_job job;
    double begin_s;

    (void)argc, (void)argv;
    snprintf(beat, sizeof beat, "/tmp/ghp-test-job-%ld.beat", (long)getpid());
    snprintf(pid_file, sizeof pid_file, "/tmp/ghp-test-job-%ld.pid", (long)getpid());
    CHECK_STATUS(ghp_process_tree_adopt(), GHP_OK);
    check_words();

    job = run("echo 'ghp-run: no; yes' >&2; exit 3", 60);
    CHECK_EQ(job.exit_code, 3);
    CHECK_TEXT(job.said, "no; yes");
    job = run("sleep 1000 & echo $! >%s; kill -9 $$", 60);
    CHECK(job.exit_code == -1 && job.signal == SIGKILL);
    check_gone();

    begin_s = ghp_now_s();
    job = run("trap '' TERM; sleep 1000 & echo $! >%s; kill -STOP $$; wait", 1);
    CHECK(job.silent && ghp_now_s() - begin_s < 30);
    check_gone();

    begin_s = ghp_now_s(); /* it has said why, and does not end */
    job = run("trap '' TERM; echo $$ >%s; echo \"ghp-run: worker 0 waited 5 s in 'x'\" >&2; while "
              ":; do sleep 1; done",
              1000);
    CHECK(!job.silent && ghp_now_s() - begin_s < 30);
    CHECK_TEXT(job.said, "worker 0 waited 5 s in 'x'");
    check_gone();

    signal(SIGALRM, raise_request);
    alarm(1);
    job = run("trap 'exit 4' USR1; echo $$ >%s; while :; do sleep 0.1; done", 60);
    CHECK(job.exit_code == 4 && !job.silent);
    check_gone();
    unlink(beat);
    return check_end();
}
