/* executor/train/crc32c.h - the CRC-32C (Castagnoli) of bytes, as RFC 3720 has it, and the masked one of TFRecords.
 *
 * For files of others that want it; ghp's own files have hashes (core/base/hash.h).
 *
 * Source  RFC 3720, B.4
 * Tested  tests/executor/train/test_crc32c.c */
#ifndef GHP_EXECUTOR_TRAIN_CRC32C_H
#define GHP_EXECUTOR_TRAIN_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t ghp_crc32c(const void *bytes, size_t n);

/* Turned right by 15 bits, plus 0xa282ead8: what a TFRecord file has, whose bytes may hold checksums themselves. */
uint32_t ghp_crc32c_masked(const void *bytes, size_t n);

#endif
