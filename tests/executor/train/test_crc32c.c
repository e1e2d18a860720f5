/* tests/executor/train/test_crc32c.c - the vectors of RFC 3720, and bytes drawn by rule compared with the division bit
 * by bit. */
#include "executor/train/crc32c.h"

#include "tests/check.h"

/* The reference: the polynomial's own long division. */
static uint32_t by_bits(const unsigned char *bytes, size_t n)
{
    uint32_t crc = 0xffffffffu;

    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    }
    return ~crc;
}

CHECK_TEST(crc32c)
{
    unsigned char bytes[256] = {0};

    (void)argc, (void)argv;
    CHECK_EQ(ghp_crc32c("", 0), 0);
    CHECK_EQ(ghp_crc32c("123456789", 9), 0xe3069283u);
    CHECK_EQ(ghp_crc32c(bytes, 32), 0x8a9136aau);
    memset(bytes, 0xff, 32);
    CHECK_EQ(ghp_crc32c(bytes, 32), 0x62a8ab43u);
    for (int i = 0; i < 32; i++)
        bytes[i] = (unsigned char)i;
    CHECK_EQ(ghp_crc32c(bytes, 32), 0x46dd794eu);
    for (int i = 0; i < 256; i++)
        bytes[i] = (unsigned char)(i * 167 + 13);
    for (size_t n = 0; n < sizeof bytes; n += 17)
        CHECK_EQ(ghp_crc32c(bytes, n), by_bits(bytes, n));
    CHECK_EQ(ghp_crc32c_masked("", 0), 0xa282ead8u);
    CHECK_EQ(ghp_crc32c_masked("123456789", 9),
             (0xe3069283u >> 15 | 0xe3069283u << 17) + 0xa282ead8u);
    return check_end();
}
