/* plain-types.h -- rules, lists and requests as the plain model has them. */
#ifndef WEIR_TESTS_PROPERTY_PLAIN_TYPES_H
#define WEIR_TESTS_PROPERTY_PLAIN_TYPES_H

#include <ctype.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "algo/algo.h"

#define RULES_MAX 1300
#define VALUE_MAX 2600
#define URI_MAX   2048 /* bytes of a path that rules look at */
#define TEXT_MAX  160  /* bytes of a key as it is listed, with its NUL */

enum attribute { IP, PEER, URI, METHOD, ACCOUNT, PLAN, HEADER, BYTES, ATTRIBUTES };
static const char *const attribute_names[ATTRIBUTES] = { "ip",           "peer.ip", "uri",
                                                         "method",       "account", "plan",
                                                         "header.x-key", "bytes" };

enum kind { EXACT, PREFIX, GLOB, CIDR, LIST, PRESENT };

struct pattern {
    enum kind kind;
    const char *text;
    bool form; /* written as { exact: ... } */
};

struct condition {
    int attribute, n;
    struct pattern patterns[6];
};

struct part {
    int attribute;
    const char *before, *fallback;
    int prefix4, prefix6; /* -1: none */
};

struct tally {
    int64_t allowed, refused, banned, shadow_refused;
};

enum { LIMITS_MAX = 3 }; /* of a rule */

/* A limit at work: known by its rule's name, its number, its algorithm and what the rule's key is
 * made of. */
struct limiter {
    struct limiter *next;
    char *owner;
    struct weir_plan *plan;
};

struct rule {
    char name[24];
    char template[256]; /* the key as it is written ... */
    char made_of[256];  /* ... and what it is made of: the text between is for people */
    int matches, excepts, parts, limits;
    struct condition match[4], except[3];
    struct part key[3];
    const char *after;
    struct weir_limit limit[LIMITS_MAX], refusals;
    struct limiter *limiter[LIMITS_MAX],
        *counts; /* of the limits; of the refusals that a ban counts */
    int64_t cost;
    int cost_attribute; /* -1: none */
    enum weir_mode mode, switched;
    bool bans;
    weir_time length, longest, forget;
    int factor;
    struct tally tally;
};

struct list {
    const char *name;
    int attribute, n;
    const char *entries[16];
};

struct set {
    enum weir_mode mode, switched;
    int n, lists;
    struct rule rules[RULES_MAX];
    struct list list[12], written[12]; /* as edited; as in the file */
};

struct value {
    size_t len; /* 0: missing */
    char text[VALUE_MAX];
};

struct request {
    struct value given[ATTRIBUTES], seen[ATTRIBUTES]; /* seen: the path made plain */
    struct weir_ask ask;
};

#endif
