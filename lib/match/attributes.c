/* attributes.c -- the attributes of a request that a rule set uses.
 *
 * A request brings any names; the set uses a few.  Length and three bytes choose one of 256 places;
 * names with the same place follow each other.
 */
#include <string.h>

#include "base/atomic.h"
#include "match/bytes.h"
#include "match/rules.h"

static uint8_t place_of(const char *name, size_t len)
{
    const unsigned char *c = (const unsigned char *)name;

    return len == 0 ? 0
                    : (uint8_t)(c[0] + 7u * c[len / 2] + 31u * c[len - 1] + 101u * (unsigned)len);
}

/* by_name has four times as many places as there are attributes, so a search is short. */
static inline __attribute__((always_inline)) int find(const struct weir__attributes *known,
                                                      const char *name, size_t len)
{
    for (uint8_t place = place_of(name, len); known->by_name[place] != 0; place++) {
        int i = known->by_name[place] - 1;
        if (known->lengths[i] == len && weir__same_bytes(known->names[i], name, len))
            return i;
    }
    return -1;
}

int weir__attribute_find(const struct weir__attributes *known, const char *name, size_t len)
{
    return find(known, name, len);
}

int weir__attribute_add(struct weir__attributes *known, const char *name, struct weir_error *error)
{
    size_t len = strlen(name);

    if (len == 0 || len >= WEIR__ATTRIBUTE_SIZE)
        return weir__fail(error, WEIR_INVALID, "an attribute's name has 1 to %d bytes",
                          WEIR__ATTRIBUTE_SIZE - 1);
    int i = weir__attribute_find(known, name, len);
    if (i >= 0)
        return i;
    if (known->n == WEIR__ATTRIBUTES_MAX)
        return weir__fail(
            error, WEIR_INVALID,
            "rules and lists look at no more than %d attributes; '%s' is one too many",
            WEIR__ATTRIBUTES_MAX, name);
    i = (int)known->n++;
    memcpy(known->names[i], name, len + 1);
    known->lengths[i] = (uint8_t)len;
    known->is_address[i] = weir__attribute_is_address(name);
    if (weir__attribute_is_path(name))
        known->uri = i;
    if (weir__attribute_is_host(name))
        known->hosts[known->n_hosts++] = i;
    if (strcmp(name, "method") == 0)
        known->method = i + 1;
    uint8_t place = place_of(name, len);
    while (known->by_name[place] != 0)
        place++;
    known->by_name[place] = (uint8_t)(i + 1);
    return i;
}

int weir__attribute_add_loose(struct weir__attributes *known, struct weir_error *error)
{
    int strict = weir__attribute_add(known, "uri", error);
    int loose = strict < 0 ? strict : weir__attribute_add(known, "uri, loosely", error);

    if (loose > 0)
        known->loose = loose;
    return loose;
}

/* The path as a server sees it. */
static void plain_uri(struct weir__value *v, char scratch[WEIR__URI_MAX])
{
    if (v->len == 0)
        return;
    if (!weir__uri_is_plain(v->text, v->len)) {
        v->len = weir__uri_plain(v->text, v->len, scratch, WEIR__URI_MAX);
        v->text = scratch;
    }
    if (v->len > WEIR__URI_MAX)
        v->len = WEIR__URI_MAX;
}

static bool has_doubtful(weir__bytes v)
{
    weir__bytes marks = (weir__bytes)(v == ';') | (weir__bytes)(v == '\\') |
                        (weir__bytes)(v == '%') | (weir__bytes)((weir__bytes)(v - 1) < ' ');

    return weir__bytes_bits(marks) != 0;
}

static bool is_doubtful(const char *uri, size_t len)
{
    bool is = has_doubtful(
        len < 16 ? weir__bytes_join(weir__bytes_first(uri, len), weir__bytes_second(uri, len))
                 : weir__bytes_sixteen(uri + len - 16));

    for (size_t at = 0; at + 16 < len; at += 16)
        is |= has_doubtful(weir__bytes_sixteen(uri + at));
    return is;
}

/* From the URI as it came: of the plain path a long parameter may have driven out the rest.
 * True: servers that know no parameters and backslashes may read it otherwise. */
static bool loose_uri(struct weir__value *loose, const struct weir__value *uri,
                      char scratch[WEIR__URI_MAX + 2])
{
    *loose = *uri;
    if (uri->len == 0 || (uri->len == 1 && uri->text[0] == '*'))
        return false;
    loose->len = weir__uri_loose(uri->text, uri->len, WEIR__TOMCAT, scratch, WEIR__URI_MAX + 2);
    loose->text = scratch;
    loose->hash = 0;
    return is_doubtful(uri->text, uri->len);
}

static struct weir__value *add_reading(struct weir__facts *facts, size_t len)
{
    struct weir__value *v = &facts->readings[facts->n_readings];

    *v = (struct weir__value){ .text = facts->loose[facts->n_readings++], .len = len };
    return v;
}

static size_t lower_path(const struct weir__value *plain, char *out)
{
    for (size_t i = 0; i < plain->len; i++)
        out[i] = (char)(plain->text[i] >= 'A' && plain->text[i] <= 'Z' ? plain->text[i] + 32
                                                                       : plain->text[i]);
    out[plain->len] = '/';
    return plain->len + (plain->text[plain->len - 1] != '/');
}

static bool differ(const struct weir__value *a, const struct weir__value *b)
{
    return a->len != b->len || memcmp(a->text, b->text, a->len) != 0;
}

/* /a/;x/../b is /b to Tomcat, /a/b to nginx; /a;\..\b is /a to Tomcat, /b on Windows.  The path is
 * read as by Tomcat, as by Tomcat behind nginx, as on Windows, as by Tomcat if escapes went first,
 * and as by nginx.  (The fourth is the second without a bound: of the plain path a long parameter
 * may have driven out the rest.)  Where they differ by more than a parameter all such paths are one
 * in keys: a client could spell one path in any number of ways. */
static void add_readings(struct weir__facts *facts, struct weir__value *loose,
                         const struct weir__value *uri, const struct weir__value *plain)
{
    const size_t room = WEIR__URI_MAX + 2;
    const struct weir__value *tomcat = add_reading(facts, loose->len);
    const struct weir__value *behind = add_reading(
        facts, weir__uri_loose(plain->text, plain->len, WEIR__BEHIND_NGINX, facts->loose[1], room));
    const struct weir__value *windows = add_reading(
        facts, weir__uri_loose(uri->text, uri->len, WEIR__WINDOWS, facts->loose[2], room));
    const struct weir__value *decoded = add_reading(
        facts, weir__uri_loose(uri->text, uri->len, WEIR__DECODED, facts->loose[3], room));
    const struct weir__value *nginx = add_reading(facts, lower_path(plain, facts->loose[4]));

    if (differ(tomcat, behind) || differ(tomcat, decoded) ||
        (differ(windows, nginx) && differ(windows, tomcat)))
        *loose = (struct weir__value){ .text = "/../", .len = 4 };
}

static void gather_paths(const struct weir__attributes *known, struct weir__facts *facts)
{
    struct weir__value *uri = &facts->values[known->uri], *loose = &facts->values[known->loose];
    const struct weir__value came = { .text = uri->text, .len = uri->len };
    bool doubtful = known->loose > 0 && loose_uri(loose, &came, facts->loose[0]);

    plain_uri(uri, facts->uri);
    if (doubtful)
        add_readings(facts, loose, &came, uri);
}

static void plain_host(struct weir__value *v, char scratch[WEIR__HOST_MAX])
{
    if (v->len == 0 || (v->len <= WEIR__HOST_MAX && weir__host_is_plain(v->text, v->len)))
        return;
    v->len = weir__host_plain(v->text, v->len, scratch, WEIR__HOST_MAX);
    v->text = scratch;
}

#define SMALL 0x2020202020202020u /* the bit that capitals lack */

/* Methods have capitals, and many frameworks take post for POST.  A long one is nobody's. */
static void plain_method(struct weir__value *v, char scratch[WEIR__METHOD_MAX])
{
    size_t i = 0;

    if (v->len <= 8 && (weir__bytes_first(v->text, v->len) & SMALL) == 0)
        return;
    while (i < v->len && (unsigned char)(v->text[i] - 'a') > 'z' - 'a')
        i++;
    if (i == v->len || v->len > WEIR__METHOD_MAX)
        return;
    weir__method_plain(v->text, v->len, scratch);
    v->text = scratch;
}

/* 192.0.2.7:80, [2001:db8::7]:80: the length without the port, or 0. */
static size_t length_without_port(const char *text, size_t len)
{
    size_t at = len;

    while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9')
        at--;
    return at > 1 && at < len && text[at - 1] == ':' ? at - 1 : 0;
}

/* Values that are no address are one, or a client that chooses its address chooses its key. */
static void read_address(struct weir__value *v)
{
    if (v->len == 0 || weir__address_parse(v->text, v->len, &v->address))
        return;
    size_t len = length_without_port(v->text, v->len);
    if (len > 0 && weir__address_parse(v->text, len, &v->address) &&
        (v->text[0] == '[' || memchr(v->text, '.', len))) { /* 2001:db8:::1 has no port */
        v->len = len;
        return;
    }
    v->address.bits = 0;
    v->text = WEIR__NO_ADDRESS;
    v->len = sizeof(WEIR__NO_ADDRESS) - 1;
}

/* Header names ignore case; those in lower case do not come here. */
static __attribute__((noinline)) int find_header(const struct weir__attributes *known,
                                                 const char *name, size_t len)
{
    char small[WEIR__ATTRIBUTE_SIZE];

    if (len < 8 || memcmp(name, "header.", 7) != 0)
        return -1;
    for (size_t i = 0; i < len; i++)
        small[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] + 32 : name[i]);
    return weir__attribute_find(known, small, len);
}

/* The number of the attribute, or -1 if the set does not use it. */
static inline int number_of(const struct weir__attributes *known, const struct weir_attr *a)
{
    if (a->id != 0)
        return a->id < 256 ? weir__get(&known->by_id[a->id]) - 1 : -1;
    size_t len = a->name_len ? a->name_len : strlen(a->name);
    if (len >= WEIR__ATTRIBUTE_SIZE)
        return -1;
    int at = find(known, a->name, len);
    return at < 0 ? find_header(known, a->name, len) : at;
}

void weir__facts_gather(const struct weir__attributes *known, const struct weir__lists *lists,
                        const struct weir_attr *attrs, size_t n, struct weir__facts *facts)
{
    facts->lists = lists;
    for (size_t i = 0; i < known->n; i++)
        facts->values[i].len = 0;
    for (size_t i = 0; i < n; i++) {
        const struct weir_attr *a = &attrs[i];
        int at = number_of(known, a);
        if (at < 0 || facts->values[at].len != 0)
            continue;
        struct weir__value *v = &facts->values[at];
        v->text = a->value;
        v->len = a->value_len || a->value == NULL ? a->value_len : strlen(a->value);
        v->hash = 0;
        v->address.bits = 0;
        if (known->is_address[at])
            read_address(v);
    }
    facts->n_readings = 0;
    if (known->uri >= 0)
        gather_paths(known, facts);
    if (known->method > 0)
        plain_method(&facts->values[known->method - 1], facts->method);
    for (int i = 0; i < known->n_hosts; i++)
        plain_host(&facts->values[known->hosts[i]], facts->hosts[i]);
}

/* ---------------------------------------------------------- by their names ---- */

bool weir__attribute_is_address(const char *name)
{
    size_t len = strlen(name);

    return strcmp(name, "ip") == 0 || (len > 3 && strcmp(name + len - 3, ".ip") == 0);
}

void weir__method_plain(const char *method, size_t len, char *out)
{
    for (size_t i = 0; i < len; i++)
        out[i] = (char)(method[i] >= 'a' && method[i] <= 'z' ? method[i] - 32 : method[i]);
}

bool weir__attribute_is_host(const char *name)
{
    return strcmp(name, "host") == 0 || strcmp(name, "header.host") == 0;
}

bool weir__attribute_is_path(const char *name)
{
    return strcmp(name, "uri") == 0;
}
