/* propose.c -- the smallest count of a limit that would have refused no more than a given share of
 * its keys, ever.
 *
 * Why it is cheap: a key that was never refused has had everything admitted, so if a count
 * never refuses it, no larger one does either.  For each key it is enough to know the first step of
 * a ladder of counts that never refused it (`from`); the steps below need not be run any more.  The
 * share refused by a step is the share of keys whose `from` lies above it.
 *
 *     windows    (fixed-window, sliding-window, sliding-log, calendar) their state does not
 *                depend on the count: one state, at the step `from`; when it refuses, it is changed
 *                to the next step, as weir_step_change does, and asked again
 *     the rest   (token-bucket, gcra, leaky-bucket, smooth, warm-up) a debt drains at the count's
 *                own pace: a state for each step
 *
 * The keys are a sample by hash (Gibbons' distinct sampling, 2001): followed are those whose hash
 * has `thin` zeros at its end.  When memory runs out, thin grows by one and half of them go.  Those
 * that stay were followed from their first request on, so their results are exact.
 *
 * Why not the weir_table: it forgets keys when it is full, which is right for limiting and wrong
 * for counting.
 */
#include "server/replay/propose.h"

#include <stdlib.h>
#include <string.h>

enum { INDEX_SLOTS = 4 * WEIR__PROPOSE_LIMITS, SAMPLE_FIRST = 256, BLOCK_OVERHEAD = 16 };

struct sample {
    uint64_t hash;
    unsigned char *states; /* NULL: an empty place, or refused by every step */
    uint8_t from;          /* the first step that never refused it */
    bool used;
};

struct ladder {
    size_t rule, index;
    struct weir_limit written;
    bool climbs;                                  /* one state, changed from step to step */
    size_t n;                                     /* steps */
    struct weir_plan *plans[WEIR__PROPOSE_STEPS]; /* counts ascend */
    int64_t counts[WEIR__PROPOSE_STEPS];
    struct sample *samples; /* open table, a power of two */
    size_t slots, keys;
    int thin;
    size_t bytes;
    bool done; /* exact, or as near as it gets */
    struct weir__proposal result;
};

struct weir__propose {
    struct weir__propose_options options;
    size_t n;
    struct ladder ladders[WEIR__PROPOSE_LIMITS];
    uint8_t by_place[INDEX_SLOTS]; /* of rule and index: ladder + 1 */
    size_t bytes;
    int passes;
    bool failed;
};

struct weir_limit weir__propose_scale(const struct weir_limit *written, int64_t count)
{
    struct weir_limit limit = *written;

    limit.count = count;
    if (written->burst > 0 && written->count > 0) {
        weir__i128 burst =
            ((weir__i128)written->burst * count + written->count / 2) / written->count;
        limit.burst = burst < 1 ? 1 : burst > INT64_MAX ? INT64_MAX : (int64_t)burst;
    }
    return limit;
}

/* ---------------------------------------------------------------- ladders ---- */

static bool climbs(const char *algorithm)
{
    static const char *const windows[] = { "fixed-window", "sliding-window", "sliding-log",
                                           "calendar" };

    for (size_t i = 0; algorithm && i < sizeof(windows) / sizeof(windows[0]); i++) {
        if (strcmp(algorithm, windows[i]) == 0)
            return true;
    }
    return false;
}

/* A count that the algorithm cannot have is no step. */
static void add_step(struct ladder *l, int64_t count)
{
    struct weir_limit limit = weir__propose_scale(&l->written, count);

    if (l->n == WEIR__PROPOSE_STEPS || count < 1 || (l->n > 0 && count <= l->counts[l->n - 1]))
        return;
    if (weir_plan_create(&l->plans[l->n], &limit, NULL) == WEIR_OK)
        l->counts[l->n++] = count;
}

/* From a sixteenth to 64 times the count, by half octaves: 1, sqrt 2, 2, ... */
static void build_wide(struct ladder *l, int64_t count)
{
    for (int octave = -4; octave <= 6; octave++) {
        weir__i128 c = octave < 0 ? (weir__i128)count >> -octave : (weir__i128)count << octave;
        weir__i128 between =
            octave < 0 ? ((weir__i128)count * 141421 / 100000) >> -octave : c * 141421 / 100000;
        if (c <= INT64_MAX)
            add_step(l, (int64_t)c);
        if (octave < 6 && between <= INT64_MAX)
            add_step(l, (int64_t)between);
    }
}

/* Evenly from beyond `below` to `above`, which is the last step. */
static void build_between(struct ladder *l, int64_t below, int64_t above)
{
    int64_t span = above - below,
            most = (int64_t)l->result.steps; /* no more memory than the first pass took */
    int64_t steps = span < most ? span : most;

    for (int64_t i = 1; i <= steps; i++)
        add_step(l, below + (int64_t)((weir__i128)span * i / steps));
}

static void clear_samples(struct weir__propose *p, struct ladder *l)
{
    for (size_t i = 0; i < l->slots; i++)
        free(l->samples[i].states);
    free(l->samples);
    p->bytes -= l->bytes;
    l->samples = NULL;
    l->slots = l->keys = l->bytes = 0;
}

static void clear_ladder(struct weir__propose *p, struct ladder *l)
{
    clear_samples(p, l);
    for (size_t i = 0; i < l->n; i++)
        weir_plan_destroy(l->plans[i]);
    l->n = 0;
}

/* The ladder of a limit; made when it is first seen.  NULL: there are too many. */
static struct ladder *find_ladder(struct weir__propose *p, const struct weir__propose_ask *ask)
{
    size_t at = (ask->rule * 31 + ask->index) % INDEX_SLOTS;

    for (; p->by_place[at] != 0; at = (at + 1) % INDEX_SLOTS) {
        struct ladder *l = &p->ladders[p->by_place[at] - 1];
        if (l->rule == ask->rule && l->index == ask->index)
            return l;
    }
    if (p->n == WEIR__PROPOSE_LIMITS || p->passes > 0) {
        p->failed = true;
        return NULL;
    }
    struct ladder *l = &p->ladders[p->n++];
    p->by_place[at] = (uint8_t)p->n;
    *l = (struct ladder){ .rule = ask->rule,
                          .index = ask->index,
                          .written = *ask->limit,
                          .climbs = climbs(ask->limit->algorithm) };
    build_wide(l, ask->limit->count);
    return l;
}

/* ----------------------------------------------------------------- samples ---- */

static size_t block_size(const struct ladder *l, size_t step)
{
    return l->climbs ? weir_plan_state_size(l->plans[step])
                     : l->n * weir_plan_state_size(l->plans[0]);
}

static void count_bytes(struct weir__propose *p, struct ladder *l, size_t more, size_t fewer)
{
    l->bytes += more - fewer;
    p->bytes += more - fewer;
}

static void drop_states(struct weir__propose *p, struct ladder *l, struct sample *s)
{
    if (s->states != NULL)
        count_bytes(p, l, 0, block_size(l, s->from) + BLOCK_OVERHEAD);
    free(s->states);
    s->states = NULL;
}

static struct sample *look_up(struct sample *samples, size_t slots, uint64_t hash)
{
    size_t at =
        hash >> 20 & (slots - 1); /* not the low bits: they are all zeros in a thinned sample */

    while (samples[at].used && samples[at].hash != hash)
        at = (at + 1) & (slots - 1);
    return &samples[at];
}

/* A table of that size with the keys that are (still) followed. */
static bool rebuild(struct weir__propose *p, struct ladder *l, size_t slots)
{
    struct sample *samples = calloc(slots, sizeof(*samples));
    uint64_t mask = ((uint64_t)1 << l->thin) - 1;
    size_t keys = 0;

    if (samples == NULL)
        return false;
    for (size_t i = 0; i < l->slots; i++) {
        struct sample *s = &l->samples[i];
        if (s->used && (s->hash & mask) == 0) {
            *look_up(samples, slots, s->hash) = *s;
            keys++;
        } else if (s->used) {
            drop_states(p, l, s);
        }
    }
    free(l->samples);
    count_bytes(p, l, slots * sizeof(*samples), l->slots * sizeof(*samples));
    l->samples = samples;
    l->slots = slots;
    l->keys = keys;
    return true;
}

/* No ladder may have more than a quarter of the memory, and together they keep to it; but a few
 * keys each has always. */
static bool is_too_big(const struct weir__propose *p, const struct ladder *l)
{
    return l->keys > SAMPLE_FIRST / 4 && l->thin < 40 &&
           (l->bytes > p->options.bytes / 4 || p->bytes > p->options.bytes);
}

static bool make_room(struct weir__propose *p, struct ladder *l)
{
    while (is_too_big(p, l)) {
        l->thin++;
        if (!rebuild(p, l, l->slots))
            return false;
    }
    if (l->slots == 0)
        return rebuild(p, l, SAMPLE_FIRST);
    return l->keys < l->slots / 2 || rebuild(p, l, 2 * l->slots);
}

/* The key's sample; a new one if it is not there.  NULL: no memory. */
static struct sample *claim(struct weir__propose *p, struct ladder *l, uint64_t hash)
{
    struct sample *s = l->slots ? look_up(l->samples, l->slots, hash) : NULL;

    if (s != NULL && s->used)
        return s;
    if (!make_room(p, l))
        return NULL;
    s = look_up(l->samples, l->slots, hash);
    unsigned char *states = calloc(1, block_size(l, 0));
    if (states == NULL)
        return NULL;
    *s = (struct sample){ .hash = hash, .states = states, .used = true };
    count_bytes(p, l, block_size(l, 0) + BLOCK_OVERHEAD, 0);
    l->keys++;
    return s;
}

/* ------------------------------------------------------------------ asking ---- */

/* Each step has its own state; those below `from` have refused and are left alone. */
static void ask_each(const struct ladder *l, struct sample *s, const struct weir_ask *ask)
{
    size_t size = weir_plan_state_size(l->plans[0]), from = s->from;

    for (size_t i = from; i < l->n; i++) {
        struct weir_decision d;
        if (!weir_step(l->plans[i], s->states + i * size, ask, &d))
            from = i + 1;
    }
    s->from = (uint8_t)from;
}

/* One state, changed to the next step for as long as it refuses. */
static bool ask_climbing(struct weir__propose *p, struct ladder *l, struct sample *s,
                         const struct weir_ask *ask)
{
    struct weir_decision d;

    while (!weir_step(l->plans[s->from], s->states, ask, &d)) {
        if ((size_t)s->from + 1 == l->n) {
            drop_states(p, l, s);
            s->from++;
            return true;
        }
        unsigned char *next = calloc(1, block_size(l, (size_t)s->from + 1));
        if (next == NULL)
            return false;
        weir_step_change(l->plans[s->from], l->plans[s->from + 1], s->states, next, ask->now);
        drop_states(p, l, s);
        s->states = next;
        s->from++;
        count_bytes(p, l, block_size(l, s->from) + BLOCK_OVERHEAD, 0);
    }
    return true;
}

void weir__propose_add(struct weir__propose *p, const struct weir__propose_ask *in)
{
    struct ladder *l = find_ladder(p, in);

    if (l == NULL || l->done || l->n == 0)
        return;
    uint64_t hash = weir__sketch_hash(p->options.secrets, in->key.bytes, in->key.len);
    if ((hash & (((uint64_t)1 << l->thin) - 1)) != 0)
        return;
    struct sample *s = claim(p, l, hash);
    struct weir_ask ask = { .cost = in->cost, .now = in->now, .wait_max = p->options.wait_max };
    if (s == NULL) {
        p->failed = true;
        return;
    }
    if (s->from >= l->n)
        return;
    if (!l->climbs)
        ask_each(l, s, &ask);
    else if (!ask_climbing(p, l, s, &ask))
        p->failed = true;
}

/* --------------------------------------------------------------- the answer ---- */

/* How many keys each step has refused. */
static int64_t count_refused(const struct ladder *l, int64_t refused[WEIR__PROPOSE_STEPS])
{
    int64_t keys = 0;
    uint64_t mask = ((uint64_t)1 << l->thin) - 1;

    memset(refused, 0, WEIR__PROPOSE_STEPS * sizeof(*refused));
    for (size_t i = 0; i < l->slots; i++) {
        const struct sample *s = &l->samples[i];
        if (!s->used || (s->hash & mask) != 0)
            continue;
        keys++;
        for (size_t step = 0; step < s->from; step++)
            refused[step]++;
    }
    return keys;
}

/* The first step that is good enough becomes the proposal; the last that is not, what lies below
 * it. */
static void narrow(const struct weir__propose *p, struct ladder *l, const int64_t *refused,
                   int64_t keys)
{
    struct weir__proposal *r = &l->result;

    for (size_t i = 0; i < l->n; i++) {
        if ((weir__i128)refused[i] * WEIR__PROPOSE_PPM <= (weir__i128)p->options.share * keys) {
            r->limit = weir__propose_scale(&l->written, l->counts[i]);
            r->keys_proposed =
                keys == r->keys ? refused[i]
                                : (int64_t)(((weir__i128)refused[i] * r->keys + keys - 1) / keys);
            return;
        }
        r->below = l->counts[i];
    }
}

static void read_ladder(const struct weir__propose *p, struct ladder *l)
{
    struct weir__proposal *r = &l->result;
    int64_t refused[WEIR__PROPOSE_STEPS];
    int64_t keys = count_refused(l, refused);

    if (p->passes == 0) {
        *r = (struct weir__proposal){ .rule = l->rule,
                                      .index = l->index,
                                      .written = l->written,
                                      .limit = l->written,
                                      .keys_written = -1 };
        r->limit.count = 0;
        r->keys = keys;
        r->sampled = l->thin > 0;
        r->steps = l->n;
        memcpy(r->counts, l->counts, sizeof(r->counts));
        memcpy(r->refused, refused, sizeof(r->refused));
        for (size_t i = 0; i < l->n; i++)
            r->keys_written = l->counts[i] == l->written.count ? refused[i] : r->keys_written;
    }
    narrow(p, l, refused, keys);
}

/* The ladder of the next pass; the same keys will be followed, since thin stays. */
static void narrow_ladder(struct weir__propose *p, struct ladder *l)
{
    const struct weir__proposal *r = &l->result;

    l->done = l->n == 0 || (r->limit.count > 0 && r->limit.count - r->below <= 1) ||
              p->passes >= WEIR__PROPOSE_PASSES;
    clear_ladder(p, l);
    if (l->done)
        return;
    if (r->limit.count > 0)
        build_between(l, r->below, r->limit.count);
    else if (r->below <= INT64_MAX / 1024)
        build_wide(l, r->below * 16 + 1); /* the old ladder's end is the new one's beginning */
    l->done = l->n == 0;
}

bool weir__propose_pass(struct weir__propose *p)
{
    bool again = false;

    for (size_t i = 0; i < p->n; i++) {
        if (!p->ladders[i].done)
            read_ladder(p, &p->ladders[i]);
    }
    p->passes++;
    for (size_t i = 0; i < p->n; i++) {
        if (!p->ladders[i].done)
            narrow_ladder(p, &p->ladders[i]);
        again |= !p->ladders[i].done;
    }
    return again;
}

size_t weir__propose_limits(const struct weir__propose *p)
{
    return p->n;
}

static bool comes_before(const struct ladder *a, const struct ladder *b)
{
    return a->rule < b->rule || (a->rule == b->rule && a->index < b->index);
}

void weir__propose_get(const struct weir__propose *p, size_t i, struct weir__proposal *out)
{
    for (size_t j = 0; j < p->n; j++) {
        size_t before = 0;
        for (size_t k = 0; k < p->n; k++)
            before += comes_before(&p->ladders[k], &p->ladders[j]);
        if (before == i)
            *out = p->ladders[j].result;
    }
}

bool weir__propose_is_whole(const struct weir__propose *p)
{
    return !p->failed;
}

int weir__propose_create(struct weir__propose **out, const struct weir__propose_options *options,
                         struct weir_error *error)
{
    struct weir__propose *p = calloc(1, sizeof(*p));

    if (p == NULL)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for proposals");
    p->options = *options;
    if (p->options.bytes == 0)
        p->options.bytes = WEIR__PROPOSE_BYTES;
    *out = p;
    return WEIR_OK;
}

void weir__propose_destroy(struct weir__propose *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; i < p->n; i++)
        clear_ladder(p, &p->ladders[i]);
    free(p);
}
