/* limiter-words.c -- names of limiters, as people read them.
 *
 * A limiter's name tells programs whose it is:
 *
 *     login#0-1a2b3c4d     the first limit of the rule login
 *     login$0-1a2b3c4d     its purse, if it is across the fleet
 *     login!0-1a2b3c4d     the refusals that its ban counts
 *     login@               a mode set by hand, for the rule or guard: it limits nothing
 *     nginx:ip:1a2b3c4d0   the zone ip of the module for nginx; nginx-stream: likewise
 *
 * All others are as their users have named them. */
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"
#include "weir-admin.h"

#define WORDS 96

/* The text behind `at` is a digest, and nothing else. */
static bool is_digest(const char *at, size_t more)
{
    return strspn(at, "0123456789abcdef") == strlen(at) && strlen(at) == 8 + more;
}

static bool print_rules_own(char words[WORDS], const char *name)
{
    size_t rule = strcspn(name, "#!$");
    unsigned index;
    int end = 0;

    if (rule == 0 || sscanf(name + rule, "%*1[#!$]%3u-%n", &index, &end) != 1 || end == 0 ||
        !is_digest(name + rule + end, 0))
        return false;
    if (name[rule] == '!')
        snprintf(words, WORDS, "%.*s, refusals for its ban", (int)rule, name);
    else
        snprintf(words, WORDS, "%.*s, %s %u", (int)rule, name,
                 name[rule] == '$' ? "purse" : "limit", index + 1);
    return true;
}

static bool print_zone(char words[WORDS], const char *name)
{
    bool stream = strncmp(name, "nginx-stream:", 13) == 0;
    const char *zone = name + (stream ? 13 : 6), *end = strrchr(name, ':');

    if ((!stream && strncmp(name, "nginx:", 6) != 0) || end <= zone || !is_digest(end + 1, 1))
        return false;
    snprintf(words, WORDS, "nginx%s zone %.*s", stream ? " stream" : "", (int)(end - zone), zone);
    return true;
}

bool weir_limiter_words(const struct weir_limiter_info *info, char words[WORDS])
{
    static const char none[] = WEIR__LEVER_LIMIT;
    size_t len = strlen(info->name);
    bool lever =
        len > 1 && info->name[len - 1] == '@' && memcmp(info->limit, none, sizeof(none)) == 0;

    if (lever)
        snprintf(words, WORDS, "%.*s", (int)len - 1, info->name);
    else if (!print_rules_own(words, info->name) && !print_zone(words, info->name))
        snprintf(words, WORDS, "%s", info->name);
    return !lever;
}
