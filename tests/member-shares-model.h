/* member-shares-model.h -- member-shares.lua in plain C: for simulations, where Redis would be too
 * slow.  tests/property/fleet-scripts.c compares it with the script. */
#ifndef WEIR_TESTS_MEMBER_SHARES_MODEL_H
#define WEIR_TESTS_MEMBER_SHARES_MODEL_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cluster/fleet/member-shares.h"

#ifndef MODEL_MEMBERS
#define MODEL_MEMBERS 64
#endif

/* Times in us, by Redis's clock. */
struct model_fleet {
    struct model_member {
        char id[24];
        int64_t seq, weight, granted, offer, lent, borrow, free;
    } members[MODEL_MEMBERS];
    int n;
    int64_t learn, beat, last, run; /* run 0: nobody has beaten yet */
};

struct model_beat {
    const char *id;
    bool leaves;
    int64_t seq, weight, want, part, beat;
};

static inline struct model_member *model_find(struct model_fleet *f, const char *id)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->members[i].id, id) == 0)
            return &f->members[i];
    return NULL;
}

static inline void model_remove(struct model_fleet *f, struct model_member *m)
{
    if (m)
        *m = f->members[--f->n];
}

static inline int64_t model_free_at(int64_t now, int64_t beat)
{
    return now + 3 * beat + 3 * beat / 16;
}

static inline struct model_member model_sums(const struct model_fleet *f)
{
    struct model_member sum = { .weight = 0 };

    for (int i = 0; i < f->n; i++) {
        sum.weight += f->members[i].weight;
        sum.granted += f->members[i].granted;
        sum.lent += f->members[i].lent;
        sum.borrow += f->members[i].borrow;
    }
    return sum;
}

static inline void model_learn(struct model_fleet *f, const struct model_beat *b, int64_t run,
                               int64_t now)
{
    f->beat = f->beat > b->beat ? f->beat : b->beat;
    if (f->run == 0 || now < f->last || now - f->last > 2 * f->beat || f->run != run) {
        f->learn = now + 5 * f->beat;
        for (int i = 0; i < f->n; i++)
            f->members[i].free = model_free_at(now, f->beat);
    }
    f->last = now;
    f->run = run;
}

static inline int64_t model_target(struct model_member *m, const struct model_member *others,
                                   int64_t want)
{
    int64_t share = WEIR__PART_ONE * m->weight / (others->weight + m->weight);
    int64_t quarter = (share + 3) / 4, kept = want > quarter ? want : quarter;

    m->lent = share > kept ? share - kept : 0;
    m->borrow = want > share ? want - share : 0;
    int64_t lent = others->lent + m->lent, borrow = others->borrow + m->borrow;
    int64_t moves = lent < borrow ? lent : borrow; /* from all lenders to all borrowers */
    if (m->lent > 0)
        return share - (m->lent * moves + lent - 1) / lent;
    return m->borrow > 0 ? share + m->borrow * moves / borrow : share;
}

static inline void model_enter(struct model_fleet *f, const struct model_beat *b, int64_t now)
{
    struct model_member m = { .seq = b->seq,
                              .weight = b->weight,
                              .free = model_free_at(now, b->beat) };
    struct model_member others = model_sums(f);
    int64_t left = WEIR__PART_ONE - others.granted;

    snprintf(m.id, sizeof(m.id), "%s", b->id);
    m.offer = model_target(&m, &others, b->want);
    left = left < 0 ? 0 : left;
    m.offer = m.offer < left ? m.offer : left;
    if (now < f->learn && m.offer > b->part)
        m.offer = b->part;
    m.granted = m.offer > b->part ? m.offer : b->part;
    f->members[f->n++] = m;
}

static inline struct weir__member_answer
model_beat(struct model_fleet *f, const struct model_beat *b, int64_t run, int64_t now)
{
    int64_t offer = -1;

    model_learn(f, b, run, now);
    for (int i = f->n - 1; !b->leaves && now >= f->learn && i >= 0; i--)
        if (f->members[i].free <= now)
            model_remove(f, &f->members[i]);
    struct model_member *before = model_find(f, b->id);
    if (b->leaves) {
        if (before && b->seq >= before->seq)
            model_remove(f, before);
        offer = 0;
    } else if (before && b->seq <= before->seq) {
        offer = b->seq == before->seq ? before->offer : -1;
    } else {
        model_remove(f, before);
        model_enter(f, b, now);
        offer = f->members[f->n - 1].offer;
    }
    return (struct weir__member_answer){ .offer = offer,
                                         .members = f->n,
                                         .granted = model_sums(f).granted,
                                         .learning = now < f->learn };
}

#endif
