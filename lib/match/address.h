/* address.h -- IP addresses, networks, and sets of a hundred thousand of them. */
#ifndef WEIR_MATCH_ADDRESS_H
#define WEIR_MATCH_ADDRESS_H

#include <string.h>

#include "base/base.h"

struct weir__address {
    uint8_t bytes[16]; /* network order; IPv4: the first four, the rest zeros */
    uint8_t bits;      /* 32 or 128; 0: not an address */
};

struct weir__cidr {
    struct weir__address address; /* host bits zero */
    uint8_t prefix;               /* 0 .. address.bits */
};

/* The bytes as one number, in the order of addresses; IPv4 is in the highest 32 bits. */
static inline weir__u128 weir__address_number(const struct weir__address *address)
{
    uint64_t half[2];

    memcpy(half, address->bytes, sizeof(half));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    half[0] = __builtin_bswap64(half[0]);
    half[1] = __builtin_bswap64(half[1]);
#endif
    return (weir__u128)half[0] << 64 | half[1];
}

/* address.c -- IPv4 dotted, IPv6 as RFC 4291, also in brackets; an IPv4 address mapped into IPv6 is
 * the IPv4 address.  No port, no scope. False: *out is untouched. */
bool weir__address_parse(const char *text, size_t len, struct weir__address *out);

/* attributes.c -- whether the rules take the value of ip for an address: it may have a port. */
bool weir__address_is_meant(const char *text, size_t len);
/* Keeps only the first `prefix` bits. */
void weir__address_mask(struct weir__address *address, unsigned prefix);
/* As RFC 5952, with the result of snprintf; no address: "" */
int weir__address_print(char *out, size_t size, const struct weir__address *address);

/* "10.0.0.0/8", "2001:db8::/32", or an address alone.  Host bits must be 0; the error suggests what
 * was meant.  A network of mapped IPv4 addresses, such as ::ffff:10.0.0.0/104, is the IPv4 network;
 * other IPv6 networks contain no IPv4 address, not even ::/0. */
int weir__cidr_parse(const char *text, size_t len, struct weir__cidr *out,
                     struct weir_error *error);

/* cidr-set.c -- is an address in any of these networks?  Immutable. */
struct weir__cidr_set;
int weir__cidr_set_create(struct weir__cidr_set **out, const struct weir__cidr *networks, size_t n,
                          struct weir_error *error);
void weir__cidr_set_destroy(struct weir__cidr_set *set);
/* False without an address. */
bool weir__cidr_set_has(const struct weir__cidr_set *set, const struct weir__address *address);

#endif
