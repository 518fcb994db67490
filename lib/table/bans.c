/* bans.c -- keys that a rule keeps out for a while.
 *
 * A ban is a large state in a space of its own: it must be listed and lifted by name, so it needs
 * the key's text, and keys that are merely busy must not drive it out.
 *
 *     in force     until lies ahead
 *     remembered   until has passed, forget_at has not: a further strike counts up
 *     idle         neither: its slot is free
 *
 * If there is no room, a ban makes room as a key would: eviction.c says which.
 *
 * A ban is until a time, so a clock that is set back would prolong it.  Beyond a second before its
 * own beginning a ban follows the clock, as states do: it begins anew then, as long as it was
 * (docs/decisions/0004-late-asks-and-clock-steps.md).
 */
#include "base/utf8.h"
#include "table/agent-lease.h"
#include "table/bans.h"
#include "table/part.h"

#define SALT_OF_RULES 0x62616e73u /* so that a rule's salt is no tag of its own keys */

#define HOUR         (3600 * WEIR_SECOND)
#define LONGEST      (30 * 24 * HOUR) /* by default, of bans that grow longer */
#define FORGET_TIMES 10               /* the length, by default; ... */
#define FORGET_LEAST HOUR             /* ... at least */

void weir__ban_terms_fill(struct weir__ban_terms *t)
{
    if (t->longest == 0)
        t->longest = t->factor > 1 ? weir__int_most(LONGEST, t->length) : t->length;
    if (t->forget == 0)
        t->forget = t->length > WEIR__BAN_MOST / FORGET_TIMES
                        ? WEIR__BAN_MOST
                        : weir__int_most(FORGET_TIMES * t->length, FORGET_LEAST);
}

uint64_t weir__ban_salt(const struct weir_table *table, const char *rule)
{
    return weir__hash_key(table->secrets, SALT_OF_RULES, (struct weir_key){ rule, strlen(rule) })
        .place;
}

/* The rule's part of the tag is what a limiter's id is in others. */
uint64_t weir__ban_tag_salted(const struct weir_table *table, uint64_t salt, struct weir_key key)
{
    return weir__tag_of(weir__hash_key(table->secrets, salt, key).tag,
                        (uint32_t)salt & ((1 << WEIR__ID_BITS) - 1));
}

static weir_time later(weir_time from, weir_time span)
{
    return span > INT64_MAX - from ? INT64_MAX : from + span;
}

/* ----------------------------------------------------- as a large state ---- */

static weir_time ban_idle_at(const struct weir_plan *plan, const void *state)
{
    const struct weir__ban_record *r = state;
    weir_time at = r->until > r->forget_at ? r->until : r->forget_at;

    (void)plan;
    return at < 0 ? 0 : at;
}

static const struct weir__algo ban_algo = { .name = "ban", .idle_at = ban_idle_at };
static struct weir__era ban_era = { .plan = { .algo = &ban_algo,
                                              .state_size = sizeof(struct weir__ban_record) } };

void weir__bans_open(struct weir_table *table, struct weir_limiter *out)
{
    *out = (struct weir_limiter){
        .table = table, .space = &table->bans, .kind = WEIR__LARGE, .era = &ban_era
    };
}

static struct weir__part part_of(const struct weir_table *table, uint64_t tag)
{
    struct weir__hash hash = { .tag = tag, .place = weir__mix64(tag) };

    return (struct weir__part){ .limiter = (struct weir_limiter *)&table->banned,
                                .plan = &ban_era.plan,
                                .home = weir__home_from(&table->bans, hash) };
}

/* ---------------------------------------------------------------- read ---- */

/* What is known of the key as it was at one moment: zeros if nothing is. */
static void read_ban(const struct weir_table *table, uint64_t tag, struct weir__ban_record *out)
{
    struct weir__part part = part_of(table, tag);

    while (!weir__part_peek(&part, out))
        ;
}

/* A time at which a ban is looked at, and the clock of the table. */
struct look {
    weir_time now;
    const struct weir_clock *clock;
};

static struct look look_at(const struct weir_table *table, weir_time now)
{
    return (struct look){ now < 0 ? 0 : now, &table->clock };
}

/* How far the clock was set back to before the ban's beginning. */
static weir_time set_back(const struct weir__ban_record *r, const struct look *at)
{
    bool before = r->until > at->now && r->since > later(at->now, WEIR__LATE_MAX);

    return before && weir__moment(at->clock, r->since, at->now) == at->now ? r->since - at->now : 0;
}

/* The ban begins anew at `now` if that lies before its beginning. */
static bool follow_clock(struct weir__ban_record *r, const struct look *at)
{
    weir_time back = set_back(r, at);

    if (back == 0)
        return false;
    r->since = at->now;
    r->until = r->until == WEIR_FOREVER ? r->until : r->until - back;
    r->forget_at = r->forget_at < back ? 0 : r->forget_at - back;
    return true;
}

static bool follow(const struct weir_plan *plan, void *state, void *context)
{
    (void)plan;
    return follow_clock(state, context);
}

weir_time weir__ban_look(const struct weir_table *table, uint64_t tag, weir_time now)
{
    struct weir__ban_record r;
    struct look at = look_at(table, now);

    read_ban(table, tag, &r);
    if (set_back(&r, &at) > 0) {
        struct weir__part part = part_of(table, tag);
        weir__part_change(&part, follow, &at, false, at.now);
        read_ban(table, tag, &r);
    }
    return r.until > at.now ? r.until : 0;
}

weir_time weir__ban_peek(const struct weir_table *table, uint64_t tag, weir_time now)
{
    struct weir__ban_record r;
    struct look at = look_at(table, now);

    read_ban(table, tag, &r);
    follow_clock(&r, &at);
    return r.until > at.now ? r.until : 0;
}

/* --------------------------------------------------------------- write ---- */

static void write_texts(struct weir__ban_record *r, const char *rule, struct weir_key key)
{
    size_t rule_len = strlen(rule), key_len = key.len < sizeof(r->key) ? key.len : sizeof(r->key);

    memset(r->rule, 0, sizeof(r->rule));
    memset(r->key, 0, sizeof(r->key));
    memcpy(r->rule, rule, rule_len < sizeof(r->rule) ? rule_len : sizeof(r->rule) - 1);
    if (key_len > 0)
        memcpy(r->key, key.bytes, key_len);
    r->key_len = key.len < UINT16_MAX ? (uint16_t)key.len : UINT16_MAX;
    r->told = 0;
}

/* Swaps something else in even if the end is not later: find_latest has to notice. */
static void raise_latest(struct weir_table *table, weir_time until)
{
    uint64_t *at = &table->header->bans_latest, was[2], next[2];

    do {
        weir__load_pair(at, was);
        next[0] = (weir_time)was[0] < until ? (uint64_t)until : was[0];
        next[1] = was[1] + 1;
    } while (!weir__swap_pair(at, was, next));
}

/* A ban to be written: by strike or by hand. */
struct verdict {
    const char *rule;
    struct weir_key key;
    struct look at;
    const struct weir__ban_terms *terms; /* NULL: by hand, */
    weir_time until;                     /* until then; afterwards: until when the key is out */
};

/* The length of a ban after this many others; a few steps, whatever the numbers are. */
static weir_time length_of(const struct weir__ban_terms *terms, int32_t strikes)
{
    weir_time length = terms->length > 0 ? terms->length : 0,
              longest = terms->longest > length ? terms->longest : length;

    for (int32_t i = 0; i < strikes && length < longest && length > 0 && terms->factor > 1; i++)
        length = length > longest / terms->factor ? longest : length * terms->factor;
    return length;
}

/* Brings the record up to now; one that is forgotten is blank. */
static void recall(struct weir__ban_record *r, const struct look *at)
{
    follow_clock(r, at);
    r->strikes = r->strikes < 0 ? 0 : r->strikes;
    if (r->until <= at->now && r->forget_at <= at->now)
        r->strikes = 0, r->forget_at = 0;
}

static bool strike(const struct weir_plan *plan, void *state, void *context)
{
    struct weir__ban_record *r = state;
    struct verdict *v = context;

    (void)plan;
    recall(r, &v->at);
    if (r->until > v->at.now) { /* it is out already, and stays as it is */
        v->until = r->until;
        return false;
    }
    r->since = v->at.now;
    r->until = v->until = later(v->at.now, length_of(v->terms, r->strikes));
    r->forget_at = later(r->until, v->terms->forget > 0 ? v->terms->forget : 0);
    r->strikes += r->strikes < INT32_MAX;
    write_texts(r, v->rule, v->key);
    return r->until > v->at.now;
}

static bool put(const struct weir_plan *plan, void *state, void *context)
{
    struct weir__ban_record *r = state;
    const struct verdict *v = context;

    (void)plan;
    recall(r, &v->at);
    if (r->until <= v->at.now ||
        r->strikes == 0) /* of one that is out already only the end changes */
        r->strikes += r->strikes < INT32_MAX;
    r->since = v->at.now;
    r->until = v->until;
    r->forget_at = r->forget_at > v->until ? r->forget_at : v->until;
    write_texts(r, v->rule, v->key);
    return true;
}

/* Before and after: a thread that looks for the latest end in between may not see this ban yet.
 * False: there is no disk space for it. */
static bool write_ban(struct weir_table *table, uint64_t tag, weir__changer *change,
                      struct verdict *v, weir_time until)
{
    struct weir__part part = part_of(table, tag);

    raise_latest(table, until);
    weir__part_change(&part, change, v, true, v->at.now);
    raise_latest(table, v->until);
    return !part.forgone;
}

weir_time weir__ban_strike(struct weir_table *table, uint64_t tag, const char *rule,
                           struct weir_key key, const struct weir__ban_terms *terms, weir_time now)
{
    struct verdict v = { rule, key, look_at(table, now), terms, 0 };

    if (length_of(terms, INT32_MAX) == 0)
        return v.at.now;
    bool kept = write_ban(table, tag, strike, &v, later(v.at.now, length_of(terms, 0)));
    return kept ? v.until : v.at.now;
}

bool weir__ban_put(struct weir_table *table, uint64_t tag, const char *rule, struct weir_key key,
                   weir_time now, weir_time until)
{
    struct verdict v = { rule, key, look_at(table, now), NULL, until };

    return until <= v.at.now || write_ban(table, tag, put, &v, until);
}

/* ---------------------------------------------------------------- list ---- */

/* A key that was cut, or fills the room, ends in dots; never in half a character. */
static void show_key(const struct weir__ban_record *r, char *out, size_t size)
{
    static const char dots[] = "...";
    size_t len = r->key_len < size ? r->key_len : size - sizeof(dots);

    memcpy(out, r->key, len);
    if (r->key_len >= size) {
        while (len > size - 2 * sizeof(dots) && ((unsigned char)r->key[len] & 0xc0) == 0x80)
            len--;
        memcpy(out + len, dots, sizeof(dots));
    } else {
        out[len] = '\0';
    }
    weir__text_clean(out);
}

static void *slot_at(const struct weir_table *table, uint64_t i)
{
    return weir__slot_at(&table->bans, i / WEIR__GROUP_SLOTS, i % WEIR__GROUP_SLOTS);
}

uint64_t weir__ban_places(const struct weir_table *table)
{
    return table->bans.groups * WEIR__GROUP_SLOTS;
}

/* The ban in a slot, if there is one in force. */
static bool read_place(const struct weir_table *table, uint64_t i, weir_time now,
                       struct weir__ban_record *out)
{
    uint64_t tag = weir__load(slot_at(table, i));

    if (tag == 0)
        return false;
    read_ban(table, tag, out);
    return out->until > now;
}

_Static_assert(sizeof(((struct weir_ban *)NULL)->key) <= WEIR__BAN_KEY &&
                   sizeof(((struct weir_ban *)NULL)->rule) == WEIR__NAME_SIZE,
               "what is shown is kept");

bool weir__ban_get(struct weir_table *table, size_t i, weir_time now, struct weir_ban *out)
{
    struct weir__ban_record r;

    if (i >= weir__ban_places(table) || !read_place(table, i, now < 0 ? 0 : now, &r))
        return false;
    *out = (struct weir_ban){ .since = r.since,
                              .until = r.until,
                              .strikes = r.strikes < 1 ? 1 : r.strikes };
    memcpy(out->rule, r.rule, sizeof(out->rule) - 1);
    weir__text_clean(out->rule);
    show_key(&r, out->key, sizeof(out->key));
    return true;
}

int64_t weir__bans_in_force(const struct weir_table *table, weir_time now)
{
    struct weir__ban_record r;
    int64_t n = 0;

    for (uint64_t i = 0; weir__bans_any(table, now) && i < weir__ban_places(table); i++)
        n += read_place(table, i, now, &r);
    return n;
}

/* ----------------------------------------------------------------- end ---- */

/* The latest end of all, unless a ban has come meanwhile: then it stays too late. */
static void find_latest(struct weir_table *table)
{
    uint64_t *at = &table->header->bans_latest, was[2];
    struct weir__ban_record r;
    weir_time latest = 0;

    weir__load_pair(at, was);
    for (uint64_t i = 0; i < weir__ban_places(table); i++)
        if (read_place(table, i, latest, &r))
            latest = r.until;
    uint64_t found[2] = { (uint64_t)latest, was[1] };
    (void)weir__swap_pair(at, was, found);
}

void weir__bans_measure(struct weir_table *table)
{
    const struct weir__space *space = &table->bans;

    weir__groups_open(&table->bans, weir__line_slots(space));
    for (uint64_t i = 0; i < space->groups * WEIR__GROUP_SLOTS; i++) {
        const void *slot = weir__wide_at(space, i / WEIR__GROUP_SLOTS, i);
        uint64_t tag = weir__load(slot), *reach = &space->rooms[i / WEIR__GROUP_SLOTS].reach;
        uint64_t distance =
            tag != 0 ? weir__slot_distance(space, part_of(table, tag).home, slot) : 0;
        *reach = distance > *reach ? distance : *reach;
    }
}

void weir__bans_settle(struct weir_table *table)
{
    find_latest(table);
}

struct lifting {
    weir_time now, until; /* until: it was in force */
    bool fleet;           /* which has to be told */
};

static bool lift(const struct weir_plan *plan, void *state, void *context)
{
    struct weir__ban_record *r = state;
    struct lifting *l = context;

    (void)plan;
    l->until = r->until;
    if (weir__ban_is_lifted(r, l->now))
        return false;
    if (r->told || r->forget_at < r->until) /* else the fleet may know of a longer ban */
        r->forget_at = r->until;
    r->forget_at = l->fleet && r->forget_at > l->now ? r->forget_at : 0;
    r->since = r->forget_at > 0 ? l->now : 0; /* all zeros are fresh: that needs no block */
    r->until = 0;
    r->strikes = 0;
    r->told = 0;
    return true;
}

bool weir__ban_lift(struct weir_table *table, uint64_t tag, weir_time now)
{
    struct weir__part part = part_of(table, tag);
    struct lifting l = { .now = now < 0 ? 0 : now, .fleet = weir__fleet_until(table) != 0 };

    weir__part_change(&part, lift, &l, false, l.now);
    raise_latest(table, 0);
    if (l.until > 0 && (uint64_t)l.until == weir__get(&table->header->bans_latest))
        find_latest(table);
    return l.until > l.now;
}

/* --------------------------------------------------------------- fleet ---- */

#define SAME  WEIR_SECOND       /* ends that differ by less are one: messages take their time */
#define FRESH (2 * WEIR_SECOND) /* a lift that was made in this time wins over a ban */

bool weir__ban_read(const struct weir_table *table, uint64_t i, weir_time now,
                    struct weir__ban_record *out)
{
    uint64_t tag = weir__load(slot_at(table, i));

    if (tag == 0)
        return false;
    read_ban(table, tag, out);
    return weir__ban_is_known(out, now);
}

struct learning {
    const struct weir__ban_lesson *lesson;
    struct weir_table *table;
    weir_time until; /* before */
    bool learnt;
};

static bool is_same(const struct weir__ban_record *r, const struct weir__ban_lesson *l)
{
    weir_time until = l->strikes > 0 ? r->until : r->forget_at;

    return (r->strikes > 0) == (l->strikes > 0) && until < later(l->until, SAME) &&
           l->until < later(until, SAME);
}

/* Nobody has changed it since the fleet was told. */
static bool is_as_sent(const struct weir__ban_record *r, const struct weir__ban_record *sent)
{
    return sent != NULL && r->since == sent->since && r->until == sent->until &&
           r->forget_at == sent->forget_at && r->strikes == sent->strikes;
}

/* Whether a change that was made here is to be told, whatever the lesson says.  If they do not know
 * of each other, a lift counts, if it is no old one, and of two bans the longer. */
static bool is_stronger(const struct weir__ban_record *r, const struct weir__ban_lesson *l)
{
    bool as_sent = is_as_sent(r, l->sent);

    if (l->met || (l->sent != NULL && !as_sent && is_same(l->sent, l)))
        return true; /* made in the knowledge of it */
    if (l->strikes == 0)
        return false;
    if (weir__ban_is_lifted(r, l->now))
        return l->now >= r->since && l->now - r->since < FRESH;
    return !as_sent && r->until > later(l->until, SAME);
}

/* One that is known already goes on: Redis may have lost it, and been told again. */
static void write_lesson(struct weir__ban_record *r, const struct weir__ban_lesson *l)
{
    int32_t strikes = r->strikes > l->strikes ? r->strikes : l->strikes;

    if (!is_same(r, l))
        r->since = l->now;
    write_texts(r, l->rule, l->key);
    r->until = l->strikes > 0 ? l->until : 0;
    r->strikes = l->strikes > 0 ? strikes : 0;
    r->forget_at = later(l->until, l->strikes > 0 ? l->forget : 0);
}

/* The claim is made after the record was read: an agent that was stopped before finds another in
 * its place, and what one writes that is stopped after it is not written if the record has changed
 * since. */
static bool learn(const struct weir_plan *plan, void *state, void *context)
{
    struct weir__ban_record *r = state;
    struct learning *l = context;
    const struct weir__ban_lesson *lesson = l->lesson;
    struct look at = look_at(l->table, lesson->now);
    bool known = weir__ban_is_known(r, at.now), news = known && !r->told;

    (void)plan;
    l->until = r->until;
    if (known && lesson->older)
        return false;
    l->learnt = (lesson->agent == 0 ||
                 weir__fleet_claim(l->table, lesson->agent, weir_table_now(l->table))) &&
                !(news && is_stronger(r, lesson));
    if (!l->learnt)
        return false;
    recall(r, &at);
    if (!news || !is_same(r, lesson))
        write_lesson(r, lesson);
    r->told = 1;
    return true;
}

bool weir__ban_learn(struct weir_table *table, const struct weir__ban_lesson *lesson)
{
    struct weir__part part = part_of(table, weir__ban_tag(table, lesson->rule, lesson->key));
    struct learning l = { lesson, table, 0, true };
    bool ban = lesson->strikes > 0;

    raise_latest(table, ban ? lesson->until : 0);
    weir__part_change(&part, learn, &l, ban, lesson->now);
    raise_latest(table, ban ? lesson->until : 0);
    if (!ban && l.until > 0 && (uint64_t)l.until == weir__get(&table->header->bans_latest))
        find_latest(table);
    return l.learnt;
}
