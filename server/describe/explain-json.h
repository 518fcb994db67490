/* explain-json.h -- the rules' answer to one request, and why, as one JSON object: for
 * `weir explain --json` and the server. */
#ifndef WEIR_SERVER_DESCRIBE_EXPLAIN_JSON_H
#define WEIR_SERVER_DESCRIBE_EXPLAIN_JSON_H

#include "engine/explain.h"
#include "server/base/buffer.h"

/* {"rules":[...],"guards":[...],"ruling":{...},"enter":{...},"unused":[...],"meant":[...]}, the
 * last two in the same order; `applying`: without the rules and guards that do not apply.  The
 * ruling is weir_check's, which does not ask guards; `enter` is weir_check_enter's, which does.
 * Returns whether the request is allowed by the ruling.  Nothing is taken. */
bool weir__explain_json(struct weir *weir, const struct weir_attr *attrs, size_t n,
                        const struct weir_ask *ask, bool applying, struct weir__buffer *out);
/* The same; the object stays open for more. */
bool weir__explain_json_begin(struct weir *weir, const struct weir_attr *attrs, size_t n,
                              const struct weir_ask *ask, bool applying, struct weir__buffer *out);

/* explain-unused-attributes.c -- the last two of these members. */
void weir__unused_json(struct weir *weir, const struct weir_attr *attrs, size_t n,
                       struct weir__buffer *out);

#endif
