/* core/program/place.c - where buffers lie in the arena, and whether they lie apart.
 *
 * The time of a step is cut into cells, one for each micro-batch where buffers live no longer than a few. Each cell
 * lists the buffers that live in it, so that the time for u micro-batches is u times that for one. The offsets are the
 * same for any number of cells. */
#include "core/program/program.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CELLS_OF_ONE = 4 }; /* a buffer that lives in more makes cells too dear */

/* Whether a buffer owns memory (is no alias and not a part of another). */
static bool owns(const struct ghp_program *program, int buffer)
{
    return program->buffers[buffer].storage == buffer;
}

struct order {
    int buffer;
    int64_t bytes;
    int first_point;
};

static int larger_first(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    if (x->first_point != y->first_point) return x->first_point < y->first_point ? -1 : 1;
    return (x->buffer > y->buffer) - (x->buffer < y->buffer);
}

/* ---- cells ---- */

struct placed { /* what the search for gaps reads of a buffer, close together */
    int64_t offset, end;
    int first_point, last_point;
};

struct cell { /* the placed buffers that live in it, by their offsets */
    struct placed *placed;
    int n, max;
};

struct cells {
    int n, points; /* of one cell; the last has what is left */
    struct cell *of;
};

static int cell_at(const struct cells *cells, int point)
{
    int at = point / cells->points;
    return at < cells->n ? at : cells->n - 1;
}

/* The most cells, up to one a micro-batch, with which no passing buffer lives in more than a few. */
static enum ghp_status cells_open(const struct ghp_program *program, struct cells *cells)
{
    int n = 1;
    for (int i = 0; i < program->n_instrs; i++)
        if (program->instrs[i].micro >= n) n = program->instrs[i].micro + 1;
    if (n > program->n_points) n = 1;
    *cells =
        (struct cells){.n = n, .points = n > 1 ? program->n_points / n : program->n_points + 1};
    for (int i = 0; i < program->n_buffers && cells->n > 1; i++) {
        const struct ghp_buffer *b = &program->buffers[i];
        if (!owns(program, i) || b->persistent || b->last_point < b->first_point) continue;
        while (cells->n > 1 && cell_at(cells, b->last_point) - cell_at(cells, b->first_point) >=
                                   MOST_CELLS_OF_ONE) {
            cells->n = (cells->n + 1) / 2;
            cells->points = 2 * cells->points;
        }
    }
    cells->of = ghp_alloc((size_t)cells->n, sizeof *cells->of);
    return cells->of == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

static void cells_close(struct cells *cells)
{
    for (int c = 0; cells->of != NULL && c < cells->n; c++)
        free(cells->of[c].placed);
    free(cells->of);
}

static enum ghp_status cell_add(struct cell *cell, struct placed placed)
{
    int at = cell->n;
    if (cell->n == cell->max) {
        int max = cell->max > 0 ? 2 * cell->max : 64;
        struct placed *grown = realloc(cell->placed, (size_t)max * sizeof *grown);
        if (grown == NULL) return GHP_NO_MEMORY();
        cell->placed = grown;
        cell->max = max;
    }
    for (; at > 0 && cell->placed[at - 1].offset > placed.offset; at--)
        cell->placed[at] = cell->placed[at - 1];
    cell->placed[at] = placed;
    cell->n++;
    return GHP_OK;
}

/* ---- gaps ---- */

/* A walk over the buffers of cells first .. end - 1 by their offsets; one of several cells comes once for each. */
struct walk {
    const struct cell *cells;
    int n, at[MOST_CELLS_OF_ONE + 1];
};

static const struct placed *walk_next(struct walk *w)
{
    const struct placed *least = NULL;
    int from = 0;
    for (int c = 0; c < w->n; c++) {
        const struct placed *head;
        if (w->at[c] == w->cells[c].n) continue; /* an empty cell has no array */
        head = &w->cells[c].placed[w->at[c]];
        if (least != NULL && head->offset >= least->offset) continue;
        least = head;
        from = c;
    }
    w->at[from]++;
    return least;
}

/* Lowest of the smallest gaps that fit among the placed buffers that live at a common point. */
static int64_t find_gap(const struct cells *cells, const struct ghp_buffer *buffer, int64_t base)
{
    int first = cell_at(cells, buffer->first_point), last = cell_at(cells, buffer->last_point);
    struct walk walk = {.cells = &cells->of[first], .n = last >= first ? last - first + 1 : 0};
    int64_t best_at = -1, best_size = INT64_MAX, end = base;
    for (const struct placed *other = walk_next(&walk); other != NULL; other = walk_next(&walk)) {
        if (buffer->first_point > other->last_point || other->first_point > buffer->last_point)
            continue;
        int64_t gap = other->offset - end;
        if (gap >= buffer->bytes && gap < best_size) {
            best_at = end;
            best_size = gap;
        }
        if (other->end > end) end = other->end;
    }
    return best_at >= 0 ? best_at : end;
}

static enum ghp_status place_one(struct cells *cells, struct ghp_buffer *b, int64_t base)
{
    enum ghp_status status = GHP_OK;
    b->offset = find_gap(cells, b, base);
    for (int c = cell_at(cells, b->first_point); c <= cell_at(cells, b->last_point); c++)
        if (status == GHP_OK)
            status = cell_add(&cells->of[c], (struct placed){b->offset, b->offset + b->bytes,
                                                             b->first_point, b->last_point});
    return status;
}

/* ---- the whole ---- */

static enum ghp_status sum_live(struct ghp_program *program)
{
    int64_t *live = ghp_alloc((size_t)program->n_points + 1, sizeof *live);
    if (live == NULL) return GHP_NO_MEMORY();
    ghp_program_live(program, live);
    program->live_bytes = 0;
    for (int p = 0; p < program->n_points; p++)
        if (live[p] > program->live_bytes) program->live_bytes = live[p];
    free(live);
    return GHP_OK;
}

enum ghp_status ghp_program_place(struct ghp_program *program)
{
    struct order *order = ghp_alloc((size_t)program->n_buffers + 1, sizeof *order);
    struct cells cells = {0};
    enum ghp_status status = order == NULL ? GHP_NO_MEMORY() : cells_open(program, &cells);
    int64_t base = 0;
    int n = 0;
    for (int i = 0; i < program->n_buffers && status == GHP_OK; i++) {
        struct ghp_buffer *b = &program->buffers[i];
        if (!owns(program, i)) continue;
        if (b->persistent) {
            b->offset = base;
            base += b->bytes;
        } else {
            order[n++] = (struct order){i, b->bytes, b->first_point};
        }
    }
    if (status == GHP_OK) qsort(order, (size_t)n, sizeof *order, larger_first);
    program->peak_bytes = base;
    for (int i = 0; i < n && status == GHP_OK; i++) {
        struct ghp_buffer *b = &program->buffers[order[i].buffer];
        status = place_one(&cells, b, base);
        if (b->offset + b->bytes > program->peak_bytes) program->peak_bytes = b->offset + b->bytes;
    }
    if (status == GHP_OK) status = sum_live(program);
    cells_close(&cells);
    free(order);
    return status;
}

void ghp_program_live(const struct ghp_program *program, int64_t *live)
{
    memset(live, 0, (size_t)program->n_points * sizeof *live);
    for (int i = 0; i < program->n_buffers; i++) {
        const struct ghp_buffer *b = &program->buffers[i];
        if (!owns(program, i)) continue;
        live[b->first_point] += b->bytes;
        if (b->last_point + 1 < program->n_points) live[b->last_point + 1] -= b->bytes;
    }
    for (int p = 1; p < program->n_points; p++)
        live[p] += live[p - 1];
}

/* ---- checks ---- */

static int earlier_first(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    if (x->first_point != y->first_point) return x->first_point < y->first_point ? -1 : 1;
    return (x->buffer > y->buffer) - (x->buffer < y->buffer);
}

static enum ghp_status check_inside(const struct ghp_program *program, int i)
{
    const struct ghp_buffer *b = &program->buffers[i];
    if (b->offset % GHP_ALIGN_BYTES == 0 && b->offset + b->bytes <= program->peak_bytes)
        return GHP_OK;
    return GHP_FAIL(GHP_ERR_INTERNAL,
                    "buffer %d lies at %" PRId64 ", outside the arena or unaligned; report this", i,
                    b->offset);
}

/* A buffer against those that begin to live while it does. */
static enum ghp_status check_apart(const struct ghp_program *program, const struct order *order,
                                   int n, int i)
{
    const struct ghp_buffer *a = &program->buffers[order[i].buffer];
    for (int j = i + 1; j < n && order[j].first_point <= a->last_point; j++) {
        const struct ghp_buffer *b = &program->buffers[order[j].buffer];
        if (b->first_point <= b->last_point && a->offset < b->offset + b->bytes &&
            b->offset < a->offset + a->bytes)
            return GHP_FAIL(GHP_ERR_INTERNAL,
                            "buffers %d and %d share memory while both live; report this",
                            order[i].buffer, order[j].buffer);
    }
    return GHP_OK;
}

enum ghp_status ghp_program_check_placement(const struct ghp_program *program)
{
    struct order *order = ghp_alloc((size_t)program->n_buffers + 1, sizeof *order);
    enum ghp_status status = order == NULL ? GHP_NO_MEMORY() : GHP_OK;
    int n = 0;
    for (int i = 0; i < program->n_buffers && status == GHP_OK; i++) {
        if (!owns(program, i)) continue;
        order[n++] = (struct order){i, 0, program->buffers[i].first_point};
        status = check_inside(program, i);
    }
    if (status == GHP_OK) qsort(order, (size_t)n, sizeof *order, earlier_first);
    for (int i = 0; i < n && status == GHP_OK; i++)
        status = check_apart(program, order, n, i);
    free(order);
    return status;
}
