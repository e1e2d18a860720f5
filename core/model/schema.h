/* core/model/schema.h - the JSON Schema of a layer, from the operations' tables of attributes.
 *
 * It says keys, types and ranges; what must hold among them only the reader checks. docs/schema/model.json refers to
 * it as layer.json, and the build writes that file by `ghp-inspect --layer-schema`.
 *
 * Tested  tests/core/model/test_ops.c, tests/tools/together/test_schema.sh */
#ifndef GHP_CORE_MODEL_SCHEMA_H
#define GHP_CORE_MODEL_SCHEMA_H

#include "core/base/json.h"

/* text   receives the schema (draft 2020-12) with lines; the caller frees it
 *
 * Returns   GHP_OK; GHP_ERR_NO_MEMORY
 * Local */
enum ghp_status ghp_layer_schema(char **text);

#endif
