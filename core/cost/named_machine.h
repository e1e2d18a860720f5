/* core/cost/named_machine.h - machines and networks that have a name, as they are sold: the files of machines/ and
 * machines/network/, which are part of every tool.
 *
 * ghp-plan takes a name in place of a machine file. A file of that path comes first.
 *
 * Tested  tests/core/cost/test_named_machine.c */
#ifndef GHP_CORE_COST_NAMED_MACHINE_H
#define GHP_CORE_COST_NAMED_MACHINE_H

#include "core/cost/machine.h"

#include <stdio.h>

/* Their names in alphabetical order; NULL ends them. */
extern const char *const ghp_machine_names[];
extern const char *const ghp_fabric_names[];

/* Reads a machine: from the file of that path, or if there is none the machine of that name.
 *
 * Returns   GHP_OK; GHP_ERR_USAGE (neither a file nor a name, with the nearest one); as ghp_machine_load */
enum ghp_status ghp_machine_open(const char *name, struct ghp_machine *machine);

/* Whether it is the name of a machine, and no file has it. */
bool ghp_machine_is_named(const char *name);

/* The same of a network: the link of one node to the others. A rate such as "2.5Gbit/s" or "100 Mbit/s" is Ethernet of
 * that rate, with the latency of the named one nearest to it. */
enum ghp_status ghp_fabric_open(const char *name, struct ghp_link *link);

/* Prints all machines, or all networks, with a line for each: its name and what it is. */
enum ghp_status ghp_machines_print(FILE *out);
enum ghp_status ghp_fabrics_print(FILE *out);

#endif
