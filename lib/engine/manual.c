/* manual.c -- what people change while an engine works: switches, lists, bans, keys to be
 * forgotten.  One at a time, under the engine's mutex. */
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"

static const struct weir__post *find_named(const struct weir__active *active, size_t n,
                                           const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(active->posts[i].name, name) == 0)
            return &active->posts[i];
    return NULL;
}

static const struct weir__post *find_post(const struct weir__active *active, const char *rule)
{
    return active ? find_named(active, active->rules->n_rules, rule) : NULL;
}

/* Of a rule or a guard. */
static const struct weir__post *find_switch(const struct weir__active *active, const char *name)
{
    return active ? find_named(active, active->rules->n_rules + active->rules->n_guards, name)
                  : NULL;
}

static int no_rule(const char *rule, struct weir_error *error)
{
    return weir__fail(error, WEIR_INVALID, "there is no rule '%s'", rule);
}

int weir_mode_set(struct weir *weir, const char *rule, enum weir_mode mode,
                  struct weir_error *error)
{
    int code = WEIR_OK;

    if ((unsigned)mode > WEIR_OFF)
        return weir__fail(error, WEIR_INVALID, "a mode is as-written, enforce, shadow or off");
    if (rule == NULL) {
        weir__table_set_mode(weir->table, mode);
        return WEIR_OK;
    }
    pthread_mutex_lock(&weir->mutex);
    const struct weir__post *post = find_switch(weir->active, rule);
    if (post != NULL)
        weir__limiter_set_mode(post->lever, mode);
    else
        code = weir__fail(error, WEIR_INVALID, "there is no rule or guard '%s'", rule);
    pthread_mutex_unlock(&weir->mutex);
    return code;
}

const char *weir_mode_name(enum weir_mode mode)
{
    static const char *const names[] = { "as-written", "enforce", "shadow", "off" };

    return (unsigned)mode <= WEIR_OFF ? names[mode] : "unknown";
}

int weir_list_edit(struct weir *weir, const char *list, const char *attribute,
                   const char *const *add, size_t adds, const char *const *remove, size_t removes,
                   struct weir_error *error)
{
    struct weir__lists *lists = NULL;
    struct weir__active *active = NULL;

    pthread_mutex_lock(&weir->mutex);
    int code =
        weir->active ? WEIR_OK : weir__fail(error, WEIR_INVALID, "there are no rules in force yet");
    if (code == WEIR_OK)
        code = weir__lists_edit(&lists, weir->active->lists, list, attribute, add, adds, remove,
                                removes, error);
    if (code == WEIR_OK)
        code = weir__active_edited(&active, weir->active, lists, error);
    if (code == WEIR_OK)
        weir__engine_swap(weir, active);
    else
        weir__lists_destroy(lists);
    pthread_mutex_unlock(&weir->mutex);
    return code;
}

static bool is_address_key(const struct weir__rule *rule)
{
    return rule->key.n == 1 && rule->parts[0].address && *rule->key.parts[0].before == '\0' &&
           *rule->key.parts[1].before == '\0';
}

/* An address or network as the rule makes its key of it, however it was written: 192.0.2.7 is
 * 192.0.2.0/24 to a rule of {ip/24}. */
static int address_key(const struct weir__rule *rule, const char *key, char text[WEIR_KEY_TEXT],
                       struct weir_error *error)
{
    struct weir__cidr cidr;
    const struct weir__key_part *part = rule->parts;
    int code = weir__cidr_parse(key, strlen(key), &cidr, error);

    if (code != WEIR_OK)
        return code;
    uint8_t prefix = cidr.address.bits == 32 ? part->prefix4 : part->prefix6,
            bits = prefix == WEIR__NO_PREFIX ? cidr.address.bits : prefix;
    if (cidr.prefix != cidr.address.bits && cidr.prefix != bits)
        return weir__fail(error, WEIR_INVALID,
                          "a key of rule '%s' is a network of /%u, and %s is one of /%u",
                          rule->draft->name, bits, key, cidr.prefix);
    weir__address_mask(&cidr.address, bits);
    int len = weir__address_print(text, WEIR_KEY_TEXT, &cidr.address);
    if (prefix != WEIR__NO_PREFIX)
        snprintf(text + len, (size_t)(WEIR_KEY_TEXT - len), "/%u", prefix);
    return WEIR_OK;
}

/* The text that a key is known by, if somebody writes it out. */
static int ban_key(const struct weir *weir, const char *rule, const char *key,
                   char text[WEIR_KEY_TEXT], struct weir_key *out, struct weir_error *error)
{
    const struct weir__post *post = find_post(weir->active, rule);
    int code = post ? WEIR_OK : no_rule(rule, error);

    if (code != WEIR_OK)
        return code;
    const struct weir__rule *r = &weir->active->rules->rules[post - weir->active->posts];
    bool listed = *key == '?'; /* as listings show what is no address */
    size_t len = 0;
    if (is_address_key(r) && !listed) {
        code = address_key(r, key, text, error);
        len = code ? 0 : strlen(text);
    } else {
        len = weir__key_text_shorten(weir->table->secrets, key, text);
    }
    if (code == WEIR_OK)
        *out = (struct weir_key){ text, len };
    return code;
}

int weir_ban_key(struct weir *weir, const char *rule, const char *key, char text[WEIR_KEY_TEXT],
                 struct weir_error *error)
{
    char made[WEIR_KEY_TEXT];
    struct weir_key known;

    pthread_mutex_lock(&weir->mutex);
    int code = ban_key(weir, rule, key, made, &known, error);
    pthread_mutex_unlock(&weir->mutex);
    if (code == WEIR_OK)
        memcpy(text, made, known.len + 1);
    return code;
}

int weir_ban_set(struct weir *weir, const char *rule, const char *key, weir_time now,
                 weir_time until, struct weir_error *error)
{
    char text[WEIR_KEY_TEXT];
    struct weir_key known;

    if (until <= now)
        return weir__fail(error, WEIR_INVALID, "a ban ends after it begins");
    pthread_mutex_lock(&weir->mutex);
    int code = ban_key(weir, rule, key, text, &known, error);
    if (code == WEIR_OK)
        weir__ban_put(weir->table, weir__ban_tag(weir->table, rule, known), rule, known, now,
                      until);
    pthread_mutex_unlock(&weir->mutex);
    return code;
}

/* The refusals counted towards the next ban are forgotten too, or one more would ban the key again.
 * The table counts them even if the rule is not in force here. */
static void forget_refusals(struct weir *weir, const char *rule, struct weir_key key, weir_time now)
{
    const struct weir_ask all = { .key = key, .cost = INT64_MAX, .now = now };
    const struct weir__post *post = find_post(weir->active, rule);
    struct weir_limiter_info info;
    size_t len = strlen(rule);

    if (post != NULL && post->refusals != NULL)
        weir_give(post->refusals, &all);
    for (int64_t at = 0; post == NULL && weir_limiter_next(weir->table, &at, &info);) {
        struct weir_limiter *limiter = NULL;
        if (strncmp(info.name, rule, len) == 0 && info.name[len] == '!')
            limiter = weir__limiter_by_name(weir->table, info.name);
        if (limiter != NULL)
            weir_give(limiter, &all);
    }
}

static bool lift(struct weir *weir, const char *rule, struct weir_key key, weir_time now)
{
    forget_refusals(weir, rule, key, now);
    return weir__ban_lift(weir->table, weir__ban_tag(weir->table, rule, key), now);
}

/* Also as it is listed, letter by letter: the rule may have had another key when the ban was made,
 * or be gone. */
bool weir_ban_lift(struct weir *weir, const char *rule, const char *key, weir_time now)
{
    char text[WEIR_KEY_TEXT];
    struct weir_key known;

    pthread_mutex_lock(&weir->mutex);
    bool lifted =
        ban_key(weir, rule, key, text, &known, NULL) == WEIR_OK && lift(weir, rule, known, now);
    lifted = lift(weir, rule, (struct weir_key){ key, strlen(key) }, now) || lifted;
    pthread_mutex_unlock(&weir->mutex);
    return lifted;
}

bool weir_ban_next(struct weir *weir, weir_time now, int64_t *at, struct weir_ban *out)
{
    bool found = false;

    while (!found && (uint64_t)*at < weir->table->ban_places)
        found = weir__ban_get(weir->table, (size_t)(*at)++, now, out);
    return found;
}

/* --------------------------------------------------------------- reset ---- */

/* Whether the rule has a key of these facts, which is fresh then. */
static bool reset_key(struct weir *weir, uint32_t i, const struct weir__facts *facts, weir_time now)
{
    const struct weir__rule *rule = &weir->active->rules->rules[i];
    const struct weir__post *post = &weir->active->posts[i];
    unsigned char made[WEIR__KEY_MAX];
    char text[WEIR_KEY_TEXT];
    struct weir_key key;

    if (!weir__rule_key(weir->table->secrets, rule, facts, made, &key))
        return false;
    for (size_t k = 0; k < rule->n_limits; k++)
        weir_forget(post->limiters[k], key, now);
    struct weir_key shown = { text, weir__rule_key_text(weir->table->secrets, rule, facts, text) };
    if (post->refusals != NULL)
        weir_forget(post->refusals, shown, now);
    weir__ban_lift(weir->table, weir__ban_tag_salted(weir->table, post->ban_salt, shown), now);
    return true;
}

/* Of every rule that matches, or of the one. */
static int64_t reset_keys(struct weir *weir, const struct weir__post *only,
                          const struct weir_attr *attrs, size_t n, weir_time now)
{
    const struct weir__active *f = weir->active;
    struct weir__facts facts;
    struct weir__matches m;
    int64_t count = 0;

    weir__facts_gather(&f->attributes, f->lists, attrs, n, &facts);
    weir__matches_begin(&m, f->rules, f->rules->match, &facts);
    do
        for (size_t i = 0; i < m.n; i++)
            if (only == NULL || only == &f->posts[m.found[i]])
                count += reset_key(weir, m.found[i], &facts, now);
    while (weir__matches_more(&m));
    return count;
}

int64_t weir_reset(struct weir *weir, const char *rule, const struct weir_attr *attrs, size_t n,
                   weir_time now, struct weir_error *error)
{
    int64_t result = 0;

    pthread_mutex_lock(&weir->mutex);
    const struct weir__post *only = rule ? find_post(weir->active, rule) : NULL;
    if (rule != NULL && only == NULL)
        result = no_rule(rule, error);
    else if (weir->active != NULL)
        result = reset_keys(weir, only, attrs, n, now < 0 ? 0 : now);
    pthread_mutex_unlock(&weir->mutex);
    return result;
}
