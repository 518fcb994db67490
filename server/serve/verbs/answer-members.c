/* answer-members.c -- the members of answers, as verbs.h's notation has them. */
#include "server/serve/verbs/verbs.h"

/* clang-format off */
#define FIELDS(...) (const struct weir__field[]){ __VA_ARGS__, { 0 } }

#define LEVEL      "0 free, 1 less than half is left, 2 less than an eighth, 3 refusing"
#define NEVER_NULL "null: allowed, or it can never pass"
#define BY_RULES   "granted|limited|too-big|bad-ask|banned|denied|too-many|no-room|dry|alone"
#define WHY        "applies|off|unmatched|excepted|no-key"
#define NOT_THERE  "why it does not apply, in words"

const struct weir__schema weir__schemas[] = {
    /* ------------------------------------------------------------- deciding ---- */
    { "Ruling", "The answer to a check.", FIELDS(
        { "allowed", "bool", "over RESP 1 or 0" },
        { "rule", "text?", "the rule that refused, or the tightest that applies; null: none "
          "applies" },
        { "limit", "count?", "the most that can pass at one instant after a rest" },
        { "remaining", "count?", "what could be taken right now, after this ask" },
        { "retry_ms", "count?", "refused: the same ask passes after this time if nobody else "
          "asks; " NEVER_NULL },
        { "reset_ms", "count?", "until all that is used of this limit is free again" },
        { "wait_ms", "count?", "allowed: use it after this time; 0 unless the ask can wait" },
        { "level", "0..3", LEVEL },
        { "reason", BY_RULES, "too-big can never pass; too-many: more than 64 limits apply; "
          "no-room: the table is full, and the rule says when_full: closed; across the fleet, "
          "dry: too little was drawn for this host; alone: it cannot be asked, and the rule says "
          "when_alone: closed" },
        { "-applied", "count", "rules that apply" },
        { "shadow", "text?", "a rule in shadow that would have refused; null: none" },
        { "-list", "allow|deny?", "the list that decided; null: none" },
        { "-[drawn]", "bool", "true: `remaining` counts units that were drawn for this node, and "
          "`reset_ms` is when they expire; the fleet may have more" }) },
    { "BatchAnswer", "", FIELDS(
        { "answers", "[Ruling|Mistake]", "in the order of the checks" }) },
    { "Mistake", "One check that is wrong: its id was used for another request.", FIELDS(
        { "code detail", "text", "" }) },
    { "Throttled", "The answer of redis-cell, over RESP only: whole seconds, where a part of a "
          "second"
      " counts as one if it holds a whole millisecond.", FIELDS(
        { "limited", "0..1", "0 allowed, 1 refused" },
        { "limit", "count", "max_burst + 1" },
        { "remaining", "count", "what could be taken right now" },
        { "retry_after", "integer", "seconds; -1: allowed, or it can never pass" },
        { "reset_after", "count", "seconds until the key is as good as fresh" }) },
    { "Decision", "The answer to take, peek and reserve.", FIELDS(
        { "allowed", "bool", "over RESP 1 or 0" },
        { "limit", "count", "the most that can pass at one instant after a rest" },
        { "remaining", "count", "what could be taken right now, after this ask" },
        { "[retry_ms]", "count?", "refused: the same ask passes after this time; " NEVER_NULL },
        { "-[retry_ns]", "count?", "the same with the unit ns" },
        { "[reset_ms]", "count?", "until the key is as good as fresh" },
        { "-[reset_ns]", "count?", "the same with the unit ns" },
        { "[wait_ms]", "count?", "allowed: use it after this time" },
        { "-[wait_ns]", "count?", "the same with the unit ns" },
        { "-reason", "granted|limited|too-big|bad-ask", "too-big can never pass" },
        { "[reservation]", "text", "of a reservation that was granted: for settle; over RESP "
          "null if refused" }) },
    { "Given", "", FIELDS({ "given", "bool", "" }) },
    { "Settled", "", FIELDS(
        { "settled", "bool", "false: there is no such reservation: it was settled, has expired, "
          "or is older than the last restart" }) },
    { "Forgotten", "", FIELDS({ "forgotten", "bool", "false: the key had used nothing" }) },
    { "Entered", "The answer to enter.", FIELDS(
        { "allowed", "bool", "over RESP 1 or 0" },
        { "rule", "text?", "the rule that refused, or the tightest that applies; null: none "
          "applies" },
        { "limit", "count?", "of that rule; for a guard that refused or was named, its permits" },
        { "remaining", "count?", "likewise, what is left" },
        { "retry_ms", "count?", "refused: when to ask again; by a guard an estimate; " NEVER_NULL },
        { "reset_ms", "count?", "until all that is used of this limit is free again" },
        { "wait_ms", "count?", "allowed: begin after this time" },
        { "level", "0..3", LEVEL },
        { "reason", BY_RULES "|key-busy|open|busy|shed|degraded|full|late|cancelled",
          "a guard's are open, busy, shed, degraded, full (its queue), late (the turn did not "
          "come in time), cancelled (the server ends); key-busy: the key has all of its permits "
          "out, or has enough waiters; too-many: also if more than 8 guards apply" },
        { "-[applied]", "count", "rules that apply" },
        { "[shadow]", "text?", "a rule or guard in shadow that would have refused; null: none" },
        { "-[list]", "allow|deny?", "the list that decided; null: none" },
        { "guard", "text?", "the guard that refused, or that was named; null: none" },
        { "permit", "text?", "for exit; null: refused, or there is nothing to give back" },
        { "lease_ms", "count?", "a permit that is not given back in this time is taken back" }) },
    { "Exited", "", FIELDS({ "exited", "bool", "false: it was given back before, or its lease "
          "was over" }) },
    { "Renewed", "", FIELDS(
        { "permit", "text?", "the one to give back from now on; null: the lease was over" },
        { "lease_ms", "count?", "" }) },
    { "Clock", "", FIELDS({ "now_ns", "count", "nanoseconds since 1970, or on any axis that "
          "begins at 0" }) },
    /* ---------------------------------------------------------- the operator's ---- */
    { "Index", "", FIELDS({ "name version", "text", "" }, { "routes", "[Route]", "" }) },
    { "Route", "", FIELDS({ "method", "text", "*: any" }, { "path summary", "text", "" }) },
    { "Event", "", FIELDS(
        { "[id]", "count", "numbers from 1, since the server started" },
        { "time", "moment", "UTC, with milliseconds" },
        { "event", "event", "which of those above" },
        { "[rule]", "text", "whose limit, ban or mode it is; (takes): limits that clients bring "
          "along; (deny): the deny list" },
        { "[guard]", "text", "whose breaker, shedding or permits it is" },
        { "[key]", "text", "the key, as listings show it" },
        { "[until]", "moment?", "the end of the ban; when a breaker is tried again" },
        { "[mode]", "text", "that was set" },
        { "[state]", "text", "that a guard was forced to; the degradation" },
        { "[list]", "text", "that was changed" },
        { "[attribute]", "text", "of the list's entries" },
        { "[hash]", "text", "of the rules that are in force now" },
        { "[source]", "text", "where they come from: a file, or api" },
        { "[text]", "text", "anything else; for a reload its cause: file, signal, api, fleet" },
        { "[refused]", "count", "asks that were refused" },
        { "[count]", "count", "rules, entries, keys, permits, or events that were lost" }) },
    { "RulesInfo", "", FIELDS(
        { "hash", "text?", "of the text in force; null: no rules" },
        { "source", "text?", "the file, or api" },
        { "cause", "text?", "start, signal, file, api or fleet" },
        { "since", "moment?", "" },
        { "version", "count", "1 is the first since the server started" },
        { "rules limits guards", "count", "" },
        { "entries changes_by_hand", "count", "of lists" },
        { "changes_skipped", "count", "those that the rules in force have no list for" },
        { "problem", "text?", "why the last try to change the rules was refused" },
        { "problem_at", "moment?", "" },
        { "warnings", "[RuleProblem]", "valid, but probably not meant so" }) },
    { "Rules", "", FIELDS({ "*", "RulesInfo", "" }, { "text", "text", "as it was read or set" }) },
    { "RulesChecked", "", FIELDS({ "problems", "[RuleProblem]", "" }) },
    { "RuleProblem", "A mistake in a rule file.", FIELDS(
        { "line column", "count", "0: the whole text" }, { "text", "text", "" }) },
    { "Status", "", FIELDS(
        { "version", "text", "" },
        { "pid", "count", "" },
        { "now started", "moment", "" },
        { "uptime_ms threads connections", "count", "" },
        { "draining", "bool", "" },
        { "memory", "bool", "nothing is on disk" },
        { "tls", "bool", "" },
        { "addresses", "Addresses", "" },
        { "rules", "RulesInfo", "" },
        { "modes", "StatusModes", "" },
        { "guards", "StatusGuards", "" },
        { "[fleet]", "StatusFleet", "if it is in one" },
        { "table", "StatusTable", "" },
        { "checks", "StatusChecks", "" },
        { "totals", "StatusTotals", "" }) },
    { "Addresses", "", FIELDS({ "resp http", "[text]", "" }) },
    { "StatusModes", "", FIELDS(
        { "by_hand", "enforce|shadow|off?", "the mode that all rules are switched to" },
        { "rules_by_hand", "count", "rules that are switched by themselves" }) },
    { "StatusGuards", "", FIELDS(
        { "guards", "count", "" },
        { "in_flight", "integer", "permits that are out" },
        { "open", "count", "breakers that are not closed" },
        { "forced", "count", "breakers that are forced by hand" },
        { "degradation", "0..9", "" },
        { "degradation_by_hand", "bool", "" }) },
    { "StatusFleet", "", FIELDS(
        { "name node", "text", "" },
        { "agent", "bool", "this server draws for its host; else another process does" },
        { "alone", "bool", "rules go by when_alone: Redis is silent, or just back" },
        { "connected", "bool", "Redis has answered the last beat; or another process asks it" },
        { "why", "text?", "it has not; or another host has this node's name" },
        { "learning", "bool", "Redis has just come (back): parts do not grow" },
        { "part", "count", "of each limit while Redis is away, in millionths; 0: not known yet" },
        { "members", "count", "" },
        { "draws units_drawn units_repaid", "count", "from accounts, and back to them" },
        { "asks_alone", "count", "that waited for units, and were decided by when_alone; those of a node that is alone do not "
          "wait, and are not counted" },
        { "version refused", "count", "of the fleet's rules: in force, and refused; 0: none" },
        { "refused_why", "text?", "" }) },
    { "StatusTable", "", FIELDS(
        { "file", "text?", "" },
        { "slots keys slab slab_used limiters bytes bytes_on_disk evicted_idle "
          "evicted_early recovered bans_lost no_room no_disk", "count", "" }) },
    { "StatusChecks", "", FIELDS({ "checked allowed refused denied allow_listed unmatched "
          "shadow_refused", "count", "" }) },
    { "StatusTotals", "", FIELDS(
        { "connections connections_closed connections_refused resp_commands http_requests "
          "bad_input timed_out not_reading"
          " auth_failed auth_turned_away proxy_not_trusted proxy_no_client proxy_no_uri "
          "check_allowed check_refused take_allowed take_refused enter_allowed "
          "enter_refused ask_id_repeated"
          " bytes_in bytes_out", "count", "" }) },
    { "Bans", "", FIELDS({ "now", "moment", "" }, { "bans", "[Ban]", "" }) },
    { "Ban", "", FIELDS(
        { "rule key", "text", "" },
        { "since", "moment", "" },
        { "until", "moment?", "" },
        { "left_ms", "count", "" },
        { "strikes", "count", "bans of this key that are not forgotten yet, with this one" }) },
    { "Unbanned", "", FIELDS({ "rule key", "text", "" }, { "banned", "bool", "" }) },
    { "Lists", "", FIELDS({ "lists", "[List]", "" }, { "changes", "[ListChange]", "by hand" }) },
    { "List", "", FIELDS(
        { "list attribute", "text", "" },
        { "entries", "count", "" },
        { "[values]", "[text]", "the first of them, of a list that was named" }) },
    { "ListChange", "", FIELDS({ "list attribute entry", "text", "" }, { "change",
          "added|removed", "" }) },
    { "ListChanged", "", FIELDS(
        { "list attribute", "text", "" },
        { "entries", "count", "that it has now" },
        { "changed", "count", "" }) },
    { "Modes", "", FIELDS(
        { "as_written", "text", "" },
        { "by_hand", "text?", "null: as written" },
        { "in_force", "text", "" },
        { "rules guards", "[RuleMode]", "" }) },
    { "RuleMode", "", FIELDS(
        { "[rule]", "text?", "null: all of them" },
        { "[guard]", "text", "instead of rule, if it is a guard" },
        { "as_written", "text", "" },
        { "by_hand", "text?", "null: as written" },
        { "in_force", "text", "" },
        { "[allowed] [refused]", "count", "since the rule came" },
        { "[banned]", "count", "of the refused, those of banned keys" },
        { "[shadow_refused]", "count", "" }) },
    { "Guards", "", FIELDS(
        { "now", "moment", "" },
        { "degradation", "0..9", "" },
        { "by_hand", "bool", "the degradation was set by hand" },
        { "guards", "[Guard]", "" }) },
    { "Guard", "", FIELDS(
        { "guard", "text", "" },
        { "in_rules", "bool", "false: the table has it from other rules or another program; "
          "requests enter it by its name alone" },
        { "mode", "enforce|shadow|off", "in force" },
        { "in_flight", "integer", "permits that are out" },
        { "limit", "count", "permits there are now; for an adaptive rate, entries per second" },
        { "waiting", "count", "asks in its queue at this server" },
        { "[controller]", "text?", "the algorithm that finds the limit; null: it is fixed" },
        { "breaker", "closed|open|half-open?", "null: it has none" },
        { "force", "none|open|closed", "" },
        { "[retry_ms]", "count?", "open, and not by hand: until it is tried again" },
        { "[calls] [errors] [slow]", "count", "in the breaker's window" },
        { "[p50_us] [p90_us] [p99_us]", "count?", "of successes in the last 10 s; null: there "
          "were none" },
        { "[mean_us]", "count?", "of the last second or so" },
        { "[admitted_percent]", "0..100", "let in: less than 100 while it sheds, 0 "
          "while it is open, forced open or degraded" },
        { "[pressure_percent]", "0..100", "kept out because the host is overloaded" },
        { "entered", "count", "since the guard was made, as everything below" },
        { "outcomes", "GuardOutcomes", "" },
        { "refused", "GuardRefused", "" },
        { "[shadow_refused]", "count", "" },
        { "reclaimed", "count", "permits that were not given back in time, or whose holder died" },
        { "options", "object", "as they are written; 0 is the default" },
        { "[keys_in_flight]", "count", "keys that have permits out; if one guard by key was asked "
          "for" },
        { "[keys]", "[GuardKey]", "those with most permits" },
        { "[changes]", "[GuardChange]", "the latest first; if one guard was asked for" }) },
    { "GuardKey", "", FIELDS(
        { "key", "text?", "null: it entered at another process, or before this one began" },
        { "in_flight", "count", "its permits" }) },
    { "GuardOutcomes", "", FIELDS({ "ok error timeout dropped", "count", "" }) },
    { "GuardRefused", "", FIELDS({ "open busy limited shed degraded full late key_busy", "count",
          "" }) },
    { "GuardChange", "", FIELDS(
        { "number", "integer", "" },
        { "time", "moment", "" },
        { "[event]", "text", "" },
        { "from to", "integer", "" },
        { "[from_state] [to_state]", "text?",
          "a breaker: closed, open or half-open; a force: none, open or closed; null: it is "
          "a number" }) },
    { "Degradation", "", FIELDS({ "degradation", "0..9", "" }, { "by_hand", "bool", "" }) },
    { "FleetStatus", "", FIELDS(
        { "name", "text", "of the fleet" },
        { "node", "text", "this server" },
        { "rules", "FleetRulesStatus", "" }) },
    { "FleetRulesStatus", "", FIELDS(
        { "newest", "count", "version; 0: the fleet has no rules yet" },
        { "all", "count", "the version for all nodes but the stage" },
        { "stage", "text?", "the node that tries the newest first" },
        { "nodes", "count", "that follow the fleet's rules" },
        { "current", "count", "of these, run the version meant for them" },
        { "refused", "count", "of these, refuse one" },
        { "silent", "count", "others that have not reported for 10 s" },
        { "own", "count", "members with rules of their own, which do not follow the fleet's" },
        { "shared_names", "count", "names that two hosts have" },
        { "runs", "count", "the largest version that a node runs; above newest: Redis has lost "
          "its data" }) },
    { "FleetNodes", "", FIELDS({ "nodes", "[FleetNode]",
          "the members, and those that have reported within a day" }) },
    { "FleetNode", "", FIELDS(
        { "node", "text", "" },
        { "runs", "count?", "the version of the fleet's rules; 0: none yet; null: it has rules of "
          "its own" },
        { "refused", "count", "the version that it refuses; 0: none" },
        { "why", "text", "it refuses that" },
        { "heard_us_ago", "count?", "since it last said which version it runs" },
        { "part", "count?", "of each limit while Redis is away, in millionths; null: it is no "
          "member now" },
        { "weight", "count?", "" },
        { "shares_name", "bool", "two hosts have this name: they are one member, and both use its "
          "part" }) },
    { "FleetHistory", "", FIELDS(
        { "newest", "count", "version; 0: the fleet has no rules yet" },
        { "all", "count", "the version for all nodes but the stage" },
        { "stage", "text?", "the node that tries the newest first" },
        { "versions", "[FleetVersion]", "the newest first" }) },
    { "FleetVersion", "", FIELDS(
        { "version", "count", "" },
        { "time_us", "count", "when it was made, since 1970" },
        { "origin", "count", "the version whose text came back; 0: its text was new" },
        { "author note", "text", "" },
        { "bytes", "count", "of its text" }) },
    { "FleetChanged", "", FIELDS(
        { "version", "count", "the new one; that of the base: it has this text already" },
        { "origin", "count", "the version whose text it has; 0: its text is new" }) },
    { "FleetPublished", "", FIELDS(
        { "published", "bool", "" },
        { "warning", "text?", "no node may have tried it" }) },
    { "FleetRules", "", FIELDS(
        { "version", "count", "" },
        { "edit", "text", "a number: version and edit name a text" },
        { "time_us", "count", "when it was made, since 1970" },
        { "origin", "count", "the version whose text came back; 0: its text was new" },
        { "author note", "text", "" },
        { "text", "text", "" }) },
    { "FleetDiff", "", FIELDS(
        { "from", "count", "the version that goes" },
        { "changes", "[RuleChange]", "" },
        { "same", "bool", "" }) },
    { "RuleChange", "", FIELDS(
        { "of", "file|rule|guard|list", "" },
        { "name", "text", "of the rule, guard or list" },
        { "who", "text", "whom it is for, in words" },
        { "what", "text", "added, removed, limit, key ..." },
        { "text", "text", "limit 300/1m -> 400/1m" },
        { "effect", "text", "keys keep their counts" }) },
    { "Lock", "", FIELDS(
        { "held", "bool", "by this caller" },
        { "owner", "text?", "for renew and unlock; null: it is not held" },
        { "token", "count?", "larger than all before it; null: it is not held" },
        { "left_ms", "count", "held: for how long it may be relied upon; else until it ends, "
          "unless its holder renews it" },
        { "waiting", "count", "others in line" }) },
    { "LockSeen", "", FIELDS(
        { "held", "bool", "by anybody" },
        { "token", "count?", "of its holder; null: it is not held" },
        { "left_ms", "count", "until it ends, unless its holder renews it" },
        { "waiting", "count", "callers in line" }) },
    { "Unlocked", "", FIELDS({ "unlocked", "bool", "this owner does not have it (any more)" }) },
    { "Reset", "", FIELDS(
        { "rule", "text?", "null: every rule that applies" }, { "reset", "count", "keys that "
          "were forgotten" },
        { "rules", "[text]", "rules that apply, with a key of this request" },
        { "still_banned", "[text]", "with rule null: rules that do not apply to this request, and "
          "ban a key that it has too" }) },
    { "Explanation", "What every rule says, and why.", FIELDS(
        { "rules", "[ExplainedRule]", "" },
        { "[guards]", "[ExplainedGuard]", "" },
        { "ruling", "ExplainedRuling", "what a check would say" },
        { "enter", "ExplainedEnter", "what enter would say: the guards are asked too" },
        { "unused", "[text]", "attributes that no rule looks at" },
        { "meant", "[text?]", "in the same order: what each was most likely meant to be" },
        { "[accounts]", "[ExplainedAccount]", "of the fleet, for rules across it that apply" },
        { "[accounts_why]", "text?", "why they could not be asked; null: they were" }) },
    { "ExplainedAccount", "", FIELDS(
        { "rule", "text", "" },
        { "index", "count", "which of its limits" },
        { "key", "text", "" },
        { "allowed", "bool", "a draw for this request would get its units" },
        { "limit remaining", "integer", "units that nodes have drawn are not in it" },
        { "retry_ms", "count?", NEVER_NULL },
        { "reset_ms", "count?", "" }) },
    { "ExplainedRule", "", FIELDS(
        { "rule", "text", "" },
        { "why", WHY, "" },
        { "mode", "text", "" },
        { "asked", "bool", "" },
        { "[key]", "text", "" },
        { "[cost]", "count", "" },
        { "[refuses]", "bool", "" },
        { "[limits]", "[ExplainedLimit]", "" },
        { "[fleet]", "purse|share|open|closed|none", "across the fleet: decided by units drawn "
          "for this host, which are its limits' remaining, by its part of the limit, alone and open or closed, or in no fleet" },
        { "[attribute]", "text?", "the one that did not match, or is missing" },
        { "[banned_for_ms]", "count?", "the rest of a ban" },
        { "[because]", "text", NOT_THERE }) },
    { "ExplainedLimit", "", FIELDS(
        { "allowed", "bool", "" },
        { "reason", "text", "" },
        { "limit remaining", "integer", "" },
        { "retry_ms", "count?", NEVER_NULL },
        { "reset_ms", "count?", "" },
        { "written", "text", "the limit, as the rules have it" },
        { "[in_table]", "text", "the limit in the table, if that is another" }) },
    { "ExplainedGuard", "", FIELDS(
        { "guard", "text", "" },
        { "why", WHY, "" },
        { "mode", "text", "" },
        { "[because]", "text", NOT_THERE },
        { "[refuses]", "bool", "" },
        { "[reason]", "text", "" },
        { "[in_flight] [limit]", "integer", "" },
        { "[key]", "text", "of permits by key" },
        { "[key_in_flight] [max_per_key]", "count", "" },
        { "[user]", "text", "whose requests are shed together; empty: nobody is named" },
        { "[priority]", "integer", "" },
        { "[class]", "text?", "null: the guard has none" },
        { "[breaker]", "closed|open|half-open", "" },
        { "[admitted_percent]", "count", "of all asks, while it sheds; else 100" }) },
    { "ExplainedRuling", "", FIELDS(
        { "allowed", "bool", "" },
        { "reason", "text", "" },
        { "limit remaining", "integer", "" },
        { "retry_ms", "count?", NEVER_NULL },
        { "reset_ms", "count?", "" },
        { "rule", "text?", "the rule that refuses, or the tightest" },
        { "list", "text?", "the list that decides: allow or deny" },
        { "list_attribute", "text?", "the attribute that is on it" },
        { "shadow", "text?", "a rule in shadow that would refuse" },
        { "mode", "text", "of the whole set" },
        { "applied", "count", "rules that apply" },
        { "level", "0..3", "" }) },
    { "ExplainedEnter", "", FIELDS(
        { "allowed", "bool", "" },
        { "guard", "text?", "the guard that refuses; null: none does" },
        { "reason", "text", "" }) },
    { "Top", "", FIELDS({ "top", "[Refused]", "most refused first" }) },
    { "Refused", "", FIELDS(
        { "rule", "text", "(takes): limits that clients bring along; (deny): the deny list" },
        { "key", "text", "" },
        { "refused", "count", "at most this often" },
        { "error", "count", "and at least this much less" }) },
    { 0 },
};
/* clang-format on */
