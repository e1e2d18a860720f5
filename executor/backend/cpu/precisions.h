/* executor/backend/cpu/precisions.h - includes the file named BODY twice: for float and for bfloat16. BODY may be
 * the file that includes this one: KERNEL tells its bodies from the rest.
 *
 *     SCALAR      numbers of the network's tensors as they lie
 *     GET, PUT    a SCALAR's value, a float; a float as a SCALAR, rounded to the nearest
 *     ROUNDS      whether PUT rounds, so that sums must not be kept in a tensor
 *     KERNEL(name)  the name of this precision's function
 *
 * Weights, statistics, what is saved and what is computed with are float in both. For float, GET and PUT do nothing. */
#define SCALAR float
#define GET(number) (number)
#define PUT(value) (value)
#define ROUNDS 0
#define KERNEL(name) name##_float
#include BODY
#undef SCALAR
#undef GET
#undef PUT
#undef ROUNDS
#undef KERNEL
#define SCALAR uint16_t
#define GET(number) ghp_bf16_value(number)
#define PUT(value) ghp_bf16_of(value)
#define ROUNDS 1
#define KERNEL(name) name##_bf16
#include BODY
#undef SCALAR
#undef GET
#undef PUT
#undef ROUNDS
#undef KERNEL
#undef BODY
