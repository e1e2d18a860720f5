/* planner/search/memory_private.c - spans of memory_private.h: of a stage, those of its micro-batches in flight. */
#include "planner/search/memory_private.h"

#include "core/base/array.h"
#include "core/program/lower/points.h"
#include "core/sharding/schedule.h"

static enum ghp_status put_span(struct ghp_spans *spans, int64_t bytes, int first, int last)
{
    if (bytes <= 0 || first > last) return GHP_OK;
    GHP_TRY_ROOM(spans->span, spans->n, spans->max);
    spans->span[spans->n++] =
        (struct ghp_span){.bytes = ghp_align(bytes), .first = first, .last = last};
    return GHP_OK;
}

struct ghp_memory_stretch ghp_memory_stretch_of(const struct ghp_memory_maker *m)
{
    const struct ghp_route *route = &m->in->route[m->stage];
    const struct ghp_layer *first = &m->model->layers[route->first_layer];
    int points = ghp_point_forward(m->model, route->first_layer) - first->n_inputs;

    return (struct ghp_memory_stretch){
        .forward = points,
        .forward_end = ghp_point_forward(m->model, route->end_layer - 1),
        .backward = ghp_point_backward(m->model, route->end_layer - 1),
        .backward_end = ghp_point_backward(m->model, route->first_layer) + first->n_inputs};
}

static enum ghp_status put_clipped(struct ghp_spans *spans, int64_t bytes, int first, int last,
                                   int least, int most)
{
    return put_span(spans, bytes, first > least ? first : least, last < most ? last : most);
}

enum ghp_status ghp_memory_span(struct ghp_memory_maker *m, struct ghp_spans *spans, int64_t bytes,
                                int first, int last)
{
    struct ghp_memory_stretch s;
    int others; /* of a chunk among several: none, a bound from below */
    bool kept;

    if (m->in->n_stages == 1) return put_span(spans, bytes, first, last);
    others = m->in->n_stages > m->in->n_owners
                 ? 0
                 : ghp_stage_in_flight(m->in->lowering->staging, m->stage) - 1;
    s = ghp_memory_stretch_of(m);
    kept = first <= s.forward_end && last >= s.backward;
    GHP_TRY(put_clipped(spans, bytes, first, last, s.forward, s.forward_end));
    GHP_TRY(put_clipped(spans, bytes, first, last, s.backward, s.backward_end));
    if (!kept || others < 1) return GHP_OK;
    GHP_TRY(put_span(spans, others * ghp_align(bytes), s.forward, s.forward_end));
    return put_span(spans, others * ghp_align(bytes), s.backward, s.backward_end);
}

enum ghp_status ghp_memory_lasting(struct ghp_memory_maker *m, struct ghp_spans *spans,
                                   int64_t bytes)
{
    struct ghp_memory_stretch s = ghp_memory_stretch_of(m);

    if (m->in->n_stages == 1) return put_span(spans, bytes, 0, m->in->n_points - 1);
    GHP_TRY(put_span(spans, bytes, s.forward, s.forward_end));
    return put_span(spans, bytes, s.backward, s.backward_end);
}
