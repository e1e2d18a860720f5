/* core/model/schema.c - see model/schema.h. Every function that makes a value returns a new reference, or NULL if
 * memory is short. Jansson's functions fail on NULL, so only the outermost caller checks. */
#include "core/model/schema.h"
#include "core/base/json_lines.h"
#include "core/model/attributes.h"
#include "core/model/model_private.h"
#include "core/model/op.h"

/* ---- one key ---- */

static json_t *name_schema(void)
{
    return json_pack("{s:s, s:o}", "type", "string", "pattern",
                     json_sprintf("^[A-Za-z0-9_./-]{1,%d}$", GHP_MAX_NAME));
}

static json_t *whole_schema(const struct ghp_attribute *a)
{
    return json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum", (json_int_t)a->least,
                     "maximum", (json_int_t)a->most);
}

static json_t *real_schema(const struct ghp_attribute *a)
{
    return json_pack("{s:s, s:f, s:f}", "type", "number", "minimum", a->least, "maximum", a->most);
}

static json_t *array_schema(json_t *items, int least, int most)
{
    return json_pack("{s:s, s:o, s:i, s:i}", "type", "array", "items", items, "minItems", least,
                     "maxItems", most);
}

/* One number for all, or each; of four also the first two, which stand for the others. */
static json_t *sizes_schema(const struct ghp_attribute *a)
{
    json_t *two = array_schema(whole_schema(a), 2, 2);

    if (a->at[2] == 0) return json_pack("{s:[o, o]}", "oneOf", whole_schema(a), two);
    return json_pack("{s:[o, o, o]}", "oneOf", whole_schema(a), two,
                     array_schema(whole_schema(a), 4, 4));
}

static json_t *choice_schema(const struct ghp_attribute *a)
{
    json_t *names = json_array();

    for (int i = 0; a->choices[i] != NULL; i++)
        if (json_array_append_new(names, json_string(a->choices[i])) != 0) {
            json_decref(names);
            return NULL;
        }
    return json_pack("{s:o}", "enum", names);
}

static json_t *losses_schema(void); /* of layers, which have keys */

static json_t *key_schema(const struct ghp_attribute *a)
{
    switch (a->kind) {
    case GHP_ATTRIBUTE_INT: return whole_schema(a);
    case GHP_ATTRIBUTE_REAL: return real_schema(a);
    case GHP_ATTRIBUTE_REALS: return array_schema(real_schema(a), 2, GHP_MAX_INPUTS);
    case GHP_ATTRIBUTE_CHOICE: return choice_schema(a);
    case GHP_ATTRIBUTE_SIZES: return sizes_schema(a);
    case GHP_ATTRIBUTE_LIST:
        return array_schema(json_pack("{s:s}", "type", "integer"), 0, GHP_MAX_VIEW);
    case GHP_ATTRIBUTE_BOOL: return json_pack("{s:s}", "type", "boolean");
    case GHP_ATTRIBUTE_LOSSES: return losses_schema();
    case GHP_ATTRIBUTE_OTHER: break;
    }
    if (a->pattern == NULL) return json_pack("{s:s}", "type", "boolean");
    return json_pack("{s:s, s:s}", "type", "string", "pattern", a->pattern);
}

/* ---- a layer ---- */

struct keys { /* being written */
    json_t *properties, *required;
    bool whole; /* false: out of memory */
};

static void add(struct keys *keys, const char *key, json_t *schema, bool required)
{
    if (json_object_set_new(keys->properties, key, schema) != 0) keys->whole = false;
    if (required && json_array_append_new(keys->required, json_string(key)) != 0)
        keys->whole = false;
}

static void add_table(struct keys *keys, const struct ghp_attribute *table)
{
    for (const struct ghp_attribute *a = table; a != NULL && a->key != NULL; a++)
        add(keys, a->key, key_schema(a), a->required);
}

/* Losses of outputs, each with the keys of a layer of it, but what is of several outputs. */
static json_t *losses_schema(void)
{
    static const struct ghp_attribute channels = {.least = 1, .most = GHP_MODEL_CHANNELS},
                                      weight = {.most = 1e6};
    json_t *choices = json_array();
    bool whole = true;

    for (enum ghp_op op = 0; op < GHP_OP_COUNT && whole; op++) {
        const struct ghp_attribute *a = ghp_op_of(op)->attributes;
        struct keys keys;

        if (!ghp_op_of(op)->is_loss || op == GHP_OP_LOSSES) continue;
        keys = (struct keys){json_object(), json_array(), true};
        add(&keys, "op", json_pack("{s:s}", "const", ghp_op_name(op)), true);
        add(&keys, "channels", whole_schema(&channels), false);
        add(&keys, "weight", real_schema(&weight), false);
        add_table(&keys, a);
        for (; a != NULL && a->key != NULL; a++)
            for (int i = 0; a->brings != NULL && a->choices[i] != NULL; i++)
                add_table(&keys, a->brings[i]);
        json_object_del(keys.properties, "output_weights");
        json_object_del(keys.properties, "own_labels");
        whole = keys.whole &&
                json_array_append_new(choices,
                                      json_pack("{s:s, s:o, s:o, s:b}", "type", "object",
                                                "properties", keys.properties, "required",
                                                keys.required, "additionalProperties", 0)) == 0;
    }
    if (whole) return array_schema(json_pack("{s:o}", "oneOf", choices), 2, GHP_MAX_INPUTS);
    json_decref(choices);
    return NULL;
}

/* A layer of one operation; if `chooser` says which keys there are, of its choice. */
static json_t *layer_schema(enum ghp_op op, const struct ghp_attribute *chooser, int choice)
{
    const struct ghp_op_facts *facts = ghp_op_of(op);
    struct keys keys = {json_object(), json_array(), true};
    json_t *inputs = array_schema(name_schema(), facts->least_inputs, facts->most_inputs);

    add(&keys, "name", name_schema(), true);
    add(&keys, "op", json_pack("{s:s}", "const", ghp_op_name(op)), true);
    if (json_object_set_new(inputs, "uniqueItems", json_true()) != 0) keys.whole = false;
    add(&keys, "inputs", inputs, facts->least_inputs > 1);
    add_table(&keys, facts->attributes);
    if (facts->params[0].part != NULL)
        add(&keys, "tied", json_pack("{s:s}", "type", "string"), false);
    if (facts->has_bias) add(&keys, "bias", json_pack("{s:s}", "type", "boolean"), false);
    if (chooser != NULL) {
        add_table(&keys, chooser->brings[choice]);
        add(&keys, chooser->key, json_pack("{s:s}", "const", chooser->choices[choice]),
            !chooser->required && choice != (int)chooser->usual);
    }
    if (!keys.whole) {
        json_decref(keys.properties);
        json_decref(keys.required);
        return NULL;
    }
    return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", keys.properties,
                     "required", keys.required, "additionalProperties", 0);
}

static json_t *op_schema(enum ghp_op op)
{
    const struct ghp_attribute *a = ghp_op_of(op)->attributes;
    json_t *choices;
    bool whole = true;

    while (a != NULL && a->key != NULL && a->brings == NULL)
        a++;
    if (a == NULL || a->key == NULL) return layer_schema(op, NULL, 0);
    choices = json_array();
    for (int i = 0; a->choices[i] != NULL && whole; i++)
        whole = json_array_append_new(choices, layer_schema(op, a, i)) == 0;
    if (whole) return json_pack("{s:o}", "oneOf", choices);
    json_decref(choices);
    return NULL;
}

/* By operation, so that what is wrong is said of the operation that was meant. */
static json_t *schema(void)
{
    json_t *names = json_array(), *cases = json_array();
    bool whole = true;

    for (enum ghp_op op = 0; op < GHP_OP_COUNT && whole; op++) {
        json_t *one;

        if (ghp_op_of(op)->is_input) continue;
        one = json_pack("{s:{s:{s:{s:s}}}, s:o}", "if", "properties", "op", "const",
                        ghp_op_name(op), "then", op_schema(op));
        whole = json_array_append_new(names, json_string(ghp_op_name(op))) == 0 &&
                json_array_append_new(cases, one) == 0;
    }
    if (!whole) {
        json_decref(names);
        json_decref(cases);
        return NULL;
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:[s], s:{s:{s:o}}, s:o}", "$schema",
                     "https://json-schema.org/draft/2020-12/schema", "$id", "layer.json", "title",
                     "a layer of ghp.model/1", "type", "object", "required", "op", "properties",
                     "op", "enum", names, "allOf", cases);
}

enum ghp_status ghp_layer_schema(char **text)
{
    json_t *root = schema();
    enum ghp_status status;

    *text = NULL;
    if (root == NULL) return GHP_NO_MEMORY();
    status = ghp_json_lines(root, text);
    json_decref(root);
    return status;
}
