/* http-json.c -- the members of a JSON body, by a table of those that are known.
 *
 * One walk through the text, in place: strings without escapes stay where they are, numbers are
 * read as they pass.  What is not in the table is a mistake, as is a member given twice: a limit
 * that is spelled wrong must not be no limit.
 */
#include "server/serve/http/http.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "rulefile/problem.h"
#include "match/rules.h"

void weir__members_begin(struct weir__members *members, const struct weir__member *rows, size_t n,
                         void *target)
{
    members->rows =
        rows; /* one by one: there is room for a kilobyte in it, which nobody looks at */
    members->n = n;
    members->target = target;
    members->inner = NULL;
    members->attributes = false;
    members->given = 0;
    members->scratch = members->heap = NULL;
    members->problem[0] = '\0';
}

bool weir__members_wrong(struct weir__members *members, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(members->problem, sizeof(members->problem), format, args);
    va_end(args);
    return false;
}

/* As it can stand in an example. */
static bool is_plain(struct weir__span name)
{
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.bytes[i] <= ' ' || (unsigned char)name.bytes[i] > '~' ||
            strchr("\"\\", name.bytes[i]))
            return false;
    return name.len > 0 && name.len < WEIR__ATTRIBUTE_SIZE;
}

/* An attribute in the wrong place is the likeliest mistake.  Whoever writes "ip" must not be told
 * to write "id", nor "cost" for "host": the one would make all requests of a client one ask, the
 * other let the client choose its price. */
static bool stray(struct weir__members *members, struct weir__span name)
{
    static const char *const names[] = { "attributes", "cost", "wait_ms" };
    const char *near =
        weir__attribute_describes(name) ? NULL : weir__nearest(name.bytes, name.len, names, 3);
    struct weir__span shown = is_plain(name) ? name : (struct weir__span){ "name", 4 };

    if (near)
        return weir__members_wrong(members, "unknown member %s; did you mean '%s'?",
                                   weir__quote(name.bytes, name.len).text, near);
    return weir__members_wrong(
        members,
        "unknown member %s; attributes go into \"attributes\": {\"attributes\":{\"%.*s\":...}}",
        weir__quote(name.bytes, name.len).text, (int)shown.len, shown.bytes);
}

static bool unknown(struct weir__members *members, struct weir__span name)
{
    const char *names[WEIR__MEMBERS_MAX];

    if (members->attributes)
        return stray(members, name);
    for (size_t i = 0; i < members->n; i++)
        names[i] = members->rows[i].name;
    return weir__members_wrong(members, "unknown member %s; %s",
                               weir__quote(name.bytes, name.len).text,
                               weir__hint(name.bytes, name.len, names, members->n).text);
}

static const char *const kind_names[] = {
    [WEIR__MEMBER_TEXT] = "a string",
    [WEIR__MEMBER_COUNT] = "a whole number from 0 to 9223372036854775807",
    [WEIR__MEMBER_ANY] = "a string or a number",
    [WEIR__MEMBER_OBJECT] = "an object",
    [WEIR__MEMBER_ARRAY] = "an array",
};

/* "5" is shown as what it is: '5' would be told to be no number. */
static bool wrong_kind(struct weir__members *members, const struct weir__member *row,
                       const struct weir__json_value *value)
{
    if (value->kind == WEIR__JSON_STRING && value->path)
        return weir__members_wrong(members, "'%s' is %s, and not a string", row->name,
                                   kind_names[row->kind]);
    return weir__members_wrong(members, "'%s' is %s, and not %s", row->name, kind_names[row->kind],
                               weir__quote(value->text, value->len).text);
}

static bool read_count(const char *text, size_t len, int64_t *out)
{
    int64_t n = 0;

    for (size_t i = 0; i < len; i++) {
        int digit = text[i] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, digit, &n))
            return false;
    }
    *out = n;
    return len > 0;
}

static bool store(struct weir__members *members, const struct weir__member *row,
                  const struct weir__json_value *value)
{
    uint32_t bit = 1u << (row - members->rows);
    char *to = (char *)members->target + row->offset;
    bool text = row->kind == WEIR__MEMBER_TEXT || row->kind == WEIR__MEMBER_ANY;

    if (value->kind == WEIR__JSON_NULL)
        return true;
    if (members->given & bit)
        return weir__members_wrong(members, "'%s' is there twice", row->name);
    if (row->kind == WEIR__MEMBER_TEXT && value->kind != WEIR__JSON_STRING)
        return wrong_kind(members, row, value);
    if (text)
        *(struct weir__span *)(void *)to =
            (struct weir__span){ value->len ? value->text : "", value->len };
    else if (row->kind != WEIR__MEMBER_COUNT || value->kind != WEIR__JSON_NUMBER ||
             !read_count(value->text, value->len, (int64_t *)(void *)to))
        return wrong_kind(members, row, value);
    members->given |= bit;
    return true;
}

/* NULL: there is none of that name. */
static const struct weir__member *find(const struct weir__members *members, struct weir__span name)
{
    for (size_t i = 0; i < members->n; i++)
        if (strlen(members->rows[i].name) == name.len &&
            memcmp(members->rows[i].name, name.bytes, name.len) == 0)
            return &members->rows[i];
    return NULL;
}

/* The name of the body's member that the value is, or is in.  Names may have dots in them, so what
 * joins them in the path cannot be told from those; where that matters not the path but the depth
 * says where a name ends. */
static struct weir__span member_of(const struct weir__json_value *value)
{
    const char *dot = value->depth > 2 ? memchr(value->path, '.', value->path_len) : NULL;
    size_t len = value->depth == 2 ? value->path_len - value->name_len - 1
                 : dot             ? (size_t)(dot - value->path)
                                   : value->path_len;

    return (struct weir__span){ value->path, len };
}

/* A value in an object or array of the body. */
static bool each_inner(struct weir__members *members, const struct weir__member *row,
                       const struct weir__json_value *value)
{
    if (value->depth > 2)
        return weir__members_wrong(
            members,
            "'%s' is %s of strings, numbers, true and false, with no objects or arrays in it",
            row->name, kind_names[row->kind]);
    if (value->element != (row->kind == WEIR__MEMBER_ARRAY))
        return wrong_kind(
            members, row,
            &(struct weir__json_value){ .text = value->element ? "[...]" : "{...}", .len = 5 });
    return members->inner(
        members,
        (struct weir__span){ value->path + value->path_len - value->name_len, value->name_len },
        value);
}

static bool each(void *context, const struct weir__json_value *value)
{
    struct weir__members *members = context;
    struct weir__span name = member_of(value);
    const struct weir__member *row = find(members, name);

    if (value->depth == 0)
        return weir__members_wrong(members, "the body is a JSON object, and not %s",
                                   weir__quote(value->text, value->len).text);
    if (row == NULL)
        return unknown(members, name);
    if (row->kind < WEIR__MEMBER_OBJECT && value->depth > 1)
        return wrong_kind(
            members, row,
            &(struct weir__json_value){ .text = value->element ? "[...]" : "{...}", .len = 5 });
    if (row->kind < WEIR__MEMBER_OBJECT)
        return store(members, row, value);
    members->given |= 1u << (row - members->rows);
    if (value->depth == 1)
        return value->kind == WEIR__JSON_NULL || wrong_kind(members, row, value);
    return each_inner(members, row, value);
}

/* Where strings with escapes go.  False: no memory. */
static bool find_room(struct weir__members *members, struct weir__span text, char **scratch)
{
    *scratch = NULL;
    if (text.len == 0 || memchr(text.bytes, '\\', text.len) == NULL)
        return true;
    *scratch = members->scratch ? members->scratch : members->room;
    if (members->scratch == NULL && text.len > sizeof(members->room))
        *scratch = members->heap = malloc(text.len);
    return *scratch != NULL;
}

bool weir__members_read(struct weir__members *members, struct weir__span text)
{
    char *scratch;
    const char *what = NULL;
    size_t space = 0;

    while (space < text.len && strchr(" \t\r\n", text.bytes[space]) && text.bytes[space])
        space++;
    if (space < text.len && text.bytes[space] == '[')
        return weir__members_wrong(members, "the body is a JSON object, and not an array");
    if (!find_room(members, text, &scratch))
        return weir__members_wrong(members, "out of memory");
    members->problem[0] = '\0';
    long at = weir__json_walk(text.bytes, text.len, scratch, each, members, &what);
    if (at >= 0 && text.len == 0)
        return weir__members_wrong(members, "the body is empty: a JSON object is needed");
    if (at >= 0)
        return weir__members_wrong(members, "the body is no JSON: at byte %ld %s was expected",
                                   at + 1, what);
    return members->problem[0] == '\0';
}

bool weir__members_set(struct weir__members *members, struct weir__span name,
                       struct weir__span value)
{
    const struct weir__member *row = find(members, name);
    struct weir__json_value v = { .kind = WEIR__JSON_STRING,
                                  .text = value.bytes,
                                  .len = value.len };

    if (row == NULL)
        return unknown(members, name);
    if (row->kind == WEIR__MEMBER_COUNT)
        v.kind = WEIR__JSON_NUMBER;
    return row->kind < WEIR__MEMBER_OBJECT ? store(members, row, &v) : wrong_kind(members, row, &v);
}

bool weir__members_whole(struct weir__members *members)
{
    for (size_t i = 0; i < members->n; i++)
        if (members->rows[i].needed && !(members->given & 1u << i))
            return weir__members_wrong(members, "'%s' is missing", members->rows[i].name);
    return true;
}

void weir__members_free(struct weir__members *members)
{
    free(members->heap);
    members->heap = NULL;
}

/* ------------------------------------------------------------ attributes ---- */

void weir__attribute_lower(char *name, size_t len)
{
    if (len < 7 || memcmp(name, "header.", 7) != 0)
        return;
    for (size_t i = 7; i < len; i++)
        if (name[i] >= 'A' && name[i] <= 'Z')
            name[i] = (char)(name[i] + 'a' - 'A');
}

bool weir__attribute_describes(struct weir__span name)
{
    static const char *const names[] = { "ip", "uri", "method", "host", "scheme" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i]) == name.len && memcmp(names[i], name.bytes, name.len) == 0)
            return true;
    return name.len >= 7 && memcmp(name.bytes, "header.", 7) == 0;
}

static bool is_there(const struct weir__attributes_in *in, const char *name, size_t len)
{
    for (size_t i = 0; i < in->n; i++)
        if (in->attrs[i].name_len == len && memcmp(in->attrs[i].name, name, len) == 0)
            return true;
    return false;
}

/* An empty value is a missing one.  Names that are longer than a rule's can be are nobody's. */
bool weir__attribute_in(struct weir__members *members, struct weir__attributes_in *in,
                        struct weir__span name, const struct weir__json_value *value)
{
    if (name.len == 0)
        return weir__members_wrong(
            members,
            "'attributes' is an object of names and values, such as {\"ip\":\"192.0.2.7\"}");
    if (memchr(name.bytes, 0, name.len))
        return weir__members_wrong(members, "the attribute %s has a NUL byte in its name",
                                   weir__quote(name.bytes, name.len).text);
    if (value->kind == WEIR__JSON_NULL || value->len == 0 || name.len >= WEIR__ATTRIBUTE_SIZE)
        return true;
    if (name.len > (size_t)(in->names_end - in->names))
        return weir__members_wrong(members, "the names of the attributes are too long");
    memcpy(in->names, name.bytes, name.len);
    weir__attribute_lower(in->names, name.len);
    if (is_there(in, in->names, name.len))
        return weir__members_wrong(members, "the attribute %s is there twice",
                                   weir__quote(name.bytes, name.len).text);
    if (in->n == in->max)
        return weir__members_wrong(
            members, "more than %zu attributes: name only those that rules look at", in->max);
    in->attrs[in->n++] = (struct weir_attr){
        .name = in->names, .name_len = name.len, .value = value->text, .value_len = value->len
    };
    in->names += name.len;
    return true;
}

static bool take_attribute(struct weir__members *members, struct weir__span name,
                           const struct weir__json_value *value)
{
    return weir__attribute_in(members, members->target, name, value);
}

void weir__members_begin_request(struct weir__members *members, const struct weir__member *rows,
                                 size_t n, void *target)
{
    weir__members_begin(members, rows, n, target);
    members->inner = take_attribute;
    members->attributes = true;
}
