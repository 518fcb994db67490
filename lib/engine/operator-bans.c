/* operator-bans.c -- bans that operators set, lift and list.  lib/table/bans.c keeps them. */
#include <stdio.h>
#include <string.h>

#include "engine/rules-across-fleet.h"

static bool is_address_key(const struct weir__rule *rule)
{
    return rule->key.n == 1 && rule->parts[0].address && *rule->key.parts[0].before == '\0' &&
           *rule->key.parts[1].before == '\0';
}

/* The key that the rule makes of an address or network, however it was written: 192.0.2.7 is
 * 192.0.2.0/24 to a rule with {ip/24}. */
static int address_key(const struct weir__rule *rule, const char *key, char text[WEIR_KEY_TEXT],
                       struct weir_error *error)
{
    struct weir__cidr cidr;
    const struct weir__key_part *part = rule->parts;
    int code = weir__cidr_parse(key, strlen(key), &cidr, error);

    if (code != WEIR_OK)
        return code;
    uint8_t bits = cidr.address.bits == 32 ? part->prefix4 : part->prefix6;
    if (cidr.prefix != cidr.address.bits && cidr.prefix != bits)
        return weir__fail(error, WEIR_INVALID,
                          "a key of rule '%s' is a network of /%u, and %s is one of /%u",
                          rule->draft->name, bits, key, cidr.prefix);
    weir__address_mask(&cidr.address, bits);
    int len = weir__address_print(text, WEIR_KEY_TEXT, &cidr.address);
    if (bits < cidr.address.bits)
        snprintf(text + len, (size_t)(WEIR_KEY_TEXT - len), "/%u", bits);
    return WEIR_OK;
}

/* The text of a key as the table knows it, from the one typed. */
static int ban_key(const struct weir *weir, const char *rule, const char *key,
                   char text[WEIR_KEY_TEXT], struct weir_key *out, struct weir_error *error)
{
    const struct weir__post *post = weir__rule_post(weir, rule, error);

    if (post == NULL)
        return WEIR_INVALID;
    int code = WEIR_OK;
    const struct weir__rule *r = &weir->active->rules->rules[post - weir->active->posts];
    bool listed = *key == '?'; /* how listings show a value that is no address */
    size_t len = 0;
    if (is_address_key(r) && !listed) {
        code = address_key(r, key, text, error);
        len = code ? 0 : strlen(text);
    } else {
        len = weir__key_text_shorten(weir__text_secrets(weir, r), key, text);
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
    if (code == WEIR_OK && !weir__ban_put(weir->table, weir__ban_tag(weir->table, rule, known),
                                          rule, known, now, until))
        code = weir__fail(error, WEIR_NO_MEMORY, "there is no disk space for another ban");
    pthread_mutex_unlock(&weir->mutex);
    return code;
}

/* The refusals counted towards the next ban are forgotten too, or one more would ban the key again.
 * The table counts them even if the rule is not in force here. */
static void forget_refusals(struct weir *weir, const char *rule, struct weir_key key, weir_time now)
{
    const struct weir_ask all = { .key = key, .cost = INT64_MAX, .now = now };
    const struct weir__post *post = weir__rule_post(weir, rule, NULL);
    struct weir_limiter_info info;
    size_t len = strlen(rule);

    if (post != NULL && post->refusals != NULL)
        weir_give(post->refusals, &all);
    for (int64_t at = 0; post == NULL && weir_limiter_next(weir->table, &at, &info);) {
        if (strncmp(info.name, rule, len) != 0 || info.name[len] != '!')
            continue;
        weir__look_begin(weir->table);
        struct weir_limiter *limiter = weir__limiter_by_name(weir->table, info.name);
        if (limiter != NULL)
            weir_give(limiter, &all);
        weir__look_end(weir->table);
    }
}

static bool lift(struct weir *weir, const char *rule, struct weir_key key, weir_time now)
{
    forget_refusals(weir, rule, key, now);
    return weir__ban_lift(weir->table, weir__ban_tag(weir->table, rule, key), now);
}

/* The key may also be typed exactly as it is listed: the rule may have had another key when the ban
 * was made, or be gone. */
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

bool weir__bans_learn(struct weir *weir, const struct weir__ban_lesson *lesson)
{
    bool learnt = weir__ban_learn(weir->table, lesson);

    if (learnt && lesson->strikes == 0) {
        pthread_mutex_lock(&weir->mutex);
        forget_refusals(weir, lesson->rule, lesson->key, lesson->now);
        pthread_mutex_unlock(&weir->mutex);
    }
    return learnt;
}

bool weir_ban_next(struct weir *weir, weir_time now, int64_t *at, struct weir_ban *out)
{
    bool found = false;

    while (!found && (uint64_t)*at < weir__ban_places(weir->table))
        found = weir__ban_get(weir->table, (size_t)(*at)++, now, out);
    return found;
}
