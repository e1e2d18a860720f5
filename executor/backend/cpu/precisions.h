/* executor/backend/cpu/precisions.h - includes the file named BODY three times: for float, double and bfloat16.
 *
 *     SCALAR      numbers of the network's tensors as they lie
 *     WIDE        numbers that are computed with, and those of weights, statistics and what is saved
 *     TRUTH       an integer as wide as that, as vectors compare to
 *     GET, PUT    a SCALAR's value; a value as a SCALAR, rounded to the nearest
 *     ROUNDS      whether PUT rounds, so that sums must not be kept in a tensor
 *     SQRT        the root of a WIDE
 *     KERNEL(name)  the name of this precision's function
 *
 * Of float and double, GET and PUT do nothing. */
#define SCALAR float
#define WIDE float
#define TRUTH int32_t
#define GET(number) (number)
#define PUT(value) (value)
#define ROUNDS 0
#define SQRT sqrtf
#define KERNEL(name) name##_float
#include BODY
#undef SCALAR
#undef WIDE
#undef TRUTH
#undef KERNEL
#undef SQRT
#define SCALAR double
#define WIDE double
#define TRUTH int64_t
#define SQRT sqrt
#define KERNEL(name) name##_double
#include BODY
#undef SCALAR
#undef WIDE
#undef TRUTH
#undef GET
#undef PUT
#undef ROUNDS
#undef SQRT
#undef KERNEL
#define SCALAR uint16_t
#define WIDE float
#define TRUTH int32_t
#define GET(number) ghp_bf16_value(number)
#define PUT(value) ghp_bf16_of(value)
#define ROUNDS 1
#define SQRT sqrtf
#define KERNEL(name) name##_bf16
#include BODY
#undef SCALAR
#undef WIDE
#undef TRUTH
#undef GET
#undef PUT
#undef ROUNDS
#undef SQRT
#undef KERNEL
#undef BODY
