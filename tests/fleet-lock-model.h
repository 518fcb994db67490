/* fleet-lock-model.h -- lock.lua in plain C, on one lock: for simulations, where Redis would be too
 * slow.  tests/property/fleet-scripts.c compares it with the script. */
#ifndef WEIR_TESTS_FLEET_LOCK_MODEL_H
#define WEIR_TESTS_FLEET_LOCK_MODEL_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cluster/fleet/lock.h"

#define MODEL_LINE  64
#define MODEL_PLACE (WEIR__LOCK_PLACE / WEIR_MICROSECOND)

/* Times in us, by Redis's clock. */
struct model_lock {
    char holder[24], last[24], ask[24]; /* ask: the holder's ... */
    bool again;                         /* ... which came again */
    int64_t token, till, life, grace;
    struct {
        char id[24];
        int64_t heard;
    } line[MODEL_LINE];
    int n;
};

struct model_answer {
    bool held;
    int64_t token, left, place, waiters;
    char holder[24];
};

static inline int model_place(const struct model_lock *m, const char *id)
{
    for (int i = 0; i < m->n; i++)
        if (strcmp(m->line[i].id, id) == 0)
            return i + 1;
    return 0;
}

static inline void model_leave(struct model_lock *m, int place)
{
    if (place > 0)
        memmove(&m->line[place - 1], &m->line[place],
                (size_t)(m->n-- - place) * sizeof(m->line[0]));
}

static inline void model_tidy(struct model_lock *m, int64_t now)
{
    int64_t newest = -1;

    for (int i = 0; i < m->n; i++)
        newest = m->line[i].heard > newest ? m->line[i].heard : newest;
    if (m->n == 0)
        return;
    if (newest > now || m->grace > now + MODEL_PLACE) {
        for (int i = 0; i < m->n; i++)
            m->line[i].heard = now;
        newest = now;
        m->grace = 0;
    }
    if (newest < now - MODEL_PLACE / 2 && m->grace <= newest)
        m->grace = now + MODEL_PLACE;
    for (int i = m->n; i > 0 && now >= m->grace; i--)
        if (m->line[i - 1].heard <= now - MODEL_PLACE)
            model_leave(m, i);
}

static inline void model_renew(struct model_lock *m, int64_t life, int64_t now)
{
    life = life > 0 ? life : m->life;
    m->till = m->till > now + life ? m->till : now + life;
    m->life = m->till - now;
}

static inline bool model_is_free(const struct model_lock *m, int64_t now)
{
    return m->holder[0] == 0 || now >= m->till;
}

static inline void model_take(struct model_lock *m, const char *id, const char *ask, int64_t life,
                              bool wait, int64_t now)
{
    int place = model_place(m, id);

    if (model_is_free(m, now) && (m->n == 0 || place == 1)) {
        model_leave(m, place);
        snprintf(m->holder, sizeof(m->holder), "%s", id);
        snprintf(m->ask, sizeof(m->ask), "%s", ask);
        m->again = false;
        m->till = now + life;
        m->life = life;
        m->token = m->token + 1 > now ? m->token + 1 : now;
    } else if (wait) {
        if (place == 0) {
            place = ++m->n;
            snprintf(m->line[place - 1].id, sizeof(m->line[0].id), "%s", id);
        }
        m->line[place - 1].heard = now;
    }
}

static inline void model_free(struct model_lock *m, const char *id, bool mine, int64_t now)
{
    model_leave(m, model_place(m, id));
    snprintf(m->last, sizeof(m->last), "%s", id);
    if (mine || model_is_free(m, now)) {
        m->holder[0] = 0;
        m->till = now;
    }
}

static inline void model_drop(struct model_lock *m)
{
    memcpy(m->last, m->holder, sizeof(m->last));
    m->holder[0] = 0;
    m->till = 0;
}

/* The same ask under another id: it is told of the grant. */
static inline bool model_is_again(const struct model_lock *m, const char *id, const char *ask,
                                  int64_t now)
{
    return !model_is_free(m, now) && ask[0] && strcmp(ask, m->ask) == 0 &&
           strcmp(m->last, id) != 0 && strcmp(m->holder, id) != 0;
}

static inline struct model_answer model_ask(struct model_lock *m, enum weir__lock_verb verb,
                                            const char *id, const char *ask, int64_t life,
                                            int64_t token, int64_t now)
{
    struct model_lock look = *m;
    bool takes = verb == WEIR__LOCK_TAKE || verb == WEIR__LOCK_WAIT;

    if (verb == WEIR__LOCK_LOOK)
        m = &look;
    if (m->till - now > m->life)
        m->till = now + m->life;
    if (verb != WEIR__LOCK_LOOK)
        model_tidy(m, now);
    bool again = takes && model_is_again(m, id, ask, now),
         mine = !model_is_free(m, now) && strcmp(m->holder, id) == 0;
    if (again) {
        model_leave(m, model_place(m, id));
        model_renew(m, life, now);
        m->again = true;
    } else if ((takes && mine) || (verb == WEIR__LOCK_KEEP && mine && token == m->token))
        model_renew(m, life, now);
    else if (takes && strcmp(m->last, id) != 0)
        model_take(m, id, ask, life, verb == WEIR__LOCK_WAIT, now);
    else if (verb == WEIR__LOCK_FREE || verb == WEIR__LOCK_QUIT)
        model_free(m, id, mine && (verb == WEIR__LOCK_FREE || !m->again), now);
    else if (verb == WEIR__LOCK_DROP && !model_is_free(m, now) && token == m->token)
        model_drop(m);
    bool held = !model_is_free(m, now);
    struct model_answer a = { .held = again || (held && strcmp(m->holder, id) == 0),
                              .token = m->token,
                              .left = held ? m->till - now : 0,
                              .place = model_place(m, id),
                              .waiters = m->n };
    snprintf(a.holder, sizeof(a.holder), "%s", held ? m->holder : "");
    return a;
}

#endif
