/* rules-copy.c -- the last good rules of the fleet on this host's disk, for a start without Redis:
 * written with each new version, and every hour, because a copy that is too old is not used.
 *
 * cluster/fleet/centre-copy.c has its bytes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "cluster/agent/agent.h"

#define COPY_EVERY (3600 * WEIR_SECOND)

static const struct weir__text document = { WEIR__AGENT_DOCUMENT,
                                            sizeof(WEIR__AGENT_DOCUMENT) - 1 };

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

static char *read_file(const char *path, size_t *len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *bytes = fd >= 0 ? weir__file_read_all(fd, 2 * WEIR__CENTRE_TEXT_MAX, len) : NULL;

    if (fd >= 0)
        close(fd);
    return bytes;
}

bool weir__rules_copy_read(struct weir_fleet *f)
{
    struct weir__copy copy;
    size_t len = 0;
    char *bytes = f->follow.copy ? read_file(f->follow.copy, &len) : NULL;
    bool good = bytes && weir__copy_read(&copy, document, (struct weir__text){ bytes, len },
                                         weir__clock_real(), NULL) == WEIR_OK;

    if (good) {
        weir__buffer_add(&f->follow.text, copy.text.bytes, copy.text.len);
        weir__buffer_add(&f->follow.text, "", 1);
        f->follow.text.len -= f->follow.text.len > 0;
        f->follow.copied = copy.taken;
        f->follow.fetched = copy.of;
    }
    free(bytes);
    return good && !f->follow.text.failed;
}

static bool is_same(const struct weir__edition *a, const struct weir__edition *b)
{
    return a->version == b->version && a->edit == b->edit;
}

/* The copy says when it was last known to be right. */
void weir__rules_copy_keep(struct weir_fleet *f, const struct weir__centre_event *event)
{
    const struct weir__edition *runs = &f->follow.state.runs;

    if (event->kind == WEIR__CENTRE_POLLED && runs->version > 0 && is_same(&event->of, runs) &&
        is_same(&f->follow.fetched, runs) && weir__clock_real() - f->follow.copied > COPY_EVERY)
        weir__rules_copy_write(f);
}
