/* log-json.c -- a line of JSON as an entry, by a map from fields to attributes.
 *
 * An attribute has a slot, and a slot the fields where it is looked for, the best first: an
 * operator's map names one, else there are the usual names of nginx, Apache, Caddy, Traefik and the
 * Elastic schema.  All fields of all slots stand in one small hash table, so a line costs one look
 * per field.  What belongs to no slot becomes an attribute under its own path, behind the slots',
 * while there is room.
 *
 *     time      is required, and is not an attribute
 *     request   "GET /x HTTP/1.1" gives method, uri and protocol where no field of their own does
 *
 * Of two fields with one name the last counts, as in most readers of JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/replay/log.h"
#include "base/base.h"
#include "wire/json.h"
#include "wire/decimal.h"

enum {
    TIME,
    REQUEST,
    METHOD,
    URI,
    PROTOCOL,
    STATUS,
    BYTES,
    MAPPED_MAX = 16, /* entries of a map: so that these and the usual ones fit into an entry */
    SLOTS_MAX = 12 + MAPPED_MAX,
    FIELDS_MAX = 128,
    TABLE_SIZE = 256,
};

_Static_assert(SLOTS_MAX <= WEIR__LOG_ATTRS, "every slot has room in an entry");
_Static_assert(WEIR__LOG_SCRATCH(0) >= WEIR__LOG_ATTRS * WEIR__JSON_PATH,
               "every path has room in the scratch");

static const struct {
    const char *attribute, *fields;
} usual[] = {
    [TIME] = { "time", "time|timestamp|@timestamp|ts|msec|time_iso8601|time_local|StartUTC" },
    [REQUEST] = { "request", "request|request_line" },
    [METHOD] = { "method",
                 "method|request_method|request.method|RequestMethod|http.request.method" },
    [URI] = { "uri", "request_uri|uri|url|path|request.uri|RequestPath|url.original|http.url" },
    [PROTOCOL] = { "protocol", "protocol|server_protocol|request.proto|RequestProtocol" },
    [STATUS] = { "status", "status|status_code|DownstreamStatus|http.response.status_code" },
    [BYTES] = { "bytes", "bytes|body_bytes_sent|bytes_sent|size|DownstreamContentSize|http."
                         "response.body.bytes" },
    { "ip", "remote_addr|client_ip|ip|remote_ip|client|request.client_ip|request.remote_ip|"
            "ClientHost|client.ip|source.ip" },
    { "user", "remote_user|user|user_id|ClientUsername|user.name" },
    { "host", "host|http_host|server_name|vhost|request.host|RequestHost|url.domain" },
    { "header.user-agent", "user_agent|http_user_agent|agent|header.user-agent|request.headers."
                           "User-Agent.0|request_User-Agent|user_agent.original" },
    { "header.referer", "referer|referrer|http_referer|header.referer|request.headers.Referer.0|"
                        "request_Referer|http.request.referrer" },
};

enum { USUAL = sizeof(usual) / sizeof(*usual) };

struct field {
    const char *path;
    uint16_t len;
    uint8_t slot, rank; /* lower is better */
};

struct slot {
    const char *name;
    size_t len;
    bool mapped; /* by hand: the usual fields do not count */
};

struct weir__log_map {
    struct slot slots[SLOTS_MAX];
    struct field fields[FIELDS_MAX];
    size_t n_slots, n_fields;
    size_t n_mapped;           /* mapped by hand: the first ones */
    uint8_t table[TABLE_SIZE]; /* the number of a field, from 1; 0: free */
    char text[];               /* the map as given */
};

/* --------------------------------------------------------------------- map ---- */

static unsigned place_of(const char *path, size_t len)
{
    const unsigned char *p = (const unsigned char *)path;

    return len == 0 ? 0
                    : (unsigned)(len * 29 + p[0] * 7u + p[len / 2] * 3u + p[len - 1]) % TABLE_SIZE;
}

static void add_field(struct weir__log_map *map, size_t slot, unsigned rank, const char *path,
                      size_t len)
{
    unsigned i = place_of(path, len);

    map->fields[map->n_fields++] =
        (struct field){ path, (uint16_t)len, (uint8_t)slot, (uint8_t)rank };
    while (map->table[i])
        i = (i + 1) % TABLE_SIZE;
    map->table[i] = (uint8_t)map->n_fields;
}

static void add_usual(struct weir__log_map *map)
{
    for (size_t slot = 0; slot < USUAL; slot++) {
        const char *at = usual[slot].fields;
        for (unsigned rank = 0; !map->slots[slot].mapped; rank++) {
            size_t len = strcspn(at, "|");
            add_field(map, slot, rank, at, len);
            if (at[len] == '\0')
                break;
            at += len + 1;
        }
    }
}

/* A new slot if none has that name. */
static struct slot *slot_named(struct weir__log_map *map, const char *name, size_t len)
{
    struct slot *slot = map->slots;

    while (slot < map->slots + map->n_slots &&
           (slot->len != len || memcmp(slot->name, name, len) != 0))
        slot++;
    if (slot == map->slots + map->n_slots) {
        *slot = (struct slot){ .name = name, .len = len };
        map->n_slots++;
    }
    return slot;
}

static void trim(const char **at, size_t *len)
{
    while (*len > 0 && **at == ' ') {
        ++*at;
        --*len;
    }
    while (*len > 0 && (*at)[*len - 1] == ' ')
        --*len;
}

/* One ATTRIBUTE=FIELD. */
static int add_mapping(struct weir__log_map *map, const char *at, size_t len, int column,
                       struct weir_error *error)
{
    const char *equals = memchr(at, '=', len), *field = equals ? equals + 1 : at;
    size_t name_len = equals ? (size_t)(equals - at) : 0, field_len = (size_t)(at + len - field);

    trim(&at, &name_len);
    trim(&field, &field_len);
    if (equals == NULL || name_len == 0 || field_len == 0)
        return weir__fail_at(error, column, "expected ATTRIBUTE=FIELD, such as account=user.id");
    if (field_len > WEIR__JSON_PATH)
        return weir__fail_at(error, column, "the field of '%.*s' is longer than %d bytes",
                             (int)(name_len < 60 ? name_len : 60), at, WEIR__JSON_PATH);
    struct slot *slot = slot_named(map, at, name_len);
    if (slot->mapped)
        return weir__fail_at(error, column, "'%.*s' is mapped twice",
                             (int)(name_len < 60 ? name_len : 60), at);
    slot->mapped = true;
    add_field(map, (size_t)(slot - map->slots), 0, field, field_len);
    return WEIR_OK;
}

static int read_map(struct weir__log_map *map, struct weir_error *error)
{
    const char *at = map->text;

    for (int entries = 0;; entries++) {
        size_t len = strcspn(at, ",");
        int column = (int)(at - map->text) + 1;
        if (entries == MAPPED_MAX)
            return weir__fail_at(error, column, "a map has at most %d entries", MAPPED_MAX);
        int code = add_mapping(map, at, len, column, error);
        if (code != WEIR_OK || at[len] == '\0')
            return code;
        at += len + 1;
    }
}

int weir__log_map_create(struct weir__log_map **out, const char *text, struct weir_error *error)
{
    size_t size = text ? strlen(text) + 1 : 0;
    struct weir__log_map *map = calloc(1, sizeof(*map) + size);
    int code = WEIR_OK;

    if (map == NULL)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory left for a log's map");
    for (size_t i = 0; i < USUAL; i++)
        map->slots[i] =
            (struct slot){ .name = usual[i].attribute, .len = strlen(usual[i].attribute) };
    map->n_slots = USUAL;
    if (text != NULL) {
        memcpy(map->text, text, size);
        code = read_map(map, error);
    }
    if (code != WEIR_OK) {
        weir__log_map_destroy(map);
        return code;
    }
    map->n_mapped = map->n_fields;
    add_usual(map);
    *out = map;
    return WEIR_OK;
}

void weir__log_map_destroy(struct weir__log_map *map)
{
    free(map);
}

/* ----------------------------------------------------------- combined lines ---- */

const char *weir__log_map_misfit(const struct weir__log_map *map, char *out, size_t size)
{
    static const char *const known[] = {
        "ip",       "user",   "host",  "method",         "uri",
        "protocol", "status", "bytes", "header.referer", "header.user-agent"
    };

    for (size_t i = 0; i < map->n_mapped; i++) {
        const struct field *field = &map->fields[i];
        size_t k = 0;
        while (k < sizeof(known) / sizeof(known[0]) &&
               (strlen(known[k]) != field->len || memcmp(known[k], field->path, field->len) != 0))
            k++;
        if (k == sizeof(known) / sizeof(known[0])) {
            snprintf(out, size,
                     "has no field '%.*s': of a combined log there are ip, user, host, method, "
                     "uri, protocol, status, bytes, header.*",
                     (int)(field->len < 18 ? field->len : 18), field->path);
            return out;
        }
        if (field->slot == TIME || field->slot == REQUEST) {
            snprintf(out, size, "is a combined log: %s cannot be mapped",
                     map->slots[field->slot].name);
            return out;
        }
    }
    return NULL;
}

static struct weir_attr *find_attr(struct weir_attr *attrs, size_t n, const char *name, size_t len)
{
    for (size_t i = 0; i < n; i++) {
        if (attrs[i].name_len == len && memcmp(attrs[i].name, name, len) == 0)
            return &attrs[i];
    }
    return NULL;
}

/* As of JSON: a field may be mapped to several attributes and keeps its own, and an attribute that
 * is mapped comes from its field only. */
void weir__log_map_rename(const struct weir__log_map *map, struct weir__log_entry *entry)
{
    struct weir_attr given[WEIR__LOG_ATTRS];
    size_t n = entry->n;

    memcpy(given, entry->attrs, n * sizeof(*given));
    for (size_t i = 0; i < map->n_mapped; i++) {
        const struct slot *slot = &map->slots[map->fields[i].slot];
        struct weir_attr *from = find_attr(given, n, map->fields[i].path, map->fields[i].len);
        struct weir_attr *to = find_attr(entry->attrs, entry->n, slot->name, slot->len);
        if (from != NULL && to != NULL) {
            to->value = from->value;
            to->value_len = from->value_len;
        } else if (from != NULL && entry->n < WEIR__LOG_ATTRS) {
            weir__log_add(entry, slot->name, slot->len, from->value, from->value_len);
        } else if (to != NULL) {
            *to = entry->attrs[--entry->n];
        }
    }
}

/* -------------------------------------------------------------------- line ---- */

struct found {
    const char *text;
    size_t len;
};

struct line {
    const struct weir__log_map *map;
    char *names; /* where the next path of `others` goes */
    struct found found[SLOTS_MAX];
    uint8_t ranks[SLOTS_MAX]; /* UINT8_MAX: not found */
    struct weir_attr others[WEIR__LOG_ATTRS];
    size_t n_others;
};

/* Under its own path, unless a slot goes by that name: an attribute comes once. */
static void keep_other(struct line *line, const struct weir__json_value *value)
{
    for (size_t i = 0; i < line->map->n_slots; i++)
        if (line->map->slots[i].len == value->path_len &&
            memcmp(line->map->slots[i].name, value->path, value->path_len) == 0)
            return;
    for (size_t i = 0; i < line->n_others; i++) {
        struct weir_attr *other = &line->others[i];
        if (other->name_len == value->path_len &&
            memcmp(other->name, value->path, value->path_len) == 0) {
            other->value = value->text;
            other->value_len = value->len;
            return;
        }
    }
    if (line->n_others == WEIR__LOG_ATTRS)
        return;
    memcpy(line->names, value->path, value->path_len);
    line->others[line->n_others++] =
        (struct weir_attr){ line->names, value->text, value->path_len, value->len, 0 };
    line->names += value->path_len;
}

static void keep_found(struct line *line, const struct field *field,
                       const struct weir__json_value *value)
{
    bool given =
        value->len > 1 ||
        (value->len == 1 && *value->text != '-'); /* "-" is nginx's and Apache's word for nothing */

    if (!given || field->rank > line->ranks[field->slot])
        return;
    line->ranks[field->slot] = field->rank;
    line->found[field->slot] = (struct found){ value->text, value->len };
}

static bool each_value(void *context, const struct weir__json_value *value)
{
    struct line *line = context;
    const struct weir__log_map *map = line->map;
    bool known = false;

    if (value->kind == WEIR__JSON_NULL || value->kind == WEIR__JSON_EMPTY)
        return true;
    for (unsigned i = place_of(value->path, value->path_len); map->table[i];
         i = (i + 1) % TABLE_SIZE) {
        const struct field *field = &map->fields[map->table[i] - 1];
        if (field->len != value->path_len || memcmp(field->path, value->path, value->path_len) != 0)
            continue;
        known = true;
        keep_found(line, field, value);
    }
    if (!known)
        keep_other(line, value);
    return true;
}

static void set_found(struct line *line, size_t slot, const char *text, size_t len)
{
    if (line->ranks[slot] != UINT8_MAX || len == 0)
        return;
    line->ranks[slot] = 0;
    line->found[slot] = (struct found){ text, len };
}

static void split_request(struct line *line)
{
    const struct found *whole = &line->found[REQUEST];
    struct weir__log_request request;

    if (line->ranks[REQUEST] == UINT8_MAX || !weir__log_request(whole->text, whole->len, &request))
        return;
    set_found(line, METHOD, request.method, request.method_len);
    set_found(line, URI, request.uri, request.uri_len);
    set_found(line, PROTOCOL, request.protocol, request.protocol_len);
}

static void fill(struct weir__log_entry *entry, const struct line *line)
{
    int64_t status;

    entry->n = 0;
    entry->status = 0;
    entry->bytes = -1;
    for (size_t i = METHOD; i < line->map->n_slots; i++)
        if (line->ranks[i] != UINT8_MAX)
            weir__log_add(entry, line->map->slots[i].name, line->map->slots[i].len,
                          line->found[i].text, line->found[i].len);
    for (size_t i = 0; i < line->n_others && entry->n < WEIR__LOG_ATTRS; i++)
        weir__log_add(entry, line->others[i].name, line->others[i].name_len, line->others[i].value,
                      line->others[i].value_len);
    if (line->ranks[STATUS] != UINT8_MAX &&
        weir__count_parse(line->found[STATUS].text, line->found[STATUS].len, &status) &&
        status <= 999)
        entry->status = (int)status;
    if (line->ranks[BYTES] != UINT8_MAX)
        (void)weir__count_parse(line->found[BYTES].text, line->found[BYTES].len, &entry->bytes);
}

static bool wrong(struct weir__log_fault *fault, size_t at, const char *expected)
{
    *fault = (struct weir__log_fault){ at, expected };
    return false;
}

bool weir__log_json(const char *line, size_t len, char *scratch, const struct weir__log_map *map,
                    struct weir__log_entry *entry, struct weir__log_fault *fault)
{
    struct line l;
    size_t blank = 0;

    l.map = map;
    l.names = scratch + len;
    l.n_others = 0;
    memset(l.ranks, UINT8_MAX, sizeof(l.ranks));
    while (blank < len && (line[blank] == ' ' || line[blank] == '\t'))
        blank++;
    if (blank == len || line[blank] != '{')
        return wrong(fault, blank, "an object: {\"time\": ..., \"ip\": ...}");
    long at = weir__json_walk(line, len, scratch, each_value, &l, &fault->expected);
    if (at >= 0)
        return wrong(fault, (size_t)at, fault->expected);
    const struct found *time = &l.found[TIME];
    if (l.ranks[TIME] == UINT8_MAX)
        return wrong(fault, blank,
                     "a time: a field time, timestamp, ts, ..., or one mapped by time=FIELD");
    if (!weir__date_parse(time->text, time->len, &entry->at))
        return wrong(fault,
                     time->text >= line && time->text < line + len ? (size_t)(time->text - line)
                                                                   : blank,
                     "a time: ISO 8601 or a number since 1970, up to 2261");
    split_request(&l);
    fill(entry, &l);
    return true;
}
