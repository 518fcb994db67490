/* openapi.c -- the rows as an OpenAPI document.
 *
 * openapi.json, beside this file, has the head and the parts that no row says: headers and errors.
 * It ends with the schemas, which go on here; then come responses and paths.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "server/serve/verbs/verbs.h"

/* openapi.json, made a C array by scripts/embed.py. */
extern const char weir__openapi_head[];
extern const size_t weir__openapi_head_len;

#define BODIES_TAG "decide" /* bodies of these verbs are schemas with names of their own */

static void add_ref(struct weir__buffer *out, const char *where, const char *name, size_t len)
{
    char text[96];

    snprintf(text, sizeof(text), "#/components/%s/%.*s", where, (int)len, name);
    weir__buffer_member(out, "$ref", text);
}

static void open_content(struct weir__buffer *out, const char *media)
{
    weir__buffer_open(out, "content", '{');
    weir__buffer_open(out, media, '{');
    weir__buffer_open(out, "schema", '{');
}

/* -------------------------------------------------------------- schemas ---- */

static void add_type(struct weir__buffer *out, const char *type, size_t len);

static void add_kind(struct weir__buffer *out, const char *kind, bool null)
{
    weir__buffer_member_name(out, "type");
    weir__buffer_format(out, null ? "[\"%s\",\"null\"]" : "\"%s\"", kind);
}

/* a|b|c, or Name|Other. */
static void add_choices(struct weir__buffer *out, const char *type, size_t len, bool null)
{
    bool names = isupper((unsigned char)type[0]);

    if (!names)
        add_kind(out, "string", null);
    weir__buffer_open(out, names ? "anyOf" : "enum", '[');
    for (const char *at = type, *end = type + len; at < end;) {
        const char *bar = memchr(at, '|', (size_t)(end - at));
        size_t n = (size_t)((bar ? bar : end) - at);
        if (names) {
            weir__buffer_open(out, NULL, '{');
            add_ref(out, "schemas", at, n);
            weir__buffer_close(out, "}");
        } else {
            weir__buffer_member_name(out, NULL);
            weir__buffer_json(out, at, n);
        }
        at += n + 1;
    }
    weir__buffer_text(out, null ? ",null]" : "]");
}

static void add_events(struct weir__buffer *out)
{
    add_kind(out, "string", false);
    weir__buffer_open(out, "enum", '[');
    for (int i = 0; i < WEIR__EVENT_KINDS; i++)
        weir__buffer_member(out, NULL, weir__event_name((enum weir__event_kind)i));
    weir__buffer_close(out, "]");
}

static void add_range(struct weir__buffer *out, const char *type, bool null)
{
    int min = 0, max = 0;

    sscanf(type, "%d..%d", &min, &max);
    add_kind(out, "integer", null);
    weir__buffer_member_number(out, "minimum", min);
    weir__buffer_member_number(out, "maximum", max);
}

static void add_plain(struct weir__buffer *out, const char *type, size_t len, bool null)
{
    if (len == 5 && memcmp(type, "event", len) == 0) {
        add_events(out);
        return;
    }
    add_kind(out,
             type[0] == 't' || type[0] == 'm' ? "string"
             : type[0] == 'b'                 ? "boolean"
             : type[0] == 'o'                 ? "object"
                                              : "integer",
             null);
    if (type[0] == 'm')
        weir__buffer_member(out, "format", "date-time");
    if (type[0] == 'c')
        weir__buffer_member_number(out, "minimum", 0);
}

/* The members of a type's schema, as fields write it. */
static void add_type(struct weir__buffer *out, const char *type, size_t len)
{
    bool null = type[len - 1] == '?';

    len -= null;
    if (type[0] == '[') {
        add_kind(out, "array", null);
        weir__buffer_open(out, "items", '{');
        add_type(out, type + 1, len - 2);
        weir__buffer_close(out, "}");
    } else if (memchr(type, '|', len)) {
        add_choices(out, type, len, null);
    } else if (isupper((unsigned char)type[0])) {
        add_ref(out, "schemas", type, len);
    } else if (isdigit((unsigned char)type[0])) {
        add_range(out, type, null);
    } else {
        add_plain(out, type, len, null);
    }
}

static void add_text(struct weir__buffer *out, const char *text)
{
    if (text && text[0])
        weir__buffer_member(out, "description", text);
}

static const struct weir__schema *find_schema(const char *name)
{
    const struct weir__schema *s = weir__schemas;

    while (s->name && strcmp(s->name, name) != 0)
        s++;
    return s;
}

/* Each of a field's names: "p50_us [p90_us]".  `place` counts the members of RESP's list. */
static void add_names(struct weir__buffer *out, const struct weir__field *f, bool required,
                      int *place)
{
    bool placed = f->name[0] != '-';

    for (const char *at = f->name + !placed; *at;) {
        bool maybe = *at == '[';
        size_t len = strcspn(at + maybe, "] ");
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)len, at + maybe);
        at += maybe + len + maybe;
        at += *at == ' ';
        if (required && !maybe) {
            weir__buffer_member(out, NULL, name);
        } else if (!required) {
            weir__buffer_open(out, name, '{');
            add_type(out, f->type, strlen(f->type));
            add_text(out, f->text);
            if (placed)
                weir__buffer_member_number(out, "x-weir-place", (*place)++);
            weir__buffer_close(out, "}");
        }
    }
}

static void add_fields(struct weir__buffer *out, const struct weir__schema *s, bool required)
{
    int place = 0;

    for (const struct weir__field *f = s->fields; f->name; f++)
        if (f->name[0] == '*')
            add_fields(out, find_schema(f->type), required);
        else
            add_names(out, f, required, &place);
}

static void add_schema(struct weir__buffer *out, const struct weir__schema *s)
{
    weir__buffer_open(out, s->name, '{');
    weir__buffer_member(out, "type", "object");
    add_text(out, s->text);
    weir__buffer_open(out, "properties", '{');
    add_fields(out, s, false);
    weir__buffer_close(out, "}");
    weir__buffer_open(out, "required", '[');
    add_fields(out, s, true);
    weir__buffer_close(out, "]}");
}

/* ------------------------------------------------------------ arguments ---- */

/* `null`: in a body, those that are not needed may also be null. */
static void add_bounds(struct weir__buffer *out, const struct weir__arg *a, bool null)
{
    if (a->choices)
        weir__buffer_text(out, "\"anyOf\":[{");
    add_kind(out, "integer", null);
    weir__buffer_member(out, "format", "int64");
    weir__buffer_member_number(out, "minimum", a->min);
    weir__buffer_member_number(out, "maximum", a->max ? a->max : INT64_MAX);
    if (!a->needed && a->otherwise >= a->min)
        weir__buffer_member_number(out, "default", a->otherwise);
    if (a->choices)
        weir__buffer_format(out, "},{\"const\":\"%s\"}]", a->choices);
}

static void add_arg_type(struct weir__buffer *out, const struct weir__arg *a, bool null)
{
    switch (a->kind) {
    case WEIR__ARG_COUNT:
    case WEIR__ARG_TIME:
        add_bounds(out, a, null);
        break;
    case WEIR__ARG_CHOICE:
    case WEIR__ARG_UNIT:
        add_choices(out, a->choices, strlen(a->choices), null);
        if (a->kind == WEIR__ARG_UNIT) {
            weir__buffer_member_name(out, "default");
            weir__buffer_json(out, a->choices, strcspn(a->choices, "|"));
        }
        break;
    case WEIR__ARG_SWITCH:
        add_kind(out, "boolean", null);
        break;
    case WEIR__ARG_SCALAR:
        weir__buffer_format(out, "\"type\":[\"string\",\"number\",\"boolean\"%s]",
                            null ? ",\"null\"" : "");
        if (a->min)
            weir__buffer_member_number(out, "minLength", a->min);
        break;
    case WEIR__ARG_ATTRIBUTES:
        add_ref(out, "schemas", "Attributes", 10);
        break;
    case WEIR__ARG_ENTRIES:
        weir__buffer_text(out, "\"type\":\"array\",\"items\":{\"type\":\"string\"},\"minItems\":1");
        break;
    case WEIR__ARG_CHECKS:
        weir__buffer_member(out, "type", "array");
        weir__buffer_open(out, "items", '{');
        add_ref(out, "schemas", "Check", 5);
        weir__buffer_format(out, "},\"minItems\":1,\"maxItems\":%d", (int)a->max);
        break;
    default:
        add_kind(out, "string", null);
        if (a->min)
            weir__buffer_member_number(out, "minLength", a->min);
        if (a->max)
            weir__buffer_member_number(out, "maxLength", a->max);
    }
}

static void add_arg(struct weir__buffer *out, const struct weir__arg *a)
{
    add_arg_type(out, a, !a->needed);
    add_text(out, a->text);
    if (a->example && a->kind != WEIR__ARG_ENTRIES) {
        weir__buffer_member_name(out, "examples");
        weir__buffer_format(out, "[%s]", a->example);
    }
}

/* A time's second member: wait_ns beside wait_ms, in its own unit.  `needs`: not what it is, but
 * what has to be there with it: the unit, and not wait_ms. */
static void add_ns_members(struct weir__buffer *out, const struct weir__verb *v, bool needs)
{
    for (const struct weir__arg *a = v->args; a->name; a++) {
        char ns[40];
        if (a->kind != WEIR__ARG_TIME)
            continue;
        snprintf(ns, sizeof(ns), "%s_ns", a->name);
        weir__buffer_open(out, ns, '{');
        if (needs) {
            weir__buffer_format(out, "\"not\":{\"required\":[\"%s\"]}", weir__arg_member(a).text);
            weir__buffer_text(out, ",\"required\":[\"unit\"],"
                                   "\"properties\":{\"unit\":{\"const\":\"ns\"}}");
        } else {
            add_bounds(out, &(struct weir__arg){ .min = a->min, .otherwise = -1 }, true);
            weir__buffer_member(out, "description", "the same with the unit ns");
        }
        weir__buffer_close(out, "}");
    }
}

/* The body's schema, members of an object. */
static void add_body(struct weir__buffer *out, const struct weir__verb *v)
{
    weir__buffer_member(out, "type", "object");
    weir__buffer_open(out, "properties", '{');
    for (const struct weir__arg *a = v->args; a->name; a++) {
        weir__buffer_open(out, weir__arg_member(a).text, '{');
        add_arg(out, a);
        weir__buffer_close(out, "}");
    }
    if (weir__verb_has_unit(v))
        add_ns_members(out, v, false);
    weir__buffer_close(out, "}");
    if (weir__verb_has_unit(v)) {
        weir__buffer_open(out, "dependentSchemas", '{');
        add_ns_members(out, v, true);
        weir__buffer_close(out, "}");
    }
    weir__buffer_open(out, "required", '[');
    for (const struct weir__arg *a = v->args; a->name; a++)
        if (a->needed)
            weir__buffer_member(out, NULL, a->name);
    weir__buffer_close(out, "]");
    weir__buffer_member_bool(out, "additionalProperties", false);
}

/* "checkBatch" has the schema CheckBatch. */
static const char *body_name(const struct weir__verb *v, char name[32])
{
    snprintf(name, 32, "%s", v->id);
    name[0] = (char)toupper((unsigned char)name[0]);
    return name;
}

static bool has_body(const struct weir__verb *v)
{
    const struct weir__arg *a = v->args;

    if (v->method == NULL || strcmp(v->method, "GET") == 0 || a->name == NULL)
        return false;
    if (strcmp(v->method, "DELETE") != 0)
        return true;
    while (a->name && a->kind != WEIR__ARG_ENTRIES)
        a++;
    return a->name != NULL;
}

/* The body is the text itself: other arguments are in the query. */
static bool is_raw(const struct weir__verb *v)
{
    return v->args[0].name && v->args[0].kind == WEIR__ARG_BODY;
}

/* The operator's verbs take all they need from the query too, and some need nothing. */
static bool needs_body(const struct weir__verb *v)
{
    const struct weir__arg *a = v->args;

    if (is_raw(v) || v->how != WEIR__VERB_AWAY)
        return !is_raw(v) || a->needed;
    while (a->name && !a->needed)
        a++;
    return a->name != NULL;
}

static void add_request(struct weir__buffer *out, const struct weir__verb *v)
{
    char name[32];
    bool raw = is_raw(v);

    weir__buffer_open(out, "requestBody", '{');
    weir__buffer_member_bool(out, "required", needs_body(v));
    open_content(out, raw ? "application/yaml" : "application/json");
    if (raw)
        weir__buffer_member(out, "type", "string");
    else if (strcmp(v->tag, BODIES_TAG) == 0)
        add_ref(out, "schemas", body_name(v, name), strlen(v->id));
    else
        add_body(out, v);
    weir__buffer_close(out, "}}}}");
}

static void add_parameter(struct weir__buffer *out, const struct weir__arg *a, const char *in,
                          const char *name)
{
    weir__buffer_open(out, NULL, '{');
    weir__buffer_member(out, "name", name);
    weir__buffer_member(out, "in", in);
    weir__buffer_member_bool(out, "required", a->needed);
    add_text(out, a->text);
    if (a->kind == WEIR__ARG_ATTRIBUTES)
        weir__buffer_text(out, ",\"style\":\"form\",\"explode\":true");
    weir__buffer_open(out, "schema", '{');
    if (a->kind == WEIR__ARG_ATTRIBUTES)
        add_ref(out, "schemas", "OwnAttributes", 13);
    else
        add_arg_type(out, a, false);
    weir__buffer_close(out, "}}");
}

static void add_parameters(struct weir__buffer *out, const struct weir__arg *first)
{
    weir__buffer_open(out, "parameters", '[');
    for (const struct weir__arg *a = first; a->name; a++) {
        add_parameter(out, a, "query", a->name);
        if (a->header)
            add_parameter(out, a, "header", a->header);
    }
    weir__buffer_close(out, "]");
}

/* -------------------------------------------------------------- answers ---- */

/* The answer 200, unless `statuses` names it: "Name", "[Name]", "object", or a media type. */
static void add_success(struct weir__buffer *out, const struct weir__verb *v)
{
    bool media = strchr(v->answer, '/') != NULL;

    weir__buffer_open(out, "200", '{');
    weir__buffer_member(out, "description", "Done.");
    open_content(out, media ? v->answer : "application/json");
    if (!media)
        add_type(out, v->answer, strlen(v->answer));
    else if (strcmp(v->answer, "text/event-stream") != 0) /* whose parts are objects to some */
        weir__buffer_member(out, "type", "string");
    weir__buffer_close(out, "}}}}");
}

#define RULED        "RateLimit RateLimit-Policy Weir-Level"
#define WRONG_TOKENS "; or too many tokens from this address were wrong (code wrong-tokens)."

/* Answers that several verbs have; by their status, or by the name that rows use. */
static const struct response {
    const char *name, *text, *headers, *schemas;
} responses[] = {
    { "400", "The ask is wrong; detail says what would be right.", "", "Problem" },
    { "401", "A token is needed.", "WWW-Authenticate", "Problem" },
    { "403", "Not with this token, or not from a web page.", "", "Problem" },
    { "404", "There is no such route, rule, list, guard or ban.", "", "Problem" },
    { "409", "Somebody else was quicker.", "", "Problem" },
    { "413", "The request is larger than request-max.", "", "Problem" },
    { "422", "It can be read, but not used; problems says why.", "", "Problem" },
    { "429", "Too many wrong tokens from this address.", "Retry-After", "Problem" },
    { "500", "The server could not do it.", "", "Problem" },
    { "503", "Not now.", "", "Problem" },
    { "Other",
      "What the server says of any request that it cannot read or has no time for: 400 404 "
      "405 413 414 417 431 500 501 503 505.",
      "", "Problem" },
    { "Allowed", "Allowed.", RULED, "Ruling" },
    { "AllowedBare", "Allowed; no body.", RULED, "" },
    { "Denied",
      "On a deny list (code weir-denied), refused (with refuse=403), or not permitted to ask (code "
      "forbidden).",
      RULED " Retry-After", "Refusal|Problem" },
    { "Refused", "Refused by a limit: code weir-limited or weir-banned" WRONG_TOKENS,
      RULED " Retry-After", "Refusal|Problem" },
    { "RefusedForNow",
      "Refused whatever was used: the fleet cannot be asked (weir-alone, weir-dry), the table is "
      "full (weir-no-room), or too many limits apply (weir-too-many).",
      RULED " Retry-After", "Refusal" },
    { "RefusedLater", "Refused, with refuse=503; or as for 503 of a check.", RULED " Retry-After",
      "Refusal" },
    { "Taken", "Taken, or it would be.", "RateLimit RateLimit-Policy", "Decision" },
    { "TakeRefused", "Refused" WRONG_TOKENS, "RateLimit RateLimit-Policy Retry-After",
      "TakeRefusal|Problem" },
    { "Entered", "Allowed.", RULED, "Entered" },
    { "RefusedByLimit",
      "Refused by a limit: code weir-limited or weir-banned; or the key has all of its permits out "
      "(weir-key-busy), or can never have as many (weir-too-big)" WRONG_TOKENS,
      RULED " Retry-After Weir-Allowed Weir-Fallback", "Refusal|GuardRefusal|Problem" },
    { "RefusedByGuard", "Refused by a guard, or as for 503 of a check.",
      RULED " Retry-After Weir-Allowed Weir-Fallback", "Refusal|GuardRefusal" },
};

static void add_headers(struct weir__buffer *out, const char *names)
{
    weir__buffer_open(out, "headers", '{');
    for (size_t len; *names; names += len + (names[len] == ' ')) {
        char name[32];
        len = strcspn(names, " ");
        snprintf(name, sizeof(name), "%.*s", (int)len, names);
        weir__buffer_open(out, name, '{');
        add_ref(out, "headers", name, len);
        weir__buffer_close(out, "}");
    }
    weir__buffer_close(out, "}");
}

static void add_response(struct weir__buffer *out, const struct response *r)
{
    bool problem = strstr(r->schemas, "Refusal") || strstr(r->schemas, "Problem");

    weir__buffer_open(out, r->name, '{');
    weir__buffer_member(out, "description", r->text);
    if (r->headers[0])
        add_headers(out, r->headers);
    if (r->schemas[0]) {
        open_content(out, problem ? "application/problem+json" : "application/json");
        add_type(out, r->schemas, strlen(r->schemas));
        weir__buffer_close(out, "}}}");
    }
    weir__buffer_close(out, "}");
}

static void add_status(struct weir__buffer *out, const char *status, const char *name, size_t len)
{
    char text[4] = "";

    weir__buffer_open(out, memcpy(text, status, 3), '{');
    add_ref(out, "responses", name, len);
    weir__buffer_close(out, "}");
}

static void add_responses(struct weir__buffer *out, const struct weir__verb *v)
{
    const char *all = v->statuses ? v->statuses : "";

    weir__buffer_open(out, "responses", '{');
    if (strncmp(all, "200", 3) != 0)
        add_success(out, v);
    for (const char *at = all; *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " "), skip = len > 3 ? 4 : 0;
        add_status(out, at, at + skip, len - skip);
        at += len;
    }
    if (v->role != WEIR__ROLE_NONE)
        add_status(out, "401", "401", 3);
    if (v->role != WEIR__ROLE_NONE && strstr(all, "403") == NULL)
        add_status(out, "403", "403", 3);
    if (v->role != WEIR__ROLE_NONE && strstr(all, "429") == NULL)
        add_status(out, "429", "429", 3);
    weir__buffer_open(out, "default", '{');
    add_ref(out, "responses", "Other", 5);
    weir__buffer_close(out, "}}");
}

/* ---------------------------------------------------------------- paths ---- */

static void add_operation(struct weir__buffer *out, const struct weir__verb *v, const char *method)
{
    char name[16] = "", id[48];

    for (size_t i = 0; method[i] && i < sizeof(name) - 1; i++)
        name[i] = (char)tolower((unsigned char)method[i]);
    snprintf(id, sizeof(id), "%s%s", v->id, v->method || name[0] == 'g' ? "" : "Post");
    weir__buffer_open(out, name, '{');
    weir__buffer_member_name(out, "tags");
    weir__buffer_format(out, "[\"%s\"]", v->tag);
    weir__buffer_member(out, "operationId", id);
    weir__buffer_member(out, "summary", v->summary);
    add_text(out, v->more);
    if (has_body(v))
        add_request(out, v);
    if (is_raw(v) ? v->args[1].name != NULL : !has_body(v) && v->args[0].name != NULL)
        add_parameters(out, v->args + is_raw(v));
    add_responses(out, v);
    if (v->role == WEIR__ROLE_NONE)
        weir__buffer_text(out, ",\"security\":[]");
    weir__buffer_member(out, "x-weir-role", weir__role_name(v->role));
    if (v->command)
        weir__buffer_member(out, "x-weir-command", v->command);
    weir__buffer_close(out, "}");
}

/* All that the path can be asked, where the first of them stands. */
static void add_path(struct weir__buffer *out, const struct weir__verb *first)
{
    for (const struct weir__verb *v = weir__verbs; v < first; v++)
        if (v->path && strcmp(v->path, first->path) == 0)
            return;
    weir__buffer_open(out, first->path, '{');
    for (const struct weir__verb *v = first; v->summary; v++) {
        if (v->path == NULL || strcmp(v->path, first->path) != 0)
            continue;
        add_operation(out, v, v->method ? v->method : "GET");
        if (v->method == NULL)
            add_operation(out, v, "POST");
    }
    weir__buffer_close(out, "}");
}

/* Without the last braces, of schemas, components and the document, and the space between them. */
static size_t length_of_head(void)
{
    size_t len = weir__openapi_head_len;

    for (int braces = 0; braces < 3; braces++)
        while (weir__openapi_head[--len] != '}')
            continue;
    while (isspace((unsigned char)weir__openapi_head[len - 1]))
        len--;
    return len;
}

void weir__openapi_print(struct weir__buffer *out)
{
    char name[32];

    weir__buffer_add(out, weir__openapi_head, length_of_head());
    for (const struct weir__schema *s = weir__schemas; s->name; s++)
        add_schema(out, s);
    for (const struct weir__verb *v = weir__verbs; v->summary; v++) {
        if (!v->path || strcmp(v->tag, BODIES_TAG) != 0 || !has_body(v))
            continue;
        weir__buffer_open(out, body_name(v, name), '{');
        add_body(out, v);
        weir__buffer_close(out, "}");
    }
    weir__buffer_close(out, "}");
    weir__buffer_open(out, "responses", '{');
    for (size_t i = 0; i < sizeof(responses) / sizeof(responses[0]); i++)
        add_response(out, &responses[i]);
    weir__buffer_close(out, "}}");
    weir__buffer_open(out, "paths", '{');
    for (const struct weir__verb *v = weir__verbs; v->summary; v++)
        if (v->path)
            add_path(out, v);
    weir__buffer_close(out, "}}");
}
