/* plain.h -- rules decided as plainly as possible: what tests/property/rules.c holds the engine against.
 *
 * Written from what weir.h, draft.h, template.h, words.h and address.h promise, and from nothing of lib/rules or lib/engine: every rule is
 * tried, every pattern is compared by the shortest code that can, states are found by a string.  Only the steps are the library's own
 * (weir_step), because those have tests of their own.
 */
#ifndef WEIR_TESTS_PLAIN_H
#define WEIR_TESTS_PLAIN_H

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weir.h"

#define RULES_MAX   220
#define VALUE_MAX   512
#define KNOWN_LEVEL true
#define FOUND_MAX   128 /* WEIR__FOUND_MAX: rules that are looked at for one request */

enum attribute { IP, PEER, URI, METHOD, ACCOUNT, PLAN, HEADER, BYTES, ATTRIBUTES };
static const char *const attribute_names[ATTRIBUTES] = { "ip", "peer.ip", "uri", "method", "account", "plan", "header.x-key", "bytes" };

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

struct rule {
    char name[24];
    int matches, excepts, parts, limits;
    struct condition match[4], except[3];
    struct part key[3];
    const char *after;
    struct weir_limit limit[3], refusals;
    struct weir_plan *plan[3], *refusals_plan;
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
    snprintf(copy, sizeof copy, "%.*s", (int)(bracket ? len - 2 : len), text + bracket);
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

static void plain_mask(struct address *a, int prefix)
{
    for (int bit = prefix; bit < 128; bit++)
        a->bytes[bit / 8] &= (unsigned char)~(0x80 >> bit % 8);
}

static bool plain_in_network(struct address a, const char *network)
{
    const char *slash = strchr(network, '/');
    struct address n = plain_address(network, slash ? (size_t)(slash - network) : strlen(network));
    int prefix = slash ? atoi(slash + 1) : n.bits;
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
    return t < end && (*p == '?' ? !path || *t != '/' : *p == *t) && plain_glob(p + 1, t + 1, end, path);
}

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef", *found = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* Decoded, and cut before the query: then every segment is looked at, and the path put together again. */
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
        open = len == 0 || (len == 1 && decoded[i] == '.') || (len == 2 && memcmp(decoded + i, "..", 2) == 0);
        if (!open)
            snprintf(out + strlen(out), sizeof out - strlen(out), "/%.*s", (int)len, decoded + i);
        else if (len == 2 && strrchr(out, '/'))
            *strrchr(out, '/') = '\0';
    }
    v->len = (size_t)snprintf(v->text, sizeof v->text, "%s%s", out, open ? "/" : "");
}

static bool is_address(int attribute)
{
    return attribute == IP || attribute == PEER;
}

static bool plain_on_list(const struct set *set, const char *name, int attribute, const struct value *v)
{
    for (int i = 0; i < set->lists; i++) {
        const struct list *l = &set->list[i];
        for (int k = 0; strcmp(l->name, name) == 0 && l->attribute == attribute && k < l->n; k++)
            if (is_address(attribute) ? plain_in_network(plain_address(v->text, v->len), l->entries[k])
                                      : strcmp(l->entries[k], v->text) == 0)
                return v->len > 0;
    }
    return false;
}

/* ------------------------------------------------------------ matching ---- */

static bool plain_holds(const struct set *set, const struct pattern *p, int attribute, const struct value *v)
{
    switch (p->kind) {
    case EXACT:
        return strcmp(p->text, v->text) == 0;
    case PREFIX:
        return strncmp(p->text, v->text, strlen(p->text)) == 0;
    case GLOB:
        return plain_glob(p->text, v->text, v->text + v->len, attribute == URI);
    case CIDR:
        return plain_in_network(plain_address(v->text, v->len), p->text);
    case LIST:
        return plain_on_list(set, p->text, attribute, v);
    case PRESENT:
        break;
    }
    return true;
}

static bool plain_condition(const struct set *set, const struct condition *c, const struct request *q)
{
    for (int i = 0; i < c->n; i++)
        if (q->seen[c->attribute].len > 0 && plain_holds(set, &c->patterns[i], c->attribute, &q->seen[c->attribute]))
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
    char text[KEY_SIZE]; /* as people write it */
};

static void add_escaped(char *out, const char *value, char stop)
{
    for (; *value; value++) {
        unsigned char c = (unsigned char)*value;
        sprintf(out + strlen(out), c < 0x20 || c == 0x7f || c == '%' || (stop && c == (unsigned char)stop) ? "%%%02X" : "%c", c);
    }
}

static void add_address(struct key *k, const struct part *part, struct address a)
{
    char text[INET6_ADDRSTRLEN];
    int prefix = a.bits == 32 ? part->prefix4 : part->prefix6;
    plain_mask(&a, prefix < 0 ? a.bits : prefix);
    inet_ntop(a.bits == 32 ? AF_INET : AF_INET6, a.bytes, text, sizeof text);
    sprintf(k->id + strlen(k->id), "a%s,", text);
    sprintf(k->text + strlen(k->text), prefix < 0 ? "%s" : "%s/%d", text, prefix);
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
            a = plain_address(v->text, v->len);
        strcat(k->text, part->before);
        if (a.bits != 0) {
            add_address(k, part, a);
            continue;
        }
        const char *value = v->len > 0 ? v->text : part->fallback;
        sprintf(k->id + strlen(k->id), "v%zu:%s,", strlen(value), value);
        add_escaped(k->text, value, i + 1 < rule->parts ? rule->key[i + 1].before[0] : '\0');
    }
    strcat(k->text, rule->after);
    return true;
}

/* -------------------------------------------------------------- states ---- */

struct cell {
    struct cell *next;
    char owner[40]; /* rule's name and which limit */
    char *key;
    uint64_t *state;
    bool charged; /* ever */
};

static struct cell *cells[4096];

static struct cell *plain_cell(const struct rule *rule, int index, const char *key, const struct weir_plan *plan)
{
    char owner[40];
    uint32_t h = 5381;
    snprintf(owner, sizeof owner, "%s#%d", rule->name, index);
    for (const char *c = owner; *c; c++)
        h = h * 33 + (unsigned char)*c;
    for (const char *c = key; *c; c++)
        h = h * 33 + (unsigned char)*c;
    struct cell **head = &cells[h % 4096];
    for (struct cell *c = *head; c != NULL; c = c->next)
        if (strcmp(c->owner, owner) == 0 && strcmp(c->key, key) == 0)
            return c;
    struct cell *new = calloc(1, sizeof *new);
    memcpy(new->owner, owner, sizeof owner);
    new->key = strdup(key);
    new->state = calloc(1, weir_plan_state_size(plan) + 8);
    new->next = *head;
    return *head = new;
}

/* A key that was never charged is in no table, and no change is told to it. */
static void plain_change(const struct rule *rule, int index, const struct weir_plan *old, const struct weir_plan *new, weir_time now)
{
    char owner[40];
    snprintf(owner, sizeof owner, "%s#%d", rule->name, index);
    for (int i = 0; i < 4096; i++)
        for (struct cell *c = cells[i]; c != NULL; c = c->next)
            if (strcmp(c->owner, owner) == 0) {
                uint64_t *to = calloc(1, weir_plan_state_size(new) + 8);
                if (c->charged)
                    weir_step_change(old, new, c->state, to, now);
                free(c->state);
                c->state = to;
            }
}

/* ---------------------------------------------------------------- bans ---- */

struct ban {
    char rule[24];
    char *key, *text;
    weir_time since, until, forget_at;
    int strikes;
};

static struct ban bans[4096];
static int n_bans;

static struct ban *plain_ban(const char *rule, const struct key *key)
{
    for (int i = 0; i < n_bans; i++)
        if (strcmp(bans[i].rule, rule) == 0 && strcmp(bans[i].key, key->id) == 0)
            return &bans[i];
    struct ban *b = &bans[n_bans++];
    *b = (struct ban){ .key = strdup(key->id), .text = strdup(key->text) };
    snprintf(b->rule, sizeof b->rule, "%s", rule);
    return b;
}

/* A ban of which the clock has stepped back before the beginning, by more than a second, begins anew. */
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
    for (int i = 0; i < 4096; i++)
        for (struct cell *c = cells[i], *next; c != NULL; c = next) {
            next = c->next;
            free(c->key);
            free(c->state);
            free(c);
        }
    memset(cells, 0, sizeof cells);
    for (; n_bans > 0; n_bans--) {
        free(bans[n_bans - 1].key);
        free(bans[n_bans - 1].text);
    }
}

/* ------------------------------------------------------------ deciding ---- */

static enum weir_mode all_mode(const struct set *set)
{
    return set->switched ? set->switched : set->mode;
}

static enum weir_mode rule_mode(const struct set *set, const struct rule *rule)
{
    enum weir_mode own = rule->switched ? rule->switched : rule->mode, all = all_mode(set);
    return own == WEIR_OFF || all == WEIR_OFF ? WEIR_OFF : own == WEIR_SHADOW || all == WEIR_SHADOW ? WEIR_SHADOW : WEIR_ENFORCE;
}

/* A cost that is no number counts once; products that no number holds are the largest there is. */
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
    return cost > most ? INT64_MAX : cost < 0 ? -1 : (int64_t)cost;
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
        weir_step_peek(items[i].rule->plan[items[i].index], items[i].cell->state, &items[i].ask, &d[i]);
        bool named = i == 0 || (all->allowed && (!d[i].allowed || d[i].remaining < all->remaining));
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
    if (all->reason == WEIR_LIMITED && all->retry == WEIR_NEVER)
        all->reason = WEIR_TOO_BIG;
    for (int i = 0; i < n; i++) {
        struct weir_ask ask = items[i].ask;
        struct weir_decision unused;
        if ((!all->allowed && d[i].allowed) || (all->allowed && n > 1 && ask.cost == 0))
            continue; /* a look among several is written nowhere */
        if (!all->allowed && n > 1)
            ask.cost = 0, ask.wait_max = 0; /* only a clock that stepped back is noted */
        weir_step(items[i].rule->plan[items[i].index], items[i].cell->state, &ask, &unused);
        items[i].cell->charged |= all->allowed && ask.cost > 0;
    }
    return all->allowed;
}

/* EXCLUDED until mended: halves and eighths are rounded down, so a limit of 1 that is spent is at level 0. */
static int plain_level(const struct weir_decision *d)
{
    __int128 left = d->remaining;
    if (KNOWN_LEVEL)
        return !d->allowed ? 3 : d->remaining < d->limit / 8 ? 2 : d->remaining < d->limit / 2 ? 1 : 0;
    return !d->allowed ? 3 : left * 8 < d->limit ? 2 : left * 2 < d->limit ? 1 : 0;
}

static void plain_refusal(struct rule *rule, const struct request *q, struct weir_ruling *out)
{
    struct weir_ask one = { .cost = 1, .now = q->ask.now };
    struct weir_decision d;
    struct key key;
    rule->tally.refused++;
    if (!rule->bans || q->ask.cost == 0)
        return;
    plain_key(rule, q, &key);
    struct cell *c = plain_cell(rule, -1, key.id, rule->refusals_plan);
    if (weir_step(rule->refusals_plan, c->state, &one, &d) && d.remaining > 0)
        return;
    one.cost = INT64_MAX;
    weir_step_give(rule->refusals_plan, c->state, &one);
    struct ban *b = plain_ban(rule->name, &key);
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
                if (deny && out->mode == WEIR_ENFORCE) {
                    out->decision = (struct weir_decision){ .reason = WEIR_DENIED, .retry = WEIR_NEVER };
                    out->level = 3;
                }
                return true;
            }
    return false;
}

static bool plain_banned(struct rule *rule, const struct key *key, weir_time now, struct weir_ruling *out)
{
    struct ban *b = plain_ban(rule->name, key);
    plain_follow(b, now);
    if (b->until <= now)
        return false;
    rule->tally.banned++;
    out->rule = rule->name;
    out->banned_until = b->until;
    out->decision = (struct weir_decision){ .reason = WEIR_BANNED, .retry = b->until - now, .reset = b->until - now };
    out->level = 3;
    out->applied = 0;
    return true;
}

struct applying {
    int rules, enforced, shadows;
    struct rule *rule[64];
    bool shadow[64];
    struct item items[64], shadow_items[64];
};

/* False: a key is banned. */
static bool plain_gather(struct set *set, const struct request *q, struct applying *a, struct weir_ruling *out)
{
    int found = 0;
    for (int i = 0; i < set->n; i++) {
        struct rule *rule = &set->rules[i];
        enum weir_mode mode = rule_mode(set, rule);
        struct key key;
        if (!plain_matches(set, rule, q) || ++found > FOUND_MAX || mode == WEIR_OFF || a->rules == 64 || !plain_key(rule, q, &key))
            continue;
        if (mode == WEIR_ENFORCE && plain_banned(rule, &key, q->ask.now, out))
            return false;
        if (a->enforced + a->shadows + rule->limits > WEIR_ALL_MAX)
            continue;
        for (int k = 0; k < rule->limits; k++) {
            struct weir_ask ask = { .cost = plain_cost(rule, q), .wait_max = q->ask.wait_max, .now = q->ask.now };
            struct item item = { rule, k, plain_cell(rule, k, key.id, rule->plan[k]), ask };
            if (mode == WEIR_SHADOW)
                a->shadow_items[a->shadows++] = item;
            else
                a->items[a->enforced++] = item;
        }
        a->shadow[a->rules] = mode == WEIR_SHADOW;
        a->rule[a->rules++] = rule;
    }
    out->applied = (uint16_t)a->rules;
    return true;
}

static void plain_shadows(struct applying *a, struct weir_ruling *out)
{
    for (int i = 0, at = 0; i < a->rules; i++) {
        struct weir_decision d;
        if (!a->shadow[i])
            continue;
        bool allowed = plain_take_all(a->shadow_items + at, a->rule[i]->limits, &d);
        at += a->rule[i]->limits;
        *(allowed ? &a->rule[i]->tally.allowed : &a->rule[i]->tally.shadow_refused) += 1;
        if (!allowed && out->shadow == NULL)
            out->shadow = a->rule[i]->name;
    }
}

static void plain_check(struct set *set, struct request *q, struct weir_ruling *out)
{
    struct applying a = { 0 };
    *out = (struct weir_ruling){ .decision = { .allowed = true }, .mode = (uint8_t)all_mode(set) };
    memcpy(q->seen, q->given, sizeof q->seen);
    plain_path(&q->seen[URI]);
    if (out->mode == WEIR_OFF || plain_by_list(set, q, out) || !plain_gather(set, q, &a, out))
        return;
    if (a.enforced > 0) {
        plain_take_all(a.items, a.enforced, &out->decision);
        struct item *named = &a.items[out->decision.item];
        out->rule = named->rule->name;
        out->limit_index = (uint16_t)named->index;
        out->count = named->rule->limit[named->index].count;
        out->window = plain_window(&named->rule->limit[named->index], q->ask.now);
        out->level = (uint8_t)plain_level(&out->decision);
        if (!out->decision.allowed) {
            plain_refusal(named->rule, q, out);
            return;
        }
    }
    plain_shadows(&a, out);
    for (int i = 0; i < a.rules; i++)
        a.rule[i]->tally.allowed += !a.shadow[i];
}

#endif
