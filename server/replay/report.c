/* report.c -- shared by all reports: totals, the order of rules, the series of a plot. */
#include "server/replay/report.h"

#include <stdlib.h>
#include <string.h>

#include "server/base/human-numbers.h"

/* ----------------------------------------------------------------- in words ---- */

const char *weir__human_proposal(char out[WEIR__HUMAN], const struct weir__proposal *p)
{
    int64_t count = p->limit.count;

    if (p->steps == 0)
        snprintf(out, WEIR__HUMAN, "unknown");
    else if (count == 0)
        snprintf(out, WEIR__HUMAN, "more than %lld", (long long)p->below);
    else if (count - p->below > 1)
        snprintf(out, WEIR__HUMAN, "%lld to %lld", (long long)p->below + 1, (long long)count);
    else
        snprintf(out, WEIR__HUMAN, "%lld", (long long)count);
    return out;
}

const char *weir__report_proposal_rule(const struct weir__report *report,
                                       const struct weir__proposal *proposal)
{
    return report->replay->sides[0].rules[proposal->rule].name;
}

/* ------------------------------------------------------------------- totals ---- */

const char *weir__report_where(const struct weir__replay *replay, const struct weir__rule_set *side)
{
    return replay->n_sides == 1 ? "" : side == replay->sides ? " here" : " there";
}

enum { GOOD = 0, BAD = 1, INNER = 2, ALWAYS = 4 };

struct totals {
    struct weir__total *out;
    size_t n;
    int64_t whole;
    bool about;
};

static void add(struct totals *t, const char *name, int64_t here, int64_t there, unsigned how)
{
    if (!(how & ALWAYS) && here == 0 && there == 0)
        return;
    t->out[t->n++] = (struct weir__total){ .name = name,
                                           .part = { here, there },
                                           .whole = t->whole,
                                           .inner = how & INNER,
                                           .bad = how & BAD,
                                           .about = t->about };
}

size_t weir__report_totals(const struct weir__replay *replay, struct weir__total out[WEIR__TOTALS])
{
    const struct weir__rule_set *a = &replay->sides[0], *b = &replay->sides[replay->n_sides - 1];
    const int64_t *x = a->reasons, *y = b->reasons;
    struct totals t = { .out = out, .whole = replay->requests };

    add(&t, "allowed", a->allowed, b->allowed, GOOD | ALWAYS);
    add(&t, "refused", a->refused, b->refused, BAD | ALWAYS);
    add(&t, "over a limit", x[WEIR_LIMITED], y[WEIR_LIMITED], BAD | INNER);
    add(&t, "too big for it", x[WEIR_TOO_BIG], y[WEIR_TOO_BIG], BAD | INNER);
    add(&t, "too many limits", x[WEIR_TOO_MANY], y[WEIR_TOO_MANY], BAD | INNER);
    add(&t, "no room in the table", x[WEIR_NO_ROOM], y[WEIR_NO_ROOM], BAD | INNER);
    add(&t, "banned", x[WEIR_BANNED], y[WEIR_BANNED], BAD | INNER);
    add(&t, "on the deny list", x[WEIR_DENIED], y[WEIR_DENIED], BAD | INNER);
    add(&t, "in shadow, would refuse", a->would, b->would, BAD);
    add(&t, "on the deny list", a->would_deny, b->would_deny, BAD | INNER);
    add(&t, "allowed after a wait", a->waited, b->waited, GOOD);
    add(&t, "on the allow list", a->listed, b->listed, GOOD);
    add(&t, "no rule applied", a->unmatched, b->unmatched, GOOD);
    add(&t, "half spent (level 1)", a->levels[1], b->levels[1], GOOD);
    add(&t, "nearly spent (level 2)", a->levels[2], b->levels[2], GOOD);
    t.whole = weir__distinct_count(replay->clients);
    t.about = !weir__distinct_is_exact(a->clients) || !weir__distinct_is_exact(b->clients);
    add(&t, "clients refused", weir__distinct_count(a->clients), weir__distinct_count(b->clients),
        BAD | ALWAYS);
    add(&t, "clients, in shadow", weir__distinct_count(a->clients_would),
        weir__distinct_count(b->clients_would), BAD);
    return t.n;
}

/* ------------------------------------------------------------------- series ---- */

struct rank {
    const char *name;
    const struct weir__replay_trace *trace;
    int64_t total;
};

static int by_total(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;

    if (x->total != y->total)
        return x->total < y->total ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* Everything that refused and was followed, most first. */
static size_t rank_traces(const struct weir__rule_set *side,
                          struct rank ranks[WEIR__REPLAY_TRACES + 1])
{
    size_t n = 0;

    if (side->denied && side->reasons[WEIR_DENIED] > 0)
        ranks[n++] = (struct rank){ weir__rule_set_rule_name(side, WEIR__REPLAY_LIST), side->denied,
                                    side->reasons[WEIR_DENIED] };
    for (size_t i = 0; i < side->n_rules && n <= WEIR__REPLAY_TRACES; i++) {
        const struct weir__replay_rule *rule = &side->rules[i];
        if (rule->trace && rule->refused > 0)
            ranks[n++] = (struct rank){ rule->name, rule->trace, rule->refused };
    }
    qsort(ranks, n, sizeof(*ranks), by_total);
    return n;
}

#define OTHERS "other rules"

/* The rest of each bucket. */
static void fill_others(const struct weir__rule_set *side, struct weir__series *out, size_t n)
{
    struct weir__series *others = &out[n];

    others->name = OTHERS;
    others->total = side->refused;
    memcpy(others->at, side->refused_at, sizeof(others->at));
    for (size_t i = 0; i < n; i++) {
        others->total -= out[i].total;
        for (size_t b = 0; b < WEIR__REPLAY_BUCKETS; b++)
            others->at[b] -= out[i].at[b];
    }
}

static size_t fill_series(const struct weir__rule_set *side, struct weir__series out[WEIR__SERIES])
{
    struct rank ranks[WEIR__REPLAY_TRACES + 1];
    size_t all = rank_traces(side, ranks), n = all < WEIR__SERIES ? all : WEIR__SERIES - 1;
    int64_t left = side->refused;

    for (size_t i = 0; i < n; i++) {
        out[i].name = ranks[i].name;
        out[i].total = ranks[i].total;
        memcpy(out[i].at, ranks[i].trace->at, sizeof(out[i].at));
        left -= ranks[i].total;
    }
    if (left <= 0)
        return n;
    fill_others(side, out, n);
    return n + 1;
}

static const struct weir__series *find_series(const struct weir__series *series, size_t n,
                                              const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(series[i].name, name) == 0)
            return &series[i];
    }
    return NULL;
}

/* A rule with a colour on the first side keeps it; the others take free ones. */
static void choose_colours(struct weir__series *series, size_t n, const struct weir__series *first,
                           size_t n_first)
{
    bool taken[WEIR__SERIES + 1] = { false };

    for (size_t i = 0; i < n; i++) {
        const struct weir__series *same = find_series(first, n_first, series[i].name);
        series[i].colour = strcmp(series[i].name, OTHERS) == 0 ? WEIR__SERIES - 1
                           : same                              ? same->colour
                                                               : -1;
        if (series[i].colour >= 0)
            taken[series[i].colour] = true;
    }
    for (size_t i = 0; i < n; i++) {
        int free_one = 0;
        while (series[i].colour < 0 && taken[free_one] && free_one < WEIR__SERIES)
            free_one++;
        if (series[i].colour < 0) {
            series[i].colour = free_one;
            taken[free_one] = true;
        }
    }
}

size_t weir__report_series(const struct weir__replay *replay, size_t side,
                           struct weir__series out[WEIR__SERIES])
{
    struct weir__series first[WEIR__SERIES];
    size_t n_first = fill_series(&replay->sides[0], first),
           n = fill_series(&replay->sides[side], out);

    choose_colours(first, n_first, NULL, 0);
    choose_colours(out, n, first, n_first);
    return n;
}

static int by_deeds(const void *a, const void *b)
{
    const struct weir__replay_rule *x = *(const struct weir__replay_rule *const *)a,
                                   *y = *(const struct weir__replay_rule *const *)b;
    int64_t first = x->refused + x->would, second = y->refused + y->would;

    if (first != second)
        return first < second ? 1 : -1;
    if (x->applied != y->applied)
        return x->applied < y->applied ? 1 : -1;
    return x < y ? -1 : x > y; /* as in the file */
}

const struct weir__replay_rule **weir__report_rules(const struct weir__rule_set *side)
{
    const struct weir__replay_rule **rules = malloc((side->n_rules + 1) * sizeof(*rules));

    for (size_t i = 0; rules && i < side->n_rules; i++)
        rules[i] = &side->rules[i];
    if (rules)
        qsort(rules, side->n_rules, sizeof(*rules), by_deeds);
    return rules;
}
