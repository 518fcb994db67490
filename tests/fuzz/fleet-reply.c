/* fleet-reply.c -- any reply of RESP as what Redis answers to a node of a fleet.
 *
 *   Bytes that the scanner finds whole are read as notes, a member's part, a lock and lists of
 *   the rules' versions.  What is accepted lies within its bounds.
 */
#include "fuzz/fuzz.h"

#include "cluster/fleet/lock.h"
#include "cluster/fleet/member-shares.h"
#include "cluster/fleet/node-reports.h"
#include "cluster/fleet/bans-and-resets.h"

enum { REPLY_MAX = 4096 };

static bool is_in(struct weir__text part, struct weir__text whole)
{
    return part.len == 0 ||
           (part.bytes >= whole.bytes && part.bytes + part.len <= whole.bytes + whole.len);
}

static void read_notes(struct weir__text reply)
{
    struct weir__notes notes;
    struct weir__note note;

    if (!weir__notes_reply(&notes, reply))
        return;
    for (size_t i = 0; i < notes.n && weir__note_next(&notes, &note); i++) {
        check(note.span >= 0 && note.span <= WEIR__NOTE_SPAN_MAX);
        check(note.forget >= 0 && note.forget <= WEIR__NOTE_SPAN_MAX);
        check(note.strikes >= 0);
        check(is_in(note.rule, reply) && is_in(note.key, reply));
    }
}

static void read_member(struct weir__text reply)
{
    struct weir__member_answer answer;
    struct weir__text why;

    if (weir__member_reply(&answer, reply, &why))
        check(answer.offer >= -1 && answer.offer <= WEIR__PART_ONE);
    else
        check(why.len > 0);
}

static void read_lock(struct weir__text reply)
{
    struct weir__lock_reply lock;
    struct weir__text why;

    if (!weir__lock_reply(&lock, reply, &why))
        return;
    check(lock.left >= 0 && lock.left <= WEIR__LOCK_LIFE_MAX && lock.token >= 0);
    check(is_in(lock.holder, reply));
}

static void read_versions(struct weir__text reply)
{
    struct weir__versions_list whole, list;
    struct weir__version version;
    struct weir__node_report report;
    struct weir__text why;

    if (!weir__versions_list(&whole, reply.bytes, &why))
        return;
    list = whole;
    if (weir__version(&list, &version))
        check(is_in(version.text, reply) && is_in(version.author, reply));
    for (list = whole; weir__versions_next(&list, &version);)
        check(is_in(version.note, reply));
    for (list = whole; weir__node_report_next(&list, &report);)
        check(is_in(report.node, reply) && is_in(report.why, reply));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir__resp_scan scan = { 0 };
    const char *what;
    char *copy = copy_of(data, size);
    ptrdiff_t len = weir__resp_scan(&scan, copy, size, REPLY_MAX, &what);

    if (len > 0) {
        char *exact = copy_of(copy, (size_t)len);
        struct weir__text reply = { exact, (size_t)len };

        read_notes(reply);
        read_member(reply);
        read_lock(reply);
        read_versions(reply);
        free(exact);
    }
    free(copy);
    return 0;
}
