/* module.c -- which nodes have Weir's module.
 *
 * A node is asked when the first ask that has a form for the module is sent there, and again after
 * each connection: it may be another server by then.  Until it has answered, and where it says no,
 * the scripts decide; both work on the same keys.  Nobody waits for the answer, unless the client
 * was told to (module_first): one that asks once would never use the module.
 */
#include <string.h>

#include "cluster/redis/client-private.h"

#define PROBE_MAX WEIR_SECOND

static void answered(struct weir__redis_ask *ask, const struct weir__redis_answer *answer)
{
    struct weir__redis_node *node = ask->only;
    struct weir__redis_client *c = ask->context;
    struct weir__resp_value list, first = { .kind = 0 };

    node->probing = false;
    c->probes--;
    if (answer->outcome != WEIR__REDIS_ANSWERED) {
        /* The next connection tells; nobody waits twice. */
        node->module = c->options.module_first ? MODULE_NONE : MODULE_UNKNOWN;
        return;
    }
    const char *at = weir__resp_value(answer->reply.bytes, &list);
    if (list.kind == '*' && list.n == 1)
        weir__resp_value(at, &first);
    /* A user who may not ask that may still have the right to call it, and a slow script is no
     * answer either: a try tells. */
    bool perhaps = weir__resp_is_error(&list, "NOPERM") || weir__resp_is_error(&list, "BUSY");
    node->module = first.kind == '*' || perhaps ? MODULE_LOADED : MODULE_NONE;
    if (c->options.module_first)
        weir__redis_node_flush(c, node, c->now);
}

bool weir__redis_module_awaits(const struct weir__redis_client *c,
                               const struct weir__redis_node *node,
                               const struct weir__redis_ask *ask)
{
    return c->options.module_first && ask->module.len > 0 && node->probing;
}

void weir__redis_module_probe(struct weir__redis_client *c, struct weir__redis_node *node,
                              const struct weir__redis_ask *ask, weir_time now)
{
    if (ask->module.len == 0 || node->module != MODULE_UNKNOWN || node->probing || c->ending)
        return;
    node->module = MODULE_NONE; /* as long as it is not known: one probe for each connection */
    if (!weir__redis_ask_texts(&node->probe,
                               (const char *[]){ "COMMAND", "INFO", "weir.take", NULL }))
        return;
    node->probe.only = node;
    node->probe.slot = WEIR__REDIS_ANY_SLOT;
    node->probe.deadline = now + PROBE_MAX;
    node->probe.done = answered;
    node->probe.context = c;
    node->probing = true;
    c->probes++;
    weir__redis_client_ask(c, &node->probe, now);
}

void weir__redis_module_choose(const struct weir__redis_node *node, struct weir__redis_ask *ask)
{
    ask->own.by_module = ask->module.len > 0 && node->module == MODULE_LOADED;
}

/* The user has no right to the command.  If it has none to a key, a script would not help it, and
 * says nothing about asks on other keys. */
static bool is_forbidden(const struct weir__resp_value *error)
{
    static const char command[] = " command";

    return weir__resp_is_error(error, "NOPERM") &&
           memmem(error->text.bytes, error->text.len, command, sizeof(command) - 1) != NULL;
}

bool weir__redis_module_refused(struct weir__redis_node *node, struct weir__redis_ask *ask,
                                const struct weir__resp_value *error)
{
    static const char unknown[] = "ERR unknown command";
    bool gone = error->text.len >= sizeof(unknown) - 1 &&
                memcmp(error->text.bytes, unknown, sizeof(unknown) - 1) == 0;

    if (!ask->own.by_module || !(gone || is_forbidden(error)))
        return false;
    node->module = MODULE_NONE;
    return true;
}

bool weir__redis_module_may_help(const struct weir__redis_node *node,
                                 const struct weir__redis_ask *ask,
                                 const struct weir__resp_value *error)
{
    return ask->module.len > 0 && !ask->own.by_module && weir__resp_is_error(error, "NOPERM") &&
           (node->probing || node->module == MODULE_LOADED);
}

bool weir__redis_client_may_have_module(struct weir__redis_client *c, int slot)
{
    const struct weir__redis_node *node = weir__redis_map_find(c, slot);

    return !node || node->probing || node->module != MODULE_NONE;
}
