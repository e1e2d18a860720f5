/* executor/cli/session_options.c - see session_options.h. */
#include "executor/cli/session_options.h"

#include "core/base/text.h"
#include "executor/compare/guard.h"
#include "executor/data/data.h"
#include "executor/platform/failpoint.h"
#include "executor/state/checkpoint.h"
#include "executor/state/init.h"
#include "executor/train/metrics.h"
#include "onnx/network.h"

const char ghp_session_data_unset[] = "synthetic";

/* Several plans and what goes with them. */
static enum ghp_status check_comparison(const struct ghp_session_options *o)
{
    bool trains = o->steps != GHP_NOT_SET || o->epochs != GHP_NOT_SET;

    if (o->ab_steps == GHP_NOT_SET && o->n_plans > 1)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "%d plans were given, the second '%s'; give one, or --compare STEPS to "
                        "compare them",
                        o->n_plans, o->plan_paths[1]);
    if (o->ab_steps == GHP_NOT_SET && o->run_folder != NULL)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--run-dir is for the runs of --compare; give --run FILE for this one");
    if (o->ab_steps == GHP_NOT_SET) return GHP_OK;
    if (o->n_plans < 2)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--compare compares plans, and one was given; give two or more");
    if (o->verify_steps != GHP_NOT_SET)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--compare and --verify were both given; verify one plan alone");
    if (!trains && (o->run_path != NULL || o->metrics_path != NULL ||
                    o->tensorboard_folder != NULL || o->checkpoint_folder != NULL))
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--run, --metrics, --tensorboard and --checkpoint are of the training by "
                        "the fastest plan; "
                        "give --steps or --epochs too, or --run-dir for the runs compared");
    return GHP_OK;
}

/* What is of a training has no use if nothing is trained. */
static enum ghp_status check_evaluation(const struct ghp_session_options *o)
{
    const struct ghp_hyperparameters *h = &o->given;
    const struct {
        const char *option;
        bool given;
    } of_training[] = {
        {"--steps", o->steps != GHP_NOT_SET},
        {"--epochs", o->epochs != GHP_NOT_SET},
        {"--verify", o->verify_steps != GHP_NOT_SET},
        {"--compare", o->ab_steps != GHP_NOT_SET},
        {"--optimizer", o->optimizer != 0},
        {"--lr", h->learning_rate != GHP_NOT_SET},
        {"--weight-decay", h->weight_decay != GHP_NOT_SET},
        {"--momentum", h->momentum != GHP_NOT_SET},
        {"--beta1", h->beta1 != GHP_NOT_SET},
        {"--beta2", h->beta2 != GHP_NOT_SET},
        {"--epsilon", h->epsilon != GHP_NOT_SET},
        {"--clip-norm", h->clip_norm != GHP_NOT_SET},
        {"--ema", o->ema > 0},
        {"--lr-scale", o->groups.rates.n > 0},
        {"--weight-decay-except", o->groups.undecayed.n > 0},
        {"--lr-schedule", o->schedule != 0},
        {"--warmup-steps", o->warmup_steps > 0},
        {"--augment", o->augment != NULL},
        {"--sampler", o->sampler != 0},
        {"--class-weights", o->class_weights != NULL},
        {"--eval", o->evaluate != GHP_EVALUATE_AUTO},
        {"--eval-every", o->evaluate_every > 0},
        {"--patience", o->patience > 0},
        {"--run", o->run_path != NULL},
        {"--keep", o->keep != NULL},
    };

    if (!o->only_evaluate) return GHP_OK;
    if (o->checkpoint_folder != NULL || o->resume)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--evaluate takes its weights by --init; give --init "
                        "%s/checkpoint.safetensors in place of --checkpoint and --resume",
                        o->checkpoint_folder != NULL ? o->checkpoint_folder : "DIR");
    for (size_t i = 0; i < sizeof of_training / sizeof of_training[0]; i++)
        if (of_training[i].given)
            return GHP_FAIL(GHP_ERR_USAGE,
                            "--evaluate trains nothing, and %s is of a training; leave one of them "
                            "out",
                            of_training[i].option);
    if (o->data != ghp_session_data_unset) return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE,
                    "--evaluate needs the samples to evaluate; give the --data of the training, or "
                    "--data synthetic, whose samples are drawn at random");
}

/* Whether a training of this network could write into its folder and its metrics, and would replace no other one. */
static enum ghp_status try_outputs(const struct ghp_session_options *o)
{
    bool resumable = o->checkpoint_folder != NULL && o->verify_steps == GHP_NOT_SET;
    struct ghp_model model;
    enum ghp_status status;

    if (o->checkpoint_folder != NULL) GHP_TRY(ghp_checkpoint_try(o->checkpoint_folder, o->resume));
    if (o->resume || o->overwrite) return GHP_OK;
    if (o->checkpoint_folder != NULL &&
        ghp_checkpoint_refuse(o->checkpoint_folder, "", resumable) != GHP_OK) {
        GHP_TRY(ghp_network_load(o->model_path, &model)); /* its name says whether to resume */
        status = ghp_checkpoint_refuse(o->checkpoint_folder, model.name, resumable);
        ghp_model_release(&model);
        return status;
    }
    return o->metrics_path != NULL ? ghp_metrics_refuse(o->metrics_path, resumable) : GHP_OK;
}

/* The weights that a training of this network would begin with, all of them. */
static enum ghp_status try_weights(const struct ghp_session_options *o)
{
    struct ghp_init_choice choice = {0};
    struct ghp_model model = {0};
    enum ghp_status status;

    status = o->init != NULL ? ghp_init_parse(o->init, (uint64_t)o->seed, &choice)
                             : ghp_init_usual(o->model_path, (uint64_t)o->seed, &choice);
    choice.except = &o->init_except;
    if (status == GHP_OK && choice.path != NULL) {
        status = ghp_network_load(o->model_path, &model);
        if (status == GHP_OK) status = ghp_init_try(&model, &choice);
        ghp_model_release(&model);
    }
    if (o->init != NULL ||
        (status != GHP_ERR_IO && status != GHP_ERR_FORMAT && status != GHP_ERR_INPUT))
        return status;
    return GHP_FAIL(status, "%s; --init random draws other weights", ghp_status_message());
}

/* A dry run without a plan, before anything is measured for one: what a training would write, and begin with. */
static enum ghp_status try_without_plan(const struct ghp_session_options *o)
{
    if (!o->dry_run || o->n_plans > 0 || o->model_path == NULL) return GHP_OK;
    ghp_network_takes_folded_norms = true; /* ghp-plan asks for the option */
    GHP_TRY(try_outputs(o));
    return o->resume ? GHP_OK : try_weights(o);
}

/* A moving average of weights. */
static enum ghp_status check_ema(const struct ghp_session_options *o)
{
    const char *other = o->verify_steps != GHP_NOT_SET ? "--verify"
                        : o->ab_steps != GHP_NOT_SET   ? "--compare"
                        : o->guard == GHP_GUARD_ON     ? "--guard on"
                                                       : NULL;

    if (o->ema <= 0 || other == NULL) return GHP_OK;
    return GHP_FAIL(GHP_ERR_USAGE,
                    "--ema is of one training by one plan, and %s trains several; leave one of "
                    "them out",
                    other);
}

enum ghp_status ghp_session_options_check(const struct ghp_session_options *o)
{
    if (o->n_plans < 1 && !o->dry_run)
        return GHP_FAIL(GHP_ERR_USAGE, "no plan was given; name one: mpirun -n N ghp-run PLAN");
    GHP_TRY(check_evaluation(o));
    GHP_TRY(check_comparison(o));
    GHP_TRY(check_ema(o));
    if (o->failpoint != NULL) GHP_TRY(ghp_failpoint_set(o->failpoint));
    if (o->steps != GHP_NOT_SET && o->epochs != GHP_NOT_SET)
        return GHP_FAIL(GHP_ERR_USAGE, "both --steps and --epochs were given; give one of them");
    if (o->verify_steps != GHP_NOT_SET && (o->steps != GHP_NOT_SET || o->epochs != GHP_NOT_SET))
        return GHP_FAIL(GHP_ERR_USAGE, "--verify K trains K steps; leave --steps and --epochs out");
    if (o->verify_steps != GHP_NOT_SET && o->resume)
        return GHP_FAIL(GHP_ERR_USAGE, "--verify starts from fresh weights; leave --resume out");
    if (o->evaluate == GHP_EVALUATE_OFF && o->evaluate_every > 0)
        return GHP_FAIL(GHP_ERR_USAGE, "--eval off and --eval-every were both given; leave one of "
                                       "them out");
    if (o->class_weights != NULL && o->sampler != 0)
        return GHP_FAIL(GHP_ERR_USAGE, "--sampler srg weights samples by their gradients, and "
                                       "--class-weights by their labels; leave one of them out");
    if (o->resume && o->overwrite)
        return GHP_FAIL(GHP_ERR_USAGE, "--resume continues the training that --overwrite replaces; "
                                       "give one of them");
    if (o->resume && o->init != NULL)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--resume takes the weights from the checkpoint; leave --init out");
    if (o->init_except.n > 0 &&
        (o->resume || (o->init != NULL && ghp_text_begins(o->init, "random"))))
        return GHP_FAIL(GHP_ERR_USAGE, "--init-except is of a file of first weights; leave it out "
                                       "with --resume and --init random");
    if ((o->resume || o->checkpoint_every > 0 || o->checkpoint_epochs != 1) &&
        o->checkpoint_folder == NULL)
        return GHP_FAIL(GHP_ERR_USAGE,
                        "--resume, --checkpoint-every and --checkpoint-epochs need to know where "
                        "checkpoints are; give --checkpoint DIR");
    if (o->keep != NULL && o->checkpoint_folder == NULL)
        return GHP_FAIL(GHP_ERR_USAGE, "--keep keeps checkpoints, and none are written; give "
                                       "--checkpoint DIR");
    if (o->keep != NULL)
        GHP_TRY(ghp_checkpoint_keep_parse(o->keep, &(struct ghp_checkpoint_keep){0}));
    GHP_TRY(ghp_data_check_files(o->data));
    return try_without_plan(o);
}
