/* shed.c -- which asks are let in under overload.
 *
 * The capacity per second follows from Little's law: the permits there are, divided by how long one
 * is held, which is the mean of permits out divided by the mean of permits given back.  This is
 * right from the first tick of an overload, when a backend has become slower or faster, and while
 * permits are idle; so shedding ends as quickly as it begins.  Room is the capacity times `gain`,
 * which corrects for chance: work that arrives at random leaves permits idle even when enough
 * arrives, so more should be let in; but an ask that is let in and finds no permit was refused by
 * chance, not by its rank.  So gain grows while permits are idle, until chance refuses too many,
 * and shrinks while permits are full.  With n permits, chance refuses about 1/sqrt(n) of a load
 * equal to the capacity (Erlang's loss formula); more than that is "too many".
 *
 * The cuts follow from the room: classes share it by weight (max-min fair), and in each class ranks
 * are let in from the highest down until its share is used.
 *
 *     arrivals   a histogram that fades: each tick takes a part of every count away, with the same
 *                atomics that arrivals use, so one array is enough; 16 for each arrival, so that
 *                the fading of small counts is not lost in rounding
 *     offered    arrivals per second; the histogram only says how they are divided.  A mean, but
 *                never further from the last tick than chance explains, so that the start and the
 *                end of a flood are seen at once
 *
 * The idea of ranks of priority times hashed users, and of setting the cut by a histogram, is
 * DAGOR's (Zhou et al., Overload Control for Scaling WeChat Microservices, 2018).  Deviations: the
 * cut divides a rank, so even traffic of a single rank is shed gradually; room follows from
 * permits, not from steps of +1 % and -5 %; classes have shares; each user gets a new cohort at its
 * own moment of the hour, so that everybody's luck does not change at once; and permits are kept
 * for the more important (weir__shed_spare).
 */

#include "base/atomic.h"
#include "base/hash.h"
#include "guard/arithmetic.h"
#include "guard/shed.h"

#define PARTLY_MAX 16 /* waiters while a priority waits that fits in part */
#define HOUR       (3600 * WEIR_SECOND)
#define ONE        16   /* in arrivals */
#define FADE       4000 /* asks in the histogram, about; those of a tenth of a second to STEADY */
#define STEADY     2.0  /* seconds: means of rates that vary only by chance */
#define MEAN \
    0.5 /* seconds: the means, at least; twice as long as work takes, so that its ups and downs \
           are in them */
#define MEAN_MAX  5.0
#define CALM      0.5   /* seconds without need until shedding ends */
#define FILL      0.5   /* seconds, at least, to fill idle permits */
#define FULL      0.98  /* of the permits: the aim */
#define BLIND     0.005 /* share refused by chance: less does not matter */
#define FITS      0.9   /* of the capacity: for those that wait, so that they do not wait long */
#define BLIND_MAX 0.95  /* at most, while the important wait */
#define ROOM_MIN  10.0  /* per second: enough to notice a recovery */
#define ROOM_MAX  1e12
#define NOBODY    ((uint64_t)WEIR__RANKS << 32)

/* ------------------------------------------------------------ asks ---- */

static uint64_t secret_of(uint64_t salt, unsigned i)
{
    return weir__mix64(salt + (i + 1) * WEIR__GOLDEN);
}

/* Without the salt nobody can choose a name that is let in.  Most names are short, one pair of the
 * hash: see hash.h. */
static uint64_t hash_user(struct weir_key user, uint64_t salt)
{
    uint64_t secrets[WEIR__HASH_SECRETS], a, b;

    if (__builtin_expect(user.len <= 16, 1)) {
        weir__hash_tail(user.bytes, user.len, &a, &b);
        return weir__hash_finish((weir__u128)(a + secret_of(salt, 0)) * (b + secret_of(salt, 1)),
                                 user.len, salt);
    }
    for (unsigned i = 0; i < WEIR__HASH_SECRETS; i++)
        secrets[i] = secret_of(salt, i);
    return weir__hash_key(secrets, salt, user).tag;
}

uint32_t weir__shed_rank(struct weir_key user, int8_t priority, weir_time now, uint64_t salt)
{
    uint64_t hash = weir__mix64(hash_user(user, salt));
    uint64_t hour = ((uint64_t)now + hash % (uint64_t)HOUR) / (uint64_t)HOUR;
    uint32_t cohort = (uint32_t)(weir__mix64(hash + hour * WEIR__GOLDEN) % WEIR__COHORTS);

    return weir__shed_step(priority) * WEIR__COHORTS + cohort;
}

static uint32_t rank_of(uint64_t cut)
{
    return (uint32_t)(cut >> 32) & 0xffff;
}

static uint32_t in_range(uint32_t number, uint32_t count)
{
    return number < count ? number : count - 1;
}

bool weir__shed_pass(struct weir__shed *shed, uint32_t user_class, uint32_t rank)
{
    user_class = in_range(user_class, WEIR_CLASSES);
    rank = in_range(rank, WEIR__RANKS);
    weir__count(&shed->arrivals[user_class][rank], ONE);
    uint64_t cut = weir__get(&shed->cuts[user_class]);
    if (cut == 0 || rank > rank_of(cut))
        return true;
    if (rank < rank_of(cut))
        return false;
    uint32_t part = (uint32_t)cut;
    return (uint32_t)(__atomic_fetch_add(&shed->turns[user_class], part, __ATOMIC_RELAXED) + part) <
           part;
}

int64_t weir__shed_spare(const struct weir__shed *shed, uint32_t user_class, uint32_t rank)
{
    uint32_t priority = in_range(rank, WEIR__RANKS) / WEIR__COHORTS;

    return weir__get(&shed->spares[in_range(user_class, WEIR_CLASSES)][priority]);
}

/* ----------------------------------------------------------- means ---- */

static void blend(double *mean, double value, double share)
{
    *mean = weir__between(0, *mean + share * (value - *mean), ROOM_MAX);
}

/* How long a permit is held, in seconds. */
static double hold_of(const struct weir__shed *s)
{
    return s->at_work <= 0 ? 0 : s->done <= 0 ? ROOM_MAX : s->at_work / s->done;
}

static void blend_work(struct weir__shed *s, const struct weir__shed_sample *sample, double seconds)
{
    double done =
        weir__most((double)sample->entered - (double)(sample->in_flight - s->in_flight), 0);
    double hold =
        weir__least(hold_of(s), done > 0 ? (double)sample->in_flight * seconds / done : ROOM_MAX);
    double share = s->warm >= 2 ? weir__share(seconds, weir__between(MEAN, 2 * hold, MEAN_MAX))
                                : 1; /* before the second tick nothing is known */

    blend(&s->entered, (double)sample->entered / seconds, share);
    blend(&s->busy, (double)sample->refused_busy / seconds, share);
    blend(&s->done, done / seconds, share);
    blend(&s->at_work, (double)sample->in_flight, share);
    s->in_flight = sample->in_flight;
}

static double sum(const uint32_t *arrivals)
{
    uint64_t all = 0;

    for (int i = 0; i < WEIR__RANKS; i++)
        all += weir__get(&arrivals[i]);
    return (double)all;
}

/* Returns the new sum, without asks that came meanwhile. */
static double fade(uint32_t *arrivals, double share)
{
    uint64_t kept = 0;

    for (int i = 0; i < WEIR__RANKS; i++) {
        uint32_t count = weir__get(&arrivals[i]);
        if (count == 0)
            continue;
        uint32_t gone = (uint32_t)weir__between(1, count * share + 0.999, count);
        weir__count(&arrivals[i], -gone);
        kept += count - gone;
    }
    return (double)kept;
}

/* Arrivals per second: the mean, unless chance cannot explain the difference.  Then traffic has
 * changed, and the histogram of the old traffic must go. */
static double blend_offered(struct weir__shed *s, int c, double seconds)
{
    double kept = s->kept[c],
           lasts = weir__between(0.1, FADE / weir__most(s->offered[c], 1), STEADY);
    double came = weir__most((sum(s->arrivals[c]) - kept) / ONE, 0),
           doubt = 3 * weir__root(came) + 3;

    blend(&s->offered[c], came / seconds, weir__share(seconds, STEADY));
    double mean = s->offered[c];
    s->offered[c] = weir__between((came - doubt) / seconds, mean, (came + doubt) / seconds);
    s->kept[c] = fade(s->arrivals[c], s->offered[c] == mean ? weir__share(seconds, lasts) : 0.8);
    return s->offered[c];
}

/* ------------------------------------------------------------ room ---- */

/* The state of the permits. */
struct use {
    double full;      /* share of permits at work */
    double blind;     /* share of those let in that found no permit */
    double blind_max; /* at most */
    double can;       /* per second */
    double pace;      /* of gain's growth */
};

static struct use judge(const struct weir__shed *s, const struct weir__shed_sample *sample)
{
    double limit = (double)sample->limit, asked = s->entered + s->busy, hold = hold_of(s);
    struct use u = { .blind = asked > 0 ? s->busy / asked : 0, .pace = 2 };

    /* A rate: if asks were refused, those entered are the capacity; if none was, it is higher. */
    if (sample->limit <= 0) {
        u.blind_max = 4 * BLIND;
        u.full = u.blind > BLIND ? 1 : 0.95;
        u.can = s->entered;
        return u;
    }
    u.full = s->at_work / limit;
    u.blind_max = weir__between(0.02, 2 / weir__root(limit), 0.5);
    if (sample->waits) { /* chance refuses none of those that matter: idle permits are all lost */
        u.blind_max = BLIND_MAX;
        u.pace *= s->gain;
    }
    /* Idle permits can be filled, whatever the means say. */
    u.can = weir__most(hold > 0 ? limit / hold : ROOM_MAX,
                       weir__most((limit - (double)sample->in_flight) / FILL, ROOM_MIN));
    return u;
}

/* More were refused than chance explains below capacity. */
static bool is_overrun(const struct use *u, int64_t limit)
{
    double chance = limit > 0 ? weir__between(0.01, 0.7 / weir__root((double)limit), 0.5) : 0.01;

    return u->blind > chance || (u->blind > 2 * BLIND && u->full > 0.97);
}

static double adapt_gain(double gain, const struct use *u, double aim, double seconds)
{
    if (u->blind > u->blind_max)
        gain -= seconds * (u->blind - u->blind_max);
    else if (u->full < aim && u->blind < 0.8 * u->blind_max)
        gain += seconds * u->pace * (aim - u->full);
    else if (u->full > aim && u->blind > BLIND)
        gain -= seconds * weir__least(1, (u->full - aim) / 0.01) * (u->blind - BLIND);
    return weir__between(0.9, gain, 1 / (1 - u->blind_max));
}

/* Begins to shed, goes on, or ends. */
static void set_room(struct weir__shed *s, const struct weir__shed_sample *sample, double offered,
                     double seconds)
{
    struct use u = judge(s, sample);
    bool overrun = is_overrun(&u, sample->limit);

    if (s->room <= 0 && !overrun)
        return;
    if (s->room <= 0) {
        s->gain = 1;
        s->busy = 0; /* traffic is different from now on */
    } else if (s->room < offered) {
        s->gain = adapt_gain(s->gain, &u, FULL, weir__least(seconds, 1));
    }
    double room = weir__between(ROOM_MIN, s->gain * u.can, ROOM_MAX);
    /* Small changes go in slowly, so that few users are let in and shed in turn. */
    if (room > 0.8 * s->room && room < 1.2 * s->room)
        blend(&s->room, room, weir__share(seconds, STEADY));
    else
        s->room = room;
    s->calm = s->room < offered || overrun ? 0 : s->calm + seconds;
    if (s->calm >= CALM)
        s->room = s->calm = 0;
}

/* ------------------------------------------------------------ cuts ---- */

/* Each class's part of the room: no more than it offers; and a class that gets less has, by weight,
 * no less than any other. */
static void fill(double got[WEIR_CLASSES], const double offered[WEIR_CLASSES],
                 const struct weir__shed_plan *plan, double room)
{
    bool done[WEIR_CLASSES] = { false };

    for (bool again = true; again;) {
        double weights = 0, left = room;
        for (int c = 0; c < plan->classes; c++)
            if (done[c])
                left -= got[c];
            else
                weights += plan->weights[c];
        again = false;
        for (int c = 0; c < plan->classes; c++) {
            if (done[c])
                continue;
            got[c] = weights > 0 ? weir__most(left, 0) * plan->weights[c] / weights : 0;
            if (got[c] >= offered[c]) {
                got[c] = offered[c];
                done[c] = again = true;
            }
        }
    }
}

/* The cut that lets in this share of the arrivals. */
static uint64_t cut_at(const uint32_t *arrivals, double share)
{
    double all = sum(arrivals), in = 0;

    for (int i = WEIR__RANKS - 1; i >= 0; i--) {
        double count = weir__get(&arrivals[i]), left = share * all - in;
        if (count > left) {
            uint64_t cut = (uint64_t)i << 32 |
                           (uint64_t)weir__between(0, left / count * 4294967296.0, 4294967295.0);
            return cut != 0 ? cut : 1;
        }
        in += count;
    }
    return share > 0 ? 1 : NOBODY; /* nothing is known about the arrivals */
}

/* ---------------------------------------------------------- spares ---- */

/* Permits kept for more important asks, which use the part q of the capacity.  The last s permits
 * are theirs alone, and they find all taken for q^s (1 - q) / (1 - q^(s+1)) of the time: s makes
 * that 3 in 100.  But no more than `most`, because idle permits are a loss; none if there are
 * hardly any such asks. */
static int64_t spare_of(double q, int64_t most)
{
    double left = 1;
    int64_t spare = 0;

    if (q < 0.02)
        return 0;
    q = weir__least(q, 0.99);
    while (spare < most && left * (1 - q) > 0.03 * (1 - left * q)) {
        left *= q;
        spare++;
    }
    return spare;
}

static int64_t set_spare(struct weir__shed *s, int c, int priority, double q, int64_t most)
{
    int64_t spare = spare_of(q, most);

    weir__set(&s->spares[c][priority], (uint16_t)spare);
    return spare;
}

/* A class that is cut leaves permits, at its cut and below, to classes that are not cut; and each
 * of its priorities to those above. */
static void set_spares(struct weir__shed *s, int c, double offered, double uncut, double can,
                       int64_t limit)
{
    uint64_t cut = weir__get(&s->cuts[c]);
    double all = sum(s->arrivals[c]), above = 0;

    for (int priority = WEIR__PRIORITIES - 1; priority >= 0; priority--) {
        bool low = cut != 0 && priority <= (int)(rank_of(cut) / WEIR__COHORTS);
        double before = (all > 0 ? offered * above / all : 0) + (low ? uncut : 0);
        int64_t spare = set_spare(s, c, priority, cut == 0 || can <= 0 ? 0 : before / can,
                                  low ? limit / 4 : limit / 8);
        s->spare = spare > s->spare ? spare : s->spare;
        for (int i = 0; i < WEIR__COHORTS; i++)
            above += weir__get(&s->arrivals[c][priority * WEIR__COHORTS + i]);
    }
}

static void set_cuts(const struct weir__shed_plan *plan, struct weir__shed *s,
                     const double offered[WEIR_CLASSES], double room,
                     const struct weir__shed_sample *sample)
{
    int64_t limit = sample->limit;
    double got[WEIR_CLASSES] = { 0 }, uncut = 0, hold = hold_of(s),
           can = hold > 0 ? (double)limit / hold : 0;

    fill(got, offered, plan, room);
    for (int c = 0; c < WEIR_CLASSES; c++) {
        bool cut = c < plan->classes && got[c] < offered[c];
        weir__set(&s->cuts[c], cut ? cut_at(s->arrivals[c], got[c] / offered[c]) : 0);
        uncut += cut ? 0 : offered[c];
    }
    s->spare = 0;
    for (int c = 0; c < plan->classes; c++)
        set_spares(s, c, offered[c], uncut, s->room > 0 && !sample->waits ? can : 0, limit);
}

/* --------------------------------------------------------- waiting ---- */

/* From the highest down, as long as all of a priority fits. */
static uint8_t fitting(const uint32_t *arrivals, double share)
{
    double all = sum(arrivals), above = 0;
    int priority = WEIR__PRIORITIES;

    for (bool fits = true; fits && priority > 0;) {
        for (int i = 0; i < WEIR__COHORTS; i++)
            above += weir__get(&arrivals[(priority - 1) * WEIR__COHORTS + i]);
        fits = above <= share * all;
        priority -= fits;
    }
    return (uint8_t)priority;
}

void weir__shed_fitting(const struct weir__shed_plan *plan, const struct weir__shed *s,
                        int64_t limit, uint8_t out[WEIR_CLASSES])
{
    double got[WEIR_CLASSES] = { 0 }, hold = hold_of(s),
           can = limit <= 0 ? s->entered
                 : hold > 0 ? (double)limit / hold
                            : ROOM_MAX;

    fill(got, s->offered, plan, FITS * can);
    for (int c = 0; c < plan->classes; c++)
        out[c] = s->offered[c] > 0 ? fitting(s->arrivals[c], got[c] / s->offered[c]) : 0;
}

bool weir__shed_has_place(int8_t priority, int64_t waiting, int64_t places)
{
    int64_t above = priority < 0 ? 0 : priority;

    return above >= WEIR_PRIORITY_MAX ||
           2 * WEIR_PRIORITY_MAX * waiting < (WEIR_PRIORITY_MAX + above) * places;
}

/* Of the next one below the lowest a part fits, or all of it if the capacity is underrated. */
bool weir__shed_fits(int8_t priority, uint32_t lowest, int64_t waiting, int64_t places)
{
    uint32_t step = weir__shed_step(priority);

    return step >= lowest || (step + 1 == lowest && waiting < PARTLY_MAX && 4 * waiting < places);
}

/* ------------------------------------------------------------ tick ---- */

int32_t weir__shed_tick(const struct weir__shed_plan *plan, struct weir__shed *shed,
                        const struct weir__shed_sample *sample)
{
    double seconds = (double)sample->span / (double)WEIR_SECOND, offered[WEIR_CLASSES] = { 0 },
           all = 0, room = ROOM_MAX;

    if (sample->span <= 0)
        return 1000 - shed->out;
    blend_work(shed, sample, seconds);
    for (int c = 0; c < plan->classes; c++)
        all += offered[c] = blend_offered(shed, c, seconds);
    shed->warm = shed->warm < 2 ? shed->warm + 1 : 2;
    if (plan->on)
        set_room(shed, sample, all, seconds);
    else
        shed->room = 0;
    if (shed->room > 0)
        room = shed->room;
    room = weir__least(room, all * (1 - weir__between(0, sample->pressure, 1000) / 1000));
    if (room >= all)
        room = ROOM_MAX; /* all fit: a share that is rounded down must cut nobody off */
    set_cuts(plan, shed, offered, room, sample);
    shed->out = room < all ? (int32_t)weir__between(1, 1000 * (1 - room / all) + 0.5, 1000) : 0;
    return 1000 - shed->out;
}
