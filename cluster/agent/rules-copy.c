/* rules-copy.c -- the last good rules of the fleet on this host's disk, for a start without Redis:
 * written with each new version, and every hour, because a copy that is too old is not used.
 *
 * cluster/fleet/rules-copy-bytes.c has its bytes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "cluster/agent/agent.h"

#define COPY_EVERY (3600 * WEIR_SECOND)

static const struct weir__text document = { WEIR__VERSIONS_RULES,
                                            sizeof(WEIR__VERSIONS_RULES) - 1 };

/* The file is the old copy or the new one, whenever the host dies.  If the copy cannot be written
 * there is none, until the next version.  Each process on the table first writes a file of its own,
 * named after its place, so a file that a dead process has left is overwritten by the next. */
void weir__rules_copy_write(struct weir_fleet *f)
{
    struct weir__copy copy = { .document = document,
                               .of = f->follow.state.runs,
                               .taken = weir__clock_real(),
                               .text = { f->follow.text.bytes, f->follow.text.len } };
    struct weir__buffer bytes = { 0 };
    unsigned mine = f->holder > 0 ? f->holder : (unsigned)f->pid;
    bool written = false;
    char *beside = NULL;

    f->follow.copied = copy.taken;
    if (!f->follow.copy || asprintf(&beside, "%s.new%u", f->follow.copy, mine) < 0)
        return;
    weir__copy_write(&copy, &bytes);
    int fd = bytes.failed ? -1 : open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd >= 0 && weir__bytes_write(fd, bytes.bytes, bytes.len) && fsync(fd) == 0)
        written = rename(beside, f->follow.copy) == 0;
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && !written)
        unlink(beside);
    weir__buffer_free(&bytes);
    free(beside);
}

bool weir__rules_copy_read(struct weir_fleet *f)
{
    struct weir__copy copy;
    size_t len = 0;
    char *bytes = NULL;
    bool good = f->follow.copy &&
                weir__file_load(f->follow.copy, 2 * WEIR__VERSIONS_TEXT_MAX, &bytes, &len, NULL) ==
                    WEIR_OK &&
                weir__copy_read(&copy, document, (struct weir__text){ bytes, len },
                                weir__clock_real(), NULL) == WEIR_OK;

    if (good) {
        weir__follow_fetched(f, copy.text, &copy.of);
        f->follow.copied = copy.taken;
    }
    free(bytes);
    return good && !f->follow.text.failed;
}

static bool is_same(const struct weir__edition *a, const struct weir__edition *b)
{
    return a->version == b->version && a->edit == b->edit;
}

/* The copy says when it was last known to be right. */
void weir__rules_copy_keep(struct weir_fleet *f, const struct weir__follower_event *event)
{
    const struct weir__edition *runs = &f->follow.state.runs;

    if (event->kind == WEIR__FOLLOWER_POLLED && runs->version > 0 && is_same(&event->of, runs) &&
        is_same(&f->follow.fetched, runs) && weir__clock_real() - f->follow.copied > COPY_EVERY)
        weir__rules_copy_write(f);
}
