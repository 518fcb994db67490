/* receipt.c -- what an ask with an id was granted. */
#include "cluster/account/receipt.h"

static unsigned char *put(unsigned char *to, int64_t n)
{
    for (int i = 0; i < 8; i++)
        *to++ = (unsigned char)((uint64_t)n >> (8 * i));
    return to;
}

static int64_t get(const unsigned char *from)
{
    uint64_t n = 0;

    for (int i = 0; i < 8; i++)
        n |= (uint64_t)from[i] << (8 * i);
    return (int64_t)n;
}

static unsigned char mark_of(enum weir__receipt_verb verb)
{
    return verb == WEIR__RECEIPT_GIVE ? 2 : verb == WEIR__RECEIPT_REPAY ? 3 : 1;
}

size_t weir__receipt_write(const struct weir__receipt *r, unsigned char out[WEIR__RECEIPT_SIZE_MAX])
{
    unsigned char *to = out + 2;

    out[0] = 'I';
    out[1] = mark_of(r->verb);
    for (size_t i = 0; i < r->n; i++)
        to = put(put(to, r->items[i].units), r->items[i].ready);
    if (r->verb == WEIR__RECEIPT_DRAW)
        to = put(to, r->drawn.spent ? -1 - r->drawn.share : r->drawn.share);
    return (size_t)(to - out);
}

bool weir__receipt_read(struct weir__receipt *out, size_t n, enum weir__receipt_verb verb,
                        const void *bytes, size_t len)
{
    const unsigned char *b = bytes;
    bool draws = verb == WEIR__RECEIPT_DRAW;

    if (len != 2 + 16 * n + (draws ? 8 : 0) || b[0] != 'I' || b[1] != mark_of(verb))
        return false;
    *out = (struct weir__receipt){ .verb = verb, .n = n };
    for (size_t i = 0; i < n; i++) {
        out->items[i].units = get(b + 2 + 16 * i);
        out->items[i].ready = get(b + 10 + 16 * i);
        if (out->items[i].units < 0)
            return false;
    }
    if (draws) {
        int64_t share = get(b + 2 + 16 * n);
        out->drawn = (struct weir__drawn){ .units = out->items[0].units,
                                           .share = share < 0 ? -1 - share : share,
                                           .spent = share < 0 };
    }
    return true;
}

void weir__receipt_note(struct weir__receipt *r, int64_t units, const struct weir_decision *d,
                        weir_time now)
{
    weir_time ready;

    if (__builtin_add_overflow(now + WEIR_MICROSECOND - 1, d->wait, &ready))
        ready = WEIR_NEVER;
    r->items[r->n].units = units;
    r->items[r->n++].ready = ready / WEIR_MICROSECOND;
}

void weir__receipt_decide(const struct weir__receipt *r, size_t i, const struct weir_plan *plan,
                          void *state, weir_time now, struct weir_decision *d)
{
    int64_t ready = r->items[i].ready, us = now / WEIR_MICROSECOND;

    weir_step_peek(plan, state, &(struct weir_ask){ .now = now }, d);
    d->retry = 0;
    weir__grant(d, ready > us && ready - us < INT64_MAX / WEIR_MICROSECOND
                       ? (ready - us) * WEIR_MICROSECOND
                       : 0);
}

struct weir__drawn weir__receipt_drawn(const struct weir__receipt *r, const struct weir_plan *plan,
                                       weir_time now, const struct weir_decision *d)
{
    struct weir__drawn drawn = r->drawn;
    int64_t ready = r->items[0].ready, most = INT64_MAX / WEIR_MICROSECOND;

    drawn.at = (ready < 0 ? 0 : ready > most ? most : ready) * WEIR_MICROSECOND;
    drawn.life = weir__drawn_life(plan, drawn.at, now, d);
    return drawn;
}
