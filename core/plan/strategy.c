/* core/plan/strategy.c - names of strategies. */
#include "core/plan/strategy.h"

#include "core/base/status.h"

static const struct {
    const char *text, *shown;
} names[GHP_STRATEGY_COUNT] = {
#define STRATEGY_NAMES(id, text, shown) {text, shown},
    GHP_STRATEGY_LIST(STRATEGY_NAMES)
#undef STRATEGY_NAMES
};

const char *ghp_strategy_name(enum ghp_strategy strategy)
{
    GHP_ASSERT((int)strategy >= 0 && strategy < GHP_STRATEGY_COUNT);
    return names[strategy].text;
}

const char *ghp_strategy_show(enum ghp_strategy strategy)
{
    GHP_ASSERT((int)strategy >= 0 && strategy < GHP_STRATEGY_COUNT);
    return names[strategy].shown;
}
