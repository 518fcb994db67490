/* history.h -- deeds on a table by several processes, at one frozen instant, and whether their
 * answers can be explained: as if they had been done one after the other, in some order, by a model
 * that only counts.
 *
 *     do_story      a process's deeds on the table, and their answers
 *     model_deed    a deed on the model
 *     is_explained  whether there is such an order
 */
#ifndef WEIR_TESTS_CRASH_HISTORY_H
#define WEIR_TESTS_CRASH_HISTORY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "table/bans.h"
#include "table/cl-throttle-limits.h"

#define NOW        (100000 * WEIR_SECOND)
#define KEYS       2
#define FLOOD_KEY  100 /* the first key of a flood */
#define FLOOD_KEYS 40
#define GRANTED    100000 /* added to what remains */
#define ANY        INT32_MIN

#define DEEDS_MAX 96
#define BATCH_MAX 2
#define BOTH_KEYS 2 /* with `of` of CARRIED: the second deed is on the other key */

/* Limits that hold 5 units, or 8 or 3 after a change; a sixth that fills a table; one that is made
 * while others work. */
enum limiter { SMALL, OTHER, THIRD, LARGE, LOG, COUNTED, FILL = COUNTED, MADE, LIMITERS };

static const int counts[] = { 5, 8, 3, 8 };

static const char *const limits[2][LIMITERS][4] = {
    { { "fixed-window 5/10000s", "fixed-window 8/10000s", "fixed-window 3/10000s" },
      { "gcra 5/10000s", "gcra 8/10000s", "gcra 3/10000s" },
      { "token-bucket 5/10000s", NULL, NULL },
      { "sliding-window 5/10000s", "sliding-window 8/10000s buckets=1100",
        "sliding-window 3/10000s buckets=4", "sliding-window 8/10000s buckets=600" },
      { "sliding-log 5/10000s", "sliding-log 8/10000s", "sliding-log 3/10000s" },
      { "fixed-window 1000/1s", NULL, NULL },
      { "fixed-window 5/10000s", NULL, NULL } },
    { { "gcra 5/10000s", "gcra 8/16000s", "gcra 3/6000s" },
      { "token-bucket 5/10000s", "token-bucket 8/16000s", "token-bucket 3/6000s" },
      { "gcra 5/10000s", NULL, NULL },
      { "sliding-window 5/10000s", "sliding-window 8/10000s buckets=1100",
        "sliding-window 3/10000s buckets=4", "sliding-window 8/10000s buckets=600" },
      { "sliding-log 5/10000s", "sliding-log 8/10000s", "sliding-log 3/10000s" },
      { "gcra 1000/1s", NULL, NULL },
      { "gcra 5/10000s", NULL, NULL } },
};

/* Limits that come with the ask: a unit is 1 s of at most 5, or 7/3 s of at most 7.  The model
 * counts thirds of a second. */
static const char *const carried_limits[2] = { "gcra 5/5s", "gcra 3/7s" };
static const int carried_unit[2] = { 3, 7 }, carried_most[2] = { 15, 21 };

enum verb {
    NONE,
    TAKE,    /* n units */
    TAKES,   /* a unit, in one call with the n - 1 deeds that follow, on the same key */
    PEEK,    /* what remains */
    GIVE,    /* n units */
    SETTLE,  /* a reservation of two units that were taken: 2 - n were used, which may be more */
    FORGET,  /* answers whether there was anything */
    ALL,     /* of the limiters in the set `of`, one unit each */
    CHANGE,  /* to the n-th limit */
    CARRIED, /* a unit of the limit `of`, in one call with the n - 1 deeds that follow: two at most,
              * in any order unless they are on one key */
    RENEWED, /* a key of CARRIED is forgotten: answers whether there was anything */
    CREATE,  /* the limiter MADE */
    FLOOD,   /* n new keys, other ones for each `key`, four units each */
    STRIKE,  /* answers how many seconds the key is out */
    PUT,     /* a ban by hand, as long as one by STRIKE */
    LIFT,    /* answers whether it was out */
    BANNED,  /* answers as STRIKE */
    TEND,    /* what was dropped goes */
};

struct deed {
    enum verb verb;
    int of, key, n;
};

/* Under limits that come with the ask: of wide tables only. */
static bool is_carried(const struct deed *deed)
{
    return deed->verb == CARRIED || deed->verb == RENEWED;
}

/* n deeds in one call. */
static bool is_batch(enum verb verb)
{
    return verb == CARRIED || verb == TAKES;
}

struct world {
    struct weir_table *table;
    struct weir_limiter *l[LIMITERS];
    struct weir_plan carried[2];
    bool narrow;
    bool long_logs;
    int64_t early; /* evictions that were there at the beginning */
};

/* A long log has used this much more, and may: a chain of nodes that are just full, the last of
 * which count no more. */
#define LONG_EVERY (17600 * WEIR_MILLISECOND)
#define LONG_UNITS 851
#define LONG_LIVE  568 /* in 10000 s */

static void die(const char *what, const char *why)
{
    fprintf(stderr, "stop: %s: %s\n", what, why);
    _exit(1);
}

static struct weir_limit limit_of(const char *text)
{
    struct weir_limit limit;
    struct weir_error e;

    if (weir_limit_parse(&limit, text, &e) != WEIR_OK)
        die(text, e.text);
    return limit;
}

/* ------------------------------------------------------- on the table ---- */

/* A key of its own room, so that it stays where it is while an ask points to it. */
static struct weir_key key_of(int number)
{
    static int numbers[64];
    int *n = &numbers[(unsigned)number % 64];

    *n = number;
    return (struct weir_key){ n, sizeof(*n) };
}

static struct weir_ask ask_for(int key, int cost)
{
    return (struct weir_ask){ .key = key_of(key), .cost = cost, .now = NOW };
}

static int answer(const struct weir_decision *d)
{
    return (d->allowed ? GRANTED : 0) + (int)d->remaining;
}

static int do_take(const struct world *w, const struct deed *deed)
{
    struct weir_ask ask = ask_for(deed->key, deed->n);
    struct weir_decision d;

    weir_take(w->l[deed->of], &ask, &d);
    return answer(&d);
}

static int do_peek(const struct world *w, const struct deed *deed)
{
    struct weir_ask ask = ask_for(deed->key, 0);
    struct weir_decision d;

    weir_peek(w->l[deed->of], &ask, &d);
    return (int)d.remaining;
}

static int do_give(const struct world *w, const struct deed *deed)
{
    struct weir_ask ask = ask_for(deed->key, deed->n);

    weir_give(w->l[deed->of], &ask);
    return 0;
}

static int do_settle(const struct world *w, const struct deed *deed)
{
    struct weir_reservation r = { w->l[deed->of], key_of(deed->key), 2, NOW, NOW + WEIR_SECOND };

    return weir_settle(&r, 2 - deed->n, NOW);
}

static int do_all(const struct world *w, const struct deed *deed)
{
    struct weir_item items[COUNTED];
    struct weir_decision d;
    size_t n = 0;

    for (int i = 0; i < COUNTED; i++)
        if (deed->of >> i & 1)
            items[n++] = (struct weir_item){ w->l[i], ask_for(deed->key, 1) };
    return weir_take_all(items, n, &d);
}

static struct weir_limit limit_for(const struct world *w, int of, int n)
{
    struct weir_limit limit = limit_of(limits[w->narrow][of][n]);

    limit.count += w->long_logs && of == LOG ? LONG_LIVE : 0;
    return limit;
}

static int do_change(const struct world *w, const struct deed *deed)
{
    struct weir_limit limit = limit_for(w, deed->of, deed->n);
    struct weir_error e;

    return weir_limiter_change(w->l[deed->of], &limit, NOW, &e);
}

/* Answers n deeds. */
static void do_carried(const struct world *w, const struct deed *deeds, int *answers)
{
    struct weir__carried_item items[BATCH_MAX] = { { 0 } };
    struct weir_decision d[BATCH_MAX];
    int n = deeds->n;

    for (int i = 0; i < n; i++)
        items[i] =
            (struct weir__carried_item){ &w->carried[deeds[i].of], ask_for(deeds[i].key, 1) };
    (void)weir__carried_take_many(w->table, items, (size_t)n, d);
    for (int i = 0; i < n; i++)
        answers[i] = answer(&d[i]);
}

static void do_takes(const struct world *w, const struct deed *deeds, int *answers)
{
    struct weir_item items[BATCH_MAX] = { { 0 } };
    struct weir_decision d[BATCH_MAX];
    int n = deeds->n;

    for (int i = 0; i < n; i++)
        items[i] = (struct weir_item){ w->l[deeds[i].of], ask_for(deeds[i].key, 1) };
    (void)weir_take_many(items, (size_t)n, d);
    for (int i = 0; i < n; i++)
        answers[i] = answer(&d[i]);
}

static int do_create(struct world *w, int which)
{
    struct weir_limit limit = limit_for(w, which, 0);
    char name[] = "limiter-0";
    struct weir_error e;

    name[sizeof(name) - 2] = (char)('0' + which);
    return weir_limiter_create(&w->l[which], w->table, name, &limit, &e);
}

static int do_flood(const struct world *w, const struct deed *deed)
{
    for (int i = 0; i < deed->n; i++) {
        struct deed take = { TAKE, deed->of, FLOOD_KEY + FLOOD_KEYS * deed->key + i, 4 };
        do_take(w, &take);
    }
    return ANY;
}

static int do_ban(const struct world *w, const struct deed *deed)
{
    static const struct weir__ban_terms terms = { .length = 100 * WEIR_SECOND,
                                                  .factor = 2,
                                                  .longest = 1000 * WEIR_SECOND };
    struct weir_key key = key_of(deed->key);
    uint64_t tag = weir__ban_tag(w->table, "rule", key);

    if (deed->verb == LIFT)
        return weir__ban_lift(w->table, tag, NOW);
    if (deed->verb == PUT)
        return weir__ban_put(w->table, tag, "rule", key, NOW, NOW + terms.length);
    weir_time until = deed->verb == STRIKE
                          ? weir__ban_strike(w->table, tag, "rule", key, &terms, NOW)
                          : weir__ban_until(w->table, tag, NOW);
    return until == 0 ? 0 : (int)((until - NOW) / WEIR_SECOND);
}

/* Whoever has looked before. */
static int do_tend(const struct world *w)
{
    weir__set(&w->table->header->tend_at, 0);
    weir_table_tend(w->table, NOW);
    return ANY;
}

/* All but batches. */
static int do_deed(struct world *w, const struct deed *deed)
{
    switch (deed->verb) {
    case TAKE:
        return do_take(w, deed);
    case PEEK:
        return do_peek(w, deed);
    case GIVE:
        return do_give(w, deed);
    case SETTLE:
        return do_settle(w, deed);
    case RENEWED:
        return weir__carried_forget(w->table, key_of(deed->key), NOW);
    case FORGET:
        return weir_forget(w->l[deed->of], key_of(deed->key), NOW);
    case ALL:
        return do_all(w, deed);
    case CHANGE:
        return do_change(w, deed);
    case CREATE:
        return do_create(w, MADE);
    case FLOOD:
        return do_flood(w, deed);
    case TEND:
        return do_tend(w);
    default:
        return do_ban(w, deed);
    }
}

/* ------------------------------------------------------- on the model ---- */

struct model {
    bool crowded; /* a new key under SMALL may drive out others under SMALL */
    int more;     /* units that a long log may have, and key 0 has */
    int count[LIMITERS], used[LIMITERS][KEYS];
    int owed[KEYS]; /* under limits that come with the ask */
    bool banned[KEYS];
};

static void model_begin(struct model *m, bool crowded, bool long_logs)
{
    *m = (struct model){ .crowded = crowded, .more = long_logs ? LONG_LIVE : 0 };
    for (int i = 0; i < LIMITERS; i++)
        m->count[i] = counts[0];
    m->count[LOG] += m->more;
    m->used[LOG][0] = m->more;
}

static int left(const struct model *m, int of, int key)
{
    int left = m->count[of] - m->used[of][key];

    return left < 0 ? 0 : left;
}

static int model_take(struct model *m, int of, int key, int n)
{
    if (m->used[of][key] + n > m->count[of])
        return left(m, of, key);
    m->used[of][key] += n;
    return GRANTED + left(m, of, key);
}

static int model_all(struct model *m, const struct deed *deed)
{
    for (int i = 0; i < COUNTED; i++)
        if ((deed->of >> i & 1) && left(m, i, deed->key) == 0)
            return 0;
    for (int i = 0; i < COUNTED; i++)
        m->used[i][deed->key] += deed->of >> i & 1;
    return 1;
}

static int model_carried(int of, int *owed)
{
    bool granted = *owed + carried_unit[of] <= carried_most[of];

    *owed += granted ? carried_unit[of] : 0;
    int left = *owed < carried_most[of] ? (carried_most[of] - *owed) / carried_unit[of] : 0;
    return (granted ? GRANTED : 0) + left;
}

/* Strikes are forgotten with the ban's end, so every ban is as long as the first. */
static int model_ban(struct model *m, const struct deed *deed)
{
    bool was = m->banned[deed->key];

    m->banned[deed->key] = deed->verb == STRIKE || deed->verb == PUT || (was && deed->verb != LIFT);
    return deed->verb == PUT ? 1 : deed->verb == LIFT ? was : m->banned[deed->key] ? 100 : 0;
}

static int model_deed(struct model *m, const struct deed *deed)
{
    int *used = &m->used[deed->of % LIMITERS][deed->key % KEYS], was = *used;

    switch (deed->verb) {
    case TAKE:
        return model_take(m, deed->of, deed->key, deed->n);
    case TAKES:
        return model_take(m, deed->of, deed->key, 1);
    case PEEK:
        return left(m, deed->of, deed->key);
    case GIVE:
        *used = was > deed->n ? was - deed->n : 0;
        return 0;
    case SETTLE:
        *used = was > deed->n ? was - deed->n : 0;
        return 1;
    case RENEWED:
        was = m->owed[deed->key];
        m->owed[deed->key] = 0;
        return was > 0;
    case FORGET:
        *used = 0;
        return was > 0;
    case ALL:
        return model_all(m, deed);
    case CHANGE:
        m->count[deed->of] = counts[deed->n] + (deed->of == LOG ? m->more : 0);
        return WEIR_OK;
    case CARRIED:
        return model_carried(deed->of, &m->owed[deed->key]);
    case CREATE:
        return WEIR_OK;
    case FLOOD:
    case TEND:
        return ANY;
    default:
        return model_ban(m, deed);
    }
}

/* ------------------------------------------------------------- orders ---- */

/* What a process did.  `answered` grows after each deed. */
struct story {
    struct deed deeds[DEEDS_MAX];
    int n, answered, answers[DEEDS_MAX];
    int begun_last;      /* deeds from here on were begun when everybody else had ended */
    bool killed;         /* the deed without an answer was done, or not */
    bool charged_before; /* is_twice */
};

static void add(struct story *s, enum verb verb, int of, int key, int n)
{
    for (int i = is_batch(verb) ? n : 1; i > 0; i--) {
        if (s->n == DEEDS_MAX)
            die("script", "too long");
        s->deeds[s->n++] = (struct deed){ verb, of, key, is_batch(verb) ? i : n };
    }
    if (verb == CARRIED && of & BOTH_KEYS) {
        s->deeds[s->n - 2].of = s->deeds[s->n - 1].of = of & ~BOTH_KEYS;
        s->deeds[s->n - 1].key = !key;
    }
}

/* One of zeros is none. */
static void add_deed(struct story *s, const struct deed *d)
{
    if (d->verb != NONE)
        add(s, d->verb, d->of, d->key, d->n);
}

static void do_story(struct world *w, struct story *s, int end)
{
    while (s->answered < end) {
        const struct deed *deed = &s->deeds[s->answered];
        int *answer = &s->answers[s->answered], n = is_batch(deed->verb) ? deed->n : 1;
        if (deed->verb == CARRIED)
            do_carried(w, deed, answer);
        else if (deed->verb == TAKES)
            do_takes(w, deed, answer);
        else
            *answer = do_deed(w, deed);
        __atomic_fetch_add(&s->answered, n, __ATOMIC_RELEASE);
    }
}

static bool are_others_through(const struct story *stories, int n, const int *at)
{
    for (int i = 1; i < n; i++)
        if (at[i] < stories[i].n)
            return false;
    return true;
}

static bool is_explained(const struct model *m, struct story *stories, int n, int *at);

/* The next deed of story i is done now. */
static bool is_next(const struct model *m, struct story *stories, int n, int *at, int i)
{
    const struct story *s = &stories[i];
    const struct deed *deed = &s->deeds[at[i]];
    int masks = m->crowded && deed->verb != PEEK ? 1 << KEYS : 1;
    bool found = false;

    for (int lost = 0; lost < masks && !found; lost++) {
        struct model next = *m;
        for (int key = 0; key < KEYS; key++)
            next.used[SMALL][key] *= (lost >> key & 1) == 0;
        int said = model_deed(&next, deed);
        if (at[i] < s->answered && said != ANY && said != s->answers[at[i]])
            continue;
        at[i]++;
        found = is_explained(&next, stories, n, at);
        at[i]--;
    }
    return found;
}

/* Two deeds of one call change places. */
static void turn_round(struct story *s, int at)
{
    struct deed *d = &s->deeds[at], first = d[0];
    int answer = s->answers[at];

    d[0].key = d[1].key;
    d[1].key = first.key;
    s->answers[at] = s->answers[at + 1];
    s->answers[at + 1] = answer;
}

static bool is_next_turned(const struct model *m, struct story *stories, int n, int *at, int i)
{
    struct story *s = &stories[i];
    const struct deed *d = &s->deeds[at[i]];

    if (d->verb != CARRIED || d->n != 2 || d[0].key == d[1].key)
        return false;
    turn_round(s, at[i]);
    bool found = is_next(m, stories, n, at, i);
    turn_round(s, at[i]);
    return found;
}

/* Its process died before it. */
static bool is_never(const struct model *m, struct story *stories, int n, int *at, int i)
{
    int was = at[i];

    if (!stories[i].killed || was < stories[i].answered)
        return false;
    at[i] = stories[i].n;
    bool found = is_explained(m, stories, n, at);
    at[i] = was;
    return found;
}

/* A take may find after its charge that its key was driven out meanwhile, and charges again. */
static bool is_twice(const struct model *m, struct story *stories, int n, int *at, int i)
{
    struct model next = *m;
    struct story *s = &stories[i];

    if (!m->crowded || i == 0 || s->charged_before)
        return false;
    model_deed(&next, &s->deeds[at[i]]);
    s->charged_before = true;
    bool found = is_explained(&next, stories, n, at);
    s->charged_before = false;
    return found;
}

/* The first story is that of the others, who had the last word; at[] says how far each has come. */
static bool is_explained(const struct model *m, struct story *stories, int n, int *at)
{
    if (at[0] == stories[0].n)
        return are_others_through(stories, n, at);
    for (int i = 0; i < n; i++) {
        if (at[i] == stories[i].n ||
            (i == 0 && at[0] == stories[0].begun_last && !are_others_through(stories, n, at)))
            continue;
        if (is_next(m, stories, n, at, i) || is_next_turned(m, stories, n, at, i) ||
            is_never(m, stories, n, at, i) || is_twice(m, stories, n, at, i))
            return true;
    }
    return false;
}

static void print_story(const char *whose, const struct story *s)
{
    static const char *const verbs[] = { "none",    "take",   "takes", "peek",   "give",
                                         "settle",  "forget", "all",   "change", "carried",
                                         "renewed", "create", "flood", "strike", "put",
                                         "lift",    "banned", "tend" };

    fprintf(stderr, "  %s%s:", whose, s->killed ? " (killed)" : "");
    for (int i = 0; i < s->n; i++) {
        const struct deed *d = &s->deeds[i];
        fprintf(stderr, "%s %s(%d, key %d, %d)", i == s->begun_last ? " |" : "", verbs[d->verb],
                d->of, d->key, d->n);
        if (i < s->answered)
            fprintf(stderr, "=%d", s->answers[i]);
    }
    fputs("\n", stderr);
}

#endif
