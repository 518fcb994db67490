/* rules.c -- random rule sets and random requests: the engine says what the plainest evaluator
 * (plain.h) says.
 *
 *     property-rules SEED ROUNDS [trace]    prints the seed, the rules, the request and both
 *                                           answers on a mismatch; with trace, every request
 *
 * Each round makes a rule set, plays a few hundred requests on virtual time, and compares every
 * member of every ruling; what weir__engine_explain foretold of it and of every rule; which key was
 * told of a refusal; what a twin engine says to the same requests by weir_check_many; and in the
 * end tallies, totals and bans.  In between the rules are put in force again, as they were or with
 * other numbers, keys or algorithms, with a rule more or less, or in a way that must fail; lists
 * are edited, modes switched, bans lifted and set by hand, keys reset.
 *
 *     even seeds    rules ban
 *     not fourth    the clock steps back now and then, even before 0
 *     every fifth   the tables are narrow; their clock never steps back, nor do limits of one word
 *                   change their numbers (docs/shm.md)
 *     every 23rd    more rules apply than can be asked at once
 */
#include "rules-changes.h"

/* ------------------------------------------------------------- verdict ---- */

static void compare_tallies(const struct weir_rule_info *got, struct rule *r)
{
    if (strcmp(got->name, r->name) != 0 || got->allowed != r->tally.allowed ||
        got->refused != r->tally.refused || got->banned != r->tally.banned ||
        got->shadow_refused != r->tally.shadow_refused || got->mode != rule_mode(&set, r) ||
        got->switched != r->switched)
        stop("weir_rule_next %s: %" PRId64 " allowed %" PRId64 " refused %" PRId64
             " banned %" PRId64 " shadow, expected %s: %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
             "; mode %d, expected %d",
             got->name, got->allowed, got->refused, got->banned, got->shadow_refused, r->name,
             r->tally.allowed, r->tally.refused, r->tally.banned, r->tally.shadow_refused,
             got->mode, rule_mode(&set, r));
}

static void find_listed(const struct weir_ban *got)
{
    for (int i = 0; i < n_bans; i++)
        if (!bans[i].listed && strcmp(bans[i].rule, got->rule) == 0 &&
            is_listed_as(bans[i].text, got->key) && bans[i].until == got->until &&
            bans[i].since == got->since && bans[i].strikes == got->strikes) {
            bans[i].listed = true;
            return;
        }
    stop("a ban that should not be: rule %s key %s since %" PRId64 " until %" PRId64 " strikes %d",
         got->rule, got->key, got->since, got->until, got->strikes);
}

static void judge(weir_time now)
{
    flush_batch();
    int in_force = 0;
    for (int i = 0; i < n_bans; i++)
        in_force += bans[i].until > now;
    for (int k = 0; k < TWINS; k++) {
        struct weir_rule_info info;
        int listed = 0;
        for (int i = 0; i < set.n; i++)
            if (weir_rule_next(engines[k], &(int64_t){ i }, &info))
                compare_tallies(&info, &set.rules[i]);
        if (weir_rule_next(engines[k], &(int64_t){ set.n }, &info))
            stop("a rule too many");
        for (int i = 0; i < n_bans; i++)
            bans[i].listed = false;
        struct weir_totals got;
        weir_totals_get(engines[k], &got);
        if (memcmp(&got, &totals, sizeof(got)) != 0)
            stop("totals: %" PRId64 " checked, expected %" PRId64 "; unmatched %" PRId64 " %" PRId64
                 ", shadow %" PRId64 " %" PRId64,
                 got.checked, totals.checked, got.unmatched, totals.unmatched, got.shadow_refused,
                 totals.shadow_refused);
        struct weir_ban ban;
        for (int64_t at = 0; weir_ban_next(engines[k], now, &at, &ban); listed++)
            find_listed(&ban);
        if (listed != in_force)
            stop("%d bans are listed, expected %d", listed, in_force);
    }
}

static weir_time random_step(void)
{
    if (one_in(400) && may_step_back())
        return -int_between(2, 5000) * WEIR_SECOND;
    if (one_in(20) && !narrow)
        return -(weir_time)(roll() % WEIR_SECOND);
    switch (int_between(0, 5)) {
    case 0:
    case 1:
        return 0;
    case 2:
        return int_between(1, 1000000);
    case 3:
        return int_between(1, 2000) * WEIR_MILLISECOND;
    case 4:
        return one_in(10) ? int_between(1, 40 * 86400) * WEIR_SECOND
                          : int_between(1, 100) * WEIR_SECOND;
    }
    return int_between(1, 100) * WEIR_MILLISECOND;
}

static void play_round(void)
{
    weir_time now =
        (weir_time)1700000000 * WEIR_SECOND + (weir_time)(roll() % (20 * 31557600)) * WEIR_SECOND;
    weir_time latest = now;

    names_used = in_attic = 0;
    memset(&totals, 0, sizeof(totals));
    narrow = seed_of_round % 5 == 0;
    random_set();
    create_engines();
    use_rules(now);
    for (int i = int_between(20, 400); i > 0; i--) {
        now += random_step();
        latest = now > latest ? now : latest;
        if (!may_step_back() && now < latest - WEIR_SECOND)
            now = latest - WEIR_SECOND;
        if (one_in(30))
            something_else(now);
        play_request(now);
    }
    judge(now);
    destroy_engines();
    plain_forget_all();
}

int main(int argc, char **argv)
{
    trace = argc > 3;
    uint64_t rounds = play_rounds(argc, argv, 200, play_round);
    printf("%" PRIu64 " rounds, %" PRId64 " requests: %" PRId64 " rules applied, %" PRId64
           " refused, %" PRId64 " by a ban, %" PRId64 " by shadows, %" PRId64 " by lists, %" PRId64
           " cut\n",
           rounds, requests_played, applied_in_all, refused_in_all, banned_in_all, shadowed_in_all,
           listed_in_all, cut_in_all);
    return 0;
}
