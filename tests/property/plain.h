/* plain.h -- rules decided as plainly as possible: what tests/property/rules.c holds the engine
 * against.
 *
 * Written from what weir.h, draft.h, key-template.h, values.h and address.h promise, and from
 * nothing of lib/rules or lib/engine: every rule is tried, every pattern is compared by the
 * shortest code that can, states are found by a string.  Only the steps are the library's own
 * (weir_step), because those have tests of their own.
 */
#ifndef WEIR_TESTS_PLAIN_H
#define WEIR_TESTS_PLAIN_H

#include <ctype.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "algo/algo.h"

#define RULES_MAX 1300
#define VALUE_MAX 2600
#define URI_MAX   2048 /* bytes of a path that rules look at */
#define TEXT_MAX  160  /* bytes of a key as it is listed, with its NUL */

enum attribute { IP, PEER, URI, METHOD, ACCOUNT, PLAN, HEADER, BYTES, ATTRIBUTES };
static const char *const attribute_names[ATTRIBUTES] = { "ip",           "peer.ip", "uri",
                                                         "method",       "account", "plan",
                                                         "header.x-key", "bytes" };

enum kind { EXACT, PREFIX, GLOB, CIDR, LIST, PRESENT };

struct pattern {
    enum kind kind;
    const char *text;
    bool form; /* written as { exact: ... } */
};

struct condition {
    int attribute, n;
    struct pattern patterns[6];
};

struct part {
    int attribute;
    const char *before, *fallback;
    int prefix4, prefix6; /* -1: none */
};

struct tally {
    int64_t allowed, refused, banned, shadow_refused;
};

enum { LIMITS_MAX = 3 }; /* of a rule */

/* A limit at work: known by its rule's name, its number, its algorithm and what the rule's key is
 * made of. */
struct limiter {
    struct limiter *next;
    char *owner;
    struct weir_plan *plan;
};

struct rule {
    char name[24];
    char template[256]; /* the key as it is written ... */
    char made_of[256];  /* ... and what it is made of: the text between is for people */
    int matches, excepts, parts, limits;
    struct condition match[4], except[3];
    struct part key[3];
    const char *after;
    struct weir_limit limit[LIMITS_MAX], refusals;
    struct limiter *limiter[LIMITS_MAX],
        *counts; /* of the limits; of the refusals that a ban counts */
    int64_t cost;
    int cost_attribute; /* -1: none */
    enum weir_mode mode, switched;
    bool bans;
    weir_time length, longest, forget;
    int factor;
    struct tally tally;
};

struct list {
    const char *name;
    int attribute, n;
    const char *entries[16];
};

struct set {
    enum weir_mode mode, switched;
    int n, lists;
    struct rule rules[RULES_MAX];
    struct list list[12], written[12]; /* as edited; as in the file */
};

struct value {
    size_t len; /* 0: missing */
    char text[VALUE_MAX];
};

struct request {
    struct value given[ATTRIBUTES], seen[ATTRIBUTES]; /* seen: the path made plain */
    struct weir_ask ask;
};

/* ----------------------------------------------------------- addresses ---- */

struct address {
    int bits; /* 0: none */
    unsigned char bytes[16];
};

static struct address plain_address(const char *text, size_t len)
{
    static const unsigned char mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
    struct address a = { 0 };
    char copy[64];
    bool bracket = len >= 2 && text[0] == '[' && text[len - 1] == ']';

    snprintf(copy, sizeof(copy), "%.*s", (int)(bracket ? len - 2 : len), text + bracket);
    if (!bracket && inet_pton(AF_INET, copy, a.bytes) == 1)
        a.bits = 32;
    else if (inet_pton(AF_INET6, copy, a.bytes) == 1)
        a.bits = 128;
    if (a.bits == 128 && memcmp(a.bytes, mapped, 12) == 0) {
        memmove(a.bytes, a.bytes + 12, 4);
        memset(a.bytes + 4, 0, 12);
        a.bits = 32;
    }
    return a;
}

/* As a request has it: there may be a port behind it. */
static struct address plain_client(const char *text, size_t len)
{
    struct address a = plain_address(text, len);
    size_t digits = 0;

    if (a.bits != 0)
        return a;
    while (digits < len && isdigit((unsigned char)text[len - 1 - digits]))
        digits++;
    if (digits > 0 && digits + 1 < len && text[len - 1 - digits] == ':')
        a = plain_address(text, len - 1 - digits);
    return a;
}

static void plain_mask(struct address *a, int prefix)
{
    for (int bit = prefix; bit < 128; bit++)
        a->bytes[bit / 8] &= (unsigned char)~(0x80 >> bit % 8);
}

static bool plain_in_network(struct address a, const char *network)
{
    const char *slash = strchr(network, '/');
    struct address n = plain_address(network, slash ? (size_t)(slash - network) : strlen(network));
    int prefix = !slash                                 ? n.bits
                 : n.bits == 32 && strchr(network, ':') ? atoi(slash + 1) - 96
                                                        : atoi(slash + 1);

    plain_mask(&a, prefix);
    return a.bits != 0 && a.bits == n.bits && memcmp(a.bytes, n.bytes, 16) == 0;
}

/* -------------------------------------------------------------- values ---- */

static bool plain_glob(const char *p, const char *t, const char *end, bool path)
{
    if (*p == '\0')
        return t == end;
    if (p[0] == '*') {
        bool wide = !path || p[1] == '*';
        const char *rest = p + 1 + (path && p[1] == '*');
        for (;; t++) {
            if (plain_glob(rest, t, end, path))
                return true;
            if (t == end || (!wide && *t == '/'))
                return false;
        }
    }
    return t < end && (*p == '?' ? !path || *t != '/' : *p == *t) &&
           plain_glob(p + 1, t + 1, end, path);
}

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef",
               *found = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;

    return found ? (int)(found - digits) : -1;
}

/* Decoded, and cut before the query: then every segment is looked at, and the path put together
 * again. */
static size_t plain_decode(const char *uri, char *out)
{
    const char *scheme = strstr(uri, "://");
    size_t n = 0;

    if (scheme != NULL && scheme != uri && strcspn(uri, "/?#") == (size_t)(scheme - uri) + 1)
        uri = scheme + 3 + strcspn(scheme + 3, "/?#");
    for (; *uri && *uri != '?' && *uri != '#'; uri++) {
        bool escape = *uri == '%' && hex_digit(uri[1]) >= 0 && hex_digit(uri[2]) >= 0;
        out[n++] = escape ? (char)(hex_digit(uri[1]) * 16 + hex_digit(uri[2])) : *uri;
        uri += escape ? 2 : 0;
    }
    return n;
}

static void plain_path(struct value *v)
{
    char decoded[VALUE_MAX], out[VALUE_MAX] = "";

    if (v->len == 0 || strcmp(v->text, "*") == 0)
        return;
    size_t n = plain_decode(v->text, decoded);
    bool open = true; /* ends in a slash */
    for (size_t i = 0, len; i <= n; i += len + 1) {
        const char *end = memchr(decoded + i, '/', n - i);
        len = end ? (size_t)(end - decoded) - i : n - i;
        open = len == 0 || (len == 1 && decoded[i] == '.') ||
               (len == 2 && memcmp(decoded + i, "..", 2) == 0);
        if (!open)
            snprintf(out + strlen(out), sizeof(out) - strlen(out), "/%.*s", (int)len, decoded + i);
        else if (len == 2 && strrchr(out, '/'))
            *strrchr(out, '/') = '\0';
    }
    v->len = (size_t)snprintf(v->text, URI_MAX + 1, "%s%s", out, open ? "/" : "");
    v->len = v->len > URI_MAX ? URI_MAX : v->len;
}

static bool is_address(int attribute)
{
    return attribute == IP || attribute == PEER;
}

static bool plain_on_list(const struct set *set, const char *name, int attribute,
                          const struct value *v)
{
    for (int i = 0; i < set->lists; i++) {
        const struct list *l = &set->list[i];
        for (int k = 0; strcmp(l->name, name) == 0 && l->attribute == attribute && k < l->n; k++)
            if (is_address(attribute)
                    ? plain_in_network(plain_client(v->text, v->len), l->entries[k])
                    : strcmp(l->entries[k], v->text) == 0)
                return v->len > 0;
    }
    return false;
}

/* ------------------------------------------------------------ matching ---- */

static bool plain_holds(const struct set *set, const struct pattern *p, int attribute,
                        const struct value *v)
{
    switch (p->kind) {
    case EXACT:
        return strcmp(p->text, v->text) == 0;
    case PREFIX:
        return strncmp(p->text, v->text, strlen(p->text)) == 0;
    case GLOB:
        return plain_glob(p->text, v->text, v->text + v->len, attribute == URI);
    case CIDR:
        return plain_in_network(plain_client(v->text, v->len), p->text);
    case LIST:
        return plain_on_list(set, p->text, attribute, v);
    case PRESENT:
        break;
    }
    return true;
}

static bool plain_condition(const struct set *set, const struct condition *c,
                            const struct request *q)
{
    for (int i = 0; i < c->n; i++)
        if (q->seen[c->attribute].len > 0 &&
            plain_holds(set, &c->patterns[i], c->attribute, &q->seen[c->attribute]))
            return true;
    return false;
}

static bool plain_matches(const struct set *set, const struct rule *rule, const struct request *q)
{
    for (int i = 0; i < rule->matches; i++)
        if (!plain_condition(set, &rule->match[i], q))
            return false;
    for (int i = 0; i < rule->excepts; i++)
        if (plain_condition(set, &rule->except[i], q))
            return false;
    return true;
}

/* ---------------------------------------------------------------- keys ---- */

#define KEY_SIZE (6 * VALUE_MAX)

struct key {
    char id[KEY_SIZE];   /* no two keys have the same */
    char text[KEY_SIZE]; /* as people write it; no two have the same either */
};

/* So that texts are as good as keys: % and the first byte of whatever stands between two attributes
 * are written as %XX, and so is what nobody can read. */
static void add_escaped(char *out, const struct rule *rule, const char *value)
{
    for (out += strlen(out); *value; value++) {
        unsigned char c = (unsigned char)*value;
        bool taken = c < 0x20 || c == 0x7f || c == '%';
        for (int i = 1; i < rule->parts; i++)
            taken |= *rule->key[i].before == *value;
        out += sprintf(out, taken ? "%%%02X" : "%c", c);
    }
}

/* Of two addresses both are escaped, of one it is not. */
static void add_address(struct key *k, const struct rule *rule, const struct part *part,
                        struct address a)
{
    char text[INET6_ADDRSTRLEN + 8];
    int prefix = a.bits == 32 ? part->prefix4 : part->prefix6, addresses = 0;

    if (prefix < 0)
        prefix = a.bits == 32 ? 32 : 64;
    plain_mask(&a, prefix);
    inet_ntop(a.bits == 32 ? AF_INET : AF_INET6, a.bytes, text, sizeof(text));
    sprintf(k->id + strlen(k->id), "a%s,", text);
    if (prefix < a.bits)
        sprintf(text + strlen(text), "/%d", prefix);
    for (int i = 0; i < rule->parts; i++)
        addresses += is_address(rule->key[i].attribute);
    if (addresses > 1)
        add_escaped(k->text, rule, text);
    else
        strcat(k->text, text);
}

static bool plain_key(const struct rule *rule, const struct request *q, struct key *k)
{
    k->id[0] = k->text[0] = '\0';
    for (int i = 0; i < rule->parts; i++) {
        const struct part *part = &rule->key[i];
        const struct value *v = &q->seen[part->attribute];
        struct address a = { 0 };
        if (v->len == 0 && part->fallback == NULL)
            return false;
        if (v->len > 0 && is_address(part->attribute))
            a = plain_client(v->text, v->len);
        strcat(k->text, part->before);
        if (a.bits != 0) {
            add_address(k, rule, part, a);
            continue;
        }
        const char *value = v->len == 0                   ? part->fallback
                            : is_address(part->attribute) ? "not-an-address"
                                                          : v->text;
        sprintf(k->id + strlen(k->id), "v%zu:%s,", strlen(value), value);
        strcat(k->text, is_address(part->attribute) ? "?" : "");
        add_escaped(k->text, rule, value);
    }
    strcat(k->text, rule->after);
    return true;
}

/* Whether a key is listed as this: whole, or its beginning, dots, and the hash, which only the
 * table knows. */
static bool is_listed_as(const char *text, const char *listed)
{
    size_t len = strlen(listed);

    if (strlen(text) < TEXT_MAX)
        return strcmp(text, listed) == 0;
    return len < TEXT_MAX && len >= TEXT_MAX - 4 && strncmp(text, listed, len - 35) == 0 &&
           memcmp(listed + len - 35, "...", 3) == 0 &&
           strspn(listed + len - 32, "0123456789abcdef") == 32;
}

/* -------------------------------------------------------------- states ---- */

struct cell {
    struct cell *next;
    const struct limiter *limiter;
    char *key;
    uint64_t *state;
    bool charged; /* ever */
};

#define BUCKETS 4096

static struct cell *cells[BUCKETS];
static struct limiter *limiters;

static uint32_t hash_text(uint32_t h, const char *text)
{
    for (; *text; text++)
        h = h * 33 + (unsigned char)*text;
    return h;
}

static struct cell *plain_cell(const struct limiter *limiter, const char *key)
{
    struct cell **head = &cells[hash_text(hash_text(5381, limiter->owner), key) % BUCKETS];

    for (struct cell *c = *head; c != NULL; c = c->next)
        if (c->limiter == limiter && strcmp(c->key, key) == 0)
            return c;
    struct cell *new = calloc(1, sizeof(*new));
    *new = (struct cell){ *head, limiter, strdup(key),
                          calloc(1, weir_plan_state_size(limiter->plan) + 8), false };
    return *head = new;
}

/* A key that was never charged is in no table, and no change is told to it. */
static void plain_change(const struct limiter *limiter, const struct weir_plan *new, weir_time now)
{
    for (int i = 0; i < BUCKETS; i++)
        for (struct cell *c = cells[i]; c != NULL; c = c->next)
            if (c->limiter == limiter) {
                uint64_t *to = calloc(1, weir_plan_state_size(new) + 8);
                if (c->charged)
                    weir_step_change(limiter->plan, new, c->state, to, now);
                free(c->state);
                c->state = to;
            }
}

static struct limiter *find_limiter(const struct rule *rule, char sort, int number,
                                    const struct weir_limit *limit, char owner[400])
{
    struct limiter *l = limiters;

    snprintf(owner, 400, "%s%c%d-%s-%s", rule->name, sort, number, limit->algorithm, rule->made_of);
    while (l != NULL && strcmp(l->owner, owner) != 0)
        l = l->next;
    return l;
}

static struct weir_plan *make_plan(const struct weir_limit *limit)
{
    struct weir_plan *plan = NULL;

    if (weir_plan_create(&plan, limit, NULL) != WEIR_OK)
        abort();
    return plan;
}

static bool has_period(const struct rule *rule, int number, const struct weir_limit *limit)
{
    char owner[400];
    const struct limiter *l = find_limiter(rule, '#', number, limit, owner);

    return l != NULL && l->plan->limit.period == limit->period &&
           l->plan->limit.calendar == limit->calendar;
}

/* A limit has the first number where its period is; then the others have their place, or the first
 * that is free. */
static void plain_numbers(const struct rule *rule, int numbers[LIMITS_MAX])
{
    bool taken[LIMITS_MAX + 1] = { false };

    for (int i = 0; i < rule->limits; i++) {
        numbers[i] = 0;
        while (numbers[i] < LIMITS_MAX &&
               (taken[numbers[i]] || !has_period(rule, numbers[i], &rule->limit[i])))
            numbers[i]++;
        taken[numbers[i]] = numbers[i] < LIMITS_MAX;
    }
    for (int i = 0; i < rule->limits; i++) {
        if (numbers[i] < LIMITS_MAX)
            continue;
        numbers[i] = taken[i] ? 0 : i;
        while (taken[numbers[i]])
            numbers[i]++;
        taken[numbers[i]] = true;
    }
}

/* Whether putting this limit in force would change one that is there. */
static bool plain_would_change(const struct rule *rule, int index)
{
    char owner[400];
    int numbers[LIMITS_MAX];

    plain_numbers(rule, numbers);
    const struct limiter *l = find_limiter(rule, '#', numbers[index], &rule->limit[index], owner);
    struct weir_plan *plan = make_plan(&rule->limit[index]);
    bool would = l != NULL && !weir__limit_equal(&l->plan->limit, &plan->limit);

    weir_plan_destroy(plan);
    return would;
}

/* The limiter of that name, with this limit from now on. */
static struct limiter *plain_limiter(const struct rule *rule, char sort, int number,
                                     const struct weir_limit *limit, weir_time now)
{
    char owner[400];
    struct limiter *l = find_limiter(rule, sort, number, limit, owner);
    struct weir_plan *plan = make_plan(limit);

    if (l == NULL) {
        l = calloc(1, sizeof(*l));
        *l = (struct limiter){ limiters, strdup(owner), plan };
        return limiters = l;
    }
    if (weir__limit_equal(&l->plan->limit, &plan->limit)) {
        weir_plan_destroy(plan);
        return l;
    }
    plain_change(l, plan, now);
    weir_plan_destroy(l->plan);
    l->plan = plan;
    return l;
}

/* The set is put in force. */
static void plain_use(struct set *set, weir_time now)
{
    for (int i = 0; i < set->n; i++) {
        struct rule *r = &set->rules[i];
        int numbers[LIMITS_MAX];
        plain_numbers(r, numbers);
        for (int k = 0; k < r->limits; k++)
            r->limiter[k] = plain_limiter(r, '#', numbers[k], &r->limit[k], now);
        if (r->bans)
            r->counts = plain_limiter(r, '!', 0, &r->refusals, now);
    }
    memcpy(set->list, set->written, sizeof(set->list)); /* edited lists begin anew */
}

/* ---------------------------------------------------------------- bans ---- */

/* Known by the rule's name and the key's text, so it stays whatever the rule becomes. */
struct ban {
    char rule[24];
    char *text, *template, *spelling; /* of the rule then; the address as the request had it, if it
                                         is all of the key */
    weir_time since, until, forget_at;
    int strikes, next; /* next in its bucket; -1: none */
    bool listed;
};

#define BANS_MAX 65536

static struct ban bans[BANS_MAX];
static int n_bans, ban_buckets[BUCKETS]; /* place + 1 */

static struct ban *plain_ban(const struct rule *rule, const struct key *key,
                             const struct request *q)
{
    const char *text = key->text;
    int *head = &ban_buckets[hash_text(hash_text(5381, rule->name), text) % BUCKETS];

    for (int i = *head - 1; i >= 0; i = bans[i].next)
        if (strcmp(bans[i].rule, rule->name) == 0 && strcmp(bans[i].text, text) == 0)
            return &bans[i];
    if (n_bans == BANS_MAX)
        abort();
    struct ban *b = &bans[n_bans++];
    bool is_all = rule->parts == 1 && is_address(rule->key[0].attribute) && !*rule->key[0].before &&
                  !*rule->after;
    *b =
        (struct ban){ .text = strdup(text), .template = strdup(rule->template), .next = *head - 1 };
    const struct value *given = &q->given[rule->key[0].attribute];
    if (is_all && *text != '?' && plain_address(given->text, given->len).bits != 0)
        b->spelling = strdup(given->text);
    memcpy(b->rule, rule->name, sizeof(b->rule));
    *head = n_bans;
    return b;
}

/* A ban of which the clock has stepped back before the beginning, by more than a second, begins
 * anew. */
static void plain_follow(struct ban *b, weir_time now)
{
    weir_time back = b->since - now;

    if (b->until <= now || back <= WEIR_SECOND)
        return;
    b->since -= back;
    b->until -= back;
    b->forget_at -= back;
}

static void plain_strike(const struct rule *rule, struct ban *b, weir_time now)
{
    weir_time length = rule->length;

    if (b->forget_at <= now)
        b->strikes = 0;
    for (int i = 0; i < b->strikes; i++)
        length = length * rule->factor < rule->longest ? length * rule->factor : rule->longest;
    b->strikes++;
    b->since = now;
    b->until = now + length;
    b->forget_at = b->until + rule->forget;
}

static void plain_forget_all(void)
{
    for (int i = 0; i < BUCKETS; i++)
        for (struct cell *c = cells[i], *next; c != NULL; c = next) {
            next = c->next;
            free(c->key);
            free(c->state);
            free(c);
        }
    memset(cells, 0, sizeof(cells));
    for (struct limiter *l = limiters, *next; l != NULL; l = next) {
        next = l->next;
        weir_plan_destroy(l->plan);
        free(l->owner);
        free(l);
    }
    limiters = NULL;
    for (; n_bans > 0; n_bans--) {
        free(bans[n_bans - 1].text);
        free(bans[n_bans - 1].template);
        free(bans[n_bans - 1].spelling);
    }
    memset(ban_buckets, 0, sizeof(ban_buckets));
}

/* ------------------------------------------------------------ deciding ---- */

static enum weir_mode all_mode(const struct set *set)
{
    return set->switched ? set->switched : set->mode;
}

static enum weir_mode rule_mode(const struct set *set, const struct rule *rule)
{
    enum weir_mode own = rule->switched ? rule->switched : rule->mode, all = all_mode(set);

    return own == WEIR_OFF || all == WEIR_OFF         ? WEIR_OFF
           : own == WEIR_SHADOW || all == WEIR_SHADOW ? WEIR_SHADOW
                                                      : WEIR_ENFORCE;
}

/* A cost that is no number counts once; products that no number holds are the largest there is;
 * what is negative is a mistake. */
static int64_t plain_cost(const struct rule *rule, const struct request *q)
{
    __int128 times = 1, most = INT64_MAX, cost;

    if (rule->cost_attribute >= 0) {
        const struct value *v = &q->seen[rule->cost_attribute];
        if (v->len > 0 && strspn(v->text, "0123456789") == v->len)
            times = v->len > 18 ? most : (__int128)atoll(v->text);
    }
    cost = rule->cost * times > most ? most : rule->cost * times;
    cost *= q->ask.cost;
    return q->ask.cost < 0 ? -1 : cost > most ? INT64_MAX : (int64_t)cost;
}

/* The window's present length, by the C library's calendar. */
static weir_time plain_window(const struct weir_limit *l, weir_time now)
{
    if (l->calendar == WEIR_NO_CALENDAR)
        return l->period;
    time_t t = (time_t)(now / WEIR_SECOND);
    struct tm begin, end;
    setenv("TZ", l->zone[0] ? l->zone : "UTC", 1);
    tzset();
    localtime_r(&t, &begin);
    begin.tm_sec = begin.tm_min = begin.tm_hour = 0;
    if (l->calendar == WEIR_WEEK)
        begin.tm_mday -= (begin.tm_wday + 6) % 7;
    if (l->calendar == WEIR_MONTH)
        begin.tm_mday = 1;
    end = begin;
    end.tm_mday += l->calendar == WEIR_DAY ? 1 : l->calendar == WEIR_WEEK ? 7 : 0;
    end.tm_mon += l->calendar == WEIR_MONTH;
    begin.tm_isdst = end.tm_isdst = -1;
    return ((weir_time)mktime(&end) - (weir_time)mktime(&begin)) * WEIR_SECOND;
}

/* One limit that applies. */
struct item {
    struct rule *rule;
    int index;
    struct cell *cell;
    struct weir_ask ask;
};

/* All or nothing: looked at one by one, then taken one by one. */
static bool plain_take_all(const struct item *items, int n, struct weir_decision *all)
{
    *all = (struct weir_decision){ .allowed = true };
    struct weir_decision d[64];
    for (int i = 0; i < n; i++) {
        weir_step_peek(items[i].cell->limiter->plan, items[i].cell->state, &items[i].ask, &d[i]);
        bool never = d[i].reason == WEIR_TOO_BIG && all->reason == WEIR_LIMITED;
        bool named =
            i == 0 || never || (all->allowed && (!d[i].allowed || d[i].remaining < all->remaining));
        struct weir_decision before = *all;
        if (named) {
            *all = d[i];
            all->item = (uint16_t)i;
        }
        all->wait = d[i].wait > before.wait ? d[i].wait : before.wait;
        all->retry = d[i].retry > before.retry ? d[i].retry : before.retry;
        all->reset = d[i].reset > before.reset ? d[i].reset : before.reset;
    }
    if (!all->allowed)
        all->wait = 0;
    for (int i = 0; i < n; i++) {
        struct weir_ask ask = items[i].ask;
        struct weir_decision unused;
        if ((!all->allowed && d[i].allowed) || (all->allowed && n > 1 && ask.cost == 0))
            continue; /* a look among several is written nowhere */
        if (!all->allowed && n > 1)
            ask.cost = 0, ask.wait_max = 0; /* only a clock that stepped back is noted */
        weir_step(items[i].cell->limiter->plan, items[i].cell->state, &ask, &unused);
        items[i].cell->charged |= all->allowed && ask.cost > 0;
    }
    return all->allowed;
}

static int plain_level(const struct weir_decision *d)
{
    __int128 left = d->remaining;

    return !d->allowed ? 3 : left * 8 < d->limit ? 2 : left * 2 < d->limit ? 1 : 0;
}

static void plain_refusal(struct rule *rule, const struct request *q, struct weir_ruling *out)
{
    struct weir_ask one = { .cost = 1, .now = q->ask.now };
    struct weir_decision d;
    struct key key;

    rule->tally.refused++;
    if (!rule->bans || q->ask.cost <= 0)
        return;
    plain_key(rule, q, &key);
    struct cell *c = plain_cell(rule->counts, key.text);
    c->charged = true;
    if (weir_step(rule->counts->plan, c->state, &one, &d) && d.remaining > 0)
        return;
    one.cost = INT64_MAX;
    weir_step_give(rule->counts->plan, c->state, &one);
    struct ban *b = plain_ban(rule, &key, q);
    plain_strike(rule, b, q->ask.now);
    out->banned_until = b->until;
    if (b->until - q->ask.now > out->decision.retry)
        out->decision.retry = b->until - q->ask.now; /* until then the same ask does not pass */
}

static bool plain_by_list(const struct set *set, const struct request *q, struct weir_ruling *out)
{
    for (int deny = 1; deny >= 0; deny--)
        for (int a = 0; a < ATTRIBUTES; a++)
            if (q->seen[a].len > 0 && plain_on_list(set, deny ? "deny" : "allow", a, &q->seen[a])) {
                out->list = deny ? "deny" : "allow";
                if (deny && out->mode == WEIR_SHADOW)
                    return false; /* it would have been refused */
                if (deny) {
                    out->decision =
                        (struct weir_decision){ .reason = WEIR_DENIED, .retry = WEIR_NEVER };
                    out->level = 3;
                }
                return true;
            }
    return false;
}

static weir_time plain_banned(const struct rule *rule, const struct key *key,
                              const struct request *q)
{
    struct ban *b = plain_ban(rule, key, q);

    plain_follow(b, q->ask.now);
    return b->until > q->ask.now ? b->until : 0;
}

static void plain_refuse_banned(struct rule *rule, weir_time until, weir_time now,
                                struct weir_ruling *out)
{
    rule->tally.banned++;
    out->rule = rule->name;
    out->banned_until = until;
    out->decision =
        (struct weir_decision){ .reason = WEIR_BANNED, .retry = until - now, .reset = until - now };
    out->level = 3;
}

/* It would have refused. */
static void plain_shadow(struct rule *rule, struct weir_ruling *out)
{
    rule->tally.shadow_refused++;
    out->shadow = out->shadow ? out->shadow : rule->name;
}

/* The limits that are asked: of rules that enforce, then of those in shadow. */
struct applying {
    struct rule *over; /* the first that enforces and had no room */
    int found, rules, enforcing, items, enforced;
    bool full; /* the first that finds no room ends it; of those behind it only bans count */
    struct rule *matching[RULES_MAX], *rule[WEIR_ALL_MAX];
    struct item item[WEIR_ALL_MAX];
};

/* False: the key is banned. */
static bool plain_apply(struct rule *rule, enum weir_mode mode, const struct request *q,
                        struct applying *a, struct weir_ruling *out)
{
    struct key key;

    if (!plain_key(rule, q, &key))
        return true;
    weir_time until = plain_banned(rule, &key, q);
    if (until > 0 && mode == WEIR_ENFORCE)
        plain_refuse_banned(rule, until, q->ask.now, out);
    else if (until > 0)
        plain_shadow(rule, out);
    if (until > 0)
        return false;
    if (a->items + rule->limits > WEIR_ALL_MAX) {
        a->over = a->full || mode != WEIR_ENFORCE ? a->over : rule;
        a->full = true;
    }
    if (a->full)
        return true;
    for (int k = 0; k < rule->limits; k++) {
        struct weir_ask ask = { .cost = plain_cost(rule, q),
                                .wait_max = q->ask.wait_max,
                                .now = q->ask.now };
        a->item[a->items++] = (struct item){ rule, k, plain_cell(rule->limiter[k], key.id), ask };
    }
    a->rule[a->rules++] = rule;
    return true;
}

/* All of one mode.  False: refused, because a key is banned. */
static bool plain_apply_all(const struct set *set, enum weir_mode mode, const struct request *q,
                            struct applying *a, struct weir_ruling *out)
{
    a->full = false;
    for (int i = 0; i < a->found; i++)
        if (rule_mode(set, a->matching[i]) == mode &&
            !plain_apply(a->matching[i], mode, q, a, out) && mode == WEIR_ENFORCE)
            return false;
    out->cut |= a->full;
    return true;
}

static bool plain_gather(struct set *set, const struct request *q, struct applying *a,
                         struct weir_ruling *out)
{
    a->found = a->rules = a->items = 0;
    a->over = NULL;
    for (int i = 0; i < set->n; i++)
        if (plain_matches(set, &set->rules[i], q))
            a->matching[a->found++] = &set->rules[i];
    if (!plain_apply_all(set, WEIR_ENFORCE, q, a, out))
        return false;
    a->enforcing = a->rules;
    a->enforced = a->items;
    plain_apply_all(set, WEIR_SHADOW, q, a, out);
    out->applied = (uint16_t)a->rules;
    return true;
}

static void plain_shadows(const struct applying *a, struct weir_ruling *out)
{
    for (int i = a->enforcing, at = a->enforced; i < a->rules; at += a->rule[i++]->limits) {
        struct weir_decision d;
        if (plain_take_all(a->item + at, a->rule[i]->limits, &d))
            a->rule[i]->tally.allowed++;
        else
            plain_shadow(a->rule[i], out);
    }
}

/* False: refused. */
static bool plain_enforced(const struct applying *a, const struct request *q,
                           struct weir_ruling *out)
{
    if (a->over != NULL) { /* no limit is skipped */
        a->over->tally.refused++;
        out->rule = a->over->name;
        out->decision = (struct weir_decision){ .reason = WEIR_TOO_MANY, .retry = WEIR_NEVER };
        out->level = 3;
        out->shadow = NULL;
        return false;
    }
    if (a->enforced == 0)
        return true;
    plain_take_all(a->item, a->enforced, &out->decision);
    const struct item *named = &a->item[out->decision.item];
    out->rule = named->rule->name;
    out->limit_index = (uint16_t)named->index;
    out->count = named->rule->limit[named->index].count;
    out->window = plain_window(&named->rule->limit[named->index], q->ask.now);
    out->level = (uint8_t)plain_level(&out->decision);
    if (!out->decision.allowed) {
        out->shadow = NULL;
        plain_refusal(named->rule, q, out);
    }
    return out->decision.allowed;
}

/* The request as the rules see it. */
static void plain_look(struct request *q)
{
    memcpy(q->seen, q->given, sizeof(q->seen));
    plain_path(&q->seen[URI]);
    q->ask.now = q->ask.now < 0 ? 0 : q->ask.now;
}

/* The request's key is as good as fresh to the rules that match, or to the one; returns how
 * many. */
static int plain_reset(struct set *set, const struct request *given, const struct rule *only)
{
    static struct request q;
    static struct key key;
    int n = 0;

    q = *given;
    plain_look(&q);
    for (int i = 0; i < set->n; i++) {
        struct rule *r = &set->rules[i];
        if ((only != NULL && r != only) || !plain_matches(set, r, &q) || !plain_key(r, &q, &key))
            continue;
        for (int k = 0; k < r->limits; k++)
            memset(plain_cell(r->limiter[k], key.id)->state, 0,
                   weir_plan_state_size(r->limiter[k]->plan));
        if (r->bans)
            memset(plain_cell(r->counts, key.text)->state, 0,
                   weir_plan_state_size(r->counts->plan));
        struct ban *b = plain_ban(r, &key, &q);
        b->since = b->until = b->forget_at = b->strikes = 0;
        n++;
    }
    return n;
}

/* The text of the key that was refused; "" if none was. */
static void plain_told(const struct set *set, const struct request *given,
                       const struct weir_ruling *ruling, struct key *key)
{
    static struct request q;
    int reason = ruling->decision.reason;

    key->text[0] = '\0';
    if (reason != WEIR_LIMITED && reason != WEIR_TOO_BIG && reason != WEIR_BANNED)
        return;
    q = *given;
    plain_look(&q);
    for (int i = 0; i < set->n; i++)
        if (strcmp(set->rules[i].name, ruling->rule) == 0)
            plain_key(&set->rules[i], &q, key);
}

static void plain_total(struct weir_totals *t, const struct weir_ruling *r)
{
    bool deny = r->list != NULL && strcmp(r->list, "deny") == 0,
         shadow = r->decision.allowed && (deny || r->shadow != NULL);

    t->checked++;
    t->allowed += r->decision.allowed;
    t->refused += !r->decision.allowed;
    t->denied += !r->decision.allowed && deny;
    t->allow_listed += r->list != NULL && !deny;
    t->shadow_refused += shadow;
    t->unmatched += r->decision.allowed && r->list == NULL && r->applied == 0 && !shadow;
}

static void plain_check(struct set *set, const struct request *given, struct weir_ruling *out)
{
    static struct applying a;
    static struct request q;

    q = *given;
    plain_look(&q);
    *out = (struct weir_ruling){ .decision = { .allowed = true }, .mode = (uint8_t)all_mode(set) };
    if (out->mode == WEIR_OFF || plain_by_list(set, &q, out) || !plain_gather(set, &q, &a, out) ||
        !plain_enforced(&a, &q, out))
        return;
    plain_shadows(&a, out);
    for (int i = 0; i < a.enforcing; i++)
        a.rule[i]->tally.allowed++;
}

#endif
