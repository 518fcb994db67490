/* breaker-probe-lease.c -- what a breaker hears about a probe before its outcome: that it comes
 * back without one, is still at work, or waits for its own client. */
#include "guard/breaker-gate.h"

void weir__breaker_give(struct weir__breaker *b, uint32_t probe)
{
    uint64_t seen[2];

    do {
        weir__load_pair(&b->gate, seen);
        if (probe == 0 || !weir__gate_has_out(seen[0], probe))
            return;
    } while (
        !weir__gate_swap(b, seen, seen[0] - ((uint64_t)1 << WEIR__GATE_OUT), (weir_time)seen[1]));
}

void weir__breaker_renew(struct weir__breaker *b, uint32_t probe, weir_time now)
{
    uint64_t seen[2];

    do {
        weir__load_pair(&b->gate, seen);
        if (!weir__gate_has_out(seen[0], probe))
            return;
    } while (!weir__gate_swap(b, seen, seen[0] & ~((uint64_t)1 << WEIR__GATE_IDLE), now));
}

void weir__breaker_idle(struct weir__breaker *b, uint32_t probe)
{
    uint64_t seen[2], idle = (uint64_t)1 << WEIR__GATE_IDLE;

    do {
        weir__load_pair(&b->gate, seen);
        if (!weir__gate_has_out(seen[0], probe) || (seen[0] & idle) != 0)
            return;
    } while (!weir__gate_swap(b, seen, seen[0] | idle, (weir_time)seen[1]));
}
