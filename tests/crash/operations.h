/* operations.h -- what is done to a table when processes are stopped: the operations of victims,
 * the scripts of others, the tables that they begin with. */
#ifndef WEIR_TESTS_CRASH_OPERATIONS_H
#define WEIR_TESTS_CRASH_OPERATIONS_H

#include "crash/history.h"
#include "random.h"
#include "table/registry.h"

/* Full: no slot is empty, most keys are idle.  Crowded: none is idle.  Stuffed: no block is free,
 * and the keys that have large ones are idle; stuffed more: these are too large to be copied to the
 * stack.  Long: logs are chains of nodes.  Deserted: some keys are a limiter's that was dropped. */
enum scene { ROOMY, LONG, DESERTED, FULL, CROWDED, STUFFED, STUFFED_MORE };

/* What others do meanwhile.  The last ones need the registry, which operations marked so hold. */
enum script {
    DRAIN,    /* takes all that is left */
    TOUCH,    /* takes, and gives back */
    RENEW,    /* forgets, then takes all */
    TOGETHER, /* several at once */
    VARY,     /* limits that come with the ask */
    SWAMP,    /* new keys, which drive out others */
    LOWER,    /* the limits, then takes */
    RAISE,
    MAKE, /* a limiter */
    BAN,
    CLEAR, /* what a limiter has left */
    SCRIPTS
};

#define DROPPED_KEYS 20 /* some lines */

#define BIT(script) (1u << (script))
#define PLAIN       (BIT(DRAIN) | BIT(TOUCH) | BIT(RENEW) | BIT(TOGETHER))
#define FILLING     (PLAIN | BIT(SWAMP))
#define CHANGING    (PLAIN | BIT(LOWER) | BIT(RAISE))
#define LEAVING     (FILLING | BIT(CLEAR))

struct operation {
    const char *name;
    enum scene scene;
    uint32_t scripts;
    struct deed deed, next, before; /* `before` belongs to the scene */
    bool all_hands;                 /* as many victims as there are hands */
};

#define SET(a, b, c) (1 << (a) | 1 << (b) | 1 << (c))

static const struct operation operations[] = {
    { "take", ROOMY, CHANGING, .deed = { TAKE, SMALL, 0, 1 } },
    { "take, refused", ROOMY, CHANGING, .deed = { TAKE, SMALL, 0, 5 } },
    { "take, new key", ROOMY, FILLING, .deed = { TAKE, SMALL, 1, 2 } },
    { "take, idle key makes room", FULL, FILLING, .deed = { TAKE, SMALL, 1, 2 } },
    { "take, busy key makes room", CROWDED, BIT(TOUCH) | BIT(SWAMP),
      .deed = { TAKE, SMALL, 1, 2 } },
    { "take, key makes room", CROWDED, BIT(SWAMP), .deed = { TAKE, SMALL, 0, 1 } },
    { "batch, one key", ROOMY, CHANGING, .deed = { TAKES, SMALL, 0, 2 } },
    { "batch, one new key", FULL, FILLING, .deed = { TAKES, SMALL, 1, 2 } },
    { "window", ROOMY, CHANGING, .deed = { TAKE, LARGE, 0, 1 } },
    { "window, new key", FULL, FILLING, .deed = { TAKE, LARGE, 1, 2 } },
    { "window, slab is full", STUFFED, FILLING, .deed = { TAKE, LARGE, 1, 2 } },
    { "window, slab is full, larger", STUFFED_MORE, FILLING, .deed = { TAKE, LARGE, 1, 2 } },
    { "log", ROOMY, CHANGING, .deed = { TAKE, LOG, 0, 1 } },
    { "long log, next node", LONG, CHANGING, .deed = { TAKE, LOG, 0, 1 } },
    { "long log, new key", LONG, PLAIN, .deed = { TAKE, LOG, 1, 2 } },
    { "long log, all", LONG, CHANGING, .deed = { ALL, SET(SMALL, LARGE, LOG), 0, 1 } },
    { "long log, give", LONG, PLAIN, .deed = { GIVE, LOG, 0, 2 }, .before = { TAKE, LOG, 0, 1 } },
    { "long log, forget", LONG, PLAIN | BIT(LOWER), .deed = { FORGET, LOG, 0, 0 } },
    { "long log, convert", LONG, CHANGING, .deed = { TAKE, LOG, 0, 1 },
      .before = { CHANGE, LOG, 0, 1 } },
    { "all, small", ROOMY, CHANGING, .deed = { ALL, SET(SMALL, OTHER, THIRD), 0, 1 } },
    { "all, mixed", ROOMY, CHANGING, .deed = { ALL, SET(SMALL, LARGE, OTHER), 0, 1 } },
    { "all, large", ROOMY, CHANGING, .deed = { ALL, SET(LARGE, LOG, THIRD), 0, 1 } },
    { "all, new keys", FULL, FILLING, .deed = { ALL, SET(SMALL, LARGE, LOG), 1, 1 } },
    { "give", ROOMY, PLAIN, .deed = { GIVE, SMALL, 0, 1 } },
    { "give, window", ROOMY, PLAIN, .deed = { GIVE, LARGE, 0, 1 } },
    { "settle", ROOMY, PLAIN, .deed = { SETTLE, SMALL, 0, 1 } },
    { "settle, window", ROOMY, PLAIN, .deed = { SETTLE, LARGE, 0, 2 } },
    { "settle, window, more was used", ROOMY, PLAIN, .deed = { SETTLE, LARGE, 0, -2 } },
    { "settle, log", ROOMY, PLAIN, .deed = { SETTLE, LOG, 0, 1 } },
    { "forget", ROOMY, PLAIN | BIT(LOWER), .deed = { FORGET, OTHER, 0, 0 } },
    { "forget, log", ROOMY, PLAIN | BIT(LOWER), .deed = { FORGET, LOG, 0, 0 } },
    { "convert", ROOMY, CHANGING, .deed = { TAKE, OTHER, 0, 1 },
      .before = { CHANGE, OTHER, 0, 1 } },
    { "convert, window", ROOMY, CHANGING, .deed = { TAKE, LARGE, 0, 1 },
      .before = { CHANGE, LARGE, 0, 1 } },
    { "convert, log", ROOMY, CHANGING, .deed = { TAKE, LOG, 0, 1 },
      .before = { CHANGE, LOG, 0, 2 } },
    { "convert, all", ROOMY, CHANGING, .deed = { ALL, SET(SMALL, OTHER, LOG), 0, 1 },
      .before = { CHANGE, LOG, 0, 1 } },
    { "carried", ROOMY, BIT(VARY), .deed = { CARRIED, 0, 0, 1 } },
    { "carried, other scale", ROOMY, BIT(VARY), .deed = { CARRIED, 1, 0, 1 } },
    { "carried, new key", FULL, BIT(VARY) | BIT(SWAMP), .deed = { CARRIED, 1, 1, 1 } },
    { "carried, forget", ROOMY, BIT(VARY), .deed = { RENEWED, 0, 0, 0 } },
    { "carried, batch", FULL, BIT(VARY) | BIT(SWAMP), .deed = { CARRIED, 1 | BOTH_KEYS, 1, 2 } },
    { "carried, batch, one key", FULL, BIT(VARY) | BIT(SWAMP), .deed = { CARRIED, 1, 1, 2 } },
    { "change", ROOMY, CHANGING, .deed = { CHANGE, SMALL, 0, 1 }, .next = { TAKE, SMALL, 0, 2 } },
    { "change, window", ROOMY, CHANGING, .deed = { CHANGE, LARGE, 0, 1 },
      .next = { TAKE, LARGE, 0, 2 } },
    { "create", ROOMY, CHANGING | BIT(MAKE), .deed = { CREATE, MADE, 0, 0 },
      .next = { TAKE, MADE, 0, 1 } },
    { "all hands are stopped", ROOMY, BIT(TOUCH), .deed = { GIVE, SMALL, 0, 1 },
      .all_hands = true },
    { "take, slots become empty", DESERTED, LEAVING, .deed = { TAKE, SMALL, 1, 2 } },
    { "all, slots become empty", DESERTED, LEAVING, .deed = { ALL, SET(SMALL, LARGE, LOG), 1, 1 } },
    { "tend", DESERTED, LEAVING, .deed = { TEND, 0, 0, 0 }, .next = { TAKE, SMALL, 1, 1 } },
    { "ban", ROOMY, PLAIN | BIT(BAN), .deed = { STRIKE, 0, 0, 0 } },
    { "ban by hand", ROOMY, PLAIN | BIT(BAN), .deed = { PUT, 0, 0, 0 } },
    { "lift a ban", ROOMY, PLAIN | BIT(BAN), .deed = { LIFT, 0, 0, 0 },
      .before = { STRIKE, 0, 0, 0 } },
};

#define OPERATIONS (sizeof(operations) / sizeof(*operations))

static bool has_script(const struct operation *op, enum script script)
{
    return op->scripts & BIT(script);
}

/* -------------------------------------------------------------- scripts ---- */

static void add_takes(struct story *s, int key)
{
    for (int of = 0; of < COUNTED; of++) {
        add(s, TAKE, of, key, 3);
        add(s, TAKE, of, key, 1);
        add(s, TAKE, of, key, 1);
    }
}

static void add_touches(struct story *s)
{
    for (int of = 0; of < COUNTED; of++) {
        add(s, TAKE, of, 0, 1);
        add(s, GIVE, of, 0, 1);
        add(s, TAKE, of, 1, 1);
    }
}

static void add_changes(struct story *s, int to)
{
    for (int of = 0; of < COUNTED; of++) {
        if (of == THIRD)
            continue;
        add(s, CHANGE, of, 0, to);
        add(s, TAKE, of, 0, 2);
        add(s, TAKE, of, 0, 1);
        add(s, TAKE, of, 1, 2);
    }
}

static void write_script(struct story *s, enum script script, enum scene scene)
{
    switch (script) {
    case DRAIN:
        add_takes(s, 0);
        add_takes(s, 1);
        break;
    case TOUCH:
        if (scene == CROWDED)
            add(s, TAKE, SMALL, 1, 1);
        else
            add_touches(s);
        break;
    case RENEW:
        for (int of = 0; of < COUNTED; of++) {
            add(s, FORGET, of, 0, 0);
            add(s, TAKE, of, 0, 5);
        }
        break;
    case TOGETHER:
        add(s, ALL, SET(SMALL, OTHER, THIRD), 0, 1);
        add(s, ALL, SET(OTHER, LARGE, LOG), 0, 1);
        add(s, ALL, SET(SMALL, LOG, LARGE), 1, 1);
        add(s, ALL, SET(SMALL, OTHER, LARGE), 0, 1);
        break;
    case VARY:
        add(s, CARRIED, 0, 0, 1);
        add(s, CARRIED, 1, 0, 1);
        add(s, CARRIED, 0, 1, 2);
        add(s, CARRIED, 0, 0, 2);
        break;
    case SWAMP:
        add(s, FLOOD, scene == CROWDED ? SMALL : FILL, s->n, FLOOD_KEYS);
        break;
    case LOWER:
    case RAISE:
        add_changes(s, script == LOWER ? 2 : 1);
        break;
    case MAKE:
        add(s, CREATE, MADE, 0, 0);
        add(s, TAKE, MADE, 0, 3);
        break;
    case CLEAR:
        add(s, TEND, 0, 0, 0);
        add_touches(s);
        add(s, FLOOD, FILL, s->n, FLOOD_KEYS);
        break;
    default:
        add(s, STRIKE, 0, 0, 0);
        add(s, STRIKE, 0, 1, 0);
        add(s, LIFT, 0, 0, 0);
    }
}

/* When everybody has ended: what there is, and that it can be taken.  In a crowded table a take
 * drives out more. */
static void write_last(struct story *s, const struct world *w, const struct operation *op)
{
    s->begun_last = s->n;
    for (int key = 0; key < KEYS; key++) {
        for (int of = 0; of < COUNTED; of++)
            add(s, PEEK, of, key, 0);
        add(s, BANNED, 0, key, 0);
    }
    if (op->scene == CROWDED)
        return;
    for (int of = 0; of < COUNTED; of++)
        add(s, TAKE, of, 0, 1);
    if (!w->narrow)
        add(s, CARRIED, 0, 0, 2);
    if (op->deed.verb == CREATE) {
        add(s, CREATE, MADE, 0, 0);
        add(s, TAKE, MADE, 0, 1);
    }
}

/* ---------------------------------------------------------------- world ---- */

static void make_table(struct world *w, enum scene scene)
{
    char path[] = "weir-stop-XXXXXX";
    struct weir_table_options o = { .path = path,
                                    .narrow = w->narrow,
                                    .keys = scene < FULL ? 1000 : 200,
                                    .slab = scene >= STUFFED ? 3 << 16 : 1 << 20,
                                    .limiters = LIMITERS + 1,
                                    .bans = 900, /* some chunks: a stop may cost one */
                                    .guards = 1 };
    struct weir_error e;

    close(mkstemp(path));
    if (weir_table_create(&w->table, &o, &e) != WEIR_OK)
        die("table", e.text);
    unlink(path); /* the victims and the others inherit it */
    for (int i = 0; i < MADE; i++)
        if (do_create(w, i) != WEIR_OK)
            die("limiter", limits[w->narrow][i][0]);
    for (int i = 0; i < 2; i++) {
        struct weir_limit limit = limit_of(carried_limits[i]);
        if (weir__plan_make(&w->carried[i], &limit, &e) != WEIR_OK)
            die(carried_limits[i], e.text);
    }
}

static void move_keys(struct world *w, int of)
{
    struct weir__record_head *head =
        weir__block_at(&w->table->names.slab, (uint32_t)w->l[of]->place->word);

    w->l[of]->salt = head->salt = roll();
}

/* Keys lie in the same places whenever the seed is the same. */
static void fix_places(struct world *w)
{
    for (size_t i = 0; i < WEIR__HASH_SECRETS; i++)
        w->table->secrets[i] = roll();
    for (int i = 0; i < MADE; i++)
        move_keys(w, i);
}

static void take_early(const struct world *w, int of, int key, int cost, weir_time earlier)
{
    struct weir_ask ask = ask_for(key, cost);
    struct weir_decision d;

    ask.now = NOW - earlier;
    weir_take(w->l[of], &ask, &d);
}

static void fill_table(struct world *w, struct model *m, enum scene scene)
{
    struct deed large = { CHANGE, LARGE, 0, scene == STUFFED ? 3 : 1 };
    struct weir_table_stats stats;
    int key = 1000;

    do {
        take_early(w, scene == CROWDED ? SMALL : FILL, key++, 4,
                   scene == CROWDED ? 0 : 10 * WEIR_SECOND);
        weir_table_stats(w->table, -1, &stats);
    } while (stats.keys < stats.slots);
    if (scene < STUFFED)
        return;
    if (do_deed(w, &large) != model_deed(m, &large))
        die("scene", "the limit cannot be changed");
    take_early(w, LOG, key++, 4, 0); /* so that a chunk is left for small blocks */
    for (int i = 0; i < 40; i++)
        take_early(w, LARGE, key++, 4, 50000 * WEIR_SECOND);
}

static bool are_neighbours(const struct weir__home *a, const struct weir__home *b)
{
    return a->group == b->group && a->first == b->first;
}

/* Key 1 is new in a group where all keys are the dropped limiter's, and lie where it belongs: so it
 * is put far away; or, once they are gone, near. */
static void desert(struct world *w)
{
    struct weir_limit limit = limit_for(w, SMALL, 0);
    struct weir_limiter *dropped;
    struct weir_error e;

    for (int of = 0; of < COUNTED; of++)
        while (weir__home_of(w->l[of], key_of(0)).group ==
               weir__home_of(w->l[SMALL], key_of(1)).group)
            move_keys(w, of);
    w->table->salt_next = roll();
    if (weir_limiter_create(&dropped, w->table, "dropped", &limit, &e) != WEIR_OK)
        die("dropped", e.text);
    w->table->salt_next = 0;
    struct weir__home near = weir__home_of(w->l[SMALL], key_of(1));
    for (int key = 1000, n = 0; n < DROPPED_KEYS; key++) {
        struct weir_ask ask = ask_for(key, 4);
        struct weir__home home = weir__home_of(dropped, ask.key);
        struct weir_decision d;
        if (are_neighbours(&home, &near))
            n += weir_take(dropped, &ask, &d);
    }
    weir_limiter_drop(dropped);
    weir_table_tend(w->table, NOW - 100 * WEIR_SECOND); /* it notes when it may go */
}

/* One unit of key 0 is used everywhere, key 1 is new. */
static void make_scene(struct world *w, struct model *m, const struct operation *op)
{
    static struct story s;

    w->long_logs = op->scene == LONG;
    make_table(w, op->scene);
    fix_places(w);
    model_begin(m, op->scene == CROWDED, w->long_logs);
    if (op->scene == DESERTED)
        desert(w);
    if (op->scene >= FULL)
        fill_table(w, m, op->scene);
    for (int i = LONG_UNITS; i > 0 && w->long_logs; i--)
        take_early(w, LOG, 0, 1, i * LONG_EVERY);
    memset(&s, 0, sizeof(s));
    if (!w->narrow)
        add(&s, CARRIED, 0, 0, 1);
    for (int of = COUNTED - 1; of >= 0; of--) /* SMALL last: in a crowd it would be driven out */
        add(&s, TAKE, of, 0, 1);
    add_deed(&s, &op->before);
    do_story(w, &s, s.n);
    for (int i = 0; i < s.n; i++)
        if (model_deed(m, &s.deeds[i]) != s.answers[i])
            die(op->name, "the scene is not as it should be");
    w->early = w->table->header->evicted_early;
}

#endif
