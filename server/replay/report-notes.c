/* report-notes.c -- the notes below a report: what the log lacks, what is only an estimate, what a
 * proposal is worth. */
#include <stdarg.h>
#include <stdio.h>

#include "server/base/human-numbers.h"
#include "server/replay/report.h"

struct notes {
    void (*each)(void *context, const char *note);
    void *context;
};

__attribute__((format(printf, 2, 3))) static void note(const struct notes *n, const char *format,
                                                       ...)
{
    char text[640];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    n->each(n->context, text);
}

static void note_log(const struct notes *n, const struct weir__replay *replay)
{
    char a[WEIR__HUMAN], b[WEIR__HUMAN];

    if (replay->partial)
        note(n, "This is partial: it was stopped before the log's end.");
    if (replay->requests == 0)
        note(n, "There is no request in the log.");
    if (replay->bad)
        note(n, "%s of %s %s not understood and left out; the first is line %lld of %s: %s.",
             weir__human_count(a, replay->bad), weir__human_counted(b, replay->lines, "line"),
             replay->bad == 1 ? "was" : "were", (long long)replay->first_bad,
             replay->first_bad_file, replay->first_bad_why);
    if (replay->late) {
        weir__human_duration(b, replay->late_most);
        note(n,
             "%s %s more than a second behind a later one in the log (the most by %s) and %s "
             "decided at the later time.%s",
             weir__human_counted(a, replay->late, "request"),
             replay->late == 1 ? "stands" : "stand", b, replay->late == 1 ? "was" : "were",
             replay->late > replay->requests / 20
                 ? " Perhaps files were given in the wrong order, or are not sorted by "
                   "time."
                 : "");
    }
    if (replay->nobody)
        note(n, "%s %s no attribute '%s' and %s not counted among the clients.",
             weir__human_counted(a, replay->nobody, "request"),
             replay->nobody == 1 ? "has" : "have", replay->options.client,
             replay->nobody == 1 ? "is" : "are");
}

static void note_side(const struct notes *n, const struct weir__replay *replay,
                      const struct weir__rule_set *side)
{
    char a[WEIR__HUMAN], b[WEIR__HUMAN];
    int64_t keys = replay->options.keys ? replay->options.keys : WEIR__REPLAY_KEYS;

    if (side->evicted_early)
        note(n,
             "%s: the table of %s was too small: %s forgotten early, so some requests passed that "
             "should not have. Try --keys %lld.",
             side->path, weir__human_counted(a, keys, "key"),
             weir__human_counted(b, side->evicted_early, "key"), (long long)keys * 4);
    if (side->bans_lost)
        note(n, "%s: %s ended early to make room for others; the result is not exact.", side->path,
             weir__human_counted(a, side->bans_lost, "ban"));
    if (side->untraced)
        note(n, "%s: more than %d rules refused; the keys of the rest, %s, were not followed.",
             side->path, WEIR__REPLAY_TRACES, weir__human_counted(a, side->untraced, "refusal"));
}

/* A rule whose attribute the log lacks never applies, and looks harmless. */
static void note_missing(const struct notes *n, const struct weir__replay *replay,
                         const struct weir__rule_set *side)
{
    const char *name, *path = replay->n_sides == 2 ? side->path : "",
                      *colon = replay->n_sides == 2 ? ": n" : "N";
    char who[320];
    size_t at = 0;

    while (replay->requests > 0 && weir__rule_set_missing(side, &at, &name, who, sizeof(who)))
        note(n,
             "%s%so request in the log has '%s' (%s). If the log has it under another name: --map "
             "%s=FIELD.",
             path, colon, name, who, name);
}

/* Nor does one whose path is not the log's. */
static void note_unmet(const struct notes *n, const struct weir__replay *replay,
                       const struct weir__rule_set *side)
{
    char who[320];

    weir__rule_set_unmet(side, who, sizeof(who));
    if (replay->requests > 0 && *who)
        note(n,
             "%s%spplied to no request of the log: %s. It has the attributes that they need, so "
             "compare paths and other conditions with it, or ask weir explain about a request of "
             "it.",
             replay->n_sides == 2 ? side->path : "", replay->n_sides == 2 ? ": a" : "A", who);
}

static void note_shadow_bans(const struct notes *n, const struct weir__replay *replay)
{
    bool any = false;

    for (size_t s = 0; s < replay->n_sides; s++) {
        for (size_t i = 0; i < replay->sides[s].n_rules; i++)
            any |=
                replay->sides[s].rules[i].can_ban && replay->sides[s].rules[i].mode == WEIR_SHADOW;
    }
    if (any)
        note(n, "Rules in shadow do not ban, and each is judged alone; --enforce shows them "
                "together.");
}

/* The largest error of any count of a key or a URI. */
static int64_t find_error(const struct weir__rule_set *side)
{
    int64_t most = weir__hitters_error(side->uris);

    for (size_t i = 0; i < side->n_rules; i++) {
        int64_t error = side->rules[i].trace ? weir__hitters_error(side->rules[i].trace->top) : 0;
        most = error > most ? error : most;
    }
    return most;
}

static bool is_about(const struct weir__replay *replay)
{
    bool about = !weir__distinct_is_exact(replay->clients);

    for (size_t s = 0; s < replay->n_sides; s++) {
        const struct weir__rule_set *side = &replay->sides[s];
        about |= !weir__distinct_is_exact(side->clients) ||
                 !weir__distinct_is_exact(side->clients_would);
        for (size_t i = 0; i < side->n_rules; i++)
            about |= side->rules[i].trace && !weir__distinct_is_exact(side->rules[i].trace->keys);
    }
    return about;
}

bool weir__proposal_has_few_keys(const struct weir__proposal *p)
{
    return p->keys < 20;
}

bool weir__proposal_is_far_below(const struct weir__proposal *p)
{
    return p->limit.count > 0 && p->limit.count < p->written.count / 4;
}

/* One sentence about all proposals for which `is` holds. */
static void note_proposed(const struct notes *n, const struct weir__report *report,
                          bool (*is)(const struct weir__proposal *p), const char *what)
{
    enum { MOST = 6 };
    const struct weir__propose *propose = report->replay->propose;
    struct weir__proposal p;
    char names[MOST * 48] = "";
    size_t len = 0, found = 0, rule = SIZE_MAX;

    for (size_t i = 0; propose && i < weir__propose_limits(propose); i++) {
        weir__propose_get(propose, i, &p);
        if (!is(&p) || p.rule == rule)
            continue;
        rule = p.rule;
        if (found++ < MOST)
            len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%.40s", len ? ", " : "",
                                    weir__report_proposal_rule(report, &p));
    }
    if (found > 0)
        note(n, "Proposals for %s%s %s", names, found > MOST ? " and others" : "", what);
}

static void note_proposals(const struct notes *n, const struct weir__report *report)
{
    const struct weir__propose *propose = report->replay->propose;
    bool rough = false, sampled = false;
    struct weir__proposal p;

    for (size_t i = 0; propose && i < weir__propose_limits(propose); i++) {
        weir__propose_get(propose, i, &p);
        rough |= p.limit.count - p.below > 1;
        sampled |= p.sampled;
    }
    note_proposed(n, report, weir__proposal_has_few_keys,
                  "come from fewer than 20 keys, which say little about future ones.");
    note_proposed(
        n, report, weir__proposal_is_far_below,
        "are below a quarter of the rule's own limit: enough for an ordinary day of this log, "
        "with no reserve for a busier one.");
    if (rough && report->replay->passes == 1)
        note(n, "Proposals are as exact as one reading of the log allows; regular files are read "
                "again until they are exact.");
    if (sampled)
        note(n, "Proposals: there are too many keys for memory; the share is that of a random "
                "sample.");
    if (propose && !weir__propose_is_whole(propose))
        note(n,
             "Proposals: memory was short or there are more than %d limits; some limits are "
             "missing or not exact.",
             WEIR__PROPOSE_LIMITS);
}

void weir__report_notes(const struct weir__report *report,
                        void (*each)(void *context, const char *note), void *context)
{
    const struct weir__replay *replay = report->replay;
    struct notes n = { each, context };
    char a[WEIR__HUMAN];

    note_log(&n, replay);
    for (size_t i = 0; i < replay->n_sides; i++)
        note_missing(&n, replay, &replay->sides[i]);
    for (size_t i = 0; i < replay->n_sides; i++)
        note_unmet(&n, replay, &replay->sides[i]);
    note_shadow_bans(&n, replay);
    for (size_t i = 0; i < replay->n_sides; i++) {
        note_side(&n, replay, &replay->sides[i]);
        if (find_error(&replay->sides[i]))
            note(&n, "%s: in the lists of most refused, a count may be up to %s too high.",
                 replay->sides[i].path, weir__human_count(a, find_error(&replay->sides[i])));
    }
    if (is_about(replay))
        note(&n,
             "Numbers with ~ are estimates, with a standard error of " WEIR__DISTINCT_ERROR " %%.");
    note_proposals(&n, report);
}
