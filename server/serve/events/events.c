/* events.c -- events, rare enough for people: a ring of the last ones, as JSON lines.
 *
 * An event is printed once, into a buffer made beforehand, and copied to its place in the ring; a
 * listener copies it out again. The lock is held only for that, so nobody waits for a listener: a
 * slow one finds that events have left the ring, and how many.
 *
 * Why lines and not structs: every listener wants the same text, and texts of any length would need
 * memory of their own.
 */
#include "server/serve/events/events.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/safe-text.h"

static const struct {
    const char *name;
    const char *summary; /* read here by scripts/reference.py, for docs/serve-reference.md */
} kinds[WEIR__EVENT_KINDS] = {
    [WEIR__EVENT_START] = { "start", "the server is ready" },
    [WEIR__EVENT_STOP] = { "stop",
                           "the server takes no more connections and ends the requests under way" },
    [WEIR__EVENT_LIMITING] = { "limiting", "a rule has begun to refuse; (takes) are limits that "
                                           "clients bring along, (deny) is the deny list" },
    [WEIR__EVENT_LIMITING_END] = { "limiting-end", "a rule has refused nobody for ten seconds; "
                                                   "`refused` is how many it did meanwhile" },
    [WEIR__EVENT_BAN] = { "ban", "a key is kept out until a time; with `count`, this many more "
                                 "keys, which are not named" },
    [WEIR__EVENT_UNBAN] = { "unban", "a ban is over, or was lifted by hand; with `count`, this "
                                     "many more were over" },
    [WEIR__EVENT_MODE] = { "mode", "a rule or a guard, or all of them, was switched by hand" },
    [WEIR__EVENT_RELOAD] = { "reload", "other rules are in force" },
    [WEIR__EVENT_RELOAD_FAILED] = { "reload-failed", "rules were refused, `text` says why; the old "
                                                     "ones stay in force" },
    [WEIR__EVENT_LIMIT_DIFFERS] = { "limit-differs",
                                    "another process has changed the limit of `rule`, which it "
                                    "shares by the table; `text` says what holds and what is "
                                    "written here" },
    [WEIR__EVENT_LIST] = { "list", "entries of a list were added or removed by hand" },
    [WEIR__EVENT_RESET] = { "reset", "a key's counts were reset by hand" },
    [WEIR__EVENT_AUTH_FAILED] = { "auth-failed", "`address` showed `count` wrong tokens; with "
                                                 "`until`, tokens from there are refused until "
                                                 "then" },
    [WEIR__EVENT_SHARE_USED_UP] = { "share-used-up", "`address` has its share of the pool `text` "
                                                     "and gets no more; `count` such asks so far" },
    [WEIR__EVENT_TABLE_FULL] = { "table-full", "the table has hardly any room: keys or bans make "
                                               "room for others before their time, or soon will" },
    [WEIR__EVENT_TABLE_ROOM] = { "table-room", "the table has room again" },
    [WEIR__EVENT_BREAKER_OPENED] = { "breaker-opened",
                                     "a guard's breaker has opened: nobody is let in until it is "
                                     "tried again, at `until`" },
    [WEIR__EVENT_BREAKER_HALF_OPEN] = { "breaker-half-open",
                                        "a guard's breaker lets a few through, to see whether all "
                                        "is well again" },
    [WEIR__EVENT_BREAKER_CLOSED] = { "breaker-closed",
                                     "a guard's breaker has closed: everybody is let in" },
    [WEIR__EVENT_GUARD_FORCED] = { "guard-forced", "a guard's breaker was forced by hand: `state` "
                                                   "is open, closed or none" },
    [WEIR__EVENT_SHEDDING_BEGAN] = { "shedding-began", "a guard has too much to do, and refuses "
                                                       "the least important" },
    [WEIR__EVENT_SHEDDING_ENDED] = { "shedding-ended", "a guard lets everybody in again" },
    [WEIR__EVENT_OVERLOAD_BEGAN] = { "overload-began",
                                     "the host is overloaded, as a guard's `system` has it" },
    [WEIR__EVENT_OVERLOAD_ENDED] = { "overload-ended", "the host is well again" },
    [WEIR__EVENT_PERMITS_RECLAIMED] = { "permits-reclaimed", "`count` permits were not given back "
                                                             "in time, or their holder has died" },
    [WEIR__EVENT_DEGRADATION_CHANGED] = { "degradation-changed",
                                          "the degradation is `state`; `text` names the cause" },
    [WEIR__EVENT_FLEET] = { "fleet", "the Redis of the fleet `source` answers (`state` connected), "
                                     "or does not (alone, `text` says why): then rules across the "
                                     "fleet go by when_alone" },
    [WEIR__EVENT_LOST] = { "lost", "`count` events before this one were not told: too slow a "
                                   "reader; or, of a `guard`, too many at once" },
};

enum {
    TEXT_MAX = 320,    /* bytes of one text, before escapes */
    NUMBERS_MAX = 160, /* bytes for the members behind the texts */
};

#define ONE_BY_ONE "gcra 10/1m burst 100" /* of a kind that clients can cause */

struct kept {
    enum weir__event_kind kind;
    size_t len;
    char json[WEIR__EVENT_MAX];
};

/* A kind that clients can cause. */
struct often {
    uint64_t told[2]; /* the state of the limit */
    int64_t more;     /* that were not told one by one, and not counted in an event yet */
};

struct weir__events {
    pthread_mutex_t lock;
    uint64_t latest;
    struct weir_plan *one_by_one;
    struct often often[WEIR__EVENT_KINDS];
    int64_t counts[WEIR__EVENT_KINDS];
    struct weir__buffer scratch; /* where the next one is printed */
    void (*woken)(void *context);
    void *context;
    void (*seen)(void *context, enum weir__event_kind kind, const struct weir__event_facts *facts);
    void *seen_context;
    const struct weir_table *table;      /* NULL: times are real ones */
    struct kept ring[WEIR__EVENTS_KEPT]; /* number n is at n % WEIR__EVENTS_KEPT */
};

const char *weir__event_name(enum weir__event_kind kind)
{
    return kinds[kind].name;
}

enum weir__event_kind weir__guard_event_kind(const struct weir_guard_event *c)
{
    switch (c->kind) {
    case WEIR_GUARD_EVENT_BREAKER:
        return c->to == WEIR_BREAKER_OPEN        ? WEIR__EVENT_BREAKER_OPENED
               : c->to == WEIR_BREAKER_HALF_OPEN ? WEIR__EVENT_BREAKER_HALF_OPEN
                                                 : WEIR__EVENT_BREAKER_CLOSED;
    case WEIR_GUARD_EVENT_FORCE:
        return WEIR__EVENT_GUARD_FORCED;
    case WEIR_GUARD_EVENT_SHEDDING:
        return c->to ? WEIR__EVENT_SHEDDING_BEGAN : WEIR__EVENT_SHEDDING_ENDED;
    case WEIR_GUARD_EVENT_SYSTEM:
        return c->to ? WEIR__EVENT_OVERLOAD_BEGAN : WEIR__EVENT_OVERLOAD_ENDED;
    case WEIR_GUARD_EVENT_RECLAIMED:
        return WEIR__EVENT_PERMITS_RECLAIMED;
    default:
        return WEIR__EVENT_KINDS; /* a damaged table */
    }
}

struct weir__events *weir__events_create(void)
{
    struct weir__events *events = calloc(1, sizeof(*events));
    struct weir_limit limit;

    if (events == NULL)
        return NULL;
    if (weir_limit_parse(&limit, ONE_BY_ONE, NULL) != WEIR_OK ||
        weir_plan_create(&events->one_by_one, &limit, NULL) != WEIR_OK ||
        weir__buffer_more(&events->scratch, 4 * WEIR__EVENT_MAX) == NULL) {
        weir_plan_destroy(events->one_by_one);
        free(events);
        return NULL;
    }
    pthread_mutex_init(&events->lock, NULL);
    return events;
}

void weir__events_destroy(struct weir__events *events)
{
    if (events == NULL)
        return;
    pthread_mutex_destroy(&events->lock);
    weir__buffer_free(&events->scratch);
    weir_plan_destroy(events->one_by_one);
    free(events);
}

void weir__events_on_emit(struct weir__events *events, void (*woken)(void *context), void *context)
{
    events->woken = woken;
    events->context = context;
}

void weir__events_on_facts(struct weir__events *events,
                           void (*seen)(void *context, enum weir__event_kind kind,
                                        const struct weir__event_facts *facts),
                           void *context)
{
    events->seen = seen;
    events->seen_context = context;
}

void weir__events_on_table(struct weir__events *events, const struct weir_table *table)
{
    events->table = table;
}

/* ------------------------------------------------------------- printing ---- */

/* Cut until the event keeps within its bounds: escapes take more room than the text has bytes. */
static void add_text(struct weir__buffer *b, size_t start, const char *name, const char *text)
{
    char cut[TEXT_MAX];
    size_t before = b->len;

    for (size_t size = sizeof(cut); text != NULL && size >= 8; size /= 2) {
        weir__text_cut(cut, size, text, strlen(text));
        weir__buffer_member(b, name, cut);
        if (b->len - start <= WEIR__EVENT_MAX - NUMBERS_MAX)
            return;
        b->len = before;
    }
}

static void add_number(struct weir__buffer *b, const char *name, int64_t n)
{
    if (n != 0)
        weir__buffer_member_number(b, name, n);
}

/* The most important members come first and are cut last. */
static void add_facts(struct weir__buffer *b, size_t start, const struct weir__event_facts *f)
{
    add_text(b, start, "rule", f->rule);
    add_text(b, start, "guard", f->guard);
    add_text(b, start, "key", f->key);
    add_text(b, start, "address", f->address);
    if (f->until != 0)
        weir__buffer_member_moment(b, "until", f->until);
    add_text(b, start, "mode", f->mode);
    add_text(b, start, "state", f->state);
    add_text(b, start, "list", f->list);
    add_text(b, start, "attribute", f->attribute);
    add_text(b, start, "hash", f->hash);
    add_text(b, start, "source", f->source);
    add_text(b, start, "text", f->text);
    add_number(b, "refused", f->refused);
    add_number(b, "count", f->count);
}

void weir__event_print(struct weir__buffer *json, uint64_t id, enum weir__event_kind kind,
                       weir_time now, const struct weir__event_facts *facts)
{
    size_t start = json->len;

    weir__buffer_open(json, NULL, '{');
    add_number(json, "id", (int64_t)id);
    weir__buffer_member_moment(json, "time", now);
    weir__buffer_member(json, "event", kinds[kind].name);
    if (facts != NULL)
        add_facts(json, start, facts);
    weir__buffer_close(json, "}");
}

/* ------------------------------------------------------- telling, hearing ---- */

static void keep(struct weir__events *events, enum weir__event_kind kind)
{
    struct kept *kept = &events->ring[(events->latest + 1) % WEIR__EVENTS_KEPT];

    kept->kind = kind;
    kept->len = events->scratch.len;
    memcpy(kept->json, events->scratch.bytes, kept->len);
    events->latest++;
}

/* With the lock. */
static void print_and_keep(struct weir__events *events, enum weir__event_kind kind, weir_time now,
                           const struct weir__event_facts *facts)
{
    struct weir__event_facts told;

    if (events->table != NULL) {
        now = weir_table_real(events->table, now);
        told = facts ? *facts : (struct weir__event_facts){ 0 };
        told.until = told.until ? weir_table_real(events->table, told.until) : 0;
        facts = facts ? &told : NULL;
    }
    events->scratch.len = 0;
    weir__event_print(&events->scratch, events->latest + 1, kind, now, facts);
    if (!events->scratch.failed &&
        events->scratch.len <= WEIR__EVENT_MAX) /* it was made with room for that */
        keep(events, kind);
}

static void wake(struct weir__events *events)
{
    if (events->woken != NULL)
        events->woken(events->context);
}

void weir__events_emit(struct weir__events *events, enum weir__event_kind kind, weir_time now,
                       const struct weir__event_facts *facts)
{
    if (events->seen != NULL && facts != NULL)
        events->seen(events->seen_context, kind, facts);
    pthread_mutex_lock(&events->lock);
    events->counts[kind]++;
    print_and_keep(events, kind, now, facts);
    pthread_mutex_unlock(&events->lock);
    wake(events);
}

/* May one more of it be told?  With the lock. */
static bool may_tell(struct weir__events *events, struct often *often, weir_time now)
{
    const struct weir_ask ask = { .cost = 1, .now = now };
    struct weir_decision d;

    return weir_step(events->one_by_one, often->told, &ask, &d);
}

/* Once some are to be counted all are, until that event is told: or those that come often would
 * leave it no room. */
void weir__events_emit_often(struct weir__events *events, enum weir__event_kind kind, weir_time now,
                             const struct weir__event_facts *facts)
{
    struct often *often = &events->often[kind];

    if (events->seen != NULL)
        events->seen(events->seen_context, kind, facts);
    pthread_mutex_lock(&events->lock);
    events->counts[kind]++;
    bool tells = often->more == 0 && may_tell(events, often, now);
    if (tells)
        print_and_keep(events, kind, now, facts);
    else
        often->more++;
    pthread_mutex_unlock(&events->lock);
    if (tells)
        wake(events);
}

void weir__events_tell_more(struct weir__events *events, weir_time now)
{
    bool tells = false;

    pthread_mutex_lock(&events->lock);
    for (size_t kind = 0; kind < WEIR__EVENT_KINDS; kind++) {
        struct often *often = &events->often[kind];
        if (often->more == 0 || !may_tell(events, often, now))
            continue;
        print_and_keep(events, (enum weir__event_kind)kind, now,
                       &(struct weir__event_facts){ .text = "more keys", .count = often->more });
        often->more = 0;
        tells = true;
    }
    pthread_mutex_unlock(&events->lock);
    if (tells)
        wake(events);
}

uint64_t weir__events_latest(struct weir__events *events)
{
    pthread_mutex_lock(&events->lock);
    uint64_t latest = events->latest;
    pthread_mutex_unlock(&events->lock);
    return latest;
}

void weir__events_counts(struct weir__events *events, int64_t out[WEIR__EVENT_KINDS])
{
    pthread_mutex_lock(&events->lock);
    memcpy(out, events->counts, sizeof(events->counts));
    pthread_mutex_unlock(&events->lock);
}

/* The number that comes after `after`, and how many before it were lost. */
static uint64_t number_after(const struct weir__events *events, uint64_t after, uint64_t *lost)
{
    uint64_t oldest =
        events->latest > WEIR__EVENTS_KEPT ? events->latest - WEIR__EVENTS_KEPT + 1 : 1;

    after = after > events->latest ? 0 : after;
    *lost = after + 1 < oldest ? oldest - after - 1 : 0;
    return after + 1 + *lost;
}

bool weir__events_next(struct weir__events *events, uint64_t *after, enum weir__event_kind *kind,
                       struct weir__buffer *json, uint64_t *lost)
{
    *lost = 0;
    char *to =
        weir__buffer_room(json, WEIR__EVENT_MAX); /* before the lock: nobody waits for memory */
    if (to == NULL)
        return false;
    pthread_mutex_lock(&events->lock);
    uint64_t next = number_after(events, *after, lost);
    bool is = next <= events->latest;
    if (is) {
        const struct kept *kept = &events->ring[next % WEIR__EVENTS_KEPT];
        memcpy(to, kept->json, kept->len);
        json->len += kept->len;
        *kind = kept->kind;
        *after = next;
    }
    pthread_mutex_unlock(&events->lock);
    return is;
}
