/* core/model/attributes.c - see model/attributes.h. */
#include "core/model/attributes.h"
#include "core/model/op.h"

#include <string.h>

enum { MAX_KEYS = 24 };

/* ---- the fields of a layer ---- */

static void *field(struct ghp_layer *layer, const struct ghp_attribute *a, int i)
{
    return (char *)layer + a->at[i];
}

static int64_t number(const struct ghp_layer *layer, const struct ghp_attribute *a, int i)
{
    int64_t value;

    memcpy(&value, (const char *)layer + a->at[i], sizeof value);
    return value;
}

static int count(const struct ghp_attribute *a)
{
    return a->at[2] != 0 ? 4 : 2;
}

/* Number i of SIZES if the key is left out. */
static int64_t usual_size(const struct ghp_layer *layer, const struct ghp_attribute *a, int i)
{
    int64_t value = (int64_t)a->usual;

    if (a->usual_at != 0)
        memcpy(&value, (const char *)layer + a->usual_at + (size_t)i * sizeof value, sizeof value);
    return value;
}

/* The attributes that the layer's choice brings; NULL: none. */
static const struct ghp_attribute *brought(const struct ghp_layer *layer,
                                           const struct ghp_attribute *a)
{
    int choice;

    if (a->kind != GHP_ATTRIBUTE_CHOICE || a->brings == NULL) return NULL;
    memcpy(&choice, (const char *)layer + a->at[0], sizeof choice);
    return a->brings[choice];
}

/* ---- reading ---- */

/* A number, or an array of n numbers; a single number fills all. */
static enum ghp_status read_sizes(const struct ghp_node *object, const struct ghp_attribute *a,
                                  int64_t out[4])
{
    int n = count(a);
    struct ghp_node at;
    size_t items;

    if (!a->required && !ghp_json_has(object, a->key)) return GHP_OK;
    GHP_TRY(ghp_json_get(object, a->key, &at));
    if (!json_is_array(at.value)) {
        GHP_TRY(ghp_json_int(object, a->key, (int64_t)a->least, (int64_t)a->most, &out[0]));
        for (int i = 1; i < n; i++)
            out[i] = out[0];
        return GHP_OK;
    }
    items = json_array_size(at.value);
    if (items != (size_t)n && !(n == 4 && items == 2))
        return ghp_json_fail(
            &at, GHP_ERR_FORMAT, "there are %zu numbers; write one number%s", items,
            n == 4 ? ", [height, width] or [top, left, bottom, right]" : " or [height, width]");
    for (size_t i = 0; i < items; i++) {
        struct ghp_node item;
        json_int_t value;

        GHP_TRY(ghp_json_item(&at, i, &item));
        value = json_integer_value(item.value);
        if (!json_is_integer(item.value) || value < (json_int_t)a->least ||
            value > (json_int_t)a->most)
            return ghp_json_fail(&item, GHP_ERR_INPUT,
                                 "this is not a size; use a whole number from %lld to %lld",
                                 (long long)a->least, (long long)a->most);
        out[i] = value;
    }
    if (n == 4 && items == 2) {
        out[2] = out[0];
        out[3] = out[1];
    }
    return GHP_OK;
}

/* An array of at most GHP_MAX_VIEW whole numbers. */
static enum ghp_status read_list(const struct ghp_node *object, const char *key, int64_t *out,
                                 int *n)
{
    struct ghp_node at, item;
    size_t items;

    GHP_TRY(ghp_json_array(object, key, &at, &items));
    if (items > GHP_MAX_VIEW)
        return ghp_json_fail(&at, GHP_ERR_INPUT, "there are %zu numbers; give at most %d", items,
                             GHP_MAX_VIEW);
    for (size_t i = 0; i < items; i++) {
        GHP_TRY(ghp_json_item(&at, i, &item));
        if (!json_is_integer(item.value))
            return ghp_json_fail(&item, GHP_ERR_FORMAT, "this is not a whole number; use one");
        out[i] = json_integer_value(item.value);
    }
    *n = (int)items;
    return GHP_OK;
}

static enum ghp_status read_reals(const struct ghp_node *object, const struct ghp_attribute *a,
                                  double *out, int *n)
{
    struct ghp_node at, item;
    size_t items;

    if (!ghp_json_has(object, a->key)) return GHP_OK;
    GHP_TRY(ghp_json_array(object, a->key, &at, &items));
    if (items < 2 || items > GHP_MAX_INPUTS)
        return ghp_json_fail(&at, GHP_ERR_INPUT, "there are %zu numbers; give 2 to %d", items,
                             GHP_MAX_INPUTS);
    for (size_t i = 0; i < items; i++) {
        GHP_TRY(ghp_json_item(&at, i, &item));
        out[i] = json_number_value(item.value);
        if (!json_is_number(item.value) || !(out[i] >= a->least && out[i] <= a->most))
            return ghp_json_fail(&item, GHP_ERR_INPUT, "this is not a number from %g to %g; use one",
                                 a->least, a->most);
    }
    *n = (int)items;
    return GHP_OK;
}

enum ghp_status ghp_attribute_read(const struct ghp_node *at, const struct ghp_attribute *a,
                                   struct ghp_layer *layer)
{
    bool whole = a->kind == GHP_ATTRIBUTE_INT || a->kind == GHP_ATTRIBUTE_SIZES;
    int64_t least = whole ? (int64_t)a->least : 0, most = whole ? (int64_t)a->most : 0;
    int64_t sizes[4] = {0};
    void *to = field(layer, a, 0);

    switch (a->kind) {
    case GHP_ATTRIBUTE_INT:
        return a->required ? ghp_json_int(at, a->key, least, most, to)
                           : ghp_json_opt_int(at, a->key, least, most, to);
    case GHP_ATTRIBUTE_REAL:
        return a->required ? ghp_json_real(at, a->key, a->least, a->most, to)
                           : ghp_json_opt_real(at, a->key, a->least, a->most, to);
    case GHP_ATTRIBUTE_BOOL: return ghp_json_opt_bool(at, a->key, to);
    case GHP_ATTRIBUTE_CHOICE:
        return a->required ? ghp_json_choice(at, a->key, a->choices, to)
                           : ghp_json_opt_choice(at, a->key, a->choices, to);
    case GHP_ATTRIBUTE_LIST: return read_list(at, a->key, to, field(layer, a, 1));
    case GHP_ATTRIBUTE_REALS: return read_reals(at, a, to, field(layer, a, 1));
    case GHP_ATTRIBUTE_SIZES: break;
    case GHP_ATTRIBUTE_LOSSES:
    case GHP_ATTRIBUTE_OTHER: return GHP_OK;
    }
    for (int i = 0; i < count(a); i++)
        sizes[i] = number(layer, a, i);
    GHP_TRY(read_sizes(at, a, sizes));
    for (int i = 0; i < count(a); i++)
        memcpy(field(layer, a, i), &sizes[i], sizeof sizes[i]);
    return GHP_OK;
}

static void set_usual(struct ghp_layer *layer, const struct ghp_attribute *a)
{
    int64_t whole = a->kind == GHP_ATTRIBUTE_REAL ? 0 : (int64_t)a->usual; /* which may be 1e30 */
    int choice = (int)whole;
    bool truth = whole != 0;

    switch (a->kind) {
    case GHP_ATTRIBUTE_INT: memcpy(field(layer, a, 0), &whole, sizeof whole); return;
    case GHP_ATTRIBUTE_REAL: memcpy(field(layer, a, 0), &a->usual, sizeof a->usual); return;
    case GHP_ATTRIBUTE_CHOICE: memcpy(field(layer, a, 0), &choice, sizeof choice); return;
    case GHP_ATTRIBUTE_BOOL: memcpy(field(layer, a, 0), &truth, sizeof truth); return;
    case GHP_ATTRIBUTE_SIZES:
        for (int i = 0; i < count(a); i++) {
            whole = usual_size(layer, a, i);
            memcpy(field(layer, a, i), &whole, sizeof whole);
        }
        return;
    case GHP_ATTRIBUTE_LIST:
    case GHP_ATTRIBUTE_REALS:
    case GHP_ATTRIBUTE_LOSSES:
    case GHP_ATTRIBUTE_OTHER: return;
    }
}

static enum ghp_status read_table(const struct ghp_node *at, const struct ghp_attribute *table,
                                  struct ghp_layer *layer)
{
    for (const struct ghp_attribute *a = table; a != NULL && a->key != NULL; a++) {
        set_usual(layer, a);
        GHP_TRY((a->read != NULL ? a->read : ghp_attribute_read)(at, a, layer));
    }
    return GHP_OK;
}

/* ---- keys ---- */

/* Adds the keys of a table, and with `any` those that its choices may bring. */
static void add_keys(const struct ghp_attribute *table, bool any, const char **keys, size_t *n)
{
    for (const struct ghp_attribute *a = table; a != NULL && a->key != NULL; a++) {
        size_t i = 0;

        while (i < *n && strcmp(keys[i], a->key) != 0)
            i++;
        GHP_ASSERT(*n < MAX_KEYS - 1);
        if (i == *n) keys[(*n)++] = a->key;
        for (int c = 0; any && a->brings != NULL && a->choices[c] != NULL; c++)
            add_keys(a->brings[c], any, keys, n);
    }
}

enum ghp_status ghp_attributes_check_keys(const struct ghp_node *at,
                                          const struct ghp_op_facts *facts)
{
    const char *keys[MAX_KEYS] = {"name", "op", "inputs"};
    size_t n = 3;

    add_keys(facts->attributes, true, keys, &n);
    if (facts->has_bias) keys[n++] = "bias";
    if (facts->params[0].part != NULL) keys[n++] = "tied";
    return ghp_json_only_keys(at, keys);
}

enum ghp_status ghp_attributes_read(const struct ghp_node *at, const struct ghp_op_facts *facts,
                                    struct ghp_layer *layer)
{
    const struct ghp_attribute *table = facts->attributes;

    GHP_TRY(read_table(at, table, layer));
    for (const struct ghp_attribute *a = table; a != NULL && a->key != NULL; a++) {
        const char *keys[MAX_KEYS] = {"name", "op", "inputs"};
        size_t n = 3;

        if (a->brings == NULL) continue;
        add_keys(table, false, keys, &n);
        add_keys(brought(layer, a), false, keys, &n);
        GHP_TRY(ghp_json_only_keys(at, keys));
        GHP_TRY(read_table(at, brought(layer, a), layer));
    }
    return GHP_OK;
}

/* ---- writing ---- */

void ghp_attribute_put(struct ghp_json_object at, const char *key, json_t *value)
{
    if (json_object_set_new(at.json, key, value) != 0) *at.whole = false;
}

static void put_list(struct ghp_json_object at, const char *key, const int64_t *values, int n)
{
    json_t *array = json_array();

    for (int i = 0; i < n; i++)
        if (json_array_append_new(array, json_integer(values[i])) != 0) *at.whole = false;
    ghp_attribute_put(at, key, array);
}

static void put_reals(struct ghp_json_object at, const char *key, const double *values, int n)
{
    json_t *array = json_array();

    for (int i = 0; i < n; i++)
        if (json_array_append_new(array, json_real(values[i])) != 0) *at.whole = false;
    ghp_attribute_put(at, key, array);
}

/* Writes one number if all are equal, and two if those after an axis equal those before it. */
static void put_sizes(const struct ghp_layer *layer, const struct ghp_attribute *a,
                      struct ghp_json_object at)
{
    int n = count(a);
    int64_t sizes[4];
    bool usual = true;

    for (int i = 0; i < n; i++) {
        sizes[i] = number(layer, a, i);
        usual = usual && sizes[i] == usual_size(layer, a, i);
    }
    if (usual && !a->required) return;
    if (n == 4 && sizes[0] == sizes[2] && sizes[1] == sizes[3]) n = 2;
    if (n == 2 && sizes[0] == sizes[1])
        ghp_attribute_put(at, a->key, json_integer(sizes[0]));
    else
        put_list(at, a->key, sizes, n);
}

static void put(const struct ghp_layer *layer, const struct ghp_attribute *a,
                struct ghp_json_object at)
{
    const char *from = (const char *)layer + a->at[0];
    double real;
    int choice;
    bool truth;

    switch (a->kind) {
    case GHP_ATTRIBUTE_INT:
        if (a->required || number(layer, a, 0) != (int64_t)a->usual)
            ghp_attribute_put(at, a->key, json_integer(number(layer, a, 0)));
        return;
    case GHP_ATTRIBUTE_REAL:
        memcpy(&real, from, sizeof real);
        if (a->required || real != a->usual) ghp_attribute_put(at, a->key, json_real(real));
        return;
    case GHP_ATTRIBUTE_BOOL:
        memcpy(&truth, from, sizeof truth);
        if (truth != (a->usual != 0)) ghp_attribute_put(at, a->key, json_boolean(truth));
        return;
    case GHP_ATTRIBUTE_CHOICE:
        memcpy(&choice, from, sizeof choice);
        if (a->required || choice != (int)a->usual)
            ghp_attribute_put(at, a->key, json_string(a->choices[choice]));
        return;
    case GHP_ATTRIBUTE_SIZES: put_sizes(layer, a, at); return;
    case GHP_ATTRIBUTE_LIST:
        memcpy(&choice, (const char *)layer + a->at[1], sizeof choice);
        put_list(at, a->key, (const int64_t *)(const void *)from, choice);
        return;
    case GHP_ATTRIBUTE_REALS:
        memcpy(&choice, (const char *)layer + a->at[1], sizeof choice);
        if (choice > 0) put_reals(at, a->key, (const double *)(const void *)from, choice);
        return;
    case GHP_ATTRIBUTE_LOSSES:
    case GHP_ATTRIBUTE_OTHER: return;
    }
}

static void put_table(const struct ghp_layer *layer, const struct ghp_attribute *table,
                      struct ghp_json_object at)
{
    for (const struct ghp_attribute *a = table; a != NULL && a->key != NULL; a++) {
        (a->write != NULL ? a->write : put)(layer, a, at);
        put_table(layer, brought(layer, a), at);
    }
}

void ghp_attributes_write(const struct ghp_layer *layer, const struct ghp_op_facts *facts,
                          struct ghp_json_object at)
{
    put_table(layer, facts->attributes, at);
}

/* ---- comparing ---- */

/* Bytes of each of a kind's fields; of arrays: of a number of the array. 0: OTHER. */
static size_t field_bytes(enum ghp_attribute_kind kind)
{
    switch (kind) {
    case GHP_ATTRIBUTE_INT:
    case GHP_ATTRIBUTE_SIZES:
    case GHP_ATTRIBUTE_LIST: return sizeof(int64_t);
    case GHP_ATTRIBUTE_REAL:
    case GHP_ATTRIBUTE_REALS: return sizeof(double);
    case GHP_ATTRIBUTE_BOOL: return sizeof(bool);
    case GHP_ATTRIBUTE_CHOICE: return sizeof(int);
    case GHP_ATTRIBUTE_LOSSES: return GHP_MAX_INPUTS * sizeof(struct ghp_loss_part);
    case GHP_ATTRIBUTE_OTHER: break;
    }
    return 0;
}

static bool same_field(const struct ghp_layer *x, const struct ghp_layer *y, size_t at,
                       size_t bytes)
{
    size_t first = offsetof(struct ghp_layer, attributes);

    if (at < first || at >= first + sizeof x->attributes) return true;
    return memcmp((const char *)x + at, (const char *)y + at, bytes) == 0;
}

static bool same_value(const struct ghp_layer *x, const struct ghp_layer *y,
                       const struct ghp_attribute *a)
{
    size_t bytes = field_bytes(a->kind);
    int n = 0;

    if (a->kind == GHP_ATTRIBUTE_LIST || a->kind == GHP_ATTRIBUTE_REALS) {
        memcpy(&n, (const char *)x + a->at[1], sizeof n);
        return same_field(x, y, a->at[1], sizeof n) &&
               same_field(x, y, a->at[0], (size_t)n * bytes);
    }
    for (int i = 0; i < (a->kind == GHP_ATTRIBUTE_SIZES ? count(a) : 1); i++)
        if (!same_field(x, y, a->at[i], bytes)) return false;
    return true;
}

static bool same_table(const struct ghp_layer *x, const struct ghp_layer *y,
                       const struct ghp_attribute *table)
{
    for (const struct ghp_attribute *a = table; a != NULL && a->key != NULL; a++)
        if (!same_value(x, y, a) || !same_table(x, y, brought(x, a))) return false;
    return true;
}

bool ghp_attributes_equal(const struct ghp_op_facts *facts, const struct ghp_attributes *x,
                          const struct ghp_attributes *y)
{
    struct ghp_layer a = {.attributes = *x}, b = {.attributes = *y};

    return same_table(&a, &b, facts->attributes);
}
