/* executor/train/evaluate.c - see evaluate.h. */
#include "executor/train/evaluate.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "executor/platform/failpoint.h"

#include <math.h>
#include <stdlib.h>

/* All labels of all samples were seen once, but for those that are ignored; of several outputs those of the step's. */
static enum ghp_status check_labels(const struct ghp_step *step, int64_t count,
                                    struct ghp_label_outputs outputs, double seen)
{
    int output = outputs.n > 1 && step->output > 0 ? step->output - 1 : 0;
    int64_t labels = 0;

    for (int64_t i = 0; i < count; i++) {
        int64_t of_sample[GHP_MAX_INPUTS];

        GHP_TRY(ghp_data_count_labels(step->data, step->set, &i, 1, outputs, of_sample));
        labels += of_sample[output];
    }
    GHP_ASSERT_EQ(llround(seen), labels);
    return GHP_OK;
}

static enum ghp_status run_batches(struct ghp_worker *evaluator, struct ghp_hits_counter *hits,
                                   struct ghp_step *step, int64_t *samples, struct ghp_stop *stop,
                                   struct ghp_evaluation *total)
{
    const struct ghp_model *model = ghp_worker_program(evaluator)->model;
    const struct ghp_label_outputs outputs = ghp_model_label_outputs(model);
    int64_t count = ghp_data_count(step->data, step->set),
            batch = ghp_worker_program(evaluator)->problem.global_batch;
    double correct = 0, loss = 0, seen = 0;
    bool ends = false;

    step->samples = samples;
    for (int64_t first = 0; first < count; first += batch) {
        struct ghp_result result = {0};

        ghp_failpoint_reach(GHP_FAILPOINT_EVALUATION);
        GHP_TRY(ghp_stop_check(stop, &ends));
        if (ends) return GHP_OK;
        step->valid = count - first < batch ? count - first : batch;
        for (int64_t i = 0; i < batch; i++)
            samples[i] = first + (i < step->valid ? i : 0);
        ghp_progress_meanwhile("evaluating sample %lld of %lld", (long long)first,
                               (long long)count);
        if (hits != NULL) GHP_TRY(ghp_hits_batch(hits, step));
        GHP_TRY(ghp_worker_step(evaluator, step));
        GHP_TRY(ghp_worker_settle(evaluator));
        if (hits != NULL) GHP_TRY(ghp_hits_add(hits));
        ghp_worker_result(evaluator, &result);
        correct += result.correct;
        seen += result.samples;
        loss += result.loss * result.samples;
        step->index++;
    }
    total->samples = count;
    total->loss = seen > 0 ? loss / seen : 0;
    total->of_numbers =
        outputs.classes[outputs.n > 1 && step->output > 0 ? step->output - 1 : 0] == 0;
    *(total->of_numbers ? &total->absolute_error : &total->accuracy) =
        seen > 0 ? correct / seen : 0;
    total->complete = true;
    return check_labels(step, count, outputs, seen);
}

/* Each of several outputs by itself, in a pass of its own; complete: false if it was told to end. */
static enum ghp_status run_outputs(struct ghp_worker *evaluator, struct ghp_step *step,
                                   int64_t *samples, struct ghp_stop *stop,
                                   struct ghp_evaluation *total)
{
    const struct ghp_model *model = ghp_worker_program(evaluator)->model;
    int n = model->layers[model->n_layers - 1].loss.outputs;

    for (int i = 0; i < n && total->complete; i++) {
        struct ghp_evaluation one = {0};

        step->output = i + 1;
        GHP_TRY(run_batches(evaluator, NULL, step, samples, stop, &one));
        total->complete = one.complete;
        total->hits.outputs[total->hits.n_outputs++] = (struct ghp_output_result){
            one.loss, one.of_numbers ? one.absolute_error : one.accuracy, one.of_numbers};
    }
    return GHP_OK;
}

enum ghp_status ghp_evaluate(struct ghp_worker *worker, struct ghp_evaluation_request request,
                             struct ghp_evaluation *evaluation)
{
    enum ghp_status status = GHP_OK;
    struct ghp_rank_plan rank_plan = *request.rank_plan;
    struct ghp_step step = {.data = request.data, .set = request.set};
    struct ghp_hits_counter *hits = NULL;
    struct ghp_worker *evaluator = NULL;
    double begin = ghp_now_s();
    int64_t *samples = ghp_alloc((size_t)rank_plan.lowering.problem.global_batch, sizeof *samples);

    *evaluation = (struct ghp_evaluation){.hits.detail = request.detail};
    if (samples == NULL) return GHP_NO_MEMORY();
    rank_plan.lowering.forward_only = true;
    rank_plan.lowering.method.clip_norm = 0;
    rank_plan.lowering.method.scaling = NULL;
    rank_plan.run.weight_owner = worker;
    rank_plan.run.profile = NULL;
    rank_plan.run.fault = GHP_FAULT_NONE;
    GHP_TRY_GOTO(status, ghp_worker_take_mean(worker), done);
    ghp_worker_rest(worker);
    GHP_TRY_GOTO(status,
                 ghp_rank_plan_open(ghp_worker_exec_context(worker), &rank_plan, &evaluator), done);
    GHP_TRY_GOTO(status, ghp_worker_connect(evaluator), done);
    GHP_TRY_GOTO(status, ghp_worker_allocate(evaluator), done);
    if (request.detail == GHP_HITS_TOP5 || request.detail == GHP_HITS_CLASSES)
        GHP_TRY_GOTO(status, ghp_hits_begin(evaluator, &evaluation->hits, &hits), done);
    GHP_TRY_GOTO(status, run_batches(evaluator, hits, &step, samples, request.stop, evaluation),
                 done);
    if (request.detail == GHP_HITS_OUTPUTS)
        GHP_TRY_GOTO(status, run_outputs(evaluator, &step, samples, request.stop, evaluation),
                     done);
    if (ghp_model_tokens(rank_plan.lowering.model) > 0)
        evaluation->perplexity = exp(evaluation->loss);
    evaluation->seconds = ghp_now_s() - begin;
    status = ghp_worker_return_mean(worker);
done:
    ghp_hits_release(hits);
    ghp_worker_close(evaluator);
    free(samples);
    return status;
}

void ghp_evaluation_release(struct ghp_evaluation *evaluation)
{
    free(evaluation->hits.of_class);
    *evaluation = (struct ghp_evaluation){0};
}
