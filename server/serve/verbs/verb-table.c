/* verb-table.c -- everything the server can be asked, one row each; how a row is found and printed.
 *
 * The verbs that come by the million are at the top: they are found first.
 */
#include "server/serve/verbs/verbs.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cluster/fleet/rules-versions-words.h"
#include "server/serve/admin/admin.h"
#include "server/serve/decide/decide-verbs.h"
#include "server/serve/decide/guard-keys.h"
#include "server/serve/decide/lock-wait.h"
#include "server/serve/decide/reservations.h"
#include "server/serve/events/top-keys.h"
#include "server/serve/http/http.h"
#include "server/serve/resp/resp.h"

#define CHECK WEIR__ROLE_CHECK
#define ADMIN WEIR__ROLE_ADMIN

#define COMMAND(text) .command = text, .command_len = sizeof(text) - 1
#define PATH(text)    .path = text, .path_len = sizeof(text) - 1

/* -------------------------------------------------- arguments used again ---- */

/* clang-format off */
#define TEXT(called, ...)   { .name = called, .kind = WEIR__ARG_TEXT, __VA_ARGS__ }
#define SCALAR(called, ...) { .name = called, .kind = WEIR__ARG_SCALAR, __VA_ARGS__ }
#define COUNT(called, ...)  { .name = called, .kind = WEIR__ARG_COUNT, __VA_ARGS__ }
#define TIME(called, ...)   { .name = called, .kind = WEIR__ARG_TIME, __VA_ARGS__ }
#define CHOICE(called, ...) { .name = called, .kind = WEIR__ARG_CHOICE, __VA_ARGS__ }

#define ATTRIBUTES { .name = "attributes", .word = "ATTRIBUTES", .kind = WEIR__ARG_ATTRIBUTES }
#define ENTRIES { .name = "entries", .kind = WEIR__ARG_ENTRIES, .needed = true, \
                  .text = "addresses and networks, or whole values", \
                  .example = "\"192.0.2.0/24\"" }
#define RULES   { .name = "text", .kind = WEIR__ARG_BODY, .needed = true, \
                  .text = "the rules, as a rule file has them" }
#define COST(says) COUNT("cost", .word = "COST", .otherwise = 1, .text = says)
#define WAIT(says) TIME("wait", .word = "WAIT", .text = says)
#define RULE       TEXT("rule", .needed = true, .text = "name of a rule")
#define KEY        TEXT("key", .needed = true, .text = "as listings show it", \
                        .example = "\"192.0.2.0/24:ann\"")
#define LIST       TEXT("list", .needed = true, .text = "allow, deny, or one that the rules name")
#define ATTRIBUTE  TEXT("attribute", .needed = true, .example = "\"ip\"", \
                        .text = "of the entries: ip, account, header.x-app")
#define PERMIT     TEXT("permit", .needed = true, .text = "as enter or renew answered it")
#define NOTE       TEXT("note", .word = "NOTE", .max = WEIR__VERSIONS_NOTE - 1, \
                        .text = "why, for the history")
#define LOCK_NAME  TEXT("name", .needed = true, .min = 1, .max = 256, .example = "\"nightly\"")
#define LOCK_OWNER TEXT("owner", .needed = true, .min = 1, .max = 63, \
                        .text = "as lock answered it")
#define LOCK_LIFETIME(...) \
    TIME("lifetime", .word = "LIFETIME", .min = 10, .max = 24 * 3600 * 1000, __VA_ARGS__)

/* Take, peek, give, reserve: decide-verbs.c knows their places. */
#define TAKE_ARGS \
    SCALAR("key", .needed = true, .min = 1, .text = "the key that is counted"), \
    TEXT("limit", .needed = true, .text = "as rules have them", \
         .example = "\"gcra 5/1m burst 3\""), \
    COST("units"), WAIT("how long the caller can wait"), \
    TEXT("name", .word = "NAME", \
         .text = "asks under one name share their keys, and another limit changes it; without it " \
                 "keys belong to the limit"), \
    { .name = "unit", .kind = WEIR__ARG_UNIT, .word = "NS", .choices = "ms|ns", \
      .text = "of all times in the ask and its answer: members end in _ms or in _ns" }

/* ----------------------------------------------------------------- rows ---- */

#define ROUTE(named, where, called, under) .method = named, PATH(where), .id = called, .tag = under
#define DECIDING(name, where, called) \
    COMMAND(name), ROUTE("POST", where, called, "decide"), .role = CHECK
#define OPERATOR(name, named, where, called, under, does) \
    COMMAND(name), ROUTE(named, where, called, under), .role = ADMIN, .how = WEIR__VERB_AWAY, \
    .run = weir__admin_##does

const struct weir__verb weir__verbs[] = {
    { DECIDING("WEIR.CHECK", "/v1/check", "check"), .how = WEIR__VERB_BATCHED,
      .resp = weir__resp_check, .http = weir__http_check, .answer = "Ruling",
      .statuses = "200=Allowed 400 403=Denied 413 429=Refused 503=RefusedForNow",
      .summary = "Decides a request by the rules.",
      .args = { COST("units asked for, multiplied by the rules' own; 0 takes nothing"),
                WAIT("how long the caller can wait: a grant may lie this far in the future"),
                TEXT("id", .word = "ID", .max = 128,
                     .text = "asked again with the same id, the answer is the same and nothing is "
                             "charged"),
                ATTRIBUTES } },
    { COMMAND("CL.THROTTLE"), .id = "throttle", .tag = "decide", .role = CHECK,
      .how = WEIR__VERB_BATCHED, .resp = weir__resp_throttle, .answer = "Throttled",
      .summary = "Takes from a key by a limit that comes with the ask, as redis-cell does.",
      .args = { TEXT("key", .needed = true), COUNT("max_burst", .needed = true),
                COUNT("count", .needed = true, .min = 1),
                COUNT("period", .needed = true, .min = 1, .text = "seconds"),
                COUNT("quantity", .otherwise = 1) } },
    { PATH("/v1/auth"), .id = "auth", .tag = "decide", .role = CHECK, .foreign = true,
      .http = weir__http_auth, .answer = "",
      .statuses = "200=AllowedBare 400 403=Denied 429=Refused 503=RefusedLater",
      .summary = "Decides for a proxy: nginx auth_request, Traefik, Caddy.",
      .more = "If the peer is one of trusted-proxies, the request is the one that it describes: ip "
              "from X-Forwarded-For (from the right, the first that is not a trusted proxy) or "
              "X-Real-IP, uri from X-Original-URI, X-Original-URL or X-Forwarded-Uri, method from "
              "X-Original-Method or X-Forwarded-Method (two that differ are refused with 400), "
              "host from X-Forwarded-Host, scheme from X-Forwarded-Proto. All other headers are "
              "attributes header.NAME, and every parameter of the query is one too. A parameter "
              "that comes twice, or is called ip, uri, method, host, scheme or header.NAME, is "
              "refused with 400: put variables of the proxy into headers, since a client may fill "
              "them with & and more parameters. A peer that is not a trusted proxy describes only "
              "itself. Any method works.",
      .args = { CHOICE("refuse", .choices = "401|403|429|503",
                       .text = "the status of refusals: nginx's auth_request understands only 401 "
                               "and 403"),
                { .name = "attributes", .kind = WEIR__ARG_ATTRIBUTES } } },
    { DECIDING("WEIR.TAKE", "/v1/take", "take"), .run = weir__decide_take, .answer = "Decision",
      .statuses = "200=Taken 400 409 413 422 429=TakeRefused 503",
      .summary = "Takes from a key by a limit that comes with the ask.", .args = { TAKE_ARGS } },
    { DECIDING("WEIR.PEEK", "/v1/peek", "peek"), .run = weir__decide_peek, .answer = "Decision",
      .statuses = "200=Taken 400 409 413 422 429=TakeRefused 503",
      .summary = "Answers like take, and takes nothing.", .args = { TAKE_ARGS } },
    { DECIDING("WEIR.GIVE", "/v1/give", "give"), .run = weir__decide_give, .answer = "Given",
      .statuses = "400 409 413 422 503", .summary = "Gives units back.", .args = { TAKE_ARGS } },
    { DECIDING("WEIR.RESERVE", "/v1/reserve", "reserve"), .run = weir__decide_reserve,
      .answer = "Decision", .statuses = "200=Taken 400 409 413 422 429=TakeRefused 503",
      .summary = "Takes an estimate, to be settled.",
      .args = { TAKE_ARGS,
                TIME("lifetime", .word = "LIFETIME", .min = 1,
                     .otherwise = WEIR__RESERVATION_LIFETIME_MS,
                     .text = "a reservation that nobody settles in this time stands as it is") } },
    { DECIDING("WEIR.SETTLE", "/v1/settle", "settle"), .run = weir__decide_settle,
      .answer = "Settled", .statuses = "400 413",
      .summary = "Corrects a reservation to its real cost.",
      .args = { TEXT("reservation", .needed = true),
                COUNT("cost", .needed = true, .text = "the real cost") } },
    { COMMAND("WEIR.FORGET"), .id = "forget", .tag = "decide", .role = CHECK,
      .run = weir__decide_forget, .answer = "Forgotten",
      .summary = "Resets a key of WEIR.TAKE.",
      .args = { TEXT("key", .needed = true), TEXT("limit", .needed = true),
                TEXT("name", .word = "NAME") } },
    { DECIDING("WEIR.ENTER", "/v1/enter", "enter"), .how = WEIR__VERB_WAITS,
      .resp = weir__resp_enter, .http = weir__http_enter, .answer = "Entered",
      .statuses = "200=Entered 400 403=Denied 404 413 429=RefusedByLimit 503=RefusedByGuard",
      .summary = "Begins work: by the guards and limits of the rules, or by one guard.",
      .more = "All or nothing. If it is allowed, give the permit back by exit within lease_ms, or "
              "make it last longer by renew; null: there is nothing to give back. If a guard "
              "refuses and the rules have a fallback for it, the refusal carries it: status, type "
              "and body, to be passed on. With a wait, and a guard that has a queue, the answer "
              "comes when a permit is free.",
      .args = { TEXT("guard", .word = "GUARD", .min = 1,
                     .text = "this guard alone; without it, the guards and limits of the rules "
                             "that apply to the attributes"),
                COST("permits, and units of limits"),
                COUNT("priority", .word = "PRIORITY", .min = WEIR_PRIORITY_MIN,
                      .max = WEIR_PRIORITY_MAX, .text = "the highest goes first, and is shed last"),
                TEXT("class", .word = "CLASS",
                     .text = "one of the guard's classes; needs a guard. Rules take it from an "
                             "attribute"),
                SCALAR("user", .word = "USER",
                       .text = "under overload the same users are refused consistently"),
                WAIT("how long the caller can wait for a guard that has a queue, and for limits"),
                { .name = "bound", .word = "BOUND", .kind = WEIR__ARG_SWITCH,
                  .choices = "false|true",
                  .text = "the permit comes back when this connection closes" },
                ATTRIBUTES } },
    { DECIDING("WEIR.EXIT", "/v1/exit", "exit"), .run = weir__decide_exit, .resp = weir__resp_exit,
      .answer = "Exited", .statuses = "400 413", .summary = "Ends work: gives the permit back.",
      .args = { PERMIT,
                CHOICE("outcome", .needed = true, .choices = "ok|error|timeout|dropped|ignored",
                       .text = "error: counts for the breaker; timeout: no answer in time; "
                               "dropped: refused further on for lack of capacity; ignored: "
                               "nothing is learnt from it"),
                TIME("took", .word = "TOOK", .max = INT64_MAX / WEIR_MILLISECOND, .otherwise = -1,
                     .text = "if that is another time than from enter to exit") } },
    { DECIDING("WEIR.RENEW", "/v1/renew", "renew"), .run = weir__decide_renew,
      .resp = weir__resp_renew, .answer = "Renewed", .statuses = "400 413",
      .summary = "Continues work: restarts the permit's lease.", .args = { PERMIT } },
    { ROUTE("POST", "/v1/check/batch", "checkBatch", "decide"), .role = CHECK,
      .http = weir__http_batch, .answer = "BatchAnswer", .statuses = "400 413",
      .summary = "Decides up to 1000 requests.",
      .args = { { .name = "checks", .kind = WEIR__ARG_CHECKS, .needed = true,
                  .max = WEIR__HTTP_BATCH } } },
    { COMMAND("DEL"), .id = "del", .tag = "decide", .role = CHECK, .resp = weir__resp_del,
      .usage = "key ...", .arity = -2,
      .summary = "Resets keys of CL.THROTTLE; answers how many had used something." },
    { COMMAND("UNLINK"), .id = "unlink", .tag = "decide", .role = CHECK, .resp = weir__resp_del,
      .usage = "key ...", .arity = -2, .summary = "The same as DEL." },
    /* The operator's. */
    { OPERATOR("WEIR.RULES", "GET", "/v1/rules", "rules", "rules", rules), .answer = "Rules",
      .summary = "The rules in force: their text, hash, source and age." },
    { OPERATOR("WEIR.RULES.SET", "PUT", "/v1/rules", "rulesSet", "rules", rules_set),
      .answer = "RulesInfo", .statuses = "400 413 422 500",
      .summary = "Puts other rules in force, and keeps them. If anything is wrong with them, "
                 "nothing changes.",
      .args = { RULES } },
    { OPERATOR("WEIR.RULES.CHECK", "POST", "/v1/rules/check", "rulesCheck", "rules", rules_check),
      .answer = "RulesChecked", .statuses = "400 413 422",
      .summary = "Checks a text as rules, and lists everything that is wrong with it.",
      .args = { RULES } },
    { OPERATOR("WEIR.RULES.RELOAD", "POST", "/v1/rules/reload", "rulesReload", "rules",
               rules_reload),
      .answer = "RulesInfo", .statuses = "400 422 500",
      .summary = "Reads the rule file again. If anything is wrong with it, nothing changes." },
    { OPERATOR("WEIR.BANS", "GET", "/v1/bans", "bans", "bans", bans), .answer = "Bans",
      .statuses = "400 404", .summary = "The bans in force, of all rules or of one.",
      .args = { TEXT("rule", .text = "name of a rule") } },
    { OPERATOR("WEIR.BAN", "POST", "/v1/bans", "ban", "bans", ban), .answer = "Ban",
      .statuses = "400 404 409",
      .summary = "Bans a key of a rule for a time (10m, 1h; 90 alone: seconds); if it is banned "
                 "already, the end changes. Across the fleet on all nodes.",
      .args = { RULE, KEY,
                TEXT("for", .needed = true, .text = "how long: 10m, 1h; 90 alone: seconds",
                     .example = "\"10m\"") } },
    { OPERATOR("WEIR.UNBAN", "DELETE", "/v1/bans", "unban", "bans", unban), .answer = "Unbanned",
      .statuses = "400 404",
      .summary = "Lifts a ban, and forgets those before it. Across the fleet on all nodes.",
      .args = { RULE, KEY } },
    { OPERATOR("WEIR.LISTS", "GET", "/v1/lists", "lists", "lists", lists), .answer = "Lists",
      .statuses = "400 404",
      .summary = "The lists that rules look at, and the changes made to them by hand.",
      .args = { TEXT("list", .min = 1, .text = "only this one, with its first 1000 entries") } },
    { OPERATOR("WEIR.LIST.ADD", "POST", "/v1/lists", "listAdd", "lists", list_add),
      .answer = "ListChanged", .statuses = "400 404", .summary = "Adds entries to a list.",
      .args = { LIST, ATTRIBUTE, ENTRIES } },
    { OPERATOR("WEIR.LIST.REMOVE", "DELETE", "/v1/lists", "listRemove", "lists", list_remove),
      .answer = "ListChanged", .statuses = "400 404", .summary = "Removes entries from a list.",
      .args = { LIST, ATTRIBUTE, ENTRIES } },
    { OPERATOR("WEIR.MODES", "GET", "/v1/modes", "modes", "modes", modes), .answer = "Modes",
      .summary = "The mode of the set, of every rule and of every guard: as written, by hand, "
                 "in force; and what each did." },
    { OPERATOR("WEIR.MODE", "PUT", "/v1/modes", "mode", "modes", mode), .answer = "RuleMode",
      .statuses = "400 404", .summary = "Switches a rule or a guard, or all of them, by hand.",
      .args = { CHOICE("mode", .needed = true, .choices = "as-written|enforce|shadow|off",
                       .text = "shadow: decide and count, but let through"),
                TEXT("rule", .text = "name of a rule or a guard; without it, all of them") } },
    { OPERATOR("WEIR.GUARDS", "GET", "/v1/guards", "guards", "guards", guards), .answer = "Guards",
      .statuses = "400 404",
      .summary = "The guards: state, counts, options; for a single one also its latest changes, "
                 "and the keys that have most permits out.",
      .args = { TEXT("guard", .text = "name of a guard; without it, all of them"),
                COUNT("keys", .max = WEIR__GUARD_KEYS_MOST, .otherwise = 10,
                      .text = "with a guard by key: at most this many") } },
    { OPERATOR("WEIR.GUARD.FORCE", "PUT", "/v1/guards", "force", "guards", guard_force),
      .answer = "Guard", .statuses = "400 404",
      .summary = "Forces a guard's breaker, or lets it decide again, starting closed.",
      .args = { TEXT("guard", .needed = true, .text = "name of a guard"),
                CHOICE("force", .needed = true, .choices = "none|open|closed",
                       .text = "open refuses everything, closed never opens") } },
    { OPERATOR("WEIR.DEGRADE", "GET", "/v1/degradation", "degradation", "guards", degradation),
      .answer = "Degradation", .summary = "The degradation, 0 (none) to 9." },
    { OPERATOR("WEIR.DEGRADE.SET", "PUT", "/v1/degradation", "setDegradation", "guards",
               degradation_set),
      .answer = "Degradation", .statuses = "400",
      .summary = "Sets the degradation by hand, or lets it follow the guards.",
      .args = { COUNT("degradation", .needed = true, .max = 9, .choices = "auto",
                      .text = "0 (none) to 9; auto: it follows the guards' breakers and system "
                              "protection") } },
    { OPERATOR("WEIR.FLEET", "GET", "/v1/fleet", "fleet", "fleet", fleet), .answer = "FleetStatus",
      .statuses = "404 503",
      .summary = "The fleet that this server is in: the version of its rules, and whether all nodes "
                 "run it." },
    { OPERATOR("WEIR.FLEET.NODES", "GET", "/v1/fleet/nodes", "fleetNodes", "fleet", fleet_nodes),
      .answer = "FleetNodes", .statuses = "404 503",
      .summary = "The nodes of the fleet that this server is in: their parts, and which version of "
                 "its rules each runs." },
    { OPERATOR("WEIR.FLEET.HISTORY", "GET", "/v1/fleet/history", "fleetHistory", "fleet",
               fleet_history),
      .answer = "FleetHistory", .statuses = "404 503",
      .summary = "The last 50 versions of the fleet's rules, the newest first." },
    { OPERATOR("WEIR.FLEET.ROLLBACK", "POST", "/v1/fleet/rollback", "fleetRollback", "fleet",
               fleet_rollback),
      .answer = "FleetChanged", .statuses = "400 404 409 503",
      .summary = "Makes a new version of the fleet's rules with the text of an older one, for all "
                 "nodes at once.",
      .more = "If the answer is that Redis may have carried it out, look at the history, or call "
              "again: that makes another version with the same text.",
      .args = { COUNT("version", .needed = true, .min = 1, .text = "the older one"),
                NOTE } },
    { OPERATOR("WEIR.FLEET.RULES", "GET", "/v1/fleet/rules", "fleetRules", "fleet", fleet_rules),
      .answer = "FleetRules", .statuses = "400 404 503",
      .summary = "The text of the fleet's rules: the newest version, or another.",
      .args = { COUNT("version", .min = 1, .text = "by default the newest") } },
    { OPERATOR("WEIR.FLEET.RULES.SET", "PUT", "/v1/fleet/rules", "fleetRulesSet", "fleet",
               fleet_rules_set),
      .answer = "FleetChanged", .statuses = "400 404 409 413 422 503",
      .summary = "Makes a text the next version of the fleet's rules, if the version that it is "
                 "based on is still the newest.",
      .more = "If another version is there, nothing changes: look at that one first. If anything "
              "is wrong with the text, nothing changes. It may name no list files.",
      .args = { RULES,
                COUNT("base", .needed = true,
                      .text = "the version that the text is based on; 0: there is none yet"),
                COUNT("edit", .word = "EDIT",
                      .text = "of that version: a failover may lose one, and another gets its "
                              "number; without it, any"),
                NOTE,
                TEXT("stage", .word = "STAGE", .max = 64,
                     .text = "the node that tries it first; publish brings it to all"),
                TEXT("id", .word = "ID", .max = 128,
                     .text = "of this change alone: asked again with the same id, the answer is "
                             "the same, and there is no second version") } },
    { OPERATOR("WEIR.FLEET.RULES.DIFF", "POST", "/v1/fleet/rules/diff", "fleetRulesDiff", "fleet",
               fleet_rules_diff),
      .answer = "FleetDiff", .statuses = "400 404 413 422 503",
      .summary = "What a text would change in the fleet's rules, or what has changed since a "
                 "version.",
      .args = { { .name = "text", .word = "TEXT", .kind = WEIR__ARG_BODY,
                  .text = "the new rules; by default the newest version" },
                COUNT("from", .word = "FROM", .min = 1,
                      .text = "the old version; by default the newest") } },
    { OPERATOR("WEIR.FLEET.PUBLISH", "POST", "/v1/fleet/publish", "fleetPublish", "fleet",
               fleet_publish),
      .answer = "FleetPublished", .statuses = "400 404 409 503",
      .summary = "Brings the newest version, which one node has tried, to all nodes.",
      .args = { COUNT("version", .needed = true, .min = 1, .text = "the newest") } },
    { COMMAND("WEIR.LOCK"), ROUTE("POST", "/v1/fleet/locks", "lock", "fleet"), .role = ADMIN,
      .how = WEIR__VERB_AWAY, .begin = weir__lock_begin, .answer = "Lock",
      .statuses = "400 404 503",
      .summary = "Takes a lock that one caller in the whole fleet holds at a time.",
      .more = "It ends after its lifetime unless it is renewed. Send the token with every write to "
              "what the lock protects, and refuse a smaller one there. If another has it, a caller "
              "that can wait stands in line: first come, first served. It leaves the line when its "
              "connection closes, and a lock that was granted just then goes back.",
      .args = { LOCK_NAME,
                LOCK_LIFETIME(.otherwise = 30000, .text = "it ends this long after it was taken"),
                TIME("wait", .word = "WAIT", .max = 3600 * 1000,
                     .text = "how long the caller can wait in line"),
                TEXT("id", .word = "ID", .max = 128,
                     .text = "of this ask alone: if the answer was lost, an ask with the same id "
                             "has the same grant, with a new lifetime") } },
    { OPERATOR("WEIR.LOCK.LOOK", "GET", "/v1/fleet/locks", "lockLook", "fleet", lock_look),
      .answer = "LockSeen", .statuses = "400 404 503",
      .summary = "Whether anybody has a lock, for how long, and how many wait.",
      .more = "The owner is not told: it is the key to the lock.", .args = { LOCK_NAME } },
    { OPERATOR("WEIR.LOCK.RENEW", "PUT", "/v1/fleet/locks", "lockRenew", "fleet", lock_renew),
      .answer = "Lock", .statuses = "400 404 503",
      .summary = "Restarts the lifetime of a lock; if it is no longer held, its holder has to stop.",
      .args = { LOCK_NAME, LOCK_OWNER,
                COUNT("token", .needed = true, .min = 1, .text = "as lock answered it"),
                LOCK_LIFETIME(.otherwise = -1,
                              .text = "it ends this long after it was renewed, or when it would "
                                      "have, if that is later; without it, as long as it had") } },
    { OPERATOR("WEIR.UNLOCK", "DELETE", "/v1/fleet/locks", "unlock", "fleet", unlock),
      .answer = "Unlocked", .statuses = "400 404 503",
      .summary = "Gives a lock back, if this owner has it.", .args = { LOCK_NAME, LOCK_OWNER } },
    { OPERATOR("WEIR.RESET", "POST", "/v1/reset", "reset", "keys", reset), .answer = "Reset",
      .statuses = "400 404 503",
      .summary = "Forgets what the request's keys have used, and lifts their bans; answers how "
                 "many rules have such a key. Across the fleet on all nodes.",
      .args = { TEXT("rule", .needed = true,
                     .text = "name of a rule; * for every rule that applies to the request"),
                ATTRIBUTES } },
    { OPERATOR("WEIR.EXPLAIN", "POST", "/v1/explain", "explain", "keys", explain),
      .answer = "Explanation", .statuses = "400",
      .summary = "What every rule says to a request, and why. Nothing is taken.",
      .every_attribute = true, .args = { ATTRIBUTES } },
    { OPERATOR("WEIR.TOP", "GET", "/v1/top", "top", "keys", top), .answer = "Top",
      .statuses = "400",
      .summary = "The keys that were refused most in the last ten to twenty minutes.",
      .args = { COUNT("n", .min = 1, .max = WEIR__TOP_MOST, .otherwise = 20,
                      .text = "at most this many") } },
    { ROUTE("GET", "/v1/events", "events", "events"), .role = ADMIN, .http = weir__http_events,
      .answer = "text/event-stream", .statuses = "400",
      .summary = "Events as they happen: server-sent events with id, event, data (an Event).",
      .args = { COUNT("after", .otherwise = -1, .header = "Last-Event-ID",
                      .text = "number of the last event seen: kept events after it come first; "
                              "without it, only new ones") } },
    { OPERATOR("WEIR.EVENTS", "GET", "/v1/events/recent", "eventsRecent", "events", events),
      .answer = "[Event]", .statuses = "400", .summary = "The events that are kept, oldest first.",
      .args = { COUNT("after", .max = INT64_MAX - 1, .text = "number of the last event seen") } },
    { OPERATOR("WEIR.STATUS", "GET", "/v1/status", "status", "server", status), .answer = "Status",
      .summary = "How the server is doing: version, uptime, connections, rules in force, table, "
                 "totals." },
    { OPERATOR("WEIR.SETTINGS", "GET", "/v1/settings", "settings", "server", settings),
      .answer = "Settings", .summary = "The settings in force; secrets are not shown." },
    { ROUTE("GET", "/metrics", "metrics", "server"), .role = CHECK,
      .how = WEIR__VERB_AWAY, .run = weir__admin_metrics, .answer = "text/plain",
      .summary = "Counters and gauges for Prometheus." },
    { ROUTE("GET", "/healthz", "healthz", "server"), .http = weir__http_healthz,
      .answer = "text/plain", .summary = "200 while the server runs." },
    { ROUTE("GET", "/readyz", "readyz", "server"), .http = weir__http_readyz,
      .answer = "text/plain", .statuses = "503",
      .summary = "200 while it takes new connections; 503 when it drains, or has none of its "
                  "fleet's rules." },
    { ROUTE("GET", "/openapi.json", "openapi", "server"), .http = weir__http_openapi,
      .answer = "object", .summary = "This description: OpenAPI 3.1." },
    { ROUTE("GET", "/v1", "index", "server"), .http = weir__http_index, .answer = "Index",
      .summary = "Every route." },
    { ROUTE("GET", "/", "root", "server"), .http = weir__http_root, .answer = "text/plain",
      .summary = "Where to begin." },
    { COMMAND("WEIR.CLOCK"), .method = "POST", PATH("/v1/clock"), .id = "clock", .tag = "server",
      .role = ADMIN, .testing = true, .run = weir__admin_clock, .answer = "Clock",
      .statuses = "400 404",
      .summary = "The time; sets it, if the server was started with --test-clock.",
      .args = { COUNT("now_ns", .needed = true, .resp_optional = true,
                      .text = "nanoseconds since 1970, or on any axis that begins at 0") } },
    /* What every Redis client expects. */
    { COMMAND("AUTH"), .resp = weir__resp_auth, .usage = "[user] token", .arity = -2,
      .summary = "Shows the check or admin token." },
    { COMMAND("CLIENT"), .resp = weir__resp_client,
      .usage = "SETNAME|GETNAME|SETINFO|ID|INFO|LIST ...", .arity = -2,
      .summary = "Stores the client's name and library." },
    { COMMAND("COMMAND"), .role = CHECK, .resp = weir__resp_command_table, .arity = -1,
      .usage = "[COUNT | LIST | INFO name ... | DOCS name ...]",
      .summary = "The commands there are." },
    { COMMAND("CONFIG"), .role = CHECK, .resp = weir__resp_config, .usage = "GET name ...",
      .arity = -2, .summary = "For clients that ask; there is nothing to get." },
    { COMMAND("DBSIZE"), .role = CHECK, .resp = weir__resp_dbsize, .arity = 1,
      .summary = "The number of keys in the table." },
    { COMMAND("DISCARD"), .role = CHECK, .resp = weir__resp_discard, .arity = 1,
      .summary = "Drops the commands since MULTI." },
    { COMMAND("ECHO"), .role = CHECK, .resp = weir__resp_echo, .usage = "text", .arity = 2,
      .summary = "Says it back." },
    { COMMAND("EXEC"), .role = CHECK, .resp = weir__resp_exec, .arity = 1,
      .summary = "Runs the commands since MULTI." },
    { COMMAND("HELLO"), .resp = weir__resp_hello,
      .usage = "[version [AUTH user token] [SETNAME name]]", .arity = -1,
      .summary = "Chooses RESP2 or RESP3." },
    { COMMAND("INFO"), .role = CHECK, .resp = weir__resp_info, .usage = "[section ...]",
      .arity = -1, .summary = "Figures, as Redis prints them." },
    { COMMAND("MULTI"), .role = CHECK, .resp = weir__resp_multi, .arity = 1,
      .summary = "Keeps the commands that follow until EXEC." },
    { COMMAND("PING"), .role = CHECK, .resp = weir__resp_ping, .usage = "[text]", .arity = -1,
      .summary = "Answers PONG, or the text." },
    { COMMAND("PSUBSCRIBE"), .role = ADMIN, .how = WEIR__VERB_MANY, .resp = weir__resp_subscribe,
      .usage = "pattern ...", .arity = -2, .summary = "Events as they happen: weir.events.*." },
    { COMMAND("PUNSUBSCRIBE"), .role = CHECK, .how = WEIR__VERB_MANY,
      .resp = weir__resp_unsubscribe, .usage = "[pattern ...]", .arity = -1,
      .summary = "Ends PSUBSCRIBE." },
    { COMMAND("QUIT"), .resp = weir__resp_quit, .arity = -1, .summary = "Closes the connection." },
    { COMMAND("RESET"), .resp = weir__resp_reset, .arity = 1,
      .summary = "Resets the connection: as if it were new." },
    { COMMAND("SELECT"), .role = CHECK, .resp = weir__resp_select, .usage = "0", .arity = 2,
      .summary = "For clients that ask; there is only 0." },
    { COMMAND("SUBSCRIBE"), .role = ADMIN, .how = WEIR__VERB_MANY, .resp = weir__resp_subscribe,
      .usage = "channel ...", .arity = -2,
      .summary = "Events as they happen: weir.events, weir.events.ban." },
    { COMMAND("TIME"), .role = CHECK, .resp = weir__resp_time, .arity = 1,
      .summary = "The time of decisions." },
    { COMMAND("UNSUBSCRIBE"), .role = CHECK, .how = WEIR__VERB_MANY, .resp = weir__resp_unsubscribe,
      .usage = "[channel ...]", .arity = -1, .summary = "Ends SUBSCRIBE." },
    { COMMAND("UNWATCH"), .role = CHECK, .resp = weir__resp_watch, .arity = 1,
      .summary = "For clients that ask." },
    { COMMAND("WATCH"), .role = CHECK, .resp = weir__resp_watch, .usage = "key ...", .arity = -2,
      .summary = "For clients that ask; nothing is watched." },
    { COMMAND("WEIR.HELP"), .role = CHECK, .resp = weir__resp_help, .usage = "[name]", .arity = -1,
      .summary = "Explains the commands." },
    { 0 },
};
/* clang-format on */

/* -------------------------------------------------------------- finding ---- */

const struct weir__verb *weir__verb_by_command(const char *name, size_t len)
{
    /* Most differ in length or in their last letter. */
    for (const struct weir__verb *v = weir__verbs; len > 0 && v->summary; v++)
        if (v->command_len == len && (v->command[len - 1] | 32) == (name[len - 1] | 32) &&
            strncasecmp(v->command, name, len) == 0)
            return v;
    return NULL;
}

static bool is(const char *text, struct weir__text span)
{
    return strlen(text) == span.len && memcmp(text, span.bytes, span.len) == 0;
}

const struct weir__verb *weir__verb_by_path(struct weir__text method, struct weir__text path,
                                            bool *path_known)
{
    *path_known = false;
    for (const struct weir__verb *v = weir__verbs; path.len > 0 && v->summary; v++) {
        if (v->path_len != path.len || v->path[path.len - 1] != path.bytes[path.len - 1] ||
            memcmp(v->path, path.bytes, path.len) != 0)
            continue;
        *path_known = true;
        if (v->method == NULL || is(v->method, method))
            return v;
    }
    return NULL;
}

/* ------------------------------------------------------------- printing ---- */

struct weir__arg_name weir__arg_member(const struct weir__arg *arg)
{
    struct weir__arg_name name;

    snprintf(name.text, sizeof(name.text), "%s%s", arg->name,
             arg->kind == WEIR__ARG_TIME ? "_ms" : "");
    return name;
}

/* "COST n", "key", "[name value ...]" */
static void print_arg(const struct weir__arg *arg, char *out, size_t size)
{
    const char *value = arg->kind == WEIR__ARG_COUNT && arg->word ? "n"
                        : arg->kind == WEIR__ARG_TIME             ? "ms"
                        : arg->kind == WEIR__ARG_CHOICE           ? arg->choices
                                                                  : arg->name;

    if (arg->kind == WEIR__ARG_ATTRIBUTES)
        snprintf(out, size, "[ATTRIBUTES] [name value ...]");
    else if (arg->kind == WEIR__ARG_ENTRIES)
        snprintf(out, size, "entry [entry ...]");
    else if (arg->word && (arg->kind == WEIR__ARG_SWITCH || arg->kind == WEIR__ARG_UNIT))
        snprintf(out, size, "[%s]", arg->word);
    else if (arg->word)
        snprintf(out, size, "[%s %s]", arg->word, value);
    else
        snprintf(out, size, arg->needed && !arg->resp_optional ? "%s" : "[%s]", value);
}

char *weir__verb_usage(const struct weir__verb *verb, char *out, size_t size)
{
    size_t n = 0;

    snprintf(out, size, "%s", verb->usage ? verb->usage : "");
    for (const struct weir__arg *a = verb->args; a->name && n + 1 < size; a++) {
        char text[64];
        print_arg(a, text, sizeof(text));
        n += (size_t)snprintf(out + n, size - n, "%s%s", n ? " " : "", text);
    }
    return out;
}

struct weir__arg_name weir__verb_small(const struct weir__verb *verb)
{
    struct weir__arg_name name = { 0 };

    for (size_t i = 0; i + 1 < sizeof(name.text) && verb->command[i]; i++)
        name.text[i] = (char)tolower((unsigned char)verb->command[i]);
    return name;
}

int weir__verb_arity(const struct weir__verb *verb)
{
    int needed = 1, n = 1;

    if (verb->arity)
        return verb->arity;
    for (const struct weir__arg *a = verb->args; a->name; a++) {
        needed += a->needed && !a->resp_optional;
        n += a->word || a->kind == WEIR__ARG_ENTRIES ? 1000 : 1;
    }
    return n == needed ? n : -needed;
}

bool weir__verb_has_unit(const struct weir__verb *verb)
{
    const struct weir__arg *a = verb->args;

    while (a->name && a->kind != WEIR__ARG_UNIT)
        a++;
    return a->name != NULL;
}
