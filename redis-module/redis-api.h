/* redis-api.h -- the functions of Redis that the module calls, found by name when it is loaded.
 *
 * Redis hands a module one function, which finds the others; so no header of Redis is needed to
 * build it.  Those in the second list came after 6.2, and are NULL where the server has none.
 */
#ifndef WEIR_REDIS_MODULE_REDIS_API_H
#define WEIR_REDIS_MODULE_REDIS_API_H

#include <stddef.h>
#include <stdint.h>

struct redis_context;
struct redis_string;
struct redis_key;
struct redis_command;
struct redis_info;

enum { REDIS_OK = 0, REDIS_ERR = 1 };
enum { REDIS_READ = 1 << 0, REDIS_WRITE = 1 << 1 };
enum { REDIS_KEY_EMPTY = 0, REDIS_KEY_STRING = 1 };
enum { REDIS_API_VERSION = 1 };
enum { /* of GetContextFlags */
       REDIS_IN_CLUSTER = 1 << 5,
       REDIS_APPENDS = 1 << 6, /* to a file */
       REDIS_IS_FULL = 1 << 10,
};
enum { REDIS_EVENT_ROLE = 0, REDIS_EVENT_FORK = 13 };
/* Of SetModuleOptions. */
enum {
    REDIS_SIGNALS_ITSELF = 1 << 1, /* closing a key tells nobody */
    REDIS_LOADS_BESIDE = 1 << 2,   /* a replica may load new data beside what is asked */
    VALKEY_MOVES_SLOTS = 1 << 5,   /* CLUSTER MIGRATESLOTS of Valkey 9 */
};

/* What a command does to its keys, for RM_SetCommandInfo. */
enum {
    REDIS_SPEC_READ_ONLY = 1 << 0,
    REDIS_SPEC_READ_WRITE = 1 << 1,
    REDIS_SPEC_REMOVE = 1 << 3,
    REDIS_SPEC_ACCESS = 1 << 4,
    REDIS_SPEC_UPDATE = 1 << 5,
    REDIS_SPEC_DELETE = 1 << 7,
    REDIS_SPEC_INCOMPLETE = 1 << 9,
    REDIS_SPEC_WRITES = REDIS_SPEC_READ_WRITE | REDIS_SPEC_ACCESS | REDIS_SPEC_UPDATE,
    REDIS_SPEC_READS = REDIS_SPEC_READ_ONLY | REDIS_SPEC_ACCESS,
};

struct redis_key_spec {
    const char *notes;
    uint64_t flags;
    int begin; /* 2: at an index */
    union {
        struct {
            int pos;
        } index;
        struct {
            const char *keyword;
            int from;
        } keyword;
    } at;
    int find; /* 2: a range */
    union {
        struct {
            int last, step, limit;
        } range;
        struct {
            int count, first, step;
        } number;
    } keys;
};

/* Sizes of the elements of its arrays, so that other versions can read them; histories and
 * arguments are not given. */
struct redis_info_version {
    int version;
    size_t history_size, spec_size, argument_size;
};

struct redis_command_info {
    const struct redis_info_version *version;
    const char *summary, *complexity, *since;
    const void *history;
    const char *tips;
    int arity;
    const struct redis_key_spec *specs;
    const void *arguments;
};

struct redis_event {
    uint64_t id, version;
};
typedef void redis_hear(struct redis_context *context, struct redis_event event, uint64_t kind,
                        void *data);

typedef int redis_verb(struct redis_context *context, struct redis_string **words, int n);

/* result, name, parameters */
#define REDIS_NEEDED(X)                                                                           \
    X(int, CreateCommand,                                                                         \
      (struct redis_context *, const char *, redis_verb *, const char *, int, int, int))          \
    X(void, SetModuleAttribs, (struct redis_context *, const char *, int, int))                   \
    X(int, IsModuleNameBusy, (const char *))                                                      \
    X(void *, Alloc, (size_t))                                                                    \
    X(void, Free, (void *))                                                                       \
    X(struct redis_string *, CreateString, (struct redis_context *, const char *, size_t))        \
    X(void, FreeString, (struct redis_context *, struct redis_string *))                          \
    X(const char *, StringPtrLen, (const struct redis_string *, size_t *))                        \
    X(int, StringToLongLong, (const struct redis_string *, long long *))                          \
    X(struct redis_key *, OpenKey, (struct redis_context *, struct redis_string *, int))          \
    X(void, CloseKey, (struct redis_key *))                                                       \
    X(int, KeyType, (struct redis_key *))                                                         \
    X(char *, StringDMA, (struct redis_key *, size_t *, int))                                     \
    X(int, StringTruncate, (struct redis_key *, size_t))                                          \
    X(int, DeleteKey, (struct redis_key *))                                                       \
    X(int, SetExpire, (struct redis_key *, long long))                                            \
    X(long long, Milliseconds, (void))                                                            \
    X(int, Replicate, (struct redis_context *, const char *, const char *, ...))                  \
    X(int, ReplicateVerbatim, (struct redis_context *))                                           \
    X(void, SetModuleOptions, (struct redis_context *, int))                                      \
    X(int, SignalModifiedKey, (struct redis_context *, struct redis_string *))                    \
    X(int, SubscribeToServerEvent, (struct redis_context *, struct redis_event, redis_hear *))    \
    X(int, GetContextFlags, (struct redis_context *))                                             \
    X(struct redis_info *, GetServerInfo, (struct redis_context *, const char *))                 \
    X(unsigned long long, ServerInfoGetFieldUnsigned, (struct redis_info *, const char *, int *)) \
    X(void, FreeServerInfo, (struct redis_context *, struct redis_info *))                        \
    X(int, ReplyWithArray, (struct redis_context *, long))                                        \
    X(int, ReplyWithLongLong, (struct redis_context *, long long))                                \
    X(int, ReplyWithSimpleString, (struct redis_context *, const char *))                         \
    X(int, ReplyWithStringBuffer, (struct redis_context *, const char *, size_t))                 \
    X(int, ReplyWithNull, (struct redis_context *))                                               \
    X(int, ReplyWithError, (struct redis_context *, const char *))                                \
    X(int, IsKeysPositionRequest, (struct redis_context *))                                       \
    X(void, KeyAtPos, (struct redis_context *, int))

#define REDIS_OPTIONAL(X)                                                               \
    X(int, SetAbsExpire, (struct redis_key *, long long))                               \
    X(void, KeyAtPosWithFlags, (struct redis_context *, int, int))                      \
    X(struct redis_command *, GetCommand, (struct redis_context *, const char *))       \
    X(int, SetCommandInfo, (struct redis_command *, const struct redis_command_info *)) \
    X(int, SetCommandACLCategories, (struct redis_command *, const char *))             \
    X(int, AddACLCategory, (struct redis_context *, const char *))

#define REDIS_MEMBER(result, name, parameters) result(*name) parameters;
struct redis_api {
    REDIS_NEEDED(REDIS_MEMBER)
    REDIS_OPTIONAL(REDIS_MEMBER)
};
#undef REDIS_MEMBER

extern struct redis_api redis;

#endif
