/* engine.c -- rules at work on a table: making one, and putting rules in force while requests are being decided.  engine.h says who may
 * touch what. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"

#define PRIVATE_LIMITERS   65536
#define PRIVATE_SLAB_A_KEY 16384 /* room for some forty sliding windows of all keys; only what is used takes memory */
#define PRIVATE_KEYS       65536

/* ------------------------------------------------------------- stripes ---- */

_Static_assert(WEIR__STRIPES == 1 << 6, "the hint below chooses among so many");

size_t weir__engine_enter(struct weir *weir)
{
    size_t first = weir__thread_hint(6);
    for (size_t i = 0;; i++) {
        size_t stripe = (first + i) % WEIR__STRIPES;
        uint64_t *turn = &weir->stripes[stripe].turn, rest = __atomic_load_n(turn, __ATOMIC_RELAXED);
        if (rest % 2 == 0 && __atomic_compare_exchange_n(turn, &rest, rest + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            return stripe;
        if (i % WEIR__STRIPES == WEIR__STRIPES - 1)
            sched_yield(); /* more threads than stripes */
    }
}

/* Until nobody can be looking at what was in force before. */
static void wait_for_checks(const struct weir *weir)
{
    for (size_t i = 0; i < WEIR__STRIPES; i++) {
        uint64_t turn = __atomic_load_n(&weir->stripes[i].turn, __ATOMIC_SEQ_CST);
        while (turn % 2 == 1 && __atomic_load_n(&weir->stripes[i].turn, __ATOMIC_ACQUIRE) == turn)
            sched_yield();
    }
}

/* ---------------------------------------------------------------- swap ---- */

static struct weir__tally sum(const struct weir__force *force, size_t rule)
{
    struct weir__tally t = { 0 };
    for (size_t s = 0; s <= WEIR__STRIPES; s++) {
        const struct weir__tally *more = &force->tally[s * force->rules->n_rules + rule];
        t.allowed += __atomic_load_n(&more->allowed, __ATOMIC_RELAXED);
        t.refused += __atomic_load_n(&more->refused, __ATOMIC_RELAXED);
        t.banned += __atomic_load_n(&more->banned, __ATOMIC_RELAXED);
        t.shadow_refused += __atomic_load_n(&more->shadow_refused, __ATOMIC_RELAXED);
    }
    return t;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct weir__post *)*(const void *const *)a)->name, ((const struct weir__post *)*(const void *const *)b)->name);
}

/* What rules of the same name have counted goes on.  Without the memory to sort them, it begins anew. */
static void carry_tallies(struct weir__force *to, const struct weir__force *from)
{
    size_t n = from->rules->n_rules;
    const struct weir__post **sorted = malloc((n + 1) * sizeof *sorted);
    if (sorted == NULL)
        return;
    for (size_t i = 0; i < n; i++)
        sorted[i] = &from->posts[i];
    qsort(sorted, n, sizeof *sorted, by_name);
    for (size_t i = 0; i < to->rules->n_rules; i++) {
        const struct weir__post *wanted = &to->posts[i];
        const struct weir__post **hit = bsearch(&wanted, sorted, n, sizeof *sorted, by_name);
        if (hit != NULL)
            to->tally[WEIR__STRIPES * to->rules->n_rules + i] = sum(from, (size_t)(*hit - from->posts));
    }
    free(sorted);
}

/* The numbers that weir_attribute gave, as this force sees them. */
static void number_attributes(const struct weir *weir, struct weir__force *force)
{
    for (size_t i = 1; i <= weir->n_attributes; i++) {
        int at = weir__attribute_find(&force->attributes, weir->attributes[i], strlen(weir->attributes[i]));
        __atomic_store_n(&force->attributes.by_id[i], (uint8_t)(at + 1), __ATOMIC_RELAXED);
    }
}

/* The number of a name, or 0; `copy` becomes the engine's if it is new.  With the mutex held. */
static size_t number_of(struct weir *weir, char *copy)
{
    size_t i = 1;
    while (i <= weir->n_attributes && strcmp(weir->attributes[i], copy) != 0)
        i++;
    if (i <= weir->n_attributes || i == sizeof weir->attributes / sizeof *weir->attributes) {
        free(copy);
        return i <= weir->n_attributes ? i : 0;
    }
    weir->attributes[++weir->n_attributes] = copy;
    if (weir->force != NULL)
        number_attributes(weir, weir->force);
    return i;
}

uint32_t weir_attribute(struct weir *weir, const char *name)
{
    size_t len = strlen(name), number = 0;
    char *copy = len > 0 && len < WEIR__ATTRIBUTE_SIZE ? weir__attribute_small(name) : NULL;
    pthread_mutex_lock(&weir->mutex);
    if (copy != NULL)
        number = number_of(weir, copy);
    pthread_mutex_unlock(&weir->mutex);
    return (uint32_t)number;
}

void weir__engine_swap(struct weir *weir, struct weir__force *force)
{
    number_attributes(weir, force);
    struct weir__force *old = __atomic_exchange_n(&weir->force, force, __ATOMIC_SEQ_CST);
    wait_for_checks(weir);
    if (old == NULL)
        return;
    carry_tallies(force, old);
    if (old->rules == force->rules)
        old->rules = NULL; /* only the lists were edited */
    weir__force_destroy(old);
}

int weir_use(struct weir *weir, struct weir_rules *rules, weir_time now, struct weir_error *error)
{
    struct weir__force *force = NULL;
    pthread_mutex_lock(&weir->mutex);
    int code = weir__force_create(&force, weir, rules, now, error);
    if (code == WEIR_OK)
        weir__engine_swap(weir, force);
    pthread_mutex_unlock(&weir->mutex);
    return code;
}

/* ------------------------------------------------------------ creation ---- */

/* Where even address space is scarce, less room for sliding windows will do. */
static int make_table(struct weir *weir, int64_t keys, struct weir_error *error)
{
    struct weir_table_options options = { .keys = keys ? keys : PRIVATE_KEYS, .limiters = PRIVATE_LIMITERS };
    int code = WEIR_NO_MEMORY;
    if (options.keys > INT64_MAX / PRIVATE_SLAB_A_KEY)
        return weir__fail(error, WEIR_INVALID, "%lld keys are more than any machine has room for", (long long)keys);
    for (int64_t a_key = PRIVATE_SLAB_A_KEY; code == WEIR_NO_MEMORY && a_key >= 256; a_key /= 4) {
        options.slab = options.keys * a_key;
        code = weir_table_create(&weir->table, &options, error);
    }
    weir->own_table = code == WEIR_OK;
    return code;
}

int weir_create(struct weir **out, const struct weir_options *options, struct weir_error *error)
{
    struct weir *weir = aligned_alloc(_Alignof(struct weir), sizeof *weir);
    if (weir == NULL)
        return weir__fail(error, WEIR_NO_MEMORY, "out of memory for an engine");
    memset(weir, 0, sizeof *weir);
    pthread_mutex_init(&weir->mutex, NULL);
    weir->table = options ? options->table : NULL;
    int code = weir->table ? WEIR_OK : make_table(weir, options ? options->keys : 0, error);
    if (code == WEIR_OK)
        *out = weir;
    else
        free(weir);
    return code;
}

void weir_destroy(struct weir *weir)
{
    if (weir == NULL)
        return;
    weir__force_destroy(weir->force);
    weir_table_destroy(weir->aside);
    if (weir->own_table)
        weir_table_destroy(weir->table);
    for (size_t i = 0; i < weir->n_names; i++)
        free(weir->names[i]);
    free(weir->names);
    for (size_t i = 1; i <= weir->n_attributes; i++)
        free(weir->attributes[i]);
    pthread_mutex_destroy(&weir->mutex);
    free(weir);
}

int weir__engine_look(struct weir *weir, struct weir_error *error)
{
    struct weir_table_options small = { .keys = 1024, .limiters = PRIVATE_LIMITERS, .slab = (int64_t)1 << 30 };
    return weir_table_create(&weir->aside, &small, error);
}

struct weir_table *weir_table_of(struct weir *weir)
{
    return weir->table;
}

/* ------------------------------------------------------------- by hand ---- */

static const struct weir__post *find_post(const struct weir__force *force, const char *rule)
{
    for (size_t i = 0; force != NULL && i < force->rules->n_rules; i++)
        if (strcmp(force->posts[i].name, rule) == 0)
            return &force->posts[i];
    return NULL;
}

static int no_rule(const char *rule, struct weir_error *error)
{
    return weir__fail(error, WEIR_INVALID, "there is no rule '%s'", rule);
}

int weir_mode_set(struct weir *weir, const char *rule, enum weir_mode mode, struct weir_error *error)
{
    int code = WEIR_OK;
    if ((unsigned)mode > WEIR_OFF)
        return weir__fail(error, WEIR_INVALID, "a mode is as-written, enforce, shadow or off");
    if (rule == NULL) {
        weir__table_set_mode(weir->table, mode);
        return WEIR_OK;
    }
    pthread_mutex_lock(&weir->mutex);
    const struct weir__post *post = find_post(weir->force, rule);
    if (post != NULL)
        weir__limiter_set_mode(post->lever, mode);
    else
        code = no_rule(rule, error);
    pthread_mutex_unlock(&weir->mutex);
    return code;
}

const char *weir_mode_name(enum weir_mode mode)
{
    static const char *const names[] = { "as-written", "enforce", "shadow", "off" };
    return (unsigned)mode <= WEIR_OFF ? names[mode] : "unknown";
}

bool weir_rule_get(struct weir *weir, size_t i, struct weir_rule_info *out)
{
    pthread_mutex_lock(&weir->mutex);
    const struct weir__force *force = weir->force;
    bool is = force != NULL && i < force->rules->n_rules;
    if (is) {
        const struct weir__post *post = &force->posts[i];
        struct weir__tally t = sum(force, i);
        *out = (struct weir_rule_info){ .mode = weir__post_mode(post, weir__force_mode(weir, force)),
                                        .switched = weir__limiter_mode(post->lever),
                                        .allowed = t.allowed,
                                        .refused = t.refused,
                                        .banned = t.banned,
                                        .shadow_refused = t.shadow_refused };
        memcpy(out->name, post->name, strlen(post->name));
    }
    pthread_mutex_unlock(&weir->mutex);
    return is;
}

int weir_list_edit(struct weir *weir, const char *list, const char *attribute, const char *const *add, size_t adds,
                   const char *const *remove, size_t removes, struct weir_error *error)
{
    struct weir__lists *lists = NULL;
    struct weir__force *force = NULL;
    pthread_mutex_lock(&weir->mutex);
    int code = weir->force ? WEIR_OK : weir__fail(error, WEIR_INVALID, "there are no rules in force yet");
    if (code == WEIR_OK)
        code = weir__lists_edit(&lists, weir->force->lists, list, attribute, add, adds, remove, removes, error);
    if (code == WEIR_OK)
        code = weir__force_edited(&force, weir->force, lists, error);
    if (code == WEIR_OK)
        weir__engine_swap(weir, force);
    else
        weir__lists_destroy(lists);
    pthread_mutex_unlock(&weir->mutex);
    return code;
}

static bool is_address_key(const struct weir__rule *rule)
{
    return rule->key.n == 1 && rule->parts[0].address && *rule->key.parts[0].before == '\0' && *rule->key.parts[1].before == '\0';
}

/* An address or network as the rule makes its key of it, however it was written: 192.0.2.7 is 192.0.2.0/24 to a rule of {ip/24}. */
static int address_key(const struct weir__rule *rule, const char *key, char text[WEIR__KEY_TEXT], struct weir_error *error)
{
    struct weir__cidr cidr;
    const struct weir__key_part *part = rule->parts;
    int code = weir__cidr_parse(key, strlen(key), &cidr, error);
    if (code != WEIR_OK)
        return code;
    uint8_t prefix = cidr.address.bits == 32 ? part->prefix4 : part->prefix6, bits = prefix == WEIR__NO_PREFIX ? cidr.address.bits : prefix;
    if (cidr.prefix != cidr.address.bits && cidr.prefix != bits)
        return weir__fail(error, WEIR_INVALID, "a key of rule '%s' is a network of /%u, and %s is one of /%u", rule->draft->name, bits, key,
                          cidr.prefix);
    weir__address_mask(&cidr.address, bits);
    int len = weir__address_print(text, WEIR__KEY_TEXT, &cidr.address);
    if (prefix != WEIR__NO_PREFIX)
        snprintf(text + len, (size_t)(WEIR__KEY_TEXT - len), "/%u", prefix);
    return WEIR_OK;
}

/* The text that a key is known by, if somebody writes it out. */
static int ban_key(const struct weir *weir, const char *rule, const char *key, char text[WEIR__KEY_TEXT], struct weir_key *out,
                   struct weir_error *error)
{
    const struct weir__post *post = find_post(weir->force, rule);
    int code = post ? WEIR_OK : no_rule(rule, error);
    if (code != WEIR_OK)
        return code;
    const struct weir__rule *r = &weir->force->rules->rules[post - weir->force->posts];
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

int weir_ban_set(struct weir *weir, const char *rule, const char *key, weir_time now, weir_time until, struct weir_error *error)
{
    char text[WEIR__KEY_TEXT];
    struct weir_key known;
    if (until <= now)
        return weir__fail(error, WEIR_INVALID, "a ban ends after it begins");
    pthread_mutex_lock(&weir->mutex);
    int code = ban_key(weir, rule, key, text, &known, error);
    if (code == WEIR_OK)
        weir__ban_put(weir->table, weir__ban_tag(weir->table, rule, known), rule, known, now, until);
    pthread_mutex_unlock(&weir->mutex);
    return code;
}

/* What was counted towards the next ban is forgotten too, or one more refusal would ban the key again. */
static bool lift(struct weir *weir, const char *rule, struct weir_key key, weir_time now)
{
    const struct weir__post *post = find_post(weir->force, rule);
    if (post != NULL && post->refusals != NULL)
        weir_give(post->refusals, &(struct weir_ask){ .key = key, .cost = INT64_MAX, .now = now });
    return weir__ban_lift(weir->table, weir__ban_tag(weir->table, rule, key), now);
}

/* Also as it is listed, letter by letter: the rule may have had another key when the ban was made, or be gone. */
bool weir_ban_lift(struct weir *weir, const char *rule, const char *key, weir_time now)
{
    char text[WEIR__KEY_TEXT];
    struct weir_key known;
    pthread_mutex_lock(&weir->mutex);
    bool lifted = ban_key(weir, rule, key, text, &known, NULL) == WEIR_OK && lift(weir, rule, known, now);
    lifted = lift(weir, rule, (struct weir_key){ key, strlen(key) }, now) || lifted;
    pthread_mutex_unlock(&weir->mutex);
    return lifted;
}

void weir_ban_list(struct weir *weir, weir_time now, bool (*each)(void *context, const struct weir_ban *ban), void *context)
{
    struct weir_ban ban;
    for (size_t i = 0; i < weir->table->ban_places; i++)
        if (weir__ban_get(weir->table, i, now, &ban) && !each(context, &ban))
            return;
}
