/* log-chain.c -- a long sliding log in a table: a chain of nodes, each a block of the slab.
 *
 *     newest node ──► node ──► ... ──► node (tail) ──► nodes that count no more
 *        │ copied by every change        ▲
 *        └───────────────────────────────┘
 *
 * Units are numbered in the order in which they were taken (modulo 2^32).  An entry is an instant
 * and how many units were taken then.  A node's links lead back to the next older node whose number
 * is a multiple of 1, 8, 64 ..., so that an instant or a unit is found in a few steps each; most
 * asks need the newest node and the tail alone.
 *
 * The nodes but the newest are read where they lie.  They may be another key's by then, with any
 * bytes at all: the caller finds out afterwards, because its slot has changed.
 *
 * Why no ring that is written in place: a process that was stopped before a write would do it when
 * it goes on, whatever the place holds by then.
 */
#include "algo/log-chain.h"
#include "base/atomic.h"

#define STEPS_MAX 256 /* through links; more is damage */

void weir__log_chain(struct weir_plan *plan, const void *slab, uint64_t bytes)
{
    if (plan->algo != &weir__sliding_log || plan->limit.count <= WEIR__LOG_SHORT)
        return;
    plan->nodes = slab;
    plan->nodes_bytes = bytes;
    plan->state_size = WEIR__NODE_BYTES;
}

const struct weir__log_node *weir__node_at(const struct weir_plan *plan, uint32_t block)
{
    static const struct weir__log_node none;
    uint64_t at = (uint64_t)(block - 1) * 64;

    return at % WEIR__NODE_BYTES == 0 && at + WEIR__NODE_BYTES <= plan->nodes_bytes
               ? (const void *)(plan->nodes + at)
               : &none;
}

/* ------------------------------------------------------------ one node ---- */

/* A node's numbers, within bounds whatever its bytes are. */
struct view {
    const struct weir__log_node *node;
    uint32_t base;
    uint32_t n;
    unsigned size, width;
    weir_time start;
};

static inline struct view look(const struct weir__log_node *node)
{
    struct view v = { .node = node,
                      .base = weir__acquire(&node->base),
                      .n = weir__acquire(&node->n),
                      .size = weir__acquire(&node->size),
                      .width = weir__acquire(&node->width),
                      .start = weir__acquire(&node->start) & INT64_MAX };

    if (v.size - 1 > 7 || v.width > 4 || v.n * (v.size + v.width) > WEIR__NODE_ROOM)
        v.size = v.width = v.n = 0;
    return v;
}

size_t weir__node_bytes(const struct weir__log_node *node)
{
    struct view v = look(node);

    return (offsetof(struct weir__log_node, entries) + v.n * (v.size + v.width) + 7) & ~(size_t)7;
}

static inline uint64_t read_bytes(const struct weir__log_node *node, size_t at, unsigned bytes)
{
    const uint64_t *words = (const uint64_t *)(const void *)node;
    size_t from = offsetof(struct weir__log_node, entries) + at, word = from / 8;
    unsigned shift = from % 8 * 8;
    uint64_t value = weir__acquire(&words[word]) >> shift;

    if (shift + 8 * bytes > 64)
        value |= weir__acquire(&words[word + 1]) << (64 - shift);
    return value & UINT64_MAX >> (64 - 8 * bytes);
}

static void write_bytes(struct weir__log_node *node, size_t at, unsigned bytes, uint64_t value)
{
    for (unsigned i = 0; i < bytes; i++)
        node->entries[at + i] = (unsigned char)(value >> (8 * i));
}

static inline weir_time time_of(const struct view *v, uint32_t i)
{
    uint64_t since = read_bytes(v->node, i * (v->size + v->width), v->size);

    return (weir_time)(((uint64_t)v->start + since) & INT64_MAX);
}

/* Units of the node up to and with entry i - 1. */
static uint32_t units_to(const struct view *v, uint32_t i)
{
    if (i == 0 || v->width == 0)
        return i;
    return (uint32_t)read_bytes(v->node, (i - 1) * (v->size + v->width) + v->size, v->width);
}

/* The entry that has the unit. */
static uint32_t entry_of(const struct view *v, uint32_t unit)
{
    uint32_t low = 0, high = v->n - 1;

    while (v->width > 0 && low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (units_to(v, middle + 1) <= unit - v->base)
            low = middle + 1;
        else
            high = middle;
    }
    return v->width > 0 ? low : unit - v->base < high ? unit - v->base : high;
}

static weir_time time_of_unit(const struct view *v, uint32_t unit)
{
    return v->n == 0 ? v->start : time_of(v, entry_of(v, unit));
}

/* How many entries are not after `edge`, as those before `from` are.  Seldom many more. */
static uint32_t entries_to(const struct view *v, uint32_t from, weir_time edge)
{
    uint32_t low = from, high = from, step = 1;

    while (high < v->n && time_of(v, high) <= edge) {
        low = high + 1;
        high += step;
        step *= 2;
    }
    high = high < v->n ? high : v->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (time_of(v, middle) <= edge)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* -------------------------------------------------------------- search ---- */

struct target {
    bool by_time;
    weir_time time;
    uint32_t unit;
};

static bool is_ahead(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

static bool begins_after(const struct weir__log_node *node, const struct target *target)
{
    return target->by_time ? weir__acquire(&node->start) > target->time
                           : is_ahead(weir__acquire(&node->base), target->unit);
}

/* The newest node that does not begin after the target; else the tail. */
static const struct weir__log_node *find(const struct weir_plan *plan,
                                         const struct weir__log_node *s, struct target target)
{
    const struct weir__log_node *node = s, *next;
    uint32_t number = s->number;
    int steps = 0;

    if (!begins_after(s, &target))
        return s;
    for (int level = WEIR__NODE_LINKS - 1; level >= 0; level--)
        while (is_ahead(number, s->tail) && !is_ahead(s->tail, weir__node_link(number, level)) &&
               steps++ < STEPS_MAX) {
            next = weir__node_at(plan, weir__acquire(&node->links[level]));
            if (!begins_after(next, &target))
                break;
            number = weir__node_link(number, level);
            node = next;
        }
    return number == s->tail ? node : weir__node_at(plan, weir__acquire(&node->links[0]));
}

static struct view tail_of(const struct weir_plan *plan, const struct weir__log_node *s)
{
    return look(s->tail == s->number ? s : weir__node_at(plan, s->tail_block));
}

static bool has_unit(const struct view *v, uint32_t unit)
{
    return is_ahead(v->base + units_to(v, v->n), unit);
}

static struct view node_of_unit(const struct weir_plan *plan, const struct weir__log_node *s,
                                uint32_t unit)
{
    if (!is_ahead(s->base, unit))
        return look(s);
    struct view tail = tail_of(plan, s);
    return has_unit(&tail, unit) ? tail : look(find(plan, s, (struct target){ .unit = unit }));
}

int64_t weir__chain_expired(const struct weir_plan *plan, const struct weir__log_node *s,
                            weir_time edge)
{
    struct view v = tail_of(plan, s);

    if (s->head.used == 0 || v.n == 0)
        return 0;
    uint32_t from = entry_of(&v, s->head.first);
    if (time_of(&v, from) > edge)
        return 0;
    if (v.node != s && time_of(&v, v.n - 1) <= edge) {
        v = look(find(plan, s, (struct target){ .by_time = true, .time = edge }));
        from = 0;
    }
    int64_t gone = (int32_t)(v.base + units_to(&v, entries_to(&v, from, edge)) - s->head.first);
    return gone < 0 ? 0 : gone > s->head.used ? s->head.used : gone;
}

weir_time weir__chain_stamp(const struct weir_plan *plan, const struct weir__log_node *s, int64_t i)
{
    uint32_t unit = s->head.first + (uint32_t)i;
    struct view v = node_of_unit(plan, s, unit);

    return time_of_unit(&v, unit);
}

/* -------------------------------------------------------------- change ---- */

static uint32_t end_of(const struct weir__log_node *s)
{
    return s->head.first + s->head.used;
}

/* Bytes of a count, with room for more asks like this one. */
static unsigned width_for(int64_t units)
{
    return units == 1 ? 0 : units < 4 ? 1 : units < 1 << 10 ? 2 : units < 1 << 18 ? 3 : 4;
}

/* Without entries. */
static void empty(const struct weir_plan *plan, struct weir__log_node *s, weir_time t,
                  unsigned width)
{
    s->base = end_of(s);
    s->start = t;
    s->n = 0;
    s->size = (unsigned char)plan->stamp_size;
    s->width = (unsigned char)width;
}

/* Nothing older counts. */
static void be_alone(struct weir__log_node *s)
{
    s->tail = s->last = s->number;
}

static void drop_oldest(const struct weir_plan *plan, struct weir__log_node *s, int64_t units)
{
    s->head.first += (uint32_t)units;
    s->head.used -= (uint32_t)units;
    if (!is_ahead(s->base, s->head.first)) {
        s->tail = s->number;
        return;
    }
    struct view tail = tail_of(plan, s);
    if (has_unit(&tail, s->head.first))
        return;
    const struct weir__log_node *node = find(plan, s, (struct target){ .unit = s->head.first });
    s->tail = weir__acquire(&node->number);
    s->tail_block = weir__acquire(&node->self);
}

/* The node in the table stays as it is, and this becomes the one after it. */
static void begin_node(struct weir__log_node *s)
{
    for (int level = 0; level < WEIR__NODE_LINKS; level++)
        if (s->number % (1u << (3 * level)) == 0)
            s->links[level] = s->self;
    if (s->tail == s->number)
        s->tail_block = s->self;
    s->number++;
    s->last = s->tail;
    s->self = 0;
}

static bool fits(const struct weir__log_node *s, uint32_t n, unsigned width)
{
    return n * (s->size + width) <= WEIR__NODE_ROOM;
}

/* The same entries with a wider count. */
static void widen(struct weir__log_node *s, unsigned width)
{
    struct view v = look(s);

    for (uint32_t i = v.n; i-- > 0;) {
        uint64_t since = read_bytes(s, i * (v.size + v.width), v.size), units = units_to(&v, i + 1);
        write_bytes(s, i * (v.size + width), v.size, since);
        write_bytes(s, i * (v.size + width) + v.size, width, units);
    }
    s->width = (unsigned char)width;
}

/* Whether an entry for t, up to `units` of the node, can be added; the counts are widened if that
 * is all it takes. */
static bool make_place(const struct weir_plan *plan, struct weir__log_node *s, weir_time t,
                       int64_t units, bool single)
{
    unsigned width = s->width;

    if (s->size != plan->stamp_size || (uint64_t)(t - s->start) >> (8 * s->size - 1) > 1)
        return false;
    if (width == 0 && !single)
        width = width_for(units);
    while (width > 0 && width < 4 && units >> (8 * width) != 0)
        width++;
    if (!fits(s, s->n + 1u, width))
        return false;
    if (width != s->width)
        widen(s, width);
    return true;
}

static void push(struct weir__log_node *s, weir_time t, uint32_t units)
{
    unsigned size = s->size + s->width;
    struct view v = look(s);

    if (s->width == 0 || v.n == 0 || time_of(&v, v.n - 1) != t)
        s->n++;
    write_bytes(s, (s->n - 1u) * size, s->size, (uint64_t)(t - s->start));
    write_bytes(s, (s->n - 1u) * size + s->size, s->width, units);
    s->self = 0;
}

void weir__chain_append(const struct weir_plan *plan, struct weir__log_node *s, int64_t drop,
                        weir_time t, int64_t units)
{
    drop_oldest(plan, s, drop);
    if (s->head.used == 0) {
        be_alone(s);
        empty(plan, s, t, width_for(units));
    }
    if (units == 0)
        return;
    t = t < s->start ? s->start : t;
    if (s->head.used > 0 && !make_place(plan, s, t, end_of(s) - s->base + units, units == 1)) {
        if (s->self != 0) {
            begin_node(s);
            empty(plan, s, t, width_for(units));
        } else { /* there can be no other node yet: all are as if taken at t */
            be_alone(s);
            empty(plan, s, t, 4);
            s->base -= s->head.used;
        }
    }
    s->head.used += (uint32_t)units;
    push(s, t, end_of(s) - s->base);
}

/* The older node that has the end takes the newest's place. */
static void go_back(const struct weir_plan *plan, struct weir__log_node *s)
{
    const struct weir__log_node *node = find(plan, s, (struct target){ .unit = end_of(s) - 1 });
    struct weir__log_node newest = *s;

    weir__copy_words(s, node, sizeof(*s));
    s->head = newest.head;
    s->last = newest.last;
    s->tail = newest.tail;
    s->tail_block = newest.tail_block;
}

void weir__chain_cut(const struct weir_plan *plan, struct weir__log_node *s, int64_t left)
{
    s->head.used = (uint32_t)left;
    if (left > 0 && !is_ahead(end_of(s), s->base))
        go_back(plan, s);
    s->self = 0;
    if (left == 0) {
        be_alone(s);
        empty(plan, s, 0, 0);
        return;
    }
    struct view v = look(s);
    if (v.n == 0)
        return;
    s->n = (uint16_t)(entry_of(&v, end_of(s) - 1) + 1);
    write_bytes(s, (s->n - 1u) * (v.size + v.width) + v.size, v.width, end_of(s) - s->base);
}
