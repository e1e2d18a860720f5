/* core/program/sync/mixing.h - what synchronisers share that mix workers' weights between two steps. */
#ifndef GHP_CORE_PROGRAM_SYNC_MIXING_H
#define GHP_CORE_PROGRAM_SYNC_MIXING_H

#include "core/program/lower/layer.h"

/* emit_start and emit_before of synchronisers that mix. The first emits the updates, if workers update, and after them
 * the MIX. The second emits a piece's update. */
enum ghp_status ghp_emit_mixing_start(const struct ghp_emitter *e);
enum ghp_status ghp_emit_mixing_before(const struct ghp_emitter *e, int layer,
                                       struct ghp_split split);
/* Functions for struct ghp_mixing_facts: in_step of workers that never wait for others, or always do; staleness that
 * nothing bounds; mean staleness that nothing tells. */
bool ghp_mixing_never(struct ghp_sync sync);
bool ghp_mixing_always(struct ghp_sync sync);
int ghp_mixing_unbounded(struct ghp_sync sync);
double ghp_mixing_unknown(struct ghp_sync sync, int workers);

#endif
