/* core/program/place.c - where buffers lie in the arena, and whether they lie apart.
 *
 * Larger buffers are placed first, each into the smallest gap that fits while it lives. What is taken when stands in a
 * tree over the points of a step, whose nodes have unions of ranges: buffers that lie one above the other are one
 * range. So a search reads a few ranges and the buffers that begin or end near its own ends, however many live at
 * once.
 *
 * Of products that may run at once (program/fuse.h), the tensors that differ lie in a row, in the order of the products,
 * if they live equally long but for a few points; so does their scratch. A row is placed like one buffer. */
#include "core/program/program.h"

#include "core/base/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 32 }; /* of a cell: more make searches longer, fewer make more nodes */

/* Whether a buffer owns memory: it is neither an alias nor a part of another. */
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

/* ---- ranges of bytes ---- */

struct span {
    int64_t begin, end;
};

/* Disjoint and ascending, and none touches the next, if they are made by spans_add. */
struct spans {
    struct span *of;
    int n, max;
};

static enum ghp_status spans_append(struct spans *s, struct span span)
{
    GHP_TRY_ROOM(s->of, s->n, s->max);
    s->of[s->n++] = span;
    return GHP_OK;
}

/* The union with one more range. */
static enum ghp_status spans_add(struct spans *s, struct span add)
{
    int first = 0, end = s->n;
    while (first < end) {
        int middle = (first + end) / 2;
        if (s->of[middle].end < add.begin)
            first = middle + 1;
        else
            end = middle;
    }
    while (end < s->n && s->of[end].begin <= add.end)
        end++;
    if (end == first) { /* it touches none */
        GHP_TRY_ROOM(s->of, s->n, s->max);
        memmove(&s->of[first + 1], &s->of[first], (size_t)(s->n - first) * sizeof *s->of);
        s->of[first] = add;
        s->n++;
        return GHP_OK;
    }
    if (add.begin < s->of[first].begin) s->of[first].begin = add.begin;
    s->of[first].end = s->of[end - 1].end > add.end ? s->of[end - 1].end : add.end;
    memmove(&s->of[first + 1], &s->of[end], (size_t)(s->n - end) * sizeof *s->of);
    s->n -= end - first - 1;
    return GHP_OK;
}

/* ---- what is taken when ---- */

/* A stretch of time: a cell of POINTS points, or two halves. */
struct node {
    struct spans whole; /* of buffers that live at all its points */
    struct spans part;  /* of buffers that live at some of them */
};

struct lived {
    struct span span;
    int first_point, last_point;
};

struct cell { /* the buffers that begin or end to live within it */
    struct lived *of;
    int n, max;
};

/* Cells are a power of two; node 1 is the whole step, nodes 2 v and 2 v + 1 the halves of node v, and node `cells` + c
 * is cell c. */
struct calendar {
    int cells;
    struct node *node;
    struct cell *cell;
    struct spans found; /* by the last search */
};

static enum ghp_status calendar_open(int n_points, struct calendar *calendar)
{
    size_t cells = 1;
    while ((int64_t)cells * POINTS <= n_points)
        cells *= 2;
    *calendar = (struct calendar){.cells = (int)cells,
                                  .node = ghp_alloc(2 * cells, sizeof *calendar->node),
                                  .cell = ghp_alloc(cells, sizeof *calendar->cell)};
    return calendar->node == NULL || calendar->cell == NULL ? GHP_NO_MEMORY() : GHP_OK;
}

static void calendar_close(struct calendar *calendar)
{
    for (int v = 0; calendar->node != NULL && v < 2 * calendar->cells; v++) {
        free(calendar->node[v].whole.of);
        free(calendar->node[v].part.of);
    }
    for (int c = 0; calendar->cell != NULL && c < calendar->cells; c++)
        free(calendar->cell[c].of);
    free(calendar->node);
    free(calendar->cell);
    free(calendar->found.of);
}

/* Cells that a buffer lives through, first .. end - 1, and those in which it begins or ends to live, or -1. */
struct cover {
    int first, end, parts[2];
};

static struct cover cover_of(const struct ghp_buffer *b)
{
    int first = b->first_point / POINTS, last = b->last_point / POINTS;
    bool begins = b->first_point % POINTS != 0, ends = (b->last_point + 1) % POINTS != 0;
    if (first == last && (begins || ends)) return (struct cover){.parts = {first, -1}};
    return (struct cover){.first = first + begins,
                          .end = last + !ends,
                          .parts = {begins ? first : -1, ends ? last : -1}};
}

static enum ghp_status add_above(struct calendar *calendar, int v, struct span span)
{
    for (; v >= 1; v /= 2)
        GHP_TRY(spans_add(&calendar->node[v].part, span));
    return GHP_OK;
}

static enum ghp_status add_to_cell(struct calendar *calendar, int c, struct lived lived)
{
    struct cell *cell = &calendar->cell[c];
    GHP_TRY_ROOM(cell->of, cell->n, cell->max);
    cell->of[cell->n++] = lived;
    return add_above(calendar, calendar->cells + c, lived.span);
}

static enum ghp_status calendar_add(struct calendar *calendar, const struct ghp_buffer *b)
{
    struct lived lived = {{b->offset, b->offset + b->bytes}, b->first_point, b->last_point};
    struct cover cover = cover_of(b);
    int low = cover.first + calendar->cells, high = cover.end + calendar->cells;
    for (int k = 0; k < 2; k++)
        if (cover.parts[k] >= 0) GHP_TRY(add_to_cell(calendar, cover.parts[k], lived));
    for (; low < high; low /= 2, high /= 2) {
        const int nodes[2] = {low % 2 == 1 ? low++ : 0, high % 2 == 1 ? --high : 0};
        for (int k = 0; k < 2; k++) {
            if (nodes[k] == 0) continue;
            GHP_TRY(spans_add(&calendar->node[nodes[k]].whole, lived.span));
            GHP_TRY(add_above(calendar, nodes[k] / 2, lived.span));
        }
    }
    return GHP_OK;
}

static enum ghp_status take(struct calendar *calendar, const struct spans *spans)
{
    for (int i = 0; i < spans->n; i++)
        GHP_TRY(spans_append(&calendar->found, spans->of[i]));
    return GHP_OK;
}

/* What is taken all through a node's time. */
static enum ghp_status take_whole(struct calendar *calendar, int v)
{
    for (; v >= 1; v /= 2)
        GHP_TRY(take(calendar, &calendar->node[v].whole));
    return GHP_OK;
}

static enum ghp_status take_of_cell(struct calendar *calendar, int c, const struct ghp_buffer *b)
{
    const struct cell *cell = &calendar->cell[c];
    for (int i = 0; i < cell->n; i++)
        if (b->first_point <= cell->of[i].last_point && cell->of[i].first_point <= b->last_point)
            GHP_TRY(spans_append(&calendar->found, cell->of[i].span));
    return take_whole(calendar, calendar->cells + c);
}

static int lower_first(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* `found` becomes what is taken while the buffer lives, ascending; ranges may overlap. */
static enum ghp_status calendar_find(struct calendar *calendar, const struct ghp_buffer *b)
{
    struct cover cover = cover_of(b);
    int low = cover.first + calendar->cells, high = cover.end + calendar->cells;
    calendar->found.n = 0;
    for (int k = 0; k < 2; k++)
        if (cover.parts[k] >= 0) GHP_TRY(take_of_cell(calendar, cover.parts[k], b));
    for (; low < high; low /= 2, high /= 2) {
        const int nodes[2] = {low % 2 == 1 ? low++ : 0, high % 2 == 1 ? --high : 0};
        for (int k = 0; k < 2; k++) {
            if (nodes[k] == 0) continue;
            GHP_TRY(take(calendar, &calendar->node[nodes[k]].part));
            GHP_TRY(take_whole(calendar, nodes[k]));
        }
    }
    if (calendar->found.n > 1)
        qsort(calendar->found.of, (size_t)calendar->found.n, sizeof *calendar->found.of,
              lower_first);
    return GHP_OK;
}

/* ---- gaps ---- */

/* Lowest of the smallest gaps that fit between ranges that are taken, from `base` on. */
static int64_t find_gap(const struct spans *taken, int64_t bytes, int64_t base)
{
    int64_t best_at = -1, best_size = INT64_MAX, end = base;
    for (int i = 0; i < taken->n; i++) {
        int64_t gap = taken->of[i].begin - end;
        if (gap >= bytes && gap < best_size) {
            best_at = end;
            best_size = gap;
        }
        if (taken->of[i].end > end) end = taken->of[i].end;
    }
    return best_at >= 0 ? best_at : end;
}

/* A buffer that never lives takes nothing. */
static enum ghp_status place_one(struct calendar *calendar, struct ghp_buffer *b, int64_t base)
{
    b->offset = base;
    if (b->last_point < b->first_point) return GHP_OK;
    GHP_TRY(calendar_find(calendar, b));
    b->offset = find_gap(&calendar->found, b->bytes, base);
    return calendar_add(calendar, b);
}

/* ---- rows ---- */

enum { NEAR_POINTS = 32 };

struct rows {      /* of each buffer */
    int *next;     /* the one right after it in a row; -1: none */
    bool *follows; /* it is not the first of a row */
};

static enum ghp_status rows_open(const struct ghp_program *program, struct rows *rows)
{
    size_t n = (size_t)program->n_buffers + 1;
    *rows = (struct rows){ghp_alloc(n, sizeof *rows->next), ghp_alloc(n, sizeof *rows->follows)};
    if (rows->next == NULL || rows->follows == NULL) return GHP_NO_MEMORY();
    memset(rows->next, 0xff, n * sizeof *rows->next);
    return GHP_OK;
}

static void rows_close(struct rows *rows)
{
    free(rows->next);
    free(rows->follows);
}

static bool may_follow(const struct ghp_program *program, const struct rows *rows, int a, int b)
{
    const struct ghp_buffer *x = &program->buffers[a], *y = &program->buffers[b];
    return a != b && owns(program, a) && owns(program, b) && !x->persistent && !y->persistent &&
           x->bytes == y->bytes && abs(x->first_point - y->first_point) <= NEAR_POINTS &&
           abs(x->last_point - y->last_point) <= NEAR_POINTS && rows->next[a] < 0 &&
           rows->next[b] < 0 && !rows->follows[b];
}

static void row_up(const struct ghp_program *program, struct rows *rows, int a, int b)
{
    if (a < 0 || b < 0 || !may_follow(program, rows, a, b)) return;
    rows->next[a] = b;
    rows->follows[b] = true;
}

static void rows_fill(const struct ghp_program *program, struct rows *rows)
{
    for (int i = 0; i < program->n_instrs; i++) {
        const struct ghp_instr *a = &program->instrs[i], *b;
        if (a->fusion.next < 0) continue;
        b = &program->instrs[a->fusion.next];
        row_up(program, rows, a->backward ? a->at.dy : a->at.y, a->backward ? b->at.dy : b->at.y);
        row_up(program, rows, a->at.scratch, b->at.scratch);
    }
}

/* A buffer, or the row that begins with it. */
static struct ghp_buffer row_of(const struct ghp_program *program, const struct rows *rows,
                                int buffer)
{
    struct ghp_buffer row = program->buffers[buffer];
    for (int next = rows->next[buffer]; next >= 0; next = rows->next[next]) {
        const struct ghp_buffer *b = &program->buffers[next];
        row.bytes += b->bytes;
        if (b->first_point < row.first_point) row.first_point = b->first_point;
        if (b->last_point > row.last_point) row.last_point = b->last_point;
    }
    return row;
}

static enum ghp_status place_row(struct calendar *calendar, struct ghp_program *program,
                                 const struct rows *rows, int buffer, int64_t base)
{
    struct ghp_buffer row = row_of(program, rows, buffer);
    GHP_TRY(place_one(calendar, &row, base));
    for (; buffer >= 0; buffer = rows->next[buffer]) {
        struct ghp_buffer *b = &program->buffers[buffer];
        b->offset = row.offset;
        row.offset += b->bytes;
    }
    if (row.offset > program->peak_bytes) program->peak_bytes = row.offset;
    return GHP_OK;
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
    struct calendar calendar = {0};
    struct rows rows;
    enum ghp_status status = rows_open(program, &rows);
    int64_t base = 0;
    int n = 0;
    if (status == GHP_OK)
        status = order == NULL ? GHP_NO_MEMORY() : calendar_open(program->n_points, &calendar);
    if (status == GHP_OK) rows_fill(program, &rows);
    for (int i = 0; i < program->n_buffers && status == GHP_OK; i++) {
        struct ghp_buffer *b = &program->buffers[i];
        if (!owns(program, i) || rows.follows[i]) continue;
        if (b->persistent) {
            b->offset = base;
            base += b->bytes;
        } else {
            const struct ghp_buffer row = row_of(program, &rows, i);
            order[n++] = (struct order){i, row.bytes, row.first_point};
        }
    }
    if (status == GHP_OK) qsort(order, (size_t)n, sizeof *order, larger_first);
    program->peak_bytes = base;
    for (int i = 0; i < n && status == GHP_OK; i++)
        status = place_row(&calendar, program, &rows, order[i].buffer, base);
    if (status == GHP_OK) status = sum_live(program);
    calendar_close(&calendar);
    rows_close(&rows);
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
                    "buffer %d is at %" PRId64 ", outside the arena or unaligned; report this", i,
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
