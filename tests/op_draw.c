/* tests/op_draw.c - see op_draw.h. */
#include "tests/op_draw.h"

#include "core/model/attributes.h"

#include <stdio.h>
#include <string.h>

struct drawing {
    char *text;
    size_t used, size;
    int numbers; /* drawn so far: each is larger than the one before, as limits have to be */
};

static void append(struct drawing *d, const char *key, const char *value)
{
    d->used += (size_t)snprintf(d->text + d->used, d->size - d->used, ",\"%s\":%s", key, value);
    if (d->used >= d->size) d->used = d->size - 1;
}

static void draw_real(struct drawing *d, const struct ghp_attribute *a)
{
    double value = 0.25 * ++d->numbers;
    char text[64];

    if (value < a->least || value > a->most) value = a->least + 0.5 * (a->most - a->least);
    if (!(value < a->usual) && !(value > a->usual)) value = 0.5 * (value + a->least);
    snprintf(text, sizeof text, "%.17g", value);
    append(d, a->key, text);
}

static bool draw_table(struct drawing *d, const struct ghp_attribute *table, int variant);

/* A default is not written. */
static bool draw_choice(struct drawing *d, const struct ghp_attribute *a, int variant)
{
    char text[64];

    for (int i = 0; i <= variant; i++)
        if (a->choices[i] == NULL) return false;
    snprintf(text, sizeof text, "\"%s\"", a->choices[variant]);
    if (a->required || variant != (int)a->usual) append(d, a->key, text);
    return a->brings == NULL || a->brings[variant] == NULL || draw_table(d, a->brings[variant], 0);
}

static bool draw_table(struct drawing *d, const struct ghp_attribute *table, int variant)
{
    bool chosen = false;

    for (const struct ghp_attribute *a = table; a != NULL && a->key != NULL; a++) {
        if (a->kind == GHP_ATTRIBUTE_REAL) {
            draw_real(d, a);
        } else if (a->kind == GHP_ATTRIBUTE_REALS) {
            append(d, a->key, "[0.75,0.5]");
        } else if (a->kind == GHP_ATTRIBUTE_BOOL) {
            append(d, a->key, a->usual > 0 ? "false" : "true");
        } else if (a->kind == GHP_ATTRIBUTE_CHOICE) {
            if (!draw_choice(d, a, chosen ? 0 : variant)) return false;
            chosen = true;
        } else {
            return false;
        }
    }
    return chosen || variant == 0;
}

bool op_draw(enum ghp_op op, int variant, char *keys, size_t n)
{
    const struct ghp_op_facts *facts = ghp_op_of(op);
    struct drawing d = {.text = keys, .size = n};

    keys[0] = '\0';
    if (facts->is_input || !draw_table(&d, facts->attributes, variant)) return false;
    if (facts->has_bias) append(&d, "bias", "false");
    return true;
}

enum ghp_status op_draw_model(enum ghp_op op, const char *keys, struct ghp_model *model)
{
    static const char *const sizes[] = {"\"channels\":4,\"height\":6,\"width\":6",
                                        "\"channels\":4,\"positions\":6", "\"channels\":4",
                                        "\"positions\":6,\"vocabulary\":11"};
    static const char *const inputs[] = {"", ",\"inputs\":[\"input\",\"first\"]",
                                         ",\"inputs\":[\"input\",\"first\",\"second\"]"};
    const struct ghp_op_facts *facts = ghp_op_of(op);
    enum ghp_status status = GHP_OK;
    char text[1024];

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        snprintf(text, sizeof text,
                 "{\"format\":\"ghp.model/1\",\"name\":\"m\",\"input\":{%s},\"layers\":["
                 "%s%s{\"name\":\"it\",\"op\":\"%s\"%s%s}%s]}",
                 sizes[i],
                 facts->takes_ids || facts->takes_samples ? ""
                                                          : "{\"name\":\"first\",\"op\":\"relu\"},",
                 facts->least_inputs > 2 ? "{\"name\":\"second\",\"op\":\"relu\"}," : "",
                 ghp_op_name(op), inputs[facts->least_inputs - 1], keys,
                 facts->is_loss ? ""
                                : ",{\"name\":\"flat\",\"op\":\"flatten\"},"
                                  "{\"name\":\"loss\",\"op\":\"softmax_cross_entropy\"}");
        status = ghp_model_parse(text, ghp_op_name(op), model);
        if (status != GHP_ERR_INPUT) break;
    }
    return status;
}
