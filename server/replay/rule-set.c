/* rule-set.c -- a rule set in a replay, and its decisions counted.
 *
 * The engine names one rule for a refusal, and one of those in shadow; for the rest (the key, other
 * rules in shadow) the rules that apply are looked up again, which only refusals pay for.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/replay/replay.h"
#include "server/base/safe-text.h"

#define SLAB_LEAST     65536
#define SLAB_A_KEY     1024 /* at most, for windows and logs, unless a rule names its keys */
#define TABLE_LIMITERS 65536
#define TABLE_BANS     65536
#define HITTERS        512  /* counters for the keys refused most, of each rule */
#define URIS           4096 /* the same for URIs */

/* A rule's number by its name. */
struct weir__replay_name {
    const char *name;
    int32_t rule;
};

/* --------------------------------------------------------------- creation ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct weir__replay_name *)a)->name,
                  ((const struct weir__replay_name *)b)->name);
}

static int32_t find_rule(const struct weir__rule_set *side, const char *name)
{
    struct weir__replay_name wanted = { name, 0 },
                             *hit = bsearch(&wanted, side->by_name, side->n_rules, sizeof(wanted),
                                            by_name);

    return hit ? hit->rule : WEIR__REPLAY_PASSED;
}

/* "300/60s, 100/5s" */
static void print_limits(char *out, size_t size, const struct weir__rule_draft *rule)
{
    char text[WEIR__RULE_LIMITS * 130];
    size_t len = 0;

    for (size_t i = 0; i < rule->n_limits; i++) {
        char limit[128];
        weir_limit_print(limit, sizeof(limit), &rule->limits[i]);
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? ", " : "", limit);
    }
    weir__text_cut(out, size, text, len);
}

static int list_rules(struct weir__rule_set *side, struct weir_error *error)
{
    struct weir_rule_info info;
    const struct weir_rules *rules = side->weir->active->rules;

    side->n_rules = rules->n_rules;
    side->rules = calloc(side->n_rules + 1, sizeof(*side->rules));
    side->by_name = calloc(side->n_rules + 1, sizeof(*side->by_name));
    if (side->rules == NULL || side->by_name == NULL)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for the accounts of %zu rules",
                          side->n_rules);
    for (size_t i = 0; i < side->n_rules; i++) {
        struct weir__replay_rule *rule = &side->rules[i];
        weir_rule_next(side->weir, &(int64_t){ (int64_t)i }, &info);
        snprintf(rule->name, sizeof(rule->name), "%s", info.name);
        print_limits(rule->limits, sizeof(rule->limits), &rules->draft->rules[i]);
        rule->mode = info.mode;
        rule->can_ban = rules->draft->rules[i].ban.set;
        side->by_name[i] = (struct weir__replay_name){ rule->name, (int32_t)i };
    }
    qsort(side->by_name, side->n_rules, sizeof(*side->by_name), by_name);
    side->unseen = side->weir->active->attributes.n;
    if (side->weir->active->attributes.loose) { /* that is the uri, which is looked for itself */
        side->seen[side->weir->active->attributes.loose] = true;
        side->unseen--;
    }
    return WEIR_OK;
}

/* Turns shadow into enforce: for each rule, or for the whole set. */
static void enforce(struct weir__rule_set *side)
{
    struct weir_rule_info info;

    for (int64_t at = 0; weir_rule_next(side->weir, &at, &info);) {
        if (info.mode != WEIR_SHADOW)
            continue;
        weir_mode_set(side->weir, info.name, WEIR_ENFORCE, NULL);
        weir_rule_next(side->weir, &(int64_t){ at - 1 }, &info);
        if (info.mode == WEIR_SHADOW)
            weir_mode_set(side->weir, NULL, WEIR_ENFORCE, NULL);
    }
}

static int create_sketches(struct weir__rule_set *side, struct weir_error *error)
{
    side->clients = weir__distinct_create();
    side->clients_would = weir__distinct_create();
    side->uris = weir__hitters_create(URIS);
    if (side->clients && side->clients_would && side->uris)
        return WEIR_OK;
    return weir__fail(error, WEIR_NO_MEMORY, "no memory for the accounts");
}

/* Slab bytes for each key of a limit, with the engine's spare room; 0: its states are small. */
static double slab_a_key(const struct weir_limit *limit)
{
    struct weir_plan *plan;

    if (limit->count == 0 || weir_plan_create(&plan, limit, NULL) != WEIR_OK)
        return 0;
    size_t size = weir_plan_state_size(plan);
    weir_plan_destroy(plan);
    return size > 16 ? 8.0 * (double)(size + 16) : 0;
}

/* Address space for the rules' windows and logs, within reason. */
static int64_t choose_slab(const struct weir__draft *draft, int64_t keys)
{
    double shared = 0, own = 0;

    for (size_t i = 0; i < draft->n_rules; i++) {
        const struct weir__rule_draft *rule = &draft->rules[i];
        double all = rule->ban.set ? slab_a_key(&rule->ban.refusals) : 0;
        for (size_t k = 0; k < rule->n_limits; k++)
            all += slab_a_key(&rule->limits[k]);
        *(rule->keys ? &own : &shared) += all * (double)(rule->keys ? rule->keys : keys);
    }
    double most = (double)keys * SLAB_A_KEY,
           slab = SLAB_LEAST + (shared < most ? shared : most) + own;
    return slab < 0x1p40 ? (int64_t)slab : (int64_t)1 << 40;
}

static int create_engine(struct weir__rule_set *side, const struct weir_rules *rules, int64_t keys,
                         struct weir_error *error)
{
    struct weir_table_options table = { .keys = keys,
                                        .limiters = TABLE_LIMITERS,
                                        .bans = TABLE_BANS,
                                        .slab = choose_slab(rules->draft, keys) };
    int code = weir_table_create(&side->table, &table, error);

    return code == WEIR_OK
               ? weir_create(&side->weir, &(struct weir_options){ .table = side->table }, error)
               : code;
}

int weir__rule_set_create(struct weir__rule_set *side, const struct weir__replay_options *options,
                          size_t which, struct weir_error *error)
{
    side->path = options->names[which];
    int code = create_engine(side, options->rules[which],
                             options->keys ? options->keys : WEIR__REPLAY_KEYS, error);
    if (code == WEIR_OK)
        code = weir_use(side->weir, options->rules[which], 0, error);
    if (code != WEIR_OK) {
        weir_rules_destroy(options->rules[which]);
        return code;
    }
    if (options->enforce)
        enforce(side);
    code = list_rules(side, error);
    return code == WEIR_OK ? create_sketches(side, error) : code;
}

static void destroy_trace(struct weir__replay_trace *trace)
{
    if (trace == NULL)
        return;
    weir__distinct_destroy(trace->keys);
    weir__hitters_destroy(trace->top);
    free(trace);
}

void weir__rule_set_clear(struct weir__rule_set *side)
{
    for (size_t i = 0; side->rules && i < side->n_rules; i++)
        destroy_trace(side->rules[i].trace);
    destroy_trace(side->denied);
    weir__distinct_destroy(side->clients);
    weir__distinct_destroy(side->clients_would);
    weir__hitters_destroy(side->uris);
    free(side->rules);
    free(side->by_name);
    weir_destroy(side->weir);
    weir_table_destroy(side->table);
}

/* ----------------------------------------------------------------- traces ---- */

static struct weir__replay_trace *create_trace(void)
{
    struct weir__replay_trace *trace = calloc(1, sizeof(*trace));

    if (trace == NULL)
        return NULL;
    trace->keys = weir__distinct_create();
    trace->top = weir__hitters_create(HITTERS);
    if (trace->keys && trace->top)
        return trace;
    destroy_trace(trace);
    return NULL;
}

/* Whom it was refused to, and when.  Without memory for a trace it is only counted that there was
 * none. */
static void trace_refusal(struct weir__rule_set *side, struct weir__replay_trace **trace,
                          uint64_t hash, struct weir_key text, size_t bucket)
{
    if (*trace == NULL && side->traces < WEIR__REPLAY_TRACES) {
        *trace = create_trace();
        side->traces += *trace != NULL;
    }
    if (*trace == NULL) {
        side->untraced++;
        return;
    }
    weir__distinct_add((*trace)->keys, hash);
    weir__hitters_add((*trace)->top, hash, text.bytes, text.len, 1);
    (*trace)->at[bucket]++;
}

static void trace_rule(struct weir__replay *replay, struct weir__rule_set *side,
                       const struct weir__applying *a, size_t bucket)
{
    struct weir_key key = { a->text, strlen(a->text) };
    uint64_t hash = weir__sketch_hash(&replay->secrets, key.bytes, key.len);

    trace_refusal(side, &side->rules[a->rule].trace, hash,
                  key.len ? key : (struct weir_key){ "(everybody)", 11 }, bucket);
}

/* --------------------------------------------------------------- accounts ---- */

/* Rules come once for each of their limits. */
static bool is_first_of_rule(const struct weir__applying *a, size_t i)
{
    return i == 0 || a[i].rule != a[i - 1].rule;
}

/* The engine counts a rule that lets a request pass; one beside the rule that refused it is counted
 * here. */
static void account_refused(struct weir__replay *replay, struct weir__rule_set *side,
                            const struct weir__replay_request *r, const struct weir_ruling *ruling,
                            int32_t refused)
{
    size_t n = weir__engine_applying(side->weir, r->attrs, r->n, replay->applying, WEIR_ALL_MAX);

    for (size_t i = 0; i < n; i++) {
        const struct weir__applying *a = &replay->applying[i];
        if (!is_first_of_rule(replay->applying, i) || side->rules[a->rule].mode == WEIR_OFF)
            continue;
        side->rules[a->rule].applied++;
        if (a->rule == (size_t)refused)
            trace_rule(replay, side, a, r->bucket);
    }
    struct weir__replay_rule *rule = &side->rules[refused];
    rule->refused++;
    rule->banned += ruling->decision.reason == WEIR_BANNED;
    rule->bans += ruling->decision.reason != WEIR_BANNED && ruling->banned_until != 0;
}

/* Whether this rule in shadow would have refused the request that was just decided: the engine has
 * counted it. */
static bool would_have(struct weir__rule_set *side, size_t rule)
{
    struct weir_rule_info info;
    int64_t before = side->rules[rule].would;

    weir_rule_next(side->weir, &(int64_t){ (int64_t)rule }, &info);
    side->rules[rule].would = info.shadow_refused;
    return info.shadow_refused > before;
}

static void account_shadow(struct weir__replay *replay, struct weir__rule_set *side,
                           const struct weir__replay_request *r)
{
    size_t n = weir__engine_applying(side->weir, r->attrs, r->n, replay->applying, WEIR_ALL_MAX);

    side->would++;
    side->would_at[r->bucket]++;
    if (r->client.len)
        weir__distinct_add(side->clients_would, r->client_hash);
    for (size_t i = 0; i < n; i++) {
        const struct weir__applying *a = &replay->applying[i];
        if (is_first_of_rule(replay->applying, i) && side->rules[a->rule].mode == WEIR_SHADOW &&
            would_have(side, a->rule))
            trace_rule(replay, side, a, r->bucket);
    }
}

/* The whole set is in shadow and so is its deny list; the rules were asked too, as if it were not
 * there. */
static void account_denied_in_shadow(struct weir__rule_set *side,
                                     const struct weir__replay_request *r)
{
    side->would_deny++;
    trace_refusal(side, &side->denied, r->client_hash,
                  r->client.len ? r->client : (struct weir_key){ "(nobody)", 8 }, r->bucket);
}

static void account_allowed(struct weir__replay *replay, struct weir__rule_set *side,
                            const struct weir__replay_request *r, const struct weir_ruling *ruling)
{
    weir_time wait = ruling->decision.wait;

    side->allowed++;
    side->listed += ruling->list != NULL && strcmp(ruling->list, "allow") == 0;
    side->unmatched += ruling->list == NULL && ruling->applied == 0;
    side->waited += wait > 0;
    if (wait > side->wait_most)
        side->wait_most = wait;
    bool denied = ruling->list != NULL && strcmp(ruling->list, "deny") == 0;
    if (denied)
        account_denied_in_shadow(side, r);
    if (denied || ruling->shadow)
        account_shadow(replay, side, r); /* once, however many would refuse it */
}

/* ------------------------------------------------------- missing attributes ---- */

/* Headers are named without regard to case, as by the engine. */
static bool has_attribute(const struct weir__replay_request *r, const char *name, size_t len)
{
    bool header = strncmp(name, "header.", 7) == 0;

    for (size_t i = 0; i < r->n; i++) {
        const struct weir_attr *a = &r->attrs[i];
        size_t name_len = a->name_len ? a->name_len : strlen(a->name);
        if (name_len != len ||
            (header ? strncasecmp(a->name, name, len) : memcmp(a->name, name, len)) != 0)
            continue;
        if (a->value_len > 0 || *a->value != '\0')
            return true;
    }
    return false;
}

/* Nearly always the first requests have all there is, and this costs nothing any more. */
static void mark_seen(struct weir__rule_set *side, const struct weir__replay_request *r)
{
    const struct weir__attributes *known = &side->weir->active->attributes;

    for (size_t i = 0; i < known->n; i++) {
        if (side->seen[i] || !has_attribute(r, known->names[i], known->lengths[i]))
            continue;
        side->seen[i] = true;
        side->unseen--;
    }
}

static bool looks_at(const struct weir__rule_set *side, size_t number, size_t attribute)
{
    const struct weir_rules *set = side->weir->active->rules;
    const struct weir__rule *rule = &set->rules[number];
    const struct weir__attributes *known = &set->attributes;
    bool looks = rule->cost_attribute == (int)attribute;

    for (uint32_t i = 0; i < (uint32_t)rule->matches + rule->excepts; i++) {
        size_t asked = set->clauses[rule->clauses_first + i].attribute;
        looks |= asked == attribute;
        looks |= known->loose && asked == (size_t)known->loose && (int)attribute == known->uri;
    }
    for (size_t i = 0; i < rule->key.n; i++)
        looks |= rule->parts[i].attribute == attribute && rule->key.parts[i].attribute != NULL;
    return looks;
}

__attribute__((format(printf, 4, 5))) static void append(char *out, size_t size, size_t *len,
                                                         const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int n = vsnprintf(out + *len, size - *len, format, args);
    va_end(args);
    *len = n < 0 || (size_t)n >= size - *len ? size - 1 : *len + (size_t)n;
}

/* "rules a, b and 3 more": those that hold. */
static size_t name_rules(const struct weir__rule_set *side,
                         bool (*holds)(const struct weir__rule_set *side, size_t rule,
                                       size_t attribute),
                         size_t attribute, char *out, size_t size)
{
    enum { MOST = 5 };
    size_t n = 0, len = 0, all = 0;

    for (size_t i = 0; i < side->n_rules; i++)
        all += holds(side, i, attribute);
    for (size_t i = 0; i < side->n_rules && n < MOST; i++) {
        if (!holds(side, i, attribute))
            continue;
        append(out, size, &len, "%s%s",
               n          ? ", "
               : all == 1 ? "rule "
                          : "rules ",
               side->rules[i].name);
        n++;
    }
    if (all > n)
        append(out, size, &len, " and %zu more", all - n);
    return len;
}

bool weir__rule_set_missing(const struct weir__rule_set *side, size_t *at, const char **name,
                            char *who, size_t size)
{
    const struct weir__active *force = side->weir->active;

    for (; *at < force->attributes.n; ++*at) {
        bool deny = false, allow = false;
        if (side->seen[*at])
            continue;
        for (size_t i = 0; i < force->denies; i++)
            deny |= force->deny[i].attribute == (int)*at;
        for (size_t i = 0; i < force->allows; i++)
            allow |= force->allow[i].attribute == (int)*at;
        size_t len = name_rules(side, looks_at, *at, who, size);
        if (deny)
            append(who, size, &len, "%sdeny list", len ? ", " : "");
        if (allow)
            append(who, size, &len, "%sallow list", len ? ", " : "");
        if (len == 0)
            continue; /* a list that no rule asks */
        *name = force->attributes.names[(*at)++];
        return true;
    }
    return false;
}

/* The log has all that a request needs for this rule to apply. */
static bool can_apply(const struct weir__rule_set *side, size_t number)
{
    const struct weir_rules *set = side->weir->active->rules;
    const struct weir__rule *rule = &set->rules[number];
    const struct weir__attributes *known = &set->attributes;
    bool can = true;

    for (uint32_t i = 0; i < rule->matches; i++) {
        size_t asked = set->clauses[rule->clauses_first + i].attribute;
        bool loose = known->loose && asked == (size_t)known->loose;
        can &= side->seen[loose ? (size_t)known->uri : asked];
    }
    for (size_t i = 0; i < rule->key.n; i++)
        can &= rule->key.parts[i].attribute == NULL || rule->parts[i].fallback != NULL ||
               side->seen[rule->parts[i].attribute];
    return can;
}

static bool is_unmet(const struct weir__rule_set *side, size_t number, size_t attribute)
{
    (void)attribute;
    return side->rules[number].mode != WEIR_OFF && side->rules[number].applied == 0 &&
           can_apply(side, number);
}

void weir__rule_set_unmet(const struct weir__rule_set *side, char *who, size_t size)
{
    *who = '\0';
    name_rules(side, is_unmet, 0, who, size);
}

/* ---------------------------------------------------------------- deciding ---- */

int32_t weir__rule_set_decide(struct weir__replay *replay, struct weir__rule_set *side,
                              const struct weir__replay_request *r)
{
    struct weir_ask ask = { .cost = 1, .now = r->now, .wait_max = replay->options.wait_max };
    struct weir_ruling ruling;
    bool allowed = weir_check(side->weir, r->attrs, r->n, &ask, &ruling);

    if (side->unseen > 0)
        mark_seen(side, r);
    side->by_list = ruling.list != NULL;
    side->levels[ruling.level & 3]++;
    side->reasons[ruling.decision.reason % WEIR__REPLAY_REASONS]++;
    if (allowed) {
        account_allowed(replay, side, r, &ruling);
        return WEIR__REPLAY_PASSED;
    }
    side->refused++;
    side->refused_at[r->bucket]++;
    if (r->client.len)
        weir__distinct_add(side->clients, r->client_hash);
    if (r->uri.len)
        weir__hitters_add(side->uris, weir__sketch_hash(&replay->secrets, r->uri.bytes, r->uri.len),
                          r->uri.bytes, r->uri.len, 1);
    int32_t rule = ruling.rule ? find_rule(side, ruling.rule) : WEIR__REPLAY_PASSED;
    if (rule >= 0) {
        account_refused(replay, side, r, &ruling, rule);
        return rule;
    }
    trace_refusal(side, &side->denied, r->client_hash,
                  r->client.len ? r->client : (struct weir_key){ "(nobody)", 8 }, r->bucket);
    return WEIR__REPLAY_LIST;
}

/* -------------------------------------------------------------------- time ---- */

void weir__rule_set_end(struct weir__rule_set *side)
{
    struct weir_rule_info info;
    struct weir_table_stats stats;

    for (size_t i = 0; i < side->n_rules; i++) {
        weir_rule_next(side->weir, &(int64_t){ (int64_t)i }, &info);
        side->rules[i].applied += info.allowed + info.shadow_refused;
        side->rules[i].would = info.shadow_refused;
    }
    weir_table_stats(side->table, -1, &stats);
    side->evicted_early = stats.evicted_early;
    side->bans_lost = stats.bans_lost;
}

const char *weir__rule_set_rule_name(const struct weir__rule_set *side, int32_t rule)
{
    return rule == WEIR__REPLAY_PASSED ? "passed"
           : rule == WEIR__REPLAY_LIST ? "deny list"
                                       : side->rules[rule].name;
}
