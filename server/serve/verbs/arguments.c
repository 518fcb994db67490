/* arguments.c -- arguments: one reader for RESP words, JSON members and query parameters.
 *
 * Each source finds the argument of the row that a value belongs to; take() then checks it against
 * the row and stores it.  Anything that is not in the row is a mistake, as is an argument given
 * twice: a limit that is spelled wrong must not be no limit.  Values stay where they are: strings
 * without escapes in the text, others in the call's own room.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/explain.h"
#include "match/rules.h"
#include "base/base.h"
#include "server/serve/verbs/verbs.h"
#include "wire/json.h"
#include "wire/resp.h"

#define MS_MAX (INT64_MAX / WEIR_MILLISECOND)
#define RARE   __attribute__((noinline)) /* out of the way of the usual */

void weir__call_begin(struct weir__verb_call *call, const struct weir__verb *verb,
                      struct weir__loop *loop, bool http)
{
    /* One by one: most of it is room that need not be cleared. */
    call->verb = verb;
    call->loop = loop;
    call->server = loop ? loop->server : NULL;
    call->now = loop ? weir__loop_now(loop) : 0;
    call->http = http;
    call->ns = false;
    call->attrs = call->own_attrs;
    call->n_attrs = call->n_entries = call->entries_room = 0;
    if (http) {
        call->names = call->own_names;
        call->names_end = call->own_names + sizeof(call->own_names);
    }
    call->entries = NULL;
    call->status = 200;
    call->message[0] = '\0';
    call->answer = WEIR__ANSWER_JSON;
    call->out = (struct weir__buffer){ 0 };
    call->scratch = call->heap = call->kept = NULL;
    for (size_t i = 0; verb->args[i].name; i++) {
        call->values[i].text = (struct weir__text){ 0 };
        call->values[i].ns = false;
    }
}

void weir__call_end(struct weir__verb_call *call)
{
    free(call->out.bytes);
    free(call->entries);
    free(call->heap);
    free(call->kept);
}

/* -------------------------------------------------------------- failing ---- */

/* It may quote the client: it stays one line, without anything that a terminal obeys. */
bool weir__call_fail(struct weir__verb_call *call, int status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(call->message, sizeof(call->message), format, args);
    va_end(args);
    for (unsigned char *c = (unsigned char *)call->message; *c; c++)
        *c = *c < ' ' || *c == 0x7f ? '?' : *c;
    call->status = status;
    return false;
}

bool weir__call_no_memory(struct weir__verb_call *call)
{
    return weir__call_fail(call, 503, "no memory");
}

bool weir__call_fail_code(struct weir__verb_call *call, int code, const struct weir_error *error)
{
    int status = code == WEIR_NO_MEMORY ? 503
                 : code == WEIR_EXISTS  ? 409
                 : code == WEIR_INVALID ? 400
                                        : 500;

    return weir__call_fail(call, status, "%s", error->text);
}

/* As the door's users call it: 'wait_ms', WAIT, rule. */
static struct weir__arg_name label(const struct weir__verb_call *call, const struct weir__arg *arg)
{
    struct weir__arg_name name;

    if (call->http)
        snprintf(name.text, sizeof(name.text), "'%s%s'", arg->name,
                 arg->kind != WEIR__ARG_TIME               ? ""
                 : call->values[arg - call->verb->args].ns ? "_ns"
                                                           : "_ms");
    else
        snprintf(name.text, sizeof(name.text), "%s", arg->word ? arg->word : arg->name);
    return name;
}

/* "a string", "a whole number from 0 to 9", "ok, error or ignored" */
static void describe(const struct weir__arg *arg, char *out, size_t size)
{
    const char *at = arg->choices;
    size_t n = 0;

    switch (arg->kind) {
    case WEIR__ARG_COUNT:
    case WEIR__ARG_TIME:
        snprintf(out, size, "a whole number from %lld to %lld%s%s", (long long)arg->min,
                 (long long)(arg->max ? arg->max : INT64_MAX), arg->choices ? ", or " : "",
                 arg->choices ? arg->choices : "");
        return;
    case WEIR__ARG_CHOICE:
    case WEIR__ARG_UNIT:
    case WEIR__ARG_SWITCH:
        for (size_t len; n < size; at += len + 1) {
            len = strcspn(at, "|");
            n += (size_t)snprintf(out + n, size - n, "%s%.*s",
                                  n == 0    ? ""
                                  : at[len] ? ", "
                                            : " or ",
                                  (int)len, at);
            if (at[len] == '\0')
                return;
        }
        return;
    default:
        snprintf(out, size, "%s",
                 arg->kind == WEIR__ARG_ATTRIBUTES ? "an object"
                 : arg->kind == WEIR__ARG_ENTRIES  ? "an array"
                 : arg->kind == WEIR__ARG_SCALAR   ? "a string or a number"
                                                   : "a string");
    }
}

/* `shown`: the value that came instead. */
static bool wrong(struct weir__verb_call *call, const struct weir__arg *arg, const char *shown)
{
    char right[160];

    describe(arg, right, sizeof(right));
    return weir__call_fail(call, 400, "%s must be %s, not %s", label(call, arg).text, right, shown);
}

RARE static bool wrong_text(struct weir__verb_call *call, const struct weir__arg *arg,
                            struct weir__text text)
{
    return wrong(call, arg, WEIR__SHOWN(text));
}

RARE static bool bad(struct weir__verb_call *call, const struct weir__arg *arg, const char *what)
{
    return weir__call_fail(call, 400, "%s %s", label(call, arg).text, what);
}

/* --------------------------------------------------------------- values ---- */

RARE static bool take_choice(struct weir__verb_call *call, const struct weir__arg *arg,
                             struct weir__given *value)
{
    const char *choice = arg->choices;

    value->number = 0;
    for (size_t len; len = strcspn(choice, "|"), true; choice += len + 1, value->number++) {
        if (len == value->text.len && strncasecmp(choice, value->text.bytes, len) == 0)
            break;
        if (choice[len] == '\0')
            return wrong_text(call, arg, value->text);
    }
    call->ns = call->ns || (arg->kind == WEIR__ARG_UNIT && value->number == 1);
    return true;
}

static bool take_number(struct weir__verb_call *call, const struct weir__arg *arg,
                        struct weir__given *value)
{
    int64_t *n = &value->number;

    if (weir__resp_int(value->text, n) && *n >= arg->min && (arg->max == 0 || *n <= arg->max))
        return true;
    if (arg->kind == WEIR__ARG_TIME && arg->max == 0 && !call->http &&
        weir__resp_is(value->text, "FOREVER"))
        *n = INT64_MAX;
    else if (arg->choices && weir__resp_is(value->text, arg->choices))
        *n = -1;
    else
        return wrong_text(call, arg, value->text);
    return true;
}

static bool take_text(struct weir__verb_call *call, const struct weir__arg *arg,
                      struct weir__text text)
{
    if (text.len < (size_t)arg->min)
        return bad(call, arg, "is empty");
    if (arg->max && text.len > (size_t)arg->max)
        return weir__call_fail(call, 400, "%s has at most %lld bytes", label(call, arg).text,
                               (long long)arg->max);
    if (call->verb->how == WEIR__VERB_AWAY && arg->kind != WEIR__ARG_BODY && text.len &&
        memchr(text.bytes, 0, text.len))
        return weir__call_fail(call, 400, "%s has a NUL byte in it: %s", label(call, arg).text,
                               WEIR__SHOWN(text));
    return true;
}

static bool take(struct weir__verb_call *call, const struct weir__arg *arg, struct weir__text text)
{
    struct weir__given *value = &call->values[arg - call->verb->args];

    if (value->text.bytes)
        return bad(call, arg, "is there twice");
    value->text = text.len ? text : (struct weir__text){ "", 0 };
    if (arg->kind == WEIR__ARG_COUNT || arg->kind == WEIR__ARG_TIME)
        return take_number(call, arg, value);
    return arg->choices ? take_choice(call, arg, value) : take_text(call, arg, text);
}

static bool add_entry(struct weir__verb_call *call, const struct weir__arg *arg,
                      struct weir__text text)
{
    if (call->n_entries == call->entries_room) {
        size_t room = call->entries_room ? call->entries_room * 2 : 64;
        struct weir__text *entries = realloc(call->entries, room * sizeof(*entries));
        if (entries == NULL)
            return weir__call_no_memory(call);
        call->entries = entries;
        call->entries_room = room;
    }
    call->entries[call->n_entries++] = text.len ? text : (struct weir__text){ "", 0 };
    return take_text(call, arg, text);
}

/* Members of times have the unit in their name; words have that of the command. */
static bool convert(struct weir__verb_call *call, const struct weir__arg *arg,
                    struct weir__given *v)
{
    if (call->http && v->text.bytes && v->ns != call->ns)
        return weir__call_fail(call, 400, "%s needs \"unit\":\"%s\"", label(call, arg).text,
                               call->ns ? "ms" : "ns");
    if (!call->ns || v->text.bytes == NULL)
        v->number = v->number > MS_MAX ? WEIR_FOREVER : v->number * WEIR_MILLISECOND;
    return true;
}

/* Redis' clients know its words for a wrong number of arguments. */
RARE static bool missing(struct weir__verb_call *call, const struct weir__arg *arg)
{
    const char *what = arg->kind == WEIR__ARG_ENTRIES ? "are missing" : "is missing";

    if (call->http)
        return bad(call, arg, what);
    return weir__call_fail(call, 400, "wrong number of arguments for '%s' command: %s %s",
                           weir__verb_small(call->verb).text, label(call, arg).text, what);
}

bool weir__call_whole(struct weir__verb_call *call)
{
    struct weir__given *v = call->values;

    for (const struct weir__arg *a = call->verb->args; a->name; a++, v++) {
        bool given = v->text.bytes || (a->kind == WEIR__ARG_ENTRIES && call->n_entries);
        if (a->needed && !given && (call->http || !a->resp_optional))
            return missing(call, a);
        if (v->text.bytes == NULL)
            v->number = a->otherwise;
        if (a->kind == WEIR__ARG_TIME && v->number >= 0 && !convert(call, a, v))
            return false;
    }
    return true;
}

/* ----------------------------------------------------------- attributes ---- */

static bool is_there(const struct weir__verb_call *call, const char *name, size_t len)
{
    for (size_t i = 0; i < call->n_attrs; i++)
        if (call->attrs[i].name_len == len && memcmp(call->attrs[i].name, name, len) == 0)
            return true;
    return false;
}

/* An empty value is a missing one.  No rule can look at a name that is longer than a rule's.
 * Explain names both as unused. */
static bool add_attribute(struct weir__verb_call *call, struct weir__text name,
                          struct weir__text value)
{
    if (name.len == 0)
        return weir__call_fail(call, 400,
                               "the name of an attribute is empty: attributes have names and "
                               "values, such as ip 192.0.2.7");
    if (memchr(name.bytes, 0, name.len))
        return weir__call_fail(call, 400, "the attribute %s has a NUL byte in its name",
                               WEIR__SHOWN(name));
    if ((value.len == 0 || name.len >= WEIR__ATTRIBUTE_SIZE) && !call->verb->every_attribute)
        return true;
    if (value.len == 0)
        value.bytes = ""; /* which ends in a NUL */
    if (call->http) {
        if (name.len > (size_t)(call->names_end - call->names))
            return weir__call_fail(call, 400, "the names of the attributes are too long");
        memcpy(call->names, name.bytes, name.len);
        weir__attribute_lower(call->names, name.len);
        name.bytes = call->names;
        if (is_there(call, name.bytes, name.len))
            return weir__call_fail(call, 400, "the attribute %s is there twice", WEIR__SHOWN(name));
    }
    if (call->n_attrs == WEIR__CALL_ATTRS)
        return weir__call_fail(call, 400,
                               "more than %d attributes: name only those that rules look at",
                               WEIR__CALL_ATTRS);
    call->attrs[call->n_attrs++] = (struct weir_attr){
        .name = name.bytes, .name_len = name.len, .value = value.bytes, .value_len = value.len
    };
    if (call->http)
        call->names += name.len;
    return true;
}

/* ---------------------------------------------------------------- words ---- */

/* An object or array over HTTP, the rest over RESP. */
static bool is_inner(const struct weir__arg *arg)
{
    return arg->kind == WEIR__ARG_ATTRIBUTES || arg->kind == WEIR__ARG_ENTRIES;
}

/* The argument that the word announces; NULL: none. */
static const struct weir__arg *find_word(const struct weir__verb *verb, struct weir__text word)
{
    for (const struct weir__arg *a = verb->args; a->name; a++)
        if (a->word && word.len && (a->word[0] | 32) == (word.bytes[0] | 32) &&
            a->kind != WEIR__ARG_ATTRIBUTES && weir__resp_is(word, a->word))
            return a;
    return NULL;
}

bool weir__verb_announces(const struct weir__verb *verb, struct weir__text word)
{
    return find_word(verb, word) || weir__resp_is(word, "ATTRIBUTES");
}

static bool say_usage(struct weir__verb_call *call, const char *what)
{
    char usage[256];

    return weir__call_fail(call, 400, "%s; usage: %s %s", what, call->verb->command,
                           weir__verb_usage(call->verb, usage, sizeof(usage)));
}

/* Those with a place of their own come first.  Returns how many there were. */
static size_t take_places(struct weir__verb_call *call, const struct weir__text *words, size_t n)
{
    size_t at = 0;

    for (const struct weir__arg *a = call->verb->args; a->name && at < n; a++) {
        if (a->word || a->kind == WEIR__ARG_ENTRIES)
            continue;
        if (!take(call, a, words[at++]))
            break;
    }
    return at;
}

/* An enter of one guard has no attributes. */
static bool names_guard(const struct weir__verb_call *call)
{
    for (const struct weir__arg *a = call->verb->args; a->name; a++)
        if (a->word && strcmp(a->word, "GUARD") == 0)
            return weir__call_given(call, (size_t)(a - call->verb->args));
    return false;
}

/* The rules look at an attribute of this name, which the option would swallow: `id 7` would make
 * all requests of 7 one ask.  Options in capitals are meant. */
static bool is_ambiguous(const struct weir__verb_call *call, const struct weir__arg *a,
                         struct weir__text word)
{
    const struct weir__arg *rest = call->verb->args;

    if (memcmp(a->word, word.bytes, word.len) == 0 || call->server == NULL || names_guard(call))
        return false;
    while (rest->name && rest->kind != WEIR__ARG_ATTRIBUTES)
        rest++;
    return rest->name && weir__engine_uses(call->server->engine, word.bytes, word.len);
}

RARE static bool fail_ambiguous(struct weir__verb_call *call, const struct weir__arg *a,
                                struct weir__text word)
{
    return weir__call_fail(
        call, 400,
        "%s may be the option or the attribute that the rules look at: write the "
        "option as %s, and ATTRIBUTES before attributes named like an option",
        WEIR__SHOWN(word), a->word);
}

/* Words and their values, up to the first that is none; *at is moved there. */
static bool take_words(struct weir__verb_call *call, const struct weir__text *words, size_t n,
                       size_t *at)
{
    while (*at < n) {
        const struct weir__arg *a = find_word(call->verb, words[*at]);
        bool alone = a && (a->kind == WEIR__ARG_SWITCH || a->kind == WEIR__ARG_UNIT);
        if (a == NULL || (!alone && *at + 1 == n))
            return true;
        if (is_ambiguous(call, a, words[*at]))
            return fail_ambiguous(call, a, words[*at]);
        if (alone) {
            call->values[a - call->verb->args] =
                (struct weir__given){ .text = words[*at], .number = 1 };
            call->ns = call->ns || a->kind == WEIR__ARG_UNIT;
            *at += 1;
            continue;
        }
        if (!take(call, a, words[*at + 1]))
            return false;
        *at += 2;
    }
    return true;
}

/* An option behind the attributes would be one more of them, and do nothing.  Rules' attributes are
 * not written in capitals. */
static bool is_option(const struct weir__verb *verb, struct weir__text name)
{
    const struct weir__arg *a =
        name.len && name.bytes[0] >= 'A' && name.bytes[0] <= 'Z' ? find_word(verb, name) : NULL;

    return a && memcmp(a->word, name.bytes, name.len) == 0;
}

/* As an attribute that no rule looks at, it would let all pass. */
static bool is_guard(const struct weir__verb_call *call, struct weir__text name)
{
    return name.len == 5 && memcmp(name.bytes, "GUARD", 5) == 0 &&
           (call->server == NULL || !weir__engine_uses(call->server->engine, "GUARD", 5));
}

static bool take_attributes(struct weir__verb_call *call, const struct weir__text *words, size_t n)
{
    if (n && weir__resp_is(words[0], "ATTRIBUTES")) {
        words++;
        n--;
    }
    for (size_t i = 0; i < n; i += 2) {
        if (is_option(call->verb, words[i])) {
            char what[128];
            snprintf(what, sizeof(what), "options come before the attributes, and %.*s is one",
                     (int)words[i].len, words[i].bytes);
            return say_usage(call, what);
        }
        if (is_guard(call, words[i]))
            return weir__call_fail(call, 400, "%s asks no guard: enter does, WEIR.ENTER GUARD name",
                                   call->verb->command);
        if (i + 1 == n)
            return weir__call_fail(
                call, 400, "attribute %s has no value: attributes come in pairs, name value ...",
                WEIR__SHOWN(words[i]));
        if (!add_attribute(call, words[i], words[i + 1]))
            return false;
    }
    return true;
}

/* Those behind the places and words. */
static bool take_rest(struct weir__verb_call *call, const struct weir__text *words, size_t n)
{
    const struct weir__arg *rest = call->verb->args;
    char what[128];

    while (rest->name && !is_inner(rest))
        rest++;
    if (rest->name && rest->kind == WEIR__ARG_ATTRIBUTES)
        return take_attributes(call, words, n);
    if (rest->name) {
        for (size_t i = 0; i < n; i++)
            if (!add_entry(call, rest, words[i]))
                return false;
        return true;
    }
    snprintf(what, sizeof(what), "%s %s", WEIR__SHOWN(words[0]),
             find_word(call->verb, words[0]) ? "has no value" : "is too much");
    return say_usage(call, what);
}

bool weir__call_words(struct weir__verb_call *call, const struct weir__text *words, size_t n)
{
    size_t at = take_places(call, words, n);

    return call->status == 200 && take_words(call, words, n, &at) &&
           (at == n || take_rest(call, words + at, n - at)) && weir__call_whole(call);
}

/* -------------------------------------------------------------- members ---- */

/* NULL: there is none of that name.  A time has a unit in its name. */
static const struct weir__arg *find_member(struct weir__verb_call *call, struct weir__text name)
{
    for (const struct weir__arg *a = call->verb->args; a->name; a++) {
        if (name.len == 0 || a->name[0] != name.bytes[0])
            continue;
        size_t len = strlen(a->name);
        if (name.len < len || memcmp(a->name, name.bytes, len) != 0)
            continue;
        if (a->kind != WEIR__ARG_TIME && name.len == len)
            return a;
        if (a->kind != WEIR__ARG_TIME || name.len != len + 3)
            continue;
        bool ns = memcmp(name.bytes + len, "_ns", 3) == 0;
        if (!(ns && weir__verb_has_unit(call->verb)) && memcmp(name.bytes + len, "_ms", 3) != 0)
            continue;
        if (!weir__call_given(call, (size_t)(a - call->verb->args)))
            call->values[a - call->verb->args].ns = ns;
        return a;
    }
    return NULL;
}

/* As it can stand in an example. */
static bool is_plain(struct weir__text name)
{
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.bytes[i] <= ' ' || (unsigned char)name.bytes[i] > '~' ||
            strchr("\"\\", name.bytes[i]))
            return false;
    return name.len > 0 && name.len < WEIR__ATTRIBUTE_SIZE;
}

/* An attribute in the wrong place is the likeliest mistake.  A client that writes "ip" must not be
 * told to write "id", nor "cost" for "host": the one would make all requests of a client one ask,
 * the other let the client choose its price. */
static bool stray(struct weir__verb_call *call, struct weir__text name)
{
    static const char *const names[] = { "attributes", "cost", "wait_ms" };
    const char *near =
        weir__attribute_describes(name) ? NULL : weir__nearest(name.bytes, name.len, names, 3);
    struct weir__text shown = is_plain(name) ? name : (struct weir__text){ "name", 4 };

    if (near)
        return weir__call_fail(call, 400, "unknown member %s; did you mean '%s'?",
                               WEIR__SHOWN(name), near);
    if (name.len == 5 && memcmp(name.bytes, "guard", 5) == 0)
        return weir__call_fail(call, 400, "%s asks no guard: enter does, /v1/enter",
                               call->verb->path);
    return weir__call_fail(
        call, 400,
        "unknown member %s; attributes go into \"attributes\": {\"attributes\":{\"%.*s\":...}}",
        WEIR__SHOWN(name), (int)shown.len, shown.bytes);
}

static bool unknown(struct weir__verb_call *call, struct weir__text name)
{
    struct weir__arg_name texts[WEIR__ARGS_MAX];
    const char *names[WEIR__ARGS_MAX];
    size_t n = 0;

    for (const struct weir__arg *a = call->verb->args; a->name; a++) {
        if (a->kind == WEIR__ARG_ATTRIBUTES && call->verb->how != WEIR__VERB_AWAY)
            return stray(call, name);
        texts[n] = weir__arg_member(a);
        names[n] = texts[n].text;
        n++;
    }
    return weir__call_fail(call, 400, "unknown member %s; %s", WEIR__SHOWN(name),
                           weir__hint(name.bytes, name.len, names, n).text);
}

static bool take_value(struct weir__verb_call *call, const struct weir__arg *arg,
                       const struct weir__json_value *value)
{
    bool number = arg->kind == WEIR__ARG_COUNT || arg->kind == WEIR__ARG_TIME;
    bool text = arg->kind == WEIR__ARG_TEXT && call->verb->how != WEIR__VERB_AWAY;
    bool is_bool = value->kind == WEIR__JSON_TRUE || value->kind == WEIR__JSON_FALSE;
    struct weir__text span = { value->text, value->len };

    if (value->kind == WEIR__JSON_NULL || (value->kind == WEIR__JSON_EMPTY && is_inner(arg)))
        return true;
    if (number && value->kind == WEIR__JSON_STRING && arg->choices == NULL)
        return wrong(call, arg, "a string");
    if (is_inner(arg) || value->kind == WEIR__JSON_EMPTY ||
        (arg->kind == WEIR__ARG_SWITCH && !is_bool) || (text && value->kind != WEIR__JSON_STRING))
        return wrong_text(call, arg, span);
    if (number && value->kind == WEIR__JSON_NUMBER)
        span.len = weir__json_whole(value);
    return take(call, arg, span);
}

/* A value in an object or array of the body. */
static bool take_inner(struct weir__verb_call *call, const struct weir__arg *arg,
                       const struct weir__json_value *value)
{
    struct weir__text name = { value->path + value->path_len - value->name_len, value->name_len };
    struct weir__text text = { value->text, value->len };
    bool object = arg->kind == WEIR__ARG_ATTRIBUTES;

    if (!is_inner(arg) || (value->depth == 2 && value->element == object))
        return wrong(call, arg, value->element ? "'[...]'" : "'{...}'");
    if (value->depth > 2 || value->kind == WEIR__JSON_EMPTY)
        return weir__call_fail(call, 400,
                               "%s is %s of strings, numbers, true and false, with no objects or "
                               "arrays in it",
                               label(call, arg).text, object ? "an object" : "an array");
    if (value->kind == WEIR__JSON_NULL)
        return true;
    return object ? add_attribute(call, name, text) : add_entry(call, arg, text);
}

/* The name of the body's member that the value is, or is in.  Names may have dots in them,
 * like the path that joins them; where that matters the depth says where a name ends. */
static struct weir__text member_of(const struct weir__json_value *value)
{
    const char *dot = value->depth > 2 ? memchr(value->path, '.', value->path_len) : NULL;
    size_t len = value->depth == 2 ? value->path_len - value->name_len - 1
                 : dot             ? (size_t)(dot - value->path)
                                   : value->path_len;

    return (struct weir__text){ value->path, len };
}

static bool each(void *context, const struct weir__json_value *value)
{
    struct weir__verb_call *call = context;
    struct weir__text name = member_of(value), text = { value->text, value->len };

    if (value->depth == 0)
        return weir__call_fail(call, 400, "the body must be a JSON object, not %s",
                               WEIR__SHOWN(text));
    const struct weir__arg *arg = find_member(call, name);
    if (arg == NULL)
        return unknown(call, name);
    return value->depth == 1 ? take_value(call, arg, value) : take_inner(call, arg, value);
}

/* Where strings with escapes go.  False: no memory. */
static bool find_room(struct weir__verb_call *call, struct weir__text text, char **scratch)
{
    *scratch = NULL;
    if (text.len == 0 || memchr(text.bytes, '\\', text.len) == NULL)
        return true;
    *scratch = call->scratch ? call->scratch : call->room;
    if (call->scratch == NULL && text.len > sizeof(call->room))
        *scratch = call->heap = malloc(text.len);
    return *scratch != NULL;
}

bool weir__call_json(struct weir__verb_call *call, struct weir__text text)
{
    char *scratch;
    const char *what = NULL;
    size_t space = 0;

    while (space < text.len && strchr(" \t\r\n", text.bytes[space]) && text.bytes[space])
        space++;
    if (space < text.len && text.bytes[space] == '[')
        return weir__call_fail(call, 400, "the body must be a JSON object, not an array");
    if (!find_room(call, text, &scratch))
        return weir__call_no_memory(call);
    long at = weir__json_walk(text.bytes, text.len, scratch, each, call, &what);
    if (at >= 0 && text.len == 0)
        return weir__call_fail(call, 400, "the body is empty: a JSON object is needed");
    if (at >= 0)
        return weir__call_fail(call, 400, "the body is not JSON: at byte %ld %s was expected",
                               at + 1, what);
    return call->status == 200;
}

bool weir__call_member(struct weir__verb_call *call, struct weir__text name,
                       struct weir__text value)
{
    const struct weir__arg *arg = find_member(call, name);

    if (arg == NULL)
        return unknown(call, name);
    return is_inner(arg) ? wrong_text(call, arg, value) : take(call, arg, value);
}
