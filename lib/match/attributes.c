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

bool weir__address_is_meant(const char *text, size_t len)
{
    struct weir__value value = { .text = text, .len = len };

    read_address(&value);
    return value.address.bits != 0;
}

/* Header names ignore case; those in lower case do not come here. */
static __attribute__((noinline)) int find_header(const struct weir__attributes *known,
                                                 const char *name, size_t len)
{
    char small[WEIR__ATTRIBUTE_SIZE];

    if (len < 8 || memcmp(name, "header.", 7) != 0)
        return -1;
    memcpy(small, name, len);
    weir__lower(small, len);
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
        weir__paths_gather(known, facts);
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

void weir__lower(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        text[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]);
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
