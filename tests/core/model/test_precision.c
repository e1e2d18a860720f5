/* Names and bytes of the precisions; rounding to bfloat16 against the nearest of its two neighbours, over all
 * exponents. */
#include "core/model/element.h"
#include "tests/check.h"

#include <float.h>

static void check_names(void)
{
    for (int i = 0; i < GHP_PRECISIONS; i++) {
        CHECK_TEXT(ghp_precision_name(ghp_precision_of(i)), ghp_precision_names[i]);
        for (int j = 0; j < i; j++)
            CHECK(!ghp_precision_same(ghp_precision_of(i), ghp_precision_of(j)));
    }
    CHECK(ghp_precision_names[GHP_PRECISIONS] == NULL);
    CHECK_EQ(ghp_parameter_bytes(2), 4);
    CHECK_EQ(ghp_parameter_bytes(4), 4);
    CHECK_EQ(ghp_parameter_bytes(8), 8);
    CHECK_NEAR(ghp_precision_unit((struct ghp_precision){8, false}), DBL_EPSILON, 0);
    CHECK_NEAR(ghp_precision_unit((struct ghp_precision){4, false}), (double)FLT_EPSILON, 0);
    CHECK_NEAR(ghp_precision_unit((struct ghp_precision){4, true}), 1.0 / 1024, 0);
    CHECK(ghp_bf16_value(ghp_bf16_of(1)) < ghp_bf16_value(ghp_bf16_of(1 + 0x1p-7f)));
    CHECK_NEAR(ghp_precision_unit((struct ghp_precision){2, false}), 0x1p-7, 0);
}

static float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static void check_rounding(void)
{
    for (uint32_t high = 0; high < 0x7f80; high += 3)
        for (uint32_t low = 0; low < 0x10000; low += 0x0fff) {
            float value = float_of(high << 16 | low), below = float_of(high << 16);
            double above = (double)float_of((high + 1) << 16);
            double down = (double)value - (double)below, up = above - (double)value;
            uint16_t expected =
                (uint16_t)(up < down || (up == down && high % 2 == 1) ? high + 1 : high);

            if (high + 1 == 0x7f80) continue; /* infinity is above */
            if (ghp_bf16_of(value) != expected || ghp_bf16_of(-value) != (expected | 0x8000u))
                CHECK_EQ(ghp_bf16_of(value), expected);
        }
    CHECK_EQ(ghp_bf16_of(1.0f), 0x3f80);
    CHECK(isinf(ghp_bf16_value(ghp_bf16_of(INFINITY))));
    CHECK(isnan(ghp_bf16_value(ghp_bf16_of(NAN))));
    CHECK(isinf(ghp_bf16_value(ghp_bf16_of(3.4e38f))));
    for (uint32_t bits = 0; bits < 0x7f80; bits++)
        if (ghp_bf16_of(ghp_bf16_value((uint16_t)bits)) != bits) CHECK_EQ(bits, -1);
}

static void check_elements(void)
{
    double elements[2] = {0};

    for (int bytes = 2; bytes <= 8; bytes *= 2) {
        ghp_element_set(elements, 1, bytes, 1.0 / 3);
        CHECK_NEAR(ghp_element_get(elements, 1, bytes), 1.0 / 3, bytes == 2 ? 0x1p-9 : 0x1p-24);
        CHECK(bytes == 8 || ghp_element_get(elements, 1, bytes) != 1.0 / 3);
    }
    CHECK_NEAR(ghp_element_get(elements, 1, 8), 1.0 / 3, 0);
}

CHECK_TEST(precision)
{
    check_elements();
    check_names();
    check_rounding();
    return check_end();
}
