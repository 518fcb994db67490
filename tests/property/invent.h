/* invent.h -- rule sets made up at random, as a model for plain.h and as YAML for the engine;
 * tests/property/rules.c plays with them. */
#ifndef WEIR_TESTS_PROPERTY_INVENT_H
#define WEIR_TESTS_PROPERTY_INVENT_H

#include <inttypes.h>
#include <stdarg.h>

#include "plain.h"
#include "rounds.h"

/* ------------------------------------------------------------ material ---- */

#define LONG     "0123456789012345678901234567890123456789abcdefghijklmnopqrstuvwxyz"
#define TWICE(s) s s
#define OFTEN(s) TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(s)))))))) /* 256 times */

/* What requests bring, often enough what patterns ask for. */
static const char *const values[ATTRIBUTES][32] = {
    [IP] = { "10.0.0.1",
             "10.0.0.2",
             "10.0.1.1",
             "10.128.0.1",
             "192.0.2.7",
             "192.0.2.70",
             "2001:db8::1",
             "2001:DB8:0:0::1",
             "2001:db8:0:1::1",
             "::ffff:10.0.0.1",
             "[2001:db8::1]",
             "::1",
             "unknown",
             "10.0.0.256",
             "::ffff:0:7",
             "010.0.0.1",
             "10.0.0.1 ",
             "10.0.0.2:8080",
             "[2001:db8::1]:443",
             "2001:db8::1:443",
             "1.2.3",
             "1.2.3.4.5",
             "[10.0.0.1]",
             "fe80::1%eth0",
             "?",
             "?unknown",
             "10.0.0.0/24",
             ":::",
             "1:2:3:4:5:6:7:8",
             LONG LONG LONG,
             "" },
    [PEER] = { "10.0.0.1", "10.0.0.9", "2001:db8::1", "fe80::1", "0.0.0.0", "-",
               "::", "::ffff:10.0.0.9", "10.0.0.1:80", "" },
    [URI] = { "/",
              "/login",
              "/login/",
              "/api/",
              "/api/v1",
              "/api/v1/users",
              "/api/v1/users/7",
              "/api/v2",
              "/admin",
              "/admin/x",
              "//login",
              "/%6cogin",
              "/x/../login",
              "http://host/login?x=1",
              "/login#f",
              "/api/./v1",
              "/static/a.css",
              "*",
              "login",
              "/api/%76%31?a=/b",
              "/../../api/v2/.",
              "/loginx",
              OFTEN("/abcdefgh"),
              "/" OFTEN("x/../y/../") "login",
              "" },
    [METHOD] = { "GET", "POST", "PUT", "DELETE", "P", "" },
    [ACCOUNT] = { "alice",
                  "alicia",
                  "al",
                  "bob",
                  "carol",
                  "mallory",
                  "a:b",
                  "100%",
                  "a b",
                  LONG,
                  LONG "x",
                  "b/24",
                  "2",
                  "10.0.0.1",
                  ":a",
                  "\xc3\xa4",
                  "a\nb",
                  "%3A",
                  LONG LONG LONG "y",
                  LONG LONG LONG "z",
                  "" },
    [PLAN] = { "free", "gold", "goldfish", "silver", "*", "" },
    [HEADER] = { "k1", "k2", "k12", "key-with-dashes", "K1", "" },
    [BYTES] = { "0", "1", "2", "5", "17", "abc", "1x", "-1", "99999999999999999999",
                "9223372036854775807", "" },
};

static const struct {
    int attribute;
    struct pattern pattern;
    const char *written; /* NULL: as the pattern's text */
} patterns[] = {
    { URI, { EXACT, "/login", false }, NULL },
    { URI, { EXACT, "/api/v1", false }, NULL },
    { URI, { EXACT, "/", false }, NULL },
    { URI, { EXACT, "/admin", true }, NULL },
    { URI, { PREFIX, "/", false }, "/**" },
    { URI, { PREFIX, "/api/", false }, "/api/**" },
    { URI, { PREFIX, "/api/v1", false }, "/api/v1**" },
    { URI, { PREFIX, "/api/v1/users", false }, "/api/v1/users**" },
    { URI, { PREFIX, "/lo", true }, NULL },
    { URI, { PREFIX, "/login", true }, NULL },
    { URI, { GLOB, "/api/*", false }, NULL },
    { URI, { GLOB, "/api/*/users", false }, NULL },
    { URI, { GLOB, "**.css", false }, NULL },
    { URI, { GLOB, "/**/users/?", false }, NULL },
    { URI, { GLOB, "/?ogin", true }, NULL },
    { URI, { PRESENT, "*", false }, NULL },
    { METHOD, { EXACT, "GET", false }, NULL },
    { METHOD, { EXACT, "POST", false }, NULL },
    { METHOD, { EXACT, "PUT", true }, NULL },
    { METHOD, { PREFIX, "P", false }, "P*" },
    { METHOD, { GLOB, "*ET", false }, NULL },
    { METHOD, { PRESENT, "*", false }, NULL },
    { ACCOUNT, { EXACT, "alice", false }, NULL },
    { ACCOUNT, { EXACT, "a:b", false }, NULL },
    { ACCOUNT, { PREFIX, "al", false }, "al*" },
    { ACCOUNT, { PREFIX, "alic", true }, NULL },
    { ACCOUNT, { PREFIX, "0123456789", false }, "0123456789*" },
    { ACCOUNT, { EXACT, LONG, false }, NULL },
    { ACCOUNT, { GLOB, "*l*", false }, NULL },
    { ACCOUNT, { GLOB, "??ro?", false }, NULL },
    { ACCOUNT, { LIST, "vips", true }, NULL },
    { ACCOUNT, { PRESENT, "*", false }, NULL },
    { PLAN, { EXACT, "free", false }, NULL },
    { PLAN, { EXACT, "gold", false }, NULL },
    { PLAN, { EXACT, "*", true }, NULL },
    { PLAN, { PREFIX, "gold", false }, "gold*" },
    { PLAN, { PRESENT, "*", false }, "**" },
    { HEADER, { EXACT, "k1", false }, NULL },
    { HEADER, { PREFIX, "k1", false }, "k1*" },
    { HEADER, { GLOB, "k?", false }, NULL },
    { HEADER, { GLOB, "*-*-*", false }, NULL },
    { HEADER, { LIST, "vips", true }, NULL },
    { IP, { CIDR, "10.0.0.0/8", false }, NULL },
    { IP, { CIDR, "10.0.0.0/24", false }, NULL },
    { IP, { CIDR, "10.0.0.1", false }, NULL },
    { IP, { CIDR, "0.0.0.0/0", false }, NULL },
    { IP, { CIDR, "10.0.0.0/9", false }, NULL },
    { IP, { CIDR, "192.0.2.0/24", false }, NULL },
    { IP, { CIDR, "::/0", false }, NULL },
    { IP, { CIDR, "2001:db8::/32", false }, NULL },
    { IP, { CIDR, "2001:db8::/64", false }, NULL },
    { IP, { CIDR, "2001:db8::1", false }, NULL },
    { IP, { LIST, "office", true }, NULL },
    { IP, { PRESENT, "*", false }, NULL },
    { PEER, { CIDR, "10.0.0.0/29", false }, NULL },
    { PEER, { CIDR, "fe80::/10", false }, NULL },
    { PEER, { LIST, "office", true }, NULL },
    { BYTES, { EXACT, "0", false }, NULL },
    { BYTES, { GLOB, "?", false }, NULL },
};

#define PATTERNS (int)(sizeof(patterns) / sizeof(*patterns))

/* Those of a pair are the same. */
static const char *const networks[][2] = {
    { "10.0.0.1", "::ffff:10.0.0.1" },     { "10.0.0.0/24", "::ffff:10.0.0.0/120" },
    { "192.0.2.0/26", "192.0.2.0/26" },    { "2001:db8::/48", "2001:0DB8:0::/48" },
    { "fe80::/10", "FE80::0/10" },         { "::1", "0:0:0:0:0:0:0:1/128" },
    { "10.128.0.0/9", "::ffff:a80:0/105" }
};
static const char *const words[] = { "mallory", "carol",  "k2",     "gold",
                                     "bob",     "DELETE", "/admin", LONG "x" };

/* ---------------------------------------------------- a random rule set ---- */

static struct set set;
static int names_used;
static bool narrow; /* the tables of this round */

static int is_one_of(const char *word, const char *const *words_of, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(word, words_of[i]) == 0)
            return true;
    return false;
}

static struct condition random_condition(int attribute)
{
    struct condition c = { .attribute = attribute };
    int wanted = one_in(3) ? int_between(2, 6) : 1;

    while (c.n < wanted) {
        int i = int_between(0, PATTERNS - 1);
        if (patterns[i].attribute == attribute)
            c.patterns[c.n++] = patterns[i].pattern;
    }
    return c;
}

static int random_conditions(struct condition *out, int n)
{
    bool used[ATTRIBUTES] = { false };

    for (int i = 0; i < n; i++) {
        int attribute;
        do
            attribute = int_between(0, ATTRIBUTES - 1);
        while (used[attribute]);
        used[attribute] = true;
        out[i] = random_condition(attribute);
    }
    return n;
}

/* Any way to write an attribute's name: headers have no case. */
static const char *spell_name(int attribute)
{
    static const char *const spellings[] = { "header.x-key", "header.X-Key", "header.X-KEY" };

    return attribute == HEADER ? spellings[int_between(0, 2)] : attribute_names[attribute];
}

static size_t write_literal(char *out, const char *text)
{
    size_t n = 0;

    for (; *text; text++) {
        out[n++] = *text;
        if (*text == '{')
            out[n++] = '{';
    }
    return n;
}

static void write_template(struct rule *r)
{
    char *t = r->template, *m = r->made_of;

    *m = '\0';
    for (int i = 0; i < r->parts; i++) {
        const struct part *p = &r->key[i];
        m += sprintf(m, "%d/%d/%d|%s;", p->attribute, p->prefix4, p->prefix6,
                     p->fallback ? p->fallback : "");
        t += write_literal(t, p->before);
        t += sprintf(t, "{%s", spell_name(p->attribute));
        if (p->prefix4 >= 0)
            t += sprintf(t, p->prefix6 == 64 ? "/%d" : "/%d/%d", p->prefix4, p->prefix6);
        t += sprintf(t, p->fallback ? "|%s}" : "}", p->fallback);
    }
    t[write_literal(t, r->after)] = '\0';
}

static void random_key(struct rule *r)
{
    static const char *const separators[] = { ":", "::", "|", "/", "-x-", "{", "2", ":2" };
    static const char *const fallbacks[] = { "nobody", "bob", "10.0.0.1", ":", "100%" };
    static const int parts[] = { 0, 1, 1, 1, 1, 2, 2, 3 };
    bool used[ATTRIBUTES] = { false };

    r->parts = parts[int_between(0, 7)];
    for (int i = 0; i < r->parts; i++) {
        struct part *p = &r->key[i];
        do
            p->attribute = int_between(0, ATTRIBUTES - 1);
        while (used[p->attribute]);
        used[p->attribute] = true;
        p->before = i > 0 || one_in(6) ? separators[int_between(0, 7)] : "";
        p->fallback = one_in(4) ? fallbacks[int_between(0, 4)] : NULL;
        p->prefix4 = p->prefix6 = -1;
        if (is_address(p->attribute) && one_in(2)) {
            p->prefix4 = int_between(0, 32);
            p->prefix6 = one_in(2) ? 64 : int_between(0, 128);
        }
    }
    r->after = r->parts > 0 && one_in(6) ? separators[int_between(0, 7)] : "";
    write_template(r);
}

static struct weir_limit random_limit(const char *algorithm)
{
    static const weir_time periods[] = { 1, 2, 5, 10, 60, 3600 };
    static const char *const zones[] = { "", "Europe/Berlin", "America/New_York", "Asia/Kolkata" };
    struct weir_limit l = { .algorithm = algorithm,
                            .count = one_in(6) ? int_between(9, 200) : int_between(1, 8) };

    l.period = periods[int_between(0, 5)] * (one_in(4) ? WEIR_SECOND / 3 : WEIR_SECOND);
    bool debts = strcmp(algorithm, "gcra") == 0 || strcmp(algorithm, "token-bucket") == 0;
    if (debts && one_in(2))
        l.burst = int_between(1, 10);
    if (strcmp(algorithm, "leaky-bucket") == 0 && one_in(2))
        l.queue = int_between(1, 5);
    if (strcmp(algorithm, "fixed-window") == 0)
        l.align_first = one_in(2);
    if (strcmp(algorithm, "calendar") == 0) {
        l.period = 0;
        l.calendar = int_between(WEIR_DAY, WEIR_MONTH);
        strcpy(l.zone, zones[int_between(0, 3)]);
    }
    return l;
}

/* One that a narrow table can hold: no queue, and a whole number of nanoseconds for each. */
static struct weir_limit narrow_limit(const char *algorithm)
{
    static const int counts[] = { 1, 2, 4, 5, 8, 10, 20, 100 };
    struct weir_limit l = random_limit(algorithm);

    l.count = counts[int_between(0, one_in(4) ? 7 : 4)];
    l.period = int_between(1, 60) * WEIR_SECOND;
    l.queue = 0;
    return l;
}

static void stop(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr, "rules: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n  again: property-rules %" PRIu64 " 1\n", seed_of_round);
    va_end(args);
    exit(1);
}

static void random_ban(struct rule *r)
{
    r->bans = true;
    r->refusals = (struct weir_limit){ .algorithm = "sliding-window",
                                       .count = int_between(1, 5),
                                       .period = int_between(1, 60) * WEIR_SECOND };
    r->length = int_between(1, 120) * WEIR_SECOND;
    r->factor = one_in(2) ? 1 : int_between(2, 4);
    r->longest = r->factor == 1 ? r->length : r->length * int_between(1, 20);
    r->forget = int_between(1, 1000) * WEIR_SECOND;
}

static void random_algorithm(struct weir_limit *l, bool large)
{
    static const char *const narrow_ones[] = { "gcra", "token-bucket", "leaky-bucket",
                                               "sliding-window", "sliding-log" };

    const char *const *algorithms = weir_algorithms();
    int n = 0;
    while (algorithms[n])
        n++;
    const char *algorithm;
    do
        algorithm = algorithms[int_between(0, n - 1)];
    while ((!large && strncmp(algorithm, "sliding", 7) == 0) ||
           (narrow && !is_one_of(algorithm, narrow_ones, 5)));
    *l = narrow && strncmp(algorithm, "sliding", 7) != 0 ? narrow_limit(algorithm)
                                                         : random_limit(algorithm);
}

static void random_rule(struct rule *r, bool large)
{
    *r = (struct rule){ .cost = one_in(4) ? int_between(0, 3) : 1,
                        .cost_attribute = one_in(5) ? BYTES : -1,
                        .mode = WEIR_ENFORCE };
    snprintf(r->name, sizeof(r->name), "%c%d", 'a' + int_between(0, 25), names_used++);
    r->cost = r->cost_attribute >= 0 ? 1 : r->cost;
    r->matches = random_conditions(r->match, one_in(5) ? 0 : int_between(1, 4));
    r->excepts = random_conditions(r->except, one_in(3) ? int_between(1, 3) : 0);
    random_key(r);
    r->limits = int_between(1, 3);
    for (int i = 0; i < r->limits; i++)
        random_algorithm(&r->limit[i], large);
    if (one_in(5))
        r->mode = one_in(3) ? WEIR_OFF : WEIR_SHADOW;
    if (large && seed_of_round % 2 == 0 && one_in(2))
        random_ban(r);
}

/* Only paths that a server could see. */
static const char *random_entry(int attribute)
{
    static const char *const paths[] = { "/admin", "/login", "/api/v2", "/" };

    return is_address(attribute) ? networks[int_between(0, 6)][int_between(0, 1)]
           : attribute == URI    ? paths[int_between(0, 3)]
                                 : words[int_between(0, 7)];
}

static void random_list(const char *name, int attribute)
{
    struct list *l = &set.list[set.lists++];

    *l = (struct list){ .name = name, .attribute = attribute, .n = int_between(0, 3) };
    for (int i = 0; i < l->n; i++)
        l->entries[i] = random_entry(attribute);
}

/* More than can be asked at once, matching everything: a hundred that decide, or a thousand of
 * which few can. */
static void random_crowd(void)
{
    bool few = one_in(2), single = one_in(2);
    int n = few ? int_between(66, 120) : int_between(1000, 1200);

    while (set.n < n) {
        struct rule *r = &set.rules[set.n++];
        random_rule(r, false);
        r->matches = r->excepts = 0;
        r->limits = single ? 1 : r->limits;
        r->mode = few ? WEIR_ENFORCE : WEIR_OFF;
        if (one_in(few ? 8 : 20))
            r->mode = few ? WEIR_OFF : WEIR_ENFORCE;
        else if (one_in(few ? 6 : 40))
            r->mode = WEIR_SHADOW;
    }
}

static void random_set(void)
{
    static const int sizes[] = { 0, 1, 2, 4, 8, 16, 40, 200 };

    set.n = set.lists = 0;
    set.mode = one_in(6) ? one_in(5) ? WEIR_OFF : WEIR_SHADOW : WEIR_ENFORCE;
    set.switched = WEIR_AS_WRITTEN;
    int n = int_between(0, sizes[int_between(0, 7)]);
    if (seed_of_round % 23 == 0)
        random_crowd();
    else
        for (int i = 0; i < n; i++)
            random_rule(&set.rules[set.n++], n <= 40);
    random_list("vips", ACCOUNT);
    random_list("vips", HEADER);
    random_list("office", IP);
    random_list("office", PEER);
    if (one_in(3))
        random_list("deny", one_in(2) ? ACCOUNT : PEER);
    if (one_in(3))
        random_list("deny", one_in(2) ? IP : URI);
    if (one_in(3))
        random_list("allow", one_in(2) ? IP : PLAN);
    memcpy(set.written, set.list, sizeof(set.list));
}

/* ------------------------------------------------------------- as YAML ---- */

static char yaml[1 << 21];
static size_t yaml_len;

static __attribute__((format(printf, 1, 2))) void write_yaml(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    yaml_len += (size_t)vsnprintf(yaml + yaml_len, sizeof(yaml) - yaml_len, format, args);
    va_end(args);
}

static void write_pattern(const struct condition *c, int i)
{
    static const char *const forms[] = { "exact", "prefix", "glob", "", "list", "" };
    const struct pattern *p = &c->patterns[i];
    const char *written = p->text;

    for (int k = 0; k < PATTERNS; k++)
        if (patterns[k].pattern.text == p->text && patterns[k].pattern.kind == p->kind &&
            patterns[k].attribute == c->attribute && patterns[k].written != NULL)
            written = patterns[k].written;
    if (p->form)
        write_yaml("{ %s: \"%s\" }", forms[p->kind], p->text);
    else
        write_yaml("\"%s\"", written);
}

static void write_conditions(const char *word, const struct condition *c, int n)
{
    if (n == 0)
        return;
    write_yaml("    %s: {", word);
    for (int i = 0; i < n; i++) {
        write_yaml("%s %s: ", i ? "," : "", spell_name(c[i].attribute));
        write_yaml("%s", c[i].n > 1 ? "[" : "");
        for (int k = 0; k < c[i].n; k++) {
            write_yaml("%s", k ? ", " : "");
            write_pattern(&c[i], k);
        }
        write_yaml("%s", c[i].n > 1 ? "]" : "");
    }
    write_yaml(" }\n");
}

static void write_ban(const struct rule *r)
{
    if (!r->bans)
        return;
    write_yaml("    ban: { refusals: %" PRId64 "/%" PRId64 "s, for: %" PRId64
               "s, escalate: %d, longest: %" PRId64 "s, forget: %" PRId64 "s }\n",
               r->refusals.count, r->refusals.period / WEIR_SECOND, r->length / WEIR_SECOND,
               r->factor, r->longest / WEIR_SECOND, r->forget / WEIR_SECOND);
}

static void write_rule(const struct rule *r)
{
    write_yaml("  - name: %s\n", r->name);
    write_conditions("match", r->match, r->matches);
    write_conditions("not", r->except, r->excepts);
    write_yaml("    key: \"%s\"\n", r->template);
    write_yaml("    limit: [");
    for (int i = 0; i < r->limits; i++) {
        char text[256];
        weir_limit_print(text, sizeof(text), &r->limit[i]);
        write_yaml("%s\"%s\"", i ? ", " : "", text);
    }
    write_yaml("]\n    keys: 1000\n    mode: %s\n", weir_mode_name(r->mode));
    if (r->cost_attribute >= 0)
        write_yaml("    cost: \"{%s}\"\n", attribute_names[r->cost_attribute]);
    else
        write_yaml("    cost: %" PRId64 "\n", r->cost);
    write_ban(r);
}

static void write_lists(void)
{
    static const char *const names[] = { "vips", "office", "deny", "allow" };

    write_yaml("lists:\n");
    for (int n = 0; n < 4; n++) {
        write_yaml("  %s: {", names[n]);
        for (int i = 0, some = 0; i < set.lists; i++) {
            const struct list *l = &set.written[i];
            if (strcmp(l->name, names[n]) != 0)
                continue;
            write_yaml("%s %s: [", some++ ? "," : "", spell_name(l->attribute));
            for (int k = 0; k < l->n; k++)
                write_yaml("%s\"%s\"", k ? ", " : "", l->entries[k]);
            write_yaml("]");
        }
        write_yaml(" }\n");
    }
}

static void write_set(void)
{
    yaml_len = 0;
    write_yaml("version: 1\nmode: %s\nrules:%s\n", weir_mode_name(set.mode), set.n ? "" : " []");
    for (int i = 0; i < set.n; i++)
        write_rule(&set.rules[i]);
    write_lists();
}

#endif
