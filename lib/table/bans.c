/* bans.c -- keys that a rule keeps out for a while.
 *
 * A ban is a mark of 16 bytes, {tag, until}, which is all that a check looks at, and a record:
 * whose it is, since when, how often before. The tag names a line of four marks; the search goes on
 * from there for at most 64, round the end if need be, and stops at the first that was never used.
 * Marks are never emptied, so a search finds what was put behind a ban that has gone.
 *
 *     in force     until lies ahead
 *     remembered   until has passed, forget_at has not: a further strike counts up
 *     dead         neither, or the record is another's: its place is free
 *
 * Writers work at the registry's desk, readers without a lock.  The record says whose it is only
 * while it is whole, and the mark, changed in one swap, comes last: a writer killed at any point
 * leaves the ban before, or none, or the new one.  If there is no place within reach the ban that
 * ends first makes room; those that are over go before those in force.
 *
 * A ban is until a time, so a clock that is set back would prolong it.  Beyond a second before its
 * own beginning a ban follows the clock, as states do: it begins anew then, as long as it was
 * (docs/decisions/0004-late-asks-and-clock-steps.md).
 *
 * Why not a limiter's states: a ban must be listed and lifted by name, so it needs the key's text,
 * and it must not be driven out by keys that are merely busy.
 */
#include "table/bans.h"
#include "base/utf8.h"

#define MARKS_A_LINE  (WEIR__LINE / sizeof(struct weir__ban_mark))
#define SALT_OF_RULES 0x62616e73u /* so that a rule's salt is no tag of its own keys */

uint64_t weir__ban_salt(const struct weir_table *table, const char *rule)
{
    return weir__hash_key(table->secrets, SALT_OF_RULES, (struct weir_key){ rule, strlen(rule) })
        .place;
}

static weir_time later(weir_time from, weir_time span)
{
    return span > INT64_MAX - from ? INT64_MAX : from + span;
}

/* ------------------------------------------------------------- places ---- */

static uint64_t window_of(const struct weir_table *table)
{
    return table->ban_places < WEIR__BAN_WINDOW ? table->ban_places : WEIR__BAN_WINDOW;
}

/* Where the search for a tag begins, and where it goes on. */
static uint64_t home_of(const struct weir_table *table, uint64_t tag)
{
    return (uint64_t)((weir__u128)tag * table->ban_places >> 64) & ~(uint64_t)(MARKS_A_LINE - 1);
}

static uint64_t next_to(const struct weir_table *table, uint64_t i)
{
    return i + 1 < table->ban_places ? i + 1 : 0;
}

static weir_time until_at(const struct weir_table *table, uint64_t i)
{
    return __atomic_load_n(&table->ban_marks[i].until, __ATOMIC_ACQUIRE);
}

static bool in_force(const struct weir_table *table, uint64_t i, weir_time now)
{
    return until_at(table, i) > now && weir__load(&table->ban_marks[i].tag) != 0;
}

#define NOWHERE UINT64_MAX

static uint64_t find(const struct weir_table *table, uint64_t tag)
{
    uint64_t i = home_of(table, tag);

    for (uint64_t n = window_of(table); n > 0; n--, i = next_to(table, i)) {
        uint64_t found = weir__load(&table->ban_marks[i].tag);
        if (found == tag)
            return i;
        if (found == 0)
            return NOWHERE;
    }
    return NOWHERE;
}

/* The record of the ban at this place, or NULL if a writer was killed in it.  For the holder of the
 * desk. */
static struct weir__ban_record *record_locked(const struct weir_table *table, uint64_t i)
{
    struct weir__ban_record *r = &table->ban_records[i];

    return r->tag == table->ban_marks[i].tag ? r : NULL;
}

/* When the place is free: below 0 if it is, else the end of the ban or, if that has passed, of its
 * being remembered. */
static weir_time free_at_locked(const struct weir_table *table, uint64_t i, weir_time now)
{
    const struct weir__ban_record *r = record_locked(table, i);
    weir_time until = until_at(table, i);

    if (table->ban_marks[i].tag ==
        0) /* whatever damage has put beside it: no search gets past it */
        return -1;
    return until > now ? until : r != NULL && r->forget_at > now ? r->forget_at : -1;
}

/* The place for a tag that is nowhere yet: free, or where the least is lost. */
static uint64_t make_room_locked(struct weir_table *table, uint64_t tag, weir_time now)
{
    uint64_t best = NOWHERE, i = home_of(table, tag);
    weir_time best_at = 0;
    bool best_over = false;

    for (uint64_t n = window_of(table); n > 0; n--, i = next_to(table, i)) {
        weir_time at = free_at_locked(table, i, now);
        bool over = !in_force(table, i, now);
        if (at < 0)
            return i;
        if (best == NOWHERE || (over && !best_over) || (over == best_over && at < best_at)) {
            best = i;
            best_at = at;
            best_over = over;
        }
    }
    if (!best_over)
        weir__count(&table->header->bans_lost, 1);
    return best;
}

/* -------------------------------------------------------------- write ---- */

static void write_texts(struct weir__ban_record *r, const char *rule, struct weir_key key)
{
    size_t rule_len = strlen(rule), key_len = key.len < sizeof(r->key) ? key.len : sizeof(r->key);

    memset(r->rule, 0, sizeof(r->rule));
    memset(r->key, 0, sizeof(r->key));
    memcpy(r->rule, rule, rule_len < sizeof(r->rule) ? rule_len : sizeof(r->rule) - 1);
    if (key_len > 0)
        memcpy(r->key, key.bytes, key_len);
    r->key_len = key.len < UINT32_MAX ? (uint32_t)key.len : UINT32_MAX;
}

/* The numbers of a ban. */
struct span {
    weir_time since, until, forget_at;
    int32_t strikes;
};

static void raise_latest(struct weir_table *table, weir_time until)
{
    int64_t *latest = &table->header->bans_latest;

    if (__atomic_load_n(latest, __ATOMIC_RELAXED) < until)
        __atomic_store_n(latest, until, __ATOMIC_RELEASE);
}

/* Writes a ban to its place; its texts too unless it has them already (rule NULL). */
static void write_locked(struct weir_table *table, uint64_t i, uint64_t tag, const struct span *s,
                         const char *rule, struct weir_key key)
{
    struct weir__ban_record *r = &table->ban_records[i];
    struct weir__ban_mark *m = &table->ban_marks[i];

    if (m->tag != tag)
        __atomic_store_n(&m->until, 0,
                         __ATOMIC_SEQ_CST); /* who makes room is out before anything else happens */
    __atomic_store_n(&r->tag, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&r->since, s->since, __ATOMIC_RELAXED); /* all that is read without the desk */
    r->forget_at = s->forget_at;
    r->strikes = s->strikes;
    if (rule != NULL)
        write_texts(r, rule, key);
    __atomic_store_n(&r->tag, tag, __ATOMIC_SEQ_CST);
    raise_latest(table, s->until);
    uint64_t before[2] = { m->tag, (uint64_t)m->until }, after[2] = { tag, (uint64_t)s->until };
    (void)weir__swap_pair(&m->tag, before, after); /* nobody else writes here */
}

/* ----------------------------------------------------- clock set back ---- */

/* The ban begins anew at `now` if that lies before its beginning. */
static void follow_clock_locked(struct weir_table *table, uint64_t i, weir_time now)
{
    const struct weir__ban_record *r = record_locked(table, i);
    weir_time until = until_at(table, i);

    if (r == NULL || until <= now || r->since <= later(now, WEIR__LATE_MAX))
        return;
    weir_time back = r->since - now;
    struct span s = { now, until == WEIR_FOREVER ? until : until - back,
                      r->forget_at < back ? 0 : r->forget_at - back, r->strikes };
    write_locked(table, i, r->tag, &s, NULL, (struct weir_key){ 0 });
}

static __attribute__((noinline)) weir_time follow_clock(struct weir_table *table, uint64_t tag,
                                                        weir_time now)
{
    weir__desk_lock(table, WEIR__REGISTRY_DESK);
    uint64_t i = find(table, tag);
    weir_time until = 0;
    if (i != NOWHERE) {
        follow_clock_locked(table, i, now);
        until = until_at(table, i);
    }
    weir__desk_unlock(table, WEIR__REGISTRY_DESK);
    return until > now ? until : 0;
}

/* --------------------------------------------------------------- look ---- */

/* *back: how far the clock has been set back to before the ban's beginning. */
static weir_time look(const struct weir_table *table, uint64_t tag, weir_time now, weir_time *back)
{
    uint64_t i = find(table, tag);

    *back = 0;
    if (i == NOWHERE)
        return 0;
    weir_time until = until_at(table, i),
              since = __atomic_load_n(&table->ban_records[i].since, __ATOMIC_RELAXED);
    if (weir__load(&table->ban_marks[i].tag) != tag ||
        until <= now) /* of another, who has just come: this one made room */
        return 0;
    *back = since > later(now, WEIR__LATE_MAX) ? since - now : 0;
    return until;
}

weir_time weir__ban_look(const struct weir_table *table, uint64_t tag, weir_time now)
{
    weir_time back, from = now < 0 ? 0 : now, until = look(table, tag, from, &back);

    return back > 0 ? follow_clock((struct weir_table *)table, tag, from) : until;
}

weir_time weir__ban_peek(const struct weir_table *table, uint64_t tag, weir_time now)
{
    weir_time back, until = look(table, tag, now < 0 ? 0 : now, &back);

    return until == WEIR_FOREVER ? until : until - back;
}

/* ------------------------------------------------------------- strike ---- */

/* The length of a ban after so many others; a few steps, whatever the numbers are. */
static weir_time length_of(const struct weir__ban_terms *terms, int32_t strikes)
{
    weir_time length = terms->length > 0 ? terms->length : 0,
              longest = terms->longest > length ? terms->longest : length;

    for (int32_t i = 0; i < strikes && length < longest && length > 0 && terms->factor > 1; i++)
        length = length > longest / terms->factor ? longest : length * terms->factor;
    return length;
}

static void take_place_locked(struct weir_table *table, uint64_t i, uint64_t tag,
                              const struct span *s, const char *rule, struct weir_key key,
                              weir_time now)
{
    if (s->until > now)
        write_locked(table, i == NOWHERE ? make_room_locked(table, tag, now) : i, tag, s, rule,
                     key);
}

/* What is known of the key: zeros if nothing is, or it is forgotten. */
static struct span recall_locked(struct weir_table *table, uint64_t i, weir_time now)
{
    if (i == NOWHERE)
        return (struct span){ 0 };
    follow_clock_locked(table, i, now);
    const struct weir__ban_record *r = record_locked(table, i);
    weir_time until = until_at(table, i);
    if (r == NULL || (until <= now && r->forget_at <= now))
        return (struct span){ .until = until };
    return (struct span){ r->since, until, r->forget_at, r->strikes < 0 ? 0 : r->strikes };
}

weir_time weir__ban_strike(struct weir_table *table, uint64_t tag, const char *rule,
                           struct weir_key key, const struct weir__ban_terms *terms, weir_time now)
{
    now = now < 0 ? 0 : now;
    weir__desk_lock(table, WEIR__REGISTRY_DESK);
    uint64_t i = find(table, tag);
    struct span s = recall_locked(table, i, now);
    if (s.until <= now) {
        s.since = now;
        s.until = later(now, length_of(terms, s.strikes));
        s.forget_at = later(s.until, terms->forget > 0 ? terms->forget : 0);
        s.strikes += s.strikes < INT32_MAX;
        take_place_locked(table, i, tag, &s, rule, key, now);
    }
    weir__desk_unlock(table, WEIR__REGISTRY_DESK);
    return s.until;
}

void weir__ban_put(struct weir_table *table, uint64_t tag, const char *rule, struct weir_key key,
                   weir_time now, weir_time until)
{
    now = now < 0 ? 0 : now;
    weir__desk_lock(table, WEIR__REGISTRY_DESK);
    uint64_t i = find(table, tag);
    struct span s = recall_locked(table, i, now);
    if (s.until <= now || s.strikes == 0) /* of one that is out already only the end changes */
        s.strikes += s.strikes < INT32_MAX;
    s.since = now;
    s.until = until;
    s.forget_at = s.forget_at > until ? s.forget_at : until;
    take_place_locked(table, i, tag, &s, rule, key, now);
    weir__desk_unlock(table, WEIR__REGISTRY_DESK);
}

/* ---------------------------------------------------------------- end ---- */

/* The latest end of all, looked for until one is found that ends at `most`. */
static void find_latest(struct weir_table *table, weir_time most)
{
    weir_time latest = 0;

    for (uint64_t i = 0; i < table->ban_places && latest < most; i++)
        latest = until_at(table, i) > latest ? until_at(table, i) : latest;
    __atomic_store_n(&table->header->bans_latest, latest, __ATOMIC_RELEASE);
}

void weir__bans_settle(struct weir_table *table)
{
    find_latest(table, INT64_MAX);
}

bool weir__ban_lift(struct weir_table *table, uint64_t tag, weir_time now)
{
    weir_time until = 0;

    weir__desk_lock(table, WEIR__REGISTRY_DESK);
    uint64_t i = find(table, tag);
    if (i != NOWHERE) {
        until = until_at(table, i);
        __atomic_store_n(&table->ban_marks[i].until, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&table->ban_records[i].tag, 0, __ATOMIC_RELEASE);
        if (until > 0 && until == table->header->bans_latest)
            find_latest(table, until);
    }
    weir__desk_unlock(table, WEIR__REGISTRY_DESK);
    return until > (now < 0 ? 0 : now);
}

/* --------------------------------------------------------------- list ---- */

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

static void show_locked(const struct weir_table *table, uint64_t i, struct weir_ban *out)
{
    const struct weir__ban_record *r = record_locked(table, i);

    *out = (struct weir_ban){
        .rule = "?", .key = "?", .until = until_at(table, i), .strikes = 1
    }; /* in force, if a writer was killed in it */
    if (r == NULL)
        return;
    out->since = r->since;
    out->strikes = r->strikes < 1 ? 1 : r->strikes;
    memcpy(out->rule, r->rule, sizeof(out->rule) - 1);
    weir__text_clean(out->rule);
    show_key(r, out->key, sizeof(out->key));
}

_Static_assert(sizeof(((struct weir_ban *)NULL)->key) <= WEIR__BAN_KEY &&
                   sizeof(((struct weir_ban *)NULL)->rule) == WEIR__NAME_SIZE,
               "what is shown is kept");

bool weir__ban_get(struct weir_table *table, size_t i, weir_time now, struct weir_ban *out)
{
    now = now < 0 ? 0 : now;
    if (i >= table->ban_places || !in_force(table, i, now))
        return false;
    weir__desk_lock(table, WEIR__REGISTRY_DESK);
    bool still = in_force(table, i, now);
    if (still)
        show_locked(table, i, out);
    weir__desk_unlock(table, WEIR__REGISTRY_DESK);
    return still;
}

int64_t weir__bans_in_force(const struct weir_table *table, weir_time now)
{
    int64_t n = 0;

    for (uint64_t i = 0; i < table->ban_places; i++)
        n += in_force(table, i, now);
    return n;
}
