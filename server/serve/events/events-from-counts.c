/* events-from-counts.c -- makes events of counters: when a rule begins to refuse and when it ends,
 * limits that another process has changed, bans that are over, a table that is full, what became of
 * guards.
 *
 *     rules    how many each has refused is compared with the last tick.  More: it is limiting, and
 *              that is told once.  None for WEIR__WATCH_QUIET: it ends, with how many it was.
 *              Known by name, because a reload moves their places.
 *     (takes)  limits that clients bring along, and (deny), the deny list, are watched as if they
 *              were rules.
 *     limits   Two servers on one table with different rules have the limits of the one that
 *              started last.  Told after two looks, because a successor changes limits too.
 *     table    Keys that were idle long ago fill a healthy table too, and make room for nothing: so
 *              only keys that are not idle count. To count them every slot is read, which is
 *              done only when hardly any slot is free, and then now and then.
 *     guards   keep their last changes in the table, numbered: those with a number that was not
 *              told yet are, and how many between them are not there any more.  Changes of before
 *              the server started were its predecessor's to tell.
 *     bans     nobody is there when a ban ends: they are remembered from the event of their
 *              beginning, or from the table when the server starts.
 *
 * Two locks: a ban comes from a thread that decides, which must not wait while thousands of rules
 * are looked at.
 */
#include "server/serve/events/events-from-counts.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/explain.h"
#include "guard/guard.h"
#include "server/serve/decide/decide.h"
#include "server/serve/decide/guards-json.h"
#include "server/base/complain.h"
#include "server/base/digest.h"
#include "server/serve/serve.h"

enum { FULL_PERCENT = 90, ROOM_PERCENT = 85, LIMITS_EVERY = 10 /* ticks */ };
#define OVER          "over" /* the text of an unban by time */
#define DISK_FULL     "the disk of the table is full: new windows, logs and bans are not kept"
#define TABLE_QUIET   (60 * WEIR_SECOND) /* after the last key that had to go early */
#define TABLE_RECOUNT (30 * WEIR_SECOND) /* between two readings of all slots */

struct watched {
    uint64_t hash; /* of the name, so that looking for it is quick */
    char name[64];
    int64_t seen;    /* refusals at the last tick */
    int64_t refused; /* since it is limiting */
    weir_time last;  /* when it last did */
    uint64_t tick;   /* when it was last there */
    uint64_t other;  /* when it last had another limit than its own */
    bool limiting, other_told;
};

struct ban {
    weir_time until;
    char rule[64], key[160];
};

/* The last change of a guard that was told. */
struct told {
    uint64_t salt; /* the guard's */
    uint64_t number;
};

struct weir__watch {
    struct weir__events *events;

    pthread_mutex_t lock; /* for the members that a tick reads */
    uint64_t tick;
    struct watched *rules;
    size_t n, room, hint; /* hint: where the last one was found; the next one is often behind it */
    bool table_full, disk_full;                         /* told */
    int64_t evicted_early, no_room, no_disk, bans_lost; /* at the last tick */
    weir_time early_at;                                 /* when one of them last grew; 0: never */
    weir_time counted_at;                               /* when all slots were read; 0: never */
    int percent;                                        /* counted then */
    struct told *told;                                  /* by the guards' ids */
    size_t guards;                                      /* that were met so far */
    int degradation;                                    /* of degradation */

    pthread_mutex_t bans_lock;
    struct ban *bans;
    size_t n_bans, bans_room;
    uint64_t ban_hashes[WEIR__WATCH_BANS]; /* of rule and key, apart from the rest: looked through
                                              at every ban */
};

/* Only to compare quickly, texts are compared as well. */
static uint64_t hash_of(const char *name)
{
    return weir__digest(WEIR__DIGEST_START, name, strlen(name));
}

static uint64_t hash_of_ban(const char *rule, const char *key)
{
    return weir__digest(hash_of(rule), key, strlen(key));
}

/* ---------------------------------------------------------------- rules ---- */

static struct watched *find(struct weir__watch *watch, const char *name, uint64_t hash)
{
    for (size_t i = 0; i < watch->n; i++) {
        size_t at = (watch->hint + i) % watch->n;
        if (watch->rules[at].hash != hash || strcmp(watch->rules[at].name, name) != 0)
            continue;
        watch->hint = at + 1;
        return &watch->rules[at];
    }
    return NULL;
}

/* NULL: no memory; then it is tried again at the next tick. */
static struct watched *claim(struct weir__watch *watch, const char *name)
{
    uint64_t hash = hash_of(name);
    struct watched *w = find(watch, name, hash);

    if (w != NULL)
        return w;
    if (watch->n == watch->room) {
        size_t room = watch->room ? 2 * watch->room : 64;
        struct watched *rules = realloc(watch->rules, room * sizeof(*rules));
        if (rules == NULL)
            return NULL;
        watch->rules = rules;
        watch->room = room;
    }
    w = &watch->rules[watch->n++];
    *w = (struct watched){ .hash = hash };
    snprintf(w->name, sizeof(w->name), "%s", name);
    return w;
}

static void begin_limiting(struct weir__watch *watch, struct watched *w, int64_t refused,
                           weir_time now)
{
    w->limiting = true;
    weir__events_emit(watch->events, WEIR__EVENT_LIMITING, now,
                      &(struct weir__event_facts){ .rule = w->name, .refused = refused });
}

static void end_limiting(struct weir__watch *watch, struct watched *w, const char *text,
                         weir_time now)
{
    weir__events_emit(
        watch->events, WEIR__EVENT_LIMITING_END, now,
        &(struct weir__event_facts){ .rule = w->name, .refused = w->refused, .text = text });
    w->limiting = false;
    w->refused = 0;
}

/* It has refused `total` in all. */
static void look_at_rule(struct weir__watch *watch, const char *name, int64_t total, weir_time now)
{
    struct watched *w = claim(watch, name);

    if (w == NULL)
        return;
    int64_t more =
        total < w->seen ? total : total - w->seen; /* fewer: its counting has begun anew */
    w->seen = total;
    w->tick = watch->tick;
    w->refused += more;
    if (more > 0 || now < w->last)
        w->last = now;
    if (more > 0 && !w->limiting)
        begin_limiting(watch, w, more, now);
    else if (w->limiting && now - w->last >= WEIR__WATCH_QUIET)
        end_limiting(watch, w, NULL, now);
}

static void forget_gone(struct weir__watch *watch, weir_time now)
{
    size_t n = 0;

    for (size_t i = 0; i < watch->n; i++) {
        struct watched *w = &watch->rules[i];
        if (w->tick == watch->tick)
            watch->rules[n++] = *w;
        else if (w->limiting)
            end_limiting(watch, w, "the rule is gone", now);
    }
    watch->n = n;
}

static void look_at_rules(struct weir__watch *watch, const struct weir__server *server,
                          weir_time now)
{
    struct weir_rule_info info;
    struct weir_totals totals;

    watch->tick++;
    for (int64_t at = 0; weir_rule_next(server->engine, &at, &info);)
        look_at_rule(watch, info.name, info.refused, now);
    weir_totals_get(server->engine, &totals);
    look_at_rule(watch, WEIR__TOP_DENY, totals.denied, now);
    look_at_rule(watch, WEIR__TOP_TAKES, weir__server_count(server, WEIR__COUNT_TAKE_REFUSED), now);
    forget_gone(watch, now);
}

/* --------------------------------------------------------------- limits ---- */

static void look_at_limit(struct weir__watch *watch, const struct weir__other_limit *l,
                          weir_time now)
{
    struct watched *w = find(watch, l->rule, hash_of(l->rule));
    char text[480];

    if (w == NULL)
        return;
    if (w->other == watch->tick - LIMITS_EVERY && !w->other_told) {
        snprintf(text, sizeof(text), "%s, and not %s: all processes of a table need the same rules",
                 l->limit, l->written);
        weir__events_emit(watch->events, WEIR__EVENT_LIMIT_DIFFERS, now,
                          &(struct weir__event_facts){ .rule = w->name, .text = text });
        w->other_told = true;
    }
    w->other = watch->tick;
}

static void look_at_limits(struct weir__watch *watch, const struct weir__server *server,
                           weir_time now)
{
    struct weir__other_limit other;

    if (watch->tick % LIMITS_EVERY != 0)
        return;
    for (int64_t at = 0; weir__other_limit_next(server->engine, &at, &other);)
        look_at_limit(watch, &other, now);
    for (size_t i = 0; i < watch->n; i++)
        watch->rules[i].other_told &= watch->rules[i].other == watch->tick;
}

/* ---------------------------------------------------------------- table ---- */

/* The share of slots whose key is not idle, in per cent; counted again if it is time to. */
static int percent_live(struct weir__watch *watch, const struct weir_table *table,
                        const struct weir_table_stats *quick, weir_time now)
{
    struct weir_table_stats s;
    bool crowded = 100 * quick->keys > FULL_PERCENT * quick->slots ||
                   quick->slab_used > quick->slab / 100 * FULL_PERCENT;

    if (!crowded)
        return 0;
    if (watch->counted_at == 0 || now - watch->counted_at >= TABLE_RECOUNT ||
        now < watch->counted_at) {
        weir_table_stats(table, now, &s);
        int64_t slots = s.slots;
        watch->percent = slots > 0 ? (int)(100 * s.live / slots) : 0;
        watch->counted_at = now;
    }
    return watch->percent;
}

/* What the table had no room for since the last tick. */
struct shortage {
    int64_t early, refused, no_disk, bans;
};

static bool is_short(const struct shortage *s)
{
    return s->early + s->refused + s->no_disk + s->bans > 0;
}

static void tell_table_full(struct weir__watch *watch, const struct shortage *s, int percent,
                            weir_time now)
{
    char text[128];

    if (s->no_disk > 0)
        snprintf(text, sizeof(text), DISK_FULL);
    else if (s->refused > 0)
        snprintf(text, sizeof(text), "new keys are refused: the table needs more keys");
    else if (s->early > 0)
        snprintf(text, sizeof(text),
                 "keys had to make room before their time: the table needs more keys");
    else if (s->bans > 0)
        snprintf(text, sizeof(text),
                 "bans had to make room before their end: the table has no room for as many");
    else
        snprintf(text, sizeof(text), "%d %% of the places hold keys that are in use", percent);
    weir__events_emit(
        watch->events, WEIR__EVENT_TABLE_FULL, now,
        &(struct weir__event_facts){ .text = text, .count = s->early + s->refused + s->bans });
    watch->table_full = true;
}

static struct shortage shortage_since(struct weir__watch *watch, const struct weir_table_stats *s)
{
    struct shortage since = { s->evicted_early - watch->evicted_early, s->no_room - watch->no_room,
                              s->no_disk - watch->no_disk, s->bans_lost - watch->bans_lost };

    watch->evicted_early = s->evicted_early;
    watch->no_room = s->no_room;
    watch->no_disk = s->no_disk;
    watch->bans_lost = s->bans_lost;
    return watch->tick == 1 ? (struct shortage){ 0 } : since; /* a file has those of earlier days */
}

static void look_at_table(struct weir__watch *watch, const struct weir_table *table, weir_time now)
{
    struct weir_table_stats s;

    weir_table_stats(table, -1, &s);
    struct shortage since = shortage_since(watch, &s);
    if (is_short(&since) || now < watch->early_at)
        watch->early_at = now;
    if (since.no_disk > 0 && !watch->disk_full)
        weir__complain("serve", DISK_FULL);
    watch->disk_full = watch->disk_full || since.no_disk > 0;
    int percent = percent_live(watch, table, &s, now);
    bool quiet = watch->early_at == 0 || now - watch->early_at >= TABLE_QUIET;
    if (!watch->table_full && (is_short(&since) || percent > FULL_PERCENT)) {
        tell_table_full(watch, &since, percent, now);
    } else if (watch->table_full && quiet && percent < ROOM_PERCENT) {
        weir__events_emit(watch->events, WEIR__EVENT_TABLE_ROOM, now, NULL);
        watch->table_full = watch->disk_full = false;
    }
}

/* --------------------------------------------------------------- guards ---- */

static void tell_change(struct weir__watch *watch, const struct weir_guard_info *g,
                        const struct weir_guard_event *c, bool latest)
{
    enum weir__event_kind kind = weir__guard_event_kind(c);
    struct weir__event_facts facts = { .guard = g->name };

    if (kind == WEIR__EVENT_GUARD_FORCED)
        facts.state = weir__force_name((enum weir_force)c->to);
    else if (kind == WEIR__EVENT_PERMITS_RECLAIMED)
        facts.count = c->to;
    else if (kind == WEIR__EVENT_BREAKER_OPENED && latest && g->breaker == WEIR_BREAKER_OPEN)
        facts.until = g->retry_at;
    if (kind < WEIR__EVENT_KINDS)
        weir__events_emit(watch->events, kind, c->at, &facts);
}

/* More changes than are kept came since the last tick.  At the first nobody knows whether they came
 * before the server did. */
static void tell_lost(struct weir__watch *watch, const struct weir_guard_info *g, uint64_t lost,
                      weir_time at)
{
    if (lost > 0 && watch->tick > 1)
        weir__events_emit(watch->events, WEIR__EVENT_LOST, at,
                          &(struct weir__event_facts){ .guard = g->name, .count = (int64_t)lost });
}

/* The latest change comes first in the listing, and last here. */
static void look_at_guard(struct weir__watch *watch, const struct weir__server *server,
                          const struct weir_guard_info *g, uint64_t *told)
{
    for (size_t i = sizeof(g->events) / sizeof(g->events[0]); i-- > 0;) {
        const struct weir_guard_event *c = &g->events[i];
        if (c->number <= *told)
            continue;
        tell_lost(watch, g, c->number - *told - 1, c->at);
        *told = c->number;
        if (c->at >= server->started)
            tell_change(watch, g, c, i == 0);
    }
}

/* A guard may have the place of another that went.  NULL: no memory, it is tried again at the next
 * tick. */
static struct told *meet_guard(struct weir__watch *watch, const struct weir_guard *guard)
{
    while (watch->guards <= guard->id) {
        struct told *told = realloc(watch->told, (watch->guards + 1) * sizeof(*told));
        if (told == NULL)
            return NULL;
        watch->told = told;
        told[watch->guards++] = (struct told){ 0, 0 };
    }
    struct told *told = &watch->told[guard->id];
    uint64_t salt = weir__acquire(&guard->plan)->salt;
    if (told->salt != salt)
        *told = (struct told){ salt, 0 };
    return told;
}

static void look_at_degradation(struct weir__watch *watch, const struct weir_table *table,
                                weir_time now)
{
    bool by_hand = false;
    int degradation = weir_degradation_get(table, &by_hand);
    char state[16];

    if (degradation == watch->degradation && watch->tick > 1)
        return;
    snprintf(state, sizeof(state), "%d", degradation);
    if (watch->tick > 1)
        weir__events_emit(watch->events, WEIR__EVENT_DEGRADATION_CHANGED, now,
                          &(struct weir__event_facts){ .state = state,
                                                       .text = by_hand ? "by hand" : "by itself" });
    watch->degradation = degradation;
}

static void look_at_guards(struct weir__watch *watch, const struct weir__server *server,
                           weir_time now)
{
    struct weir_guard_info info;
    struct weir_guard *guard;

    for (int64_t at = 0; weir_guard_next(server->table, &at, &guard);) {
        struct told *told = meet_guard(watch, guard);
        if (told == NULL)
            break;
        weir_guard_get(guard, now, &info);
        look_at_guard(watch, server, &info, &told->number);
    }
    look_at_degradation(watch, server->table, now);
}

/* ----------------------------------------------------------------- bans ---- */

static struct ban *find_ban(struct weir__watch *watch, const char *rule, const char *key,
                            uint64_t hash)
{
    for (size_t i = 0; i < watch->n_bans; i++) {
        struct ban *b = &watch->bans[i];
        if (watch->ban_hashes[i] == hash && strncmp(b->rule, rule, sizeof(b->rule) - 1) == 0 &&
            strncmp(b->key, key, sizeof(b->key) - 1) == 0)
            return b;
    }
    return NULL;
}

static void forget_ban(struct weir__watch *watch, struct ban *b)
{
    size_t last = --watch->n_bans;

    watch->ban_hashes[b - watch->bans] = watch->ban_hashes[last];
    *b = watch->bans[last];
}

static bool has_room(struct weir__watch *watch)
{
    if (watch->n_bans < watch->bans_room || watch->n_bans == WEIR__WATCH_BANS)
        return watch->n_bans < WEIR__WATCH_BANS;
    size_t room = watch->bans_room ? 2 * watch->bans_room : 64;
    struct ban *bans = realloc(watch->bans, room * sizeof(*bans));
    if (bans == NULL)
        return false;
    watch->bans = bans;
    watch->bans_room = room;
    return true;
}

/* False: there is no room for it. */
static bool remember_ban(struct weir__watch *watch, const char *rule, const char *key,
                         weir_time until)
{
    uint64_t hash = hash_of_ban(rule, key);

    pthread_mutex_lock(&watch->bans_lock);
    struct ban *b = find_ban(watch, rule, key, hash);
    if (b == NULL && has_room(watch)) {
        b = &watch->bans[watch->n_bans];
        watch->ban_hashes[watch->n_bans++] = hash;
        snprintf(b->rule, sizeof(b->rule), "%s", rule);
        snprintf(b->key, sizeof(b->key), "%s", key);
    }
    if (b != NULL)
        b->until = until;
    pthread_mutex_unlock(&watch->bans_lock);
    return b != NULL;
}

static void forget_lifted(struct weir__watch *watch, const char *rule, const char *key)
{
    pthread_mutex_lock(&watch->bans_lock);
    struct ban *b = find_ban(watch, rule, key, hash_of_ban(rule, key));
    if (b != NULL)
        forget_ban(watch, b);
    pthread_mutex_unlock(&watch->bans_lock);
}

/* Bans and unbans that are reported.  That a ban is over comes from here (end_bans),
 * with the lock held: it is forgotten there. */
static void see(void *context, enum weir__event_kind kind, const struct weir__event_facts *facts)
{
    bool over = facts->text != NULL && strcmp(facts->text, OVER) == 0;

    if (facts->rule == NULL || facts->key == NULL)
        return;
    if (kind == WEIR__EVENT_BAN)
        remember_ban(context, facts->rule, facts->key, facts->until);
    else if (kind == WEIR__EVENT_UNBAN && !over)
        forget_lifted(context, facts->rule, facts->key);
}

static void end_bans(struct weir__watch *watch, weir_time now)
{
    pthread_mutex_lock(&watch->bans_lock);
    for (size_t i = 0; i < watch->n_bans;) {
        struct ban *b = &watch->bans[i];
        if (b->until > now) {
            i++;
            continue;
        }
        weir__events_emit_often(
            watch->events, WEIR__EVENT_UNBAN, now,
            &(struct weir__event_facts){ .rule = b->rule, .key = b->key, .text = OVER });
        forget_ban(watch, b);
    }
    pthread_mutex_unlock(&watch->bans_lock);
}

/* Those that were in force when the server started. */
static void remember_bans(struct weir__watch *watch, const struct weir__server *server,
                          weir_time now)
{
    struct weir_ban ban;

    for (int64_t at = 0; weir_ban_next(server->engine, now, &at, &ban) &&
                         remember_ban(watch, ban.rule, ban.key, ban.until);)
        ;
}

/* ------------------------------------------------------ tick, creation ---- */

void weir__watch_tick(struct weir__watch *watch, struct weir__server *server, weir_time now)
{
    pthread_mutex_lock(&watch->lock);
    if (watch->tick == 0)
        remember_bans(watch, server, now);
    look_at_rules(watch, server, now);
    look_at_limits(watch, server, now);
    look_at_table(watch, server->table, now);
    look_at_guards(watch, server, now);
    pthread_mutex_unlock(&watch->lock);
    end_bans(watch, now);
    weir__events_tell_more(watch->events, now);
}

struct weir__watch *weir__watch_create(struct weir__events *events)
{
    struct weir__watch *watch = calloc(1, sizeof(*watch));

    if (watch == NULL)
        return NULL;
    watch->events = events;
    pthread_mutex_init(&watch->lock, NULL);
    pthread_mutex_init(&watch->bans_lock, NULL);
    weir__events_on_facts(events, see, watch);
    return watch;
}

void weir__watch_destroy(struct weir__watch *watch)
{
    if (watch == NULL)
        return;
    weir__events_on_facts(watch->events, NULL, NULL);
    pthread_mutex_destroy(&watch->lock);
    pthread_mutex_destroy(&watch->bans_lock);
    free(watch->rules);
    free(watch->bans);
    free(watch->told);
    free(watch);
}
