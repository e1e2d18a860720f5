/* executor/cli/ghp-run.c - the tool that trains by a plan: options, start and end; executor/cli/session.h does the
 * rest. */
#include "core/base/log.h"
#include "executor/cli/hints.h"
#include "executor/cli/libraries.h"
#include "executor/cli/rank.h"
#include "executor/cli/session.h"
#include "executor/cli/session_options.h"
#include "executor/compare/candidates.h"
#include "executor/compare/guard.h"
#include "executor/platform/failpoint.h"
#include "executor/platform/launch.h"
#include "executor/platform/wait_policy.h"
#include "executor/train/stop.h"
#include "executor/transport/device/device_transport.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const numerics_names[] = {"auto", "exact", "fast", NULL};
static const char *const numerics_synonyms[] = {"deterministic", "exact", NULL};
static const char *const precision_names[] = {"plan", "float", "double", "tf32", "bf16", NULL};
static const char *const evaluate_names[] = {"auto", "on", "off", NULL};
static const char *const optimizer_names[] = {"plan",
#define OPTIMIZER_NAME(name) #name,
                                              GHP_OPTIMIZER_LIST(OPTIMIZER_NAME)
#undef OPTIMIZER_NAME
                                                  NULL};
static const char *const on_off_names[] = {"on", "off", NULL};

static struct ghp_session_options chosen = {
    .data = "synthetic",
    .steps = GHP_NOT_SET,
    .epochs = GHP_NOT_SET,
    .checkpoint_epochs = 1,
    .given = {.learning_rate = GHP_NOT_SET,
              .weight_decay = GHP_NOT_SET,
              .momentum = GHP_NOT_SET,
              .beta1 = GHP_NOT_SET,
              .beta2 = GHP_NOT_SET,
              .epsilon = GHP_NOT_SET,
              .clip_norm = GHP_NOT_SET},
    .seed = 1,
    .verify_steps = GHP_NOT_SET,
    .ab_steps = GHP_NOT_SET,
    .ab_rounds = 10,
    .ab_warmup_steps = 2,
    .threads = GHP_NOT_SET,
    .ignored_label = GHP_NO_LABEL,
    .watchdog_s = 60,
};

static const struct ghp_opt options[] = {
    {.kind = GHP_OPT_HEADING, .help = "Data"},
    {.name = "data",
     .kind = GHP_OPT_TEXT,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.data,
     .argument = "SOURCE",
     .help = "synthetic, folder:DIR (JPEG and PNG, a folder a class), npy:DIR or "
             "npy:IMAGES.npy,LABELS.npy, idx:DIR (MNIST family, plain or gzip), cifar10:DIR, "
             "cifar100:DIR (binary versions), tokens:FILE[,FILE...][,val:FILE] (token ids; files "
             "behind val: test) or bytes:FILE (the "
             "same of any files, a token a byte)"},
    {.name = "train-fraction",
     .former = "split",
     .kind = GHP_OPT_REAL,
     .target = &chosen.split,
     .argument = "F",
     .min = 0.001,
     .max = 0.999,
     .help = "cut a lone set in order: its first part F trains, the rest tests"},
    {.name = "augment",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.augment,
     .choices = ghp_augment_names,
     .help =
         "of training images: crop-flip resizes a random part of 8 to 100 % of the area and an "
         "aspect of 3/4 to 4/3, and mirrors half of them; none takes the middle, as evaluations "
         "do; auto: crop-flip of folder:DIR"},
    {.name = "labels",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.labels,
     .choices = ghp_labels_names,
     .help = "of images from files: given, or parity: 0 of even ones and 1 of odd ones"},
    {.name = "shuffle",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.shuffle,
     .choices = ghp_shuffling_names,
     .help = "of the training set: epoch: every epoch anew; once: all epochs in one order, so that "
             "by data a worker whose batches are its part of the set keeps its samples; off: in "
             "the order of the files"},
    {.name = "normalise",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.normalise,
     .argument = "HOW",
     .help =
         "images: train (the training set's mean and deviation of each channel; not of folders), "
         "imagenet, none (bytes / 255), unit (bytes over each image's length), or "
         "MEAN,...:DEVIATION,... in parts of 255, one number or "
         "one a channel; unless given imagenet of folders, none of floating-point files, else "
         "train"},
    {.name = "skip-damaged",
     .kind = GHP_OPT_INT,
     .target = &chosen.skip_damaged,
     .argument = "N",
     .min = 0,
     .max = 1e12,
     .help =
         "images of folder:DIR that a worker may find damaged: each is named, and the next sound "
         "one of its class trains in its place"},
    {.name = "ignore-label",
     .kind = GHP_OPT_INT,
     .target = &chosen.ignored_label,
     .argument = "L",
     .min = INT32_MIN,
     .max = INT32_MAX,
     .help = "samples, or positions, of this label, such as -100 or 255, have no loss; it is the "
             "mean of all others"},
    {.name = "sampler",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.sampler,
     .choices = ghp_sampler_names,
     .help = "which samples a step takes: uniform (epochs, each shuffled anew), or srg: of plans "
             "with one "
             "sample a worker, more often those whose gradients were long, with weights that keep "
             "the mean"},
    {.kind = GHP_OPT_HEADING, .help = "Training"},
    {.name = "steps",
     .kind = GHP_OPT_INT,
     .target = &chosen.steps,
     .argument = "S",
     .min = 1,
     .max = 1e12,
     .help = "steps to train in all; 20 where neither this nor --epochs is given"},
    {.name = "epochs",
     .kind = GHP_OPT_INT,
     .target = &chosen.epochs,
     .argument = "E",
     .min = 1,
     .max = 1e6,
     .help = "epochs to train in all, instead of --steps"},
    {.name = "optimizer",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.optimizer,
     .choices = optimizer_names,
     .help = "the plan's, which knows its memory; another is refused"},
    {.name = "lr",
     .kind = GHP_OPT_REAL,
     .target = &chosen.given.learning_rate,
     .argument = "X",
     .min = 0,
     .max = 1e6,
     .help = "learning rate; 0.01 of sgd, 0.001 of adamw, 0.0001 of lion unless given"},
    {.name = "momentum",
     .kind = GHP_OPT_REAL,
     .target = &chosen.given.momentum,
     .argument = "X",
     .min = 0,
     .max = 0.9999999,
     .help = "of sgd; 0.9 unless given"},
    {.name = "beta1",
     .kind = GHP_OPT_REAL,
     .target = &chosen.given.beta1,
     .argument = "X",
     .min = 0,
     .max = 0.9999999,
     .help =
         "of adamw: how much of the gradients' mean is kept; of lion: how much of it a step takes; "
         "0.9 unless given"},
    {.name = "beta2",
     .kind = GHP_OPT_REAL,
     .target = &chosen.given.beta2,
     .argument = "X",
     .min = 0,
     .max = 0.9999999,
     .help = "of adamw: how much of the gradients' mean square is kept; 0.999 unless given; of "
             "lion: of "
             "the gradients' mean; 0.99 unless given"},
    {.name = "epsilon",
     .kind = GHP_OPT_REAL,
     .target = &chosen.given.epsilon,
     .argument = "X",
     .min = 0,
     .max = 1,
     .help = "of adamw: added to the root of the mean square; 1e-8 unless given"},
    {.name = "clip-norm",
     .kind = GHP_OPT_REAL,
     .target = &chosen.given.clip_norm,
     .argument = "X",
     .min = GHP_CLIP_NORM_LEAST,
     .max = GHP_CLIP_NORM_MOST,
     .help = "another norm than the plan's to clip gradients to; refused where the plan has none"},
    {.name = "weight-decay",
     .kind = GHP_OPT_REAL,
     .target = &chosen.given.weight_decay,
     .argument = "X",
     .min = 0,
     .max = 1e3,
     .help =
         "of sgd added to the gradient times the weight, for every parameter; 0 unless given; "
         "of adamw and lion taken off the weight, times the learning rate, for parameters of two "
         "or more dimensions; 0.01 of adamw, 0 of lion unless given"},
    GHP_PARAMETER_GROUP_OPTIONS(chosen.groups),
    {.name = "lr-schedule",
     .former = "schedule",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.schedule,
     .choices = ghp_lr_schedule_names,
     .help = "constant; step (a tenth at half, a hundredth at three quarters); cosine, linear, "
             "quadratic, exponential: down to --lr-min (exponential: to a hundredth unless given); "
             "wsd: "
             "stable, then linear over the last --decay-steps; inverse: by the steps so far; "
             "inverse-epoch: by the epochs"},
    {.name = "step-at",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.step_at,
     .argument = "A,B",
     .help = "parts of the steps after which --lr-schedule step is at a tenth and at a hundredth; "
             "0.5,0.75 unless given"},
    {.name = "lr-min",
     .kind = GHP_OPT_REAL,
     .target = &chosen.least_rate,
     .argument = "X",
     .min = 0,
     .max = 1e6,
     .help = "learning rate at the end of cosine, linear, quadratic, exponential and wsd"},
    {.name = "decay-steps",
     .kind = GHP_OPT_INT,
     .target = &chosen.decay_steps,
     .argument = "N",
     .min = 0,
     .max = 1e12,
     .help = "last steps, in which wsd decays"},
    {.name = "warmup-steps",
     .former = "warmup",
     .kind = GHP_OPT_INT,
     .target = &chosen.warmup_steps,
     .argument = "S",
     .min = 0,
     .max = 1e12,
     .help = "steps of linear warm-up before the schedule"},
    {.name = "seed",
     .kind = GHP_OPT_INT,
     .target = &chosen.seed,
     .argument = "X",
     .min = 0,
     .max = 9e15,
     .help = "of weights, order of samples, augmentation, dropout and synthetic data"},
    {.name = "init",
     .kind = GHP_OPT_TEXT,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.init,
     .argument = "SOURCE",
     .help =
         "first weights: random (by --seed), random:SEED, or FILE.safetensors, FILE.onnx or a "
         "FOLDER of transformers with all of the model's tensors; unless given, those of the ONNX "
         "file or folder that was planned"},
    {.name = "init-except",
     .kind = GHP_OPT_LIST,
     .target = &chosen.init_except,
     .argument = "PATTERN",
     .help = "tensors not to take from it, such as a new head's 'fc.*'; may be repeated"},
    {.name = "guard",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.guard,
     .choices = ghp_guard_names,
     .help = "time data parallelism in turns with the plan after the first steps, and go on with "
             "the faster; auto: in trainings of more than 200 steps, where the first ones are "
             "beyond the prediction's error or the profile was disturbed; on: in any"},
    {.name = "eval",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.evaluate,
     .choices = evaluate_names,
     .help = "evaluate on the test set after each epoch and at the end; auto: where data comes "
             "from files"},
    {.name = "eval-every",
     .kind = GHP_OPT_INT,
     .target = &chosen.evaluate_every,
     .argument = "S",
     .min = 0,
     .max = 1e12,
     .help = "evaluate after every S steps too, whatever the data; 0: not"},
    {.name = "patience",
     .kind = GHP_OPT_INT,
     .target = &chosen.patience,
     .max = 1e6,
     .help = "stop early: after N evaluations in a row without a lower test loss; 0: not"},
    {.name = "evaluate",
     .kind = GHP_OPT_FLAG,
     .target = &chosen.only_evaluate,
     .help = "train nothing: print loss and accuracy of the first weights on the test samples, or "
             "on all samples of data that has none"},
    {.kind = GHP_OPT_HEADING, .help = "Comparing plans"},
    {.name = "compare",
     .former = "ab",
     .kind = GHP_OPT_INT,
     .target = &chosen.ab_steps,
     .argument = "STEPS",
     .min = 1,
     .max = 1e6,
     .help = "time the plans in turns of this many steps and name the fastest; with --steps or "
             "--epochs, train by it"},
    {.name = "compare-rounds",
     .former = "ab-rounds",
     .kind = GHP_OPT_INT,
     .target = &chosen.ab_rounds,
     .argument = "R",
     .min = 1,
     .max = GHP_CANDIDATES_ROUNDS,
     .help = "turns of each plan; an interval takes 6 or more"},
    {.name = "compare-turn",
     .former = "ab-turn",
     .kind = GHP_OPT_REAL,
     .target = &chosen.ab_turn_s,
     .argument = "SECONDS",
     .min = 0,
     .max = 1e6,
     .help = "fewer steps than --compare says, at least one, where a turn would last longer; 0: no "
             "limit"},
    {.name = "compare-warmup",
     .former = "ab-warmup",
     .kind = GHP_OPT_INT,
     .target = &chosen.ab_warmup_steps,
     .argument = "S",
     .min = 1,
     .max = 1e6,
     .help = "steps of each turn before timing starts"},
    {.name = "run-dir",
     .kind = GHP_OPT_TEXT,
     .alike = GHP_OPT_SAME_GIVEN,
     .target = &chosen.run_folder,
     .argument = "DIR",
     .help = "write each compared plan's run into this folder, as --run does"},
    {.kind = GHP_OPT_HEADING, .help = "Computing"},
    {.name = "verify",
     .kind = GHP_OPT_INT,
     .target = &chosen.verify_steps,
     .argument = "K",
     .min = 1,
     .max = 1e6,
     .help = "train K steps by the plan and by one worker, compare every tensor; where they differ "
             "look layer by layer: exit 0 where that is rounding, 1 a defect, 3 cannot tell"},
    {.name = "numerics",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.numerics,
     .choices = numerics_names,
     .synonyms = numerics_synonyms,
     .help = "exact (or deterministic): runs repeat bit for bit; fast: the quickest algorithms; "
             "auto: exact with "
             "--verify, else fast"},
    {.name = "backend",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.backend,
     .argument = "NAME",
     .help = "onednn, reference or cuda; the plan's unless given"},
    {.name = "precision",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.precision,
     .choices = precision_names,
     .help = "the plan's; double is reference's alone, tf32 cuda's, bf16 onednn's and cuda's"},
    {.name = "transport",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.device_transport,
     .choices = ghp_device_transport_names,
     .help = "between GPUs: nccl, or mpi by way of host memory; auto: nccl where each worker has a "
             "GPU of its own"},
    {.name = "threads",
     .kind = GHP_OPT_INT,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.threads,
     .argument = "N",
     .min = 1,
     .max = 4096,
     .help = "of each worker; as many as the plan gives it cores unless given"},
    {.name = "bind",
     .kind = GHP_OPT_CHOICE,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.bind,
     .choices = ghp_bind_names,
     .help =
         "run on the plan's cores, with memory of their NUMA nodes: if possible, or fail, or not"},
    {.name = "overlap",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.overlap,
     .choices = on_off_names,
     .help = "off: no thread reduces gradients beside the step, they are reduced when they are "
             "waited for; to measure what the thread gains, on processors and plans of one stage"},
    {.name = "emulate",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.emulate,
     .argument = "step=S,port=B,...",
     .help = "take the time of other machines, with the same results: computing of a step lasts "
             "step=40ms, slow=RANK:FACTOR on a slow worker (may be repeated); messages go through "
             "a port=BYTES_PER_S of each worker and arrive latency=20us later. Any of them; "
             "workers of one node"},
    {.name = "dry-run",
     .kind = GHP_OPT_FLAG,
     .target = &chosen.dry_run,
     .help = "open plan, data and weights on all workers, and end before the first step; without a "
             "plan, look at the options, and with --model at the first weights"},
    {.name = "watchdog",
     .kind = GHP_OPT_REAL,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.watchdog_s,
     .argument = "SECONDS",
     .min = 0.1,
     .max = 1e6,
     .help = "end the run where an exchange, the start or the end of all workers takes longer than "
             "this, and say so where a worker's own instruction does"},
    {.name = "model",
     .kind = GHP_OPT_TEXT,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.model_path,
     .argument = "MODEL",
     .help = "refuse the plan unless it was made for this model"},
    {.kind = GHP_OPT_HEADING, .help = "Output"},
    {.name = "metrics",
     .kind = GHP_OPT_TEXT,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.metrics_path,
     .writes = "{\"step\":",
     .argument = "FILE",
     .help = "JSON lines: loss, top-1, images/s, learning rate of each step; evaluations"},
    {.name = "tensorboard",
     .kind = GHP_OPT_TEXT,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.tensorboard_folder,
     .writes = "",
     .writes_folder = true,
     .argument = "FOLDER",
     .help = "the same numbers as an event file in this folder, as TensorBoard reads it"},
    {.name = "heartbeat",
     .kind = GHP_OPT_TEXT,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.heartbeat_path,
     .writes = "step ",
     .argument = "FILE",
     .help =
         "write steps done and steps of the newest checkpoint into this file, over and over, so "
         "that another process (ghp-launch) sees that the run lives"},
    {.name = "checkpoint",
     .kind = GHP_OPT_TEXT,
     .alike = GHP_OPT_SAME_GIVEN,
     .target = &chosen.checkpoint_folder,
     .argument = "DIR",
     .help = "write DIR/checkpoint.safetensors at the end and as often before as the next two say, "
             "and keep the one before it"},
    {.name = "checkpoint-epochs",
     .kind = GHP_OPT_INT,
     .target = &chosen.checkpoint_epochs,
     .argument = "E",
     .min = 0,
     .max = 1e6,
     .help = "after every E epochs; 0: not"},
    {.name = "checkpoint-every",
     .kind = GHP_OPT_INT,
     .target = &chosen.checkpoint_every,
     .argument = "S",
     .min = 0,
     .max = 1e12,
     .help = "after every S steps; 0: not"},
    {.name = "keep",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.keep,
     .argument = "last:K|best:K",
     .help =
         "keep the K last checkpoints too, or those with the least test loss of all evaluations, "
         "as DIR/checkpoint.step-N.safetensors"},
    {.name = "async-checkpoint",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.async_checkpoint,
     .choices = on_off_names,
     .help =
         "worker 0 keeps an image of the checkpoint in memory, and a thread writes it beside the "
         "steps; off: the steps wait until it is on disk"},
    {.name = "checkpoint-lock",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.checkpoint_lock,
     .choices = on_off_names,
     .help = "refuse a folder into which another job writes checkpoints, as the file "
             "DIR/checkpoint.lock says; off: who starts ghp-run sees to that, as ghp-launch does"},
    {.name = "resume",
     .kind = GHP_OPT_FLAG,
     .target = &chosen.resume,
     .help = "go on from the checkpoint in --checkpoint, whatever plan it was made under"},
    {.name = "overwrite",
     .kind = GHP_OPT_FLAG,
     .target = &chosen.overwrite,
     .help = "begin a training although --checkpoint or --metrics holds one already, which is then "
             "replaced; without this and --resume it is refused"},
    {.name = "run",
     .kind = GHP_OPT_TEXT,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.run_path,
     .writes = "\"ghp.run/",
     .argument = "FILE",
     .help = "write the run, predicted beside measured for each instruction; ghp-inspect shows it"},
    {.name = "progress",
     .kind = GHP_OPT_CHOICE,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.progress,
     .choices = ghp_progress_names,
     .help = "step, loss, speed, predicted and measured, time left, on stderr: live on one line, "
             "lines every few seconds, none; auto: live on a terminal, else lines"},
    {.name = "json",
     .kind = GHP_OPT_FLAG,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.json,
     .help = "print one JSON object instead of tables"},
    {.kind = GHP_OPT_HEADING, .help = "Testing"},
    {.name = "inject-fault",
     .former = "fault",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.fault,
     .choices = ghp_fault_names,
     .help = "make one mistake on purpose, to see --verify find it"},
    {.name = "failpoint",
     .former = "inject-accident",
     .kind = GHP_OPT_TEXT,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.failpoint,
     .argument = "ACTION@POINT[:TIME[:WORKER]]",
     .help = "one worker, the last unless given, stops (SIGSTOP), exits or hangs when the run "
             "comes to the point for the TIME-th time, to see the others end: stop@update:3:0"},
};

static const struct ghp_tool tool = {
    .name = "ghp-run",
    .hints = ghp_run_hints,
    .purpose =
        "trains a network by a plan, one worker a process, and prints predicted beside measured",
    .usage = "mpirun -n N ghp-run PLAN [options]\n"
             "       mpirun -n N ghp-run PLAN PLAN2 [PLAN3 ...] --compare STEPS [options]",
    .example = "mpirun -n 4 --oversubscribe build/bin/ghp-run plan.json --steps 20",
    .opts = options,
    .n_opts = (int)(sizeof options / sizeof options[0]),
    .trains = true,
    .libraries = ghp_executor_libraries,
    .notes =
        "Exit code 5: weights or the loss are not finite any more; the layer and the step are "
        "named.\n"
        "An epoch is as many whole global batches as the training set holds; the samples of "
        "the last partial batch\n"
        "are left out of that epoch, and every epoch is shuffled anew, the same for every "
        "plan. Evaluation takes all\n"
        "test samples, any remainder included, on running statistics and without dropout.\n"
        "SIGTERM, SIGINT or SIGUSR1 to a worker ends the training after a step, with a checkpoint "
        "where --checkpoint is\n"
        "given, and exit code 4; --resume goes on. A second SIGTERM or SIGINT ends that worker at "
        "once. Send mpirun\n"
        "SIGUSR1, which it passes on: after SIGTERM or SIGINT it gives workers one second "
        "(odls_base_sigkill_timeout).\n"
        "Faults: drop-reduction leaves one gradient reduction out; group-scale divides the "
        "loss by a group's batch;\n"
        "bias-times-k adds a bias once a member; rank-masks keys dropout by rank; "
        "local-statistics keeps batch norm's\n"
        "sums to one worker; skip-update never updates one layer; double-sample trains one sample "
        "for two; wrong-part\n"
        "keeps the next worker's part of a tensor; no-bias-gradient leaves biases' gradients out; "
        "no-mixing leaves workers'\n"
        "weights as they are; rounded-pull moves a leader by its own pull.\n"
        "Failpoints: mpi, start, resume, end; of a step samples, forward, backward, "
        "reshard, statistics, norm,\n"
        "metrics, all-reduce, reduce-scatter, all-gather, average, send, receive, update; of a "
        "checkpoint gather, write,\n"
        "rename; evaluation, comparison.",
};

int main(int argc, char **argv)
{
    struct ghp_session session = {.tool = &tool, .options = &chosen};
    enum ghp_status started, status;

    ghp_log_open(tool.name, false); /* nobody knows yet who speaks */
    signal(SIGXFSZ, SIG_IGN);       /* a write beyond a limit fails as one to a full disk does */
    status =
        ghp_opts_read(&tool, argc, argv, chosen.plan_paths, GHP_SESSION_PLANS, &chosen.n_plans);
    if (status == GHP_OK && !ghp_opts_done()) status = ghp_session_options_check(&chosen);
    if (!ghp_launched() && status == GHP_OK && ghp_opts_done()) status = ghp_opts_answer(&tool);
    if (!ghp_launched() && status != GHP_OK) return ghp_rank_fail(status, true);
    if (!ghp_launched() && (ghp_opts_done() || (chosen.dry_run && chosen.n_plans == 0))) return 0;
    if (status == GHP_OK && !ghp_opts_done())
        ghp_wait_passively(chosen.threads == GHP_NOT_SET ? 1 : (long)chosen.threads, argv);
    if (status == GHP_OK) status = ghp_stop_listen(); /* before MPI has threads */
    ghp_failpoint_reach(GHP_FAILPOINT_MPI);
    started = ghp_transport_start(&argc, &argv, chosen.watchdog_s, &session.transport);
    return started == GHP_OK ? ghp_rank_run(&session, status) : ghp_rank_fail(started, true);
}
