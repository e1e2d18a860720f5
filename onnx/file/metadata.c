/* onnx/file/metadata.c - what PyTorch's exporter says of graphs, nodes and values in addition to the network.
 *
 * Releases of the format before 1.16 do not know these fields, so they are found by their numbers. */
#include "onnx/file/file_private.h"

#include <onnx.pb-c.h>

#include <string.h>

/* One entry as it lies in a file: its length, and then its fields. Returns NULL if it is not an entry; the caller
 * frees. */
static Onnx__StringStringEntryProto *parse(const ProtobufCMessageUnknownField *field)
{
    size_t begin = 0;

    if (field->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED) return NULL;
    while (begin < field->len && begin < 10 && (field->data[begin] & 0x80) != 0)
        begin++;
    if (++begin > field->len) return NULL;
    return onnx__string_string_entry_proto__unpack(NULL, field->len - begin, field->data + begin);
}

/* Copies the value of an entry if its key is the one that is sought. */
static enum ghp_status take(const Onnx__StringStringEntryProto *entry, const char *key,
                            char **value)
{
    if (entry == NULL || *value != NULL || entry->key == NULL || entry->value == NULL ||
        strcmp(entry->key, key) != 0)
        return GHP_OK;
    *value = strdup(entry->value);
    return *value != NULL ? GHP_OK : GHP_NO_MEMORY();
}

enum ghp_status ghp_onnx_metadata_find(const void *of, unsigned field, const char *key,
                                       char **value)
{
    const ProtobufCMessage *message = of;
    const ProtobufCFieldDescriptor *known =
        protobuf_c_message_descriptor_get_field(message->descriptor, field);
    const char *base = of;

    *value = NULL;
    if (known != NULL && known->label == PROTOBUF_C_LABEL_REPEATED &&
        known->type == PROTOBUF_C_TYPE_MESSAGE) {
        size_t n = *(const size_t *)(const void *)(base + known->quantifier_offset);
        Onnx__StringStringEntryProto *const *entries =
            *(Onnx__StringStringEntryProto *const *const *)(const void *)(base + known->offset);

        for (size_t i = 0; i < n; i++)
            GHP_TRY(take(entries[i], key, value));
    }
    for (unsigned i = 0; i < message->n_unknown_fields; i++) {
        Onnx__StringStringEntryProto *entry;
        enum ghp_status status;

        if (message->unknown_fields[i].tag != field) continue;
        entry = parse(&message->unknown_fields[i]);
        status = take(entry, key, value);
        if (entry != NULL) onnx__string_string_entry_proto__free_unpacked(entry, NULL);
        GHP_TRY(status);
    }
    return GHP_OK;
}
