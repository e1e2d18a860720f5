/* planner/search/mps.c - see mps.h: the rows of choices and of the memory, and the file, whose entries are sorted by
 * column, as the format wants them. */
#include "planner/search/mps_private.h"

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/plan/integer_program.h"

#include <stdlib.h>
#include <string.h>

/* ---- choices ---- */

static void add_layer(struct ghp_mps *m, int v)
{
    const struct ghp_instance *in = m->in;
    int one = ghp_mps_add_row(m, 'E', 1, "one%d", v);
    char split[GHP_MPS_NAME_SIZE - 16];

    for (int i = in->first_choice[v]; i < in->first_choice[v + 1]; i++) {
        m->x[i] = -1;
        if (!m->job->domain->choice[i]) continue;
        ghp_split_format(in->choices[i], split, sizeof split);
        m->x[i] = ghp_mps_add_column(m, true, "x%d:%s", v, split);
        ghp_mps_put(m, one, m->x[i], 1);
    }
}

/* Whether a choice of a layer's class is in play. */
static bool has_class(const struct ghp_mps *m, int v, int class)
{
    for (int flat = m->in->first_choice[v]; flat < m->in->first_choice[v + 1]; flat++)
        if (m->in->class_of[flat] == class && m->x[flat] >= 0) return true;
    return false;
}

/* Pairs of an edge that share class `at` at one end sum to the x of its choices. */
static void tie_end(struct ghp_mps *m, int e, bool from_end, int at)
{
    const struct ghp_instance *in = m->in;
    int from = in->edges[e].from, to = in->edges[e].to, n_to = in->n_classes[to];
    int end = from_end ? from : to, row;

    if (!has_class(m, end, at)) return;
    row = ghp_mps_add_row(m, 'E', 0, "%s%d:%d", from_end ? "from" : "to", e, at);
    for (int flat = in->first_choice[end]; flat < in->first_choice[end + 1]; flat++)
        if (in->class_of[flat] == at) ghp_mps_put(m, row, m->x[flat], -1);
    for (int o = 0; o < in->n_classes[from_end ? to : from]; o++)
        ghp_mps_put(m, row, m->y[in->first_pair[e] + (from_end ? at * n_to + o : o * n_to + at)],
                    1);
}

static void add_edge(struct ghp_mps *m, int e)
{
    const struct ghp_instance *in = m->in;
    int from = in->edges[e].from, to = in->edges[e].to, n_to = in->n_classes[to];

    for (int k = 0; k < in->n_classes[from] * n_to; k++) {
        bool in_play = has_class(m, from, k / n_to) && has_class(m, to, k % n_to) &&
                       m->job->domain->pair[in->first_pair[e] + k];

        m->y[in->first_pair[e] + k] =
            in_play ? ghp_mps_add_column(m, false, "y%d:%d:%d", e, k / n_to, k % n_to) : -1;
    }
    for (int i = 0; i < in->n_classes[from]; i++)
        tie_end(m, e, true, i);
    for (int i = 0; i < n_to; i++)
        tie_end(m, e, false, i);
}

/* A tied layer takes the choice that goes with its owner's. */
static void couple(struct ghp_mps *m, int owner, int tied)
{
    const struct ghp_instance *in = m->in;

    for (int i = 0; i < in->n_choices[owner]; i++) {
        int other = ghp_instance_tied_choice(in, owner, i, tied), row;

        if (m->x[in->first_choice[owner] + i] < 0) continue;
        row = ghp_mps_add_row(m, 'E', 0, "tied%d:%d", tied, i);
        ghp_mps_put(m, row, m->x[in->first_choice[owner] + i], 1);
        if (other >= 0) ghp_mps_put(m, row, m->x[in->first_choice[tied] + other], -1);
    }
}

static void add_choices(struct ghp_mps *m)
{
    const struct ghp_model *model = m->in->lowering->model;

    for (int v = 0; v < m->in->n_layers; v++)
        add_layer(m, v);
    for (int e = 0; e < m->in->n_edges; e++)
        add_edge(m, e);
    for (int v = 0; v < m->in->n_layers; v++)
        if (model->layers[v].tied > 0) couple(m, ghp_model_owner(model, v), v);
}

/* ---- memory ---- */

static void put_spans(struct ghp_mps *m, const struct ghp_spans *spans, int index, int column,
                      int first_row)
{
    for (int k = spans->first[index]; k < spans->first[index + 1]; k++) {
        const struct ghp_span *span = &spans->span[k];
        double fraction = (double)span->bytes / m->job->limit_bytes;

        ghp_mps_put(m, first_row + span->first, column, -fraction);
        if (span->last + 1 < m->in->n_points)
            ghp_mps_put(m, first_row + span->last + 1, column, fraction);
    }
}

/* Live bytes, in fractions of the limit: at a point those of the point before it, with what begins and without what
 * ended. */
static void add_memory(struct ghp_mps *m)
{
    const struct ghp_instance *in = m->in;
    int first_row = m->n_rows, receive, last = -1;

    for (int p = 0; p < in->n_points; p++)
        ghp_mps_add_row(m, 'E', 0, "live%d", p);
    receive = ghp_mps_add_column(m, false, "receive");
    for (int p = 0; p < in->n_points; p++) {
        int live = ghp_mps_add_column(m, false, "live%d", p),
            fits = ghp_mps_add_row(m, 'L', 1, "fits%d", p);

        ghp_mps_put(m, first_row + p, live, 1);
        ghp_mps_put(m, first_row + p, last, -1);
        ghp_mps_put(m, fits, live, 1);
        ghp_mps_put(m, fits, receive, 1);
        last = live;
    }
    for (int v = 0; v < in->n_layers; v++) {
        int row = ghp_mps_add_row(m, 'G', 0, "receive%d", v);

        ghp_mps_put(m, row, receive, 1);
        for (int i = in->first_choice[v]; i < in->first_choice[v + 1]; i++) {
            if (m->x[i] < 0) continue;
            ghp_mps_put(m, row, m->x[i], -(double)in->receive_bytes[i] / m->job->limit_bytes);
            put_spans(m, &in->layer_spans, i, m->x[i], first_row);
        }
    }
    for (int k = 0; k < in->first_pair[in->n_edges]; k++)
        if (m->y[k] >= 0) put_spans(m, &in->edge_spans, k, m->y[k], first_row);
}

/* ---- the file ---- */

static int by_column(const void *a, const void *b)
{
    const struct ghp_mps_entry *x = a, *y = b;

    return x->column != y->column ? x->column - y->column : x->row - y->row;
}

/* Adds up entries of one place. */
static void merge_entries(struct ghp_mps *m)
{
    size_t n = 0;

    if (m->n_entries == 0) return;
    qsort(m->entries, m->n_entries, sizeof *m->entries, by_column);
    for (size_t k = 1; k < m->n_entries; k++)
        if (by_column(&m->entries[n], &m->entries[k]) == 0)
            m->entries[n].value += m->entries[k].value;
        else
            m->entries[++n] = m->entries[k];
    m->n_entries = n + 1;
}

static void print_columns(const struct ghp_mps *m, FILE *out)
{
    bool integer = false;

    for (size_t k = 0; k < m->n_entries; k++) {
        const struct ghp_mps_entry *e = &m->entries[k];
        const struct ghp_mps_column *column = &m->columns[e->column];

        if (column->integer != integer)
            fprintf(out, " marker 'MARKER' '%s'\n", integer ? "INTEND" : "INTORG");
        integer = column->integer;
        fprintf(out, " %s %s %.15g\n", column->name, m->rows[e->row].name, e->value);
    }
    if (integer) fputs(" marker 'MARKER' 'INTEND'\n", out);
}

static void print_program(const struct ghp_mps *m, FILE *out)
{
    char name[256];

    for (int v = 0; v < m->in->n_layers; v++) {
        snprintf(name, sizeof name, "%s", m->in->lowering->model->layers[v].name);
        ghp_text_printable(name);
        fprintf(out, "* layer %d: %s\n", v, name);
    }
    fputs("NAME certificate FREE\nROWS\n N seconds\n", out);
    for (int r = 0; r < m->n_rows; r++)
        fprintf(out, " %c %s\n", m->rows[r].type, m->rows[r].name);
    fputs("COLUMNS\n step seconds 1\n", out);
    print_columns(m, out);
    fputs("RHS\n", out);
    for (int r = 0; r < m->n_rows; r++)
        if (m->rows[r].right != 0)
            fprintf(out, " right %s %.15g\n", m->rows[r].name, m->rows[r].right);
    fputs("BOUNDS\n", out);
    for (int c = 0; c < m->n_columns; c++)
        if (m->columns[c].integer) fprintf(out, " UP bound %s 1\n", m->columns[c].name);
    fputs("ENDATA\n", out);
}

static enum ghp_status save(const struct ghp_mps *m, const char *path)
{
    char *text = NULL;
    size_t n = 0, head = strlen(m->job->head), begin;
    FILE *out = open_memstream(&text, &n);
    char seal[GHP_INTEGER_PROGRAM_SEAL_SIZE];
    enum ghp_status status;
    bool failed;

    if (out == NULL) return GHP_NO_MEMORY();
    ghp_integer_program_seal("", 0, seal); /* its room, until the program is there */
    begin = head + strlen(seal);
    fprintf(out, "%s%s", m->job->head, seal);
    print_program(m, out);
    failed = ferror(out) != 0;
    failed = fclose(out) != 0 || failed;
    if (!failed) {
        ghp_integer_program_seal(text + begin, n - begin, seal);
        memcpy(text + head, seal, begin - head);
    }
    status = failed ? GHP_NO_MEMORY() : ghp_file_write_atomic(path, text, n);
    free(text);
    return status;
}

static enum ghp_status allocate(struct ghp_mps *m)
{
    const struct ghp_instance *in = m->in;

    m->x = ghp_alloc((size_t)in->first_choice[in->n_layers], sizeof *m->x);
    m->y = ghp_alloc((size_t)in->first_pair[in->n_edges], sizeof *m->y);
    m->slot_row = ghp_alloc((size_t)in->n_slots + 1, sizeof *m->slot_row);
    m->before = ghp_alloc((size_t)in->n_slots + 1, sizeof *m->before);
    m->most_s = ghp_alloc((size_t)in->n_slots + 1, sizeof *m->most_s);
    m->waiter = ghp_alloc((size_t)in->n_layers, sizeof *m->waiter);
    m->idle = ghp_alloc((size_t)in->n_layers, sizeof *m->idle);
    return m->x == NULL || m->y == NULL || m->slot_row == NULL || m->before == NULL ||
                   m->most_s == NULL || m->waiter == NULL || m->idle == NULL
               ? GHP_NO_MEMORY()
               : GHP_OK;
}

enum ghp_status ghp_mps_write(const struct ghp_mps_job *job, const char *path)
{
    struct ghp_mps m = {.job = job, .in = job->domain->instance};
    enum ghp_status status = allocate(&m);

    GHP_ASSERT(m.in->n_stages == 1 && m.in->first_steady < 0);
    if (status == GHP_OK) {
        m.step = ghp_mps_add_column(&m, false, "step");
        add_choices(&m);
        ghp_mps_add_time(&m);
        if (job->limit_bytes > 0) add_memory(&m);
        merge_entries(&m);
        status = m.failed ? GHP_NO_MEMORY() : save(&m, path);
    }
    free(m.rows);
    free(m.columns);
    free(m.entries);
    free(m.x);
    free(m.y);
    free(m.slot_row);
    free(m.before);
    free(m.most_s);
    free(m.waiter);
    free(m.idle);
    return status;
}
