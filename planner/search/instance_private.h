/* planner/search/instance_private.h - private to planner/search/instance*.c: the seconds of an instance's pieces.
 *
 * Tested  tests/planner/search/test_constraints.c */
#ifndef GHP_PLANNER_SEARCH_INSTANCE_PRIVATE_H
#define GHP_PLANNER_SEARCH_INSTANCE_PRIVATE_H

#include "planner/search/instance.h"

/* Fills the costs of an instance whose choices, pairs, slots and items are placed.
 *
 * Returns   GHP_OK; GHP_ERR_MISSING (no cost for a piece: the message names it); GHP_ERR_NO_MEMORY */
enum ghp_status ghp_instance_cost(struct ghp_instance *instance);

#endif
