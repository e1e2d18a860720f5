/* executor/cli/ghp-run.c - the tool that trains by a plan: options, start and end; executor/cli/session.h does the
 * rest. */
#include "core/base/log.h"
#include "executor/cli/hints.h"
#include "executor/cli/libraries.h"
#include "executor/cli/rank.h"
#include "executor/cli/session_options.h"
#include "executor/compare/candidates.h"
#include "executor/compare/guard.h"
#include "executor/platform/failpoint.h"
#include "executor/platform/launch.h"
#include "executor/platform/wait_policy.h"
#include "executor/train/stop.h"
#include "executor/transport/device/device_transport.h"

#include <signal.h>
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
    .data = ghp_session_data_unset,
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
     .help = "synthetic, folder:DIR (images), npy:DIR, idx:DIR (MNIST), cifar10:DIR, cifar100:DIR, "
             "tokens:FILE or bytes:FILE; see docs/how-to/data.md"},
    {.name = "train-fraction",
     .former = "split",
     .kind = GHP_OPT_REAL,
     .target = &chosen.split,
     .argument = "F",
     .min = 0.001,
     .max = 0.999,
     .help = "cut a lone set: its first part F trains, the rest tests"},
    {.name = "augment",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.augment,
     .argument = "HOW",
     .help = "change training images of folder:DIR at random: crop-flip (the default) resizes a "
             "random part of 8 to 100 % of the area and mirrors half of the images; KEY=VALUE,... "
             "changes that, with the keys area, aspect, flip, vflip, brightness, contrast, "
             "saturation, hue, gray, erase, randaugment, mixup and cutmix; none takes the middle, "
             "as evaluations do. mixup and cutmix alone are for all data but tokens"},
    {.name = "labels",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.labels,
     .choices = ghp_labels_names,
     .help = "labels of images: those of the files, or parity: 0 for even ones and 1 for odd ones"},
    {.name = "shuffle",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.shuffle,
     .choices = ghp_shuffling_names,
     .help = "order of the training set: epoch: a new one each epoch; once: one for all epochs, so "
             "that workers can keep their samples; off: that of the files"},
    {.name = "normalise",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.normalise,
     .argument = "HOW",
     .help = "how images become numbers: train (by the training set's mean and deviation of each "
             "channel), imagenet, none (bytes / 255), unit (bytes over each image's length), or "
             "MEAN,...:DEVIATION,... in parts of 255. Default: imagenet for folders, none for "
             "floating-point files, else train"},
    {.name = "skip-damaged",
     .kind = GHP_OPT_INT,
     .target = &chosen.skip_damaged,
     .argument = "N",
     .min = 0,
     .max = 1e12,
     .help = "damaged images of folder:DIR that a worker may meet: each is named, and the next "
             "readable one of its class trains in its place"},
    {.name = "ignore-label",
     .kind = GHP_OPT_INT,
     .target = &chosen.ignored_label,
     .argument = "L",
     .min = INT32_MIN,
     .max = INT32_MAX,
     .help = "label, such as -100 or 255, whose samples or positions have no loss; the loss is the "
             "mean over all others"},
    {.name = "class-weights",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.class_weights,
     .argument = "W0,W1,...",
     .help = "weight of each class in the training loss, which is their labels' mean by weights"},
    {.name = "sampler",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.sampler,
     .choices = ghp_sampler_names,
     .help = "which samples a step takes: uniform (shuffled epochs), or srg: samples with large "
             "gradients more often, reweighted so that the mean gradient is unchanged (plans with "
             "one sample a worker)"},
    {.kind = GHP_OPT_HEADING, .help = "Training"},
    {.name = "steps",
     .kind = GHP_OPT_INT,
     .target = &chosen.steps,
     .argument = "S",
     .min = 1,
     .max = 1e12,
     .help = "steps to train in all [20 without --epochs]"},
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
     .help = "optimizer; only the plan's is accepted, whose memory was planned"},
    {.name = "lr",
     .kind = GHP_OPT_REAL,
     .target = &chosen.given.learning_rate,
     .argument = "X",
     .min = 0,
     .max = 1e6,
     .help = "learning rate [sgd 0.01, adamw 0.001, lion 0.0001]"},
    {.name = "momentum",
     .kind = GHP_OPT_REAL,
     .target = &chosen.given.momentum,
     .argument = "X",
     .min = 0,
     .max = 0.9999999,
     .help = "momentum of sgd [0.9]"},
    {.name = "beta1",
     .kind = GHP_OPT_REAL,
     .target = &chosen.given.beta1,
     .argument = "X",
     .min = 0,
     .max = 0.9999999,
     .help = "adamw's decay of the gradients' mean; lion's weight of that mean in a step [0.9]"},
    {.name = "beta2",
     .kind = GHP_OPT_REAL,
     .target = &chosen.given.beta2,
     .argument = "X",
     .min = 0,
     .max = 0.9999999,
     .help = "adamw's decay of the gradients' mean square [0.999]; lion's of their mean [0.99]"},
    {.name = "epsilon",
     .kind = GHP_OPT_REAL,
     .target = &chosen.given.epsilon,
     .argument = "X",
     .min = 0,
     .max = 1,
     .help = "adamw adds it to the root of the mean square [1e-8]"},
    {.name = "clip-norm",
     .kind = GHP_OPT_REAL,
     .target = &chosen.given.clip_norm,
     .argument = "X",
     .min = GHP_CLIP_NORM_LEAST,
     .max = GHP_CLIP_NORM_MOST,
     .help = "override the plan's clipping norm (only if the plan clips)"},
    {.name = "weight-decay",
     .kind = GHP_OPT_REAL,
     .target = &chosen.given.weight_decay,
     .argument = "X",
     .min = 0,
     .max = 1e3,
     .help = "weight decay: sgd adds X times each weight to its gradient [0]; adamw [0.01] and "
             "lion [0] take X times the learning rate off weights of two or more dimensions"},
    GHP_PARAMETER_GROUP_OPTIONS(chosen.groups),
    {.name = "ema",
     .kind = GHP_OPT_REAL,
     .target = &chosen.ema,
     .argument = "DECAY",
     .min = 0.000001,
     .max = 0.999999999,
     .help = "keep a moving average of the weights, such as 0.999: after each step DECAY times it "
             "and 1 - DECAY times the weights; evaluations and checkpoints have it as weights"},
    {.name = "lr-schedule",
     .former = "schedule",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.schedule,
     .choices = ghp_lr_schedule_names,
     .help = "course of the learning rate: down to --lr-min, in steps (--step-at), over the last "
             "--decay-steps (wsd), or divided by the steps or epochs so far (inverse)"},
    {.name = "step-at",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.step_at,
     .argument = "A,B",
     .help = "parts of the steps after which --lr-schedule step is at a tenth and at a hundredth "
             "[0.5,0.75]"},
    {.name = "lr-min",
     .kind = GHP_OPT_REAL,
     .target = &chosen.least_rate,
     .argument = "X",
     .min = 0,
     .max = 1e6,
     .help = "learning rate at the end of cosine, linear, quadratic, exponential [a hundredth of "
             "--lr] and wsd"},
    {.name = "decay-steps",
     .kind = GHP_OPT_INT,
     .target = &chosen.decay_steps,
     .argument = "N",
     .min = 0,
     .max = 1e12,
     .help = "number of last steps in which wsd decays"},
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
     .help = "seed of weights, sample order, augmentation, dropout and synthetic data"},
    {.name = "init",
     .kind = GHP_OPT_TEXT,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.init,
     .argument = "SOURCE",
     .help = "first weights: random, random:SEED, FILE.safetensors, FILE.onnx or a FOLDER of "
             "transformers; default: those of the file that was planned"},
    {.name = "init-except",
     .kind = GHP_OPT_LIST,
     .target = &chosen.init_except,
     .argument = "PATTERN",
     .help = "tensors not to take from it, such as a new head's 'fc.*'"},
    {.name = "guard",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.guard,
     .choices = ghp_guard_names,
     .help = "time data parallelism in turns with the plan after the first steps, and continue "
             "with the faster; auto: in trainings of more than 200 steps, if the first are slower "
             "than predicted or the profile was disturbed"},
    {.name = "eval",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.evaluate,
     .choices = evaluate_names,
     .help = "evaluate on the test set after each epoch and at the end; auto: if data comes from "
             "files"},
    {.name = "eval-every",
     .kind = GHP_OPT_INT,
     .target = &chosen.evaluate_every,
     .argument = "S",
     .min = 0,
     .max = 1e12,
     .help = "evaluate after every S steps too; 0: not"},
    {.name = "eval-metrics",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.evaluation_detail,
     .choices = ghp_hits_detail_names,
     .help = "what evaluations count: top1; top5: labels among the five greatest outputs, too; "
             "classes: both, of each class, too; outputs: the loss of each of several outputs, too"},
    {.name = "patience",
     .kind = GHP_OPT_INT,
     .target = &chosen.patience,
     .max = 1e6,
     .help = "stop early: after N evaluations in a row without a lower test loss; 0: not"},
    {.name = "evaluate",
     .kind = GHP_OPT_FLAG,
     .target = &chosen.only_evaluate,
     .help = "train nothing: print loss and accuracy of the first weights on the test samples, or "
             "on all if there are none"},
    {.kind = GHP_OPT_HEADING, .help = "Comparing plans"},
    {.name = "compare",
     .former = "ab",
     .kind = GHP_OPT_INT,
     .target = &chosen.ab_steps,
     .argument = "STEPS",
     .min = 1,
     .max = 1e6,
     .help = "time the plans in turns of this many steps and name the fastest; with --steps or "
             "--epochs, train with it"},
    {.name = "compare-rounds",
     .former = "ab-rounds",
     .kind = GHP_OPT_INT,
     .target = &chosen.ab_rounds,
     .argument = "R",
     .min = 1,
     .max = GHP_CANDIDATES_ROUNDS,
     .help = "turns of each plan; an interval needs 6 or more"},
    {.name = "compare-turn",
     .former = "ab-turn",
     .kind = GHP_OPT_REAL,
     .target = &chosen.ab_turn_s,
     .argument = "SECONDS",
     .min = 0,
     .max = 1e6,
     .help = "longest turn: it gets fewer steps than --compare says, at least one; 0: no limit"},
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
     .help = "train K steps by the plan and by one worker, and compare every tensor; exit code 1 "
             "if they differ by a defect, 3 if that cannot be told from rounding"},
    {.name = "numerics",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.numerics,
     .choices = numerics_names,
     .synonyms = numerics_synonyms,
     .help = "exact: runs repeat bit for bit; fast: the quickest algorithms; auto: exact with "
             "--verify, else fast"},
    {.name = "backend",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.backend,
     .argument = "NAME",
     .help = "onednn, reference or cuda [the plan's]"},
    {.name = "precision",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.precision,
     .choices = precision_names,
     .help = "numbers that it computes in; double needs the reference backend, tf32 cuda, bf16 "
             "onednn or cuda"},
    {.name = "transport",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.device_transport,
     .choices = ghp_device_transport_names,
     .help = "between GPUs: nccl, or mpi through host memory; auto: nccl if each worker has a GPU "
             "of its own"},
    {.name = "reduce-multiprocessors",
     .kind = GHP_OPT_INT,
     .target = &chosen.reduce_multiprocessors,
     .argument = "N",
     .min = 1,
     .max = 64,
     .help = "GPUs, NCCL: overlapped reductions take at most N multiprocessors and read registered "
             "memory, and products of backward passes leave N of theirs [NCCL's choice]"},
    {.name = "threads",
     .kind = GHP_OPT_INT,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.threads,
     .argument = "N",
     .min = 1,
     .max = 4096,
     .help = "threads of each worker [the cores that the plan gives it]"},
    {.name = "bind",
     .kind = GHP_OPT_CHOICE,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.bind,
     .choices = ghp_bind_names,
     .help = "run on the plan's cores, with memory of their NUMA nodes"},
    {.name = "overlap",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.overlap,
     .choices = on_off_names,
     .help = "off: reduce gradients when they are waited for, not during the backward pass; shows "
             "what overlap gains (CPUs, plans of one stage)"},
    {.name = "emulate",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.emulate,
     .argument = "step=S,port=B,...",
     .help = "take the time of other machines, with the same results: step=40ms of computing, "
             "slow=RANK:FACTOR for a slow worker (may be repeated), port=BYTES_PER_S of each "
             "worker's link, latency=20us of each message; workers of one node"},
    {.name = "dry-run",
     .kind = GHP_OPT_FLAG,
     .target = &chosen.dry_run,
     .help = "open plan, data and weights on all workers, and end before the first step; without a "
             "plan, check the options"},
    {.name = "watchdog",
     .kind = GHP_OPT_REAL,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.watchdog_s,
     .argument = "SECONDS",
     .min = 0.1,
     .max = 1e6,
     .help = "end the run if an exchange, the start or the end takes longer; warn if a worker's "
             "own instruction does"},
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
     .help = "write loss, accuracy, speed and learning rate of each step as JSON lines"},
    {.name = "tensorboard",
     .kind = GHP_OPT_TEXT,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.tensorboard_folder,
     .writes = "",
     .writes_folder = true,
     .argument = "FOLDER",
     .help = "write the same for TensorBoard"},
    {.name = "heartbeat",
     .kind = GHP_OPT_TEXT,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.heartbeat_path,
     .writes = "step ",
     .argument = "FILE",
     .help = "keep writing steps done and steps of the newest checkpoint into this file, so that "
             "ghp-launch sees that the run lives"},
    {.name = "checkpoint",
     .kind = GHP_OPT_TEXT,
     .alike = GHP_OPT_SAME_GIVEN,
     .target = &chosen.checkpoint_folder,
     .argument = "DIR",
     .help = "write DIR/checkpoint.safetensors after each epoch and at the end, and keep the one "
             "before it"},
    {.name = "checkpoint-epochs",
     .kind = GHP_OPT_INT,
     .target = &chosen.checkpoint_epochs,
     .argument = "E",
     .min = 0,
     .max = 1e6,
     .help = "write a checkpoint after every E epochs; 0: only at the end"},
    {.name = "checkpoint-every",
     .kind = GHP_OPT_INT,
     .target = &chosen.checkpoint_every,
     .argument = "S",
     .min = 0,
     .max = 1e12,
     .help = "write a checkpoint after every S steps too; 0: not"},
    {.name = "keep",
     .kind = GHP_OPT_TEXT,
     .target = &chosen.keep,
     .argument = "last:K|best:K",
     .help = "keep the K last checkpoints, or the K with the least test loss, as "
             "DIR/checkpoint.step-N.safetensors"},
    {.name = "async-checkpoint",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.async_checkpoint,
     .choices = on_off_names,
     .help = "write checkpoints during the steps, from a copy in memory; off: the steps wait until "
             "it is on disk"},
    {.name = "checkpoint-lock",
     .kind = GHP_OPT_CHOICE,
     .target = &chosen.checkpoint_lock,
     .choices = on_off_names,
     .help = "refuse a folder into which another job writes checkpoints (DIR/checkpoint.lock); "
             "off: your own script sees to that"},
    {.name = "resume",
     .kind = GHP_OPT_FLAG,
     .target = &chosen.resume,
     .help = "continue from the checkpoint in --checkpoint, also with another plan"},
    {.name = "overwrite",
     .kind = GHP_OPT_FLAG,
     .target = &chosen.overwrite,
     .help = "replace the training that --checkpoint or --metrics holds"},
    {.name = "run",
     .kind = GHP_OPT_TEXT,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.run_path,
     .writes = "\"ghp.run/",
     .argument = "FILE",
     .help = "write the run, predicted next to measured, for ghp-inspect"},
    {.name = "progress",
     .kind = GHP_OPT_CHOICE,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.progress,
     .choices = ghp_progress_names,
     .help = "step, loss, speed and time left on stderr: live on one line, lines every few "
             "seconds, or none; auto: live on a terminal, else lines"},
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
     .help = "make a mistake on purpose, to see --verify find it"},
    {.name = "failpoint",
     .former = "inject-accident",
     .kind = GHP_OPT_TEXT,
     .alike = GHP_OPT_OWN_VALUE,
     .target = &chosen.failpoint,
     .argument = "ACTION@POINT[:TIME[:WORKER]]",
     .help = "let a worker [the last] stop, exit or hang when it comes to the point for the "
             "TIME-th time, such as stop@update:3:0"},
};

static const struct ghp_exit_code exit_codes[] = {
    {3, "--verify cannot tell a defect from rounding"},
    {GHP_EXIT_STOPPED, "ended early by a signal, with a checkpoint if --checkpoint was given"},
    {GHP_EXIT_DIVERGED, "the training diverged: a weight or the loss is not finite"},
    {0, NULL}};

static const struct ghp_tool tool = {
    .name = "ghp-run",
    .hints = ghp_run_hints,
    .purpose = "trains a network by a plan, and shows predicted next to measured time",
    .usage = "mpirun -n N ghp-run PLAN [options]\n"
             "       mpirun -n N ghp-run PLAN PLAN2 [PLAN3 ...] --compare STEPS [options]",
    .example = "mpirun -n 4 ghp-run plan.json --steps 20",
    .common = "data steps epochs lr lr-schedule warmup-steps init evaluate compare verify dry-run "
              "metrics checkpoint checkpoint-every resume overwrite run json",
    .opts = options,
    .n_opts = (int)(sizeof options / sizeof options[0]),
    .exit_codes = exit_codes,
    .libraries = ghp_executor_libraries,
    .notes = "An epoch is as many whole global batches as the training set holds. The samples of "
             "the last partial batch are left out of that epoch. Every epoch is shuffled again, "
             "the same for every plan. Evaluation takes all test samples, on running statistics "
             "and without dropout.\n"
             "SIGTERM, SIGINT or SIGUSR1 to a worker ends the training after a step, with a "
             "checkpoint if --checkpoint was given; --resume continues it. A second "
             "SIGINT ends that worker at once. Send mpirun SIGUSR1, which it passes on: after "
             "SIGTERM or SIGINT it gives workers one second (odls_base_sigkill_timeout).\n"
             "Faults:\n"
             "  drop-reduction leaves one gradient reduction out\n"
             "  group-scale divides the loss by a group's batch\n"
             "  bias-times-k adds a bias once a member\n"
             "  rank-masks keys dropout by rank\n"
             "  local-statistics keeps batch norm's sums to one worker\n"
             "  skip-update never updates one layer\n"
             "  double-sample trains one sample for two\n"
             "  wrong-part keeps the next worker's part of a tensor\n"
             "  no-bias-gradient leaves biases' gradients out\n"
             "  no-mixing leaves workers' weights as they are\n"
             "  rounded-pull moves a leader by its own pull\n"
             "Failpoints: mpi, start, resume, end; in a step samples, forward, backward, reshard, "
             "statistics, norm, metrics, all-reduce, reduce-scatter, all-gather, average, send, "
             "receive, update; in a checkpoint gather, write, rename; evaluation, comparison.",
};

/* Only what can be tried without a plan and without other workers. */
static bool is_trial(void)
{
    return !ghp_launched() && chosen.dry_run && chosen.n_plans == 0;
}

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
    if (status == GHP_OK && !ghp_opts_done() && is_trial()) status = ghp_opts_try_outputs(&tool);
    if (!ghp_launched() && status != GHP_OK) return ghp_rank_fail(status, true);
    if (is_trial() || (!ghp_launched() && ghp_opts_done())) return 0;
    if (status == GHP_OK && !ghp_opts_done())
        ghp_wait_passively(chosen.threads == GHP_NOT_SET ? 1 : (long)chosen.threads, argv);
    if (status == GHP_OK) status = ghp_stop_listen(); /* before MPI has threads */
    ghp_failpoint_reach(GHP_FAILPOINT_MPI);
    started = ghp_transport_start(&argc, &argv, chosen.watchdog_s, &session.transport);
    return started == GHP_OK ? ghp_rank_run(&session, status) : ghp_rank_fail(started, true);
}
