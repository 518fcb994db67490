/* file.c -- a whole file in memory. */
#include "unit/test.h"

#include <errno.h>
#include <unistd.h>

#include "base/base.h"

/* A file of `size` bytes, and the descriptor at its beginning. */
static int file_of(size_t size)
{
    char path[] = "/tmp/weir-file-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    unlink(path);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    return fd;
}

static void expect(int fd, size_t most, size_t size)
{
    size_t len = 77;
    char *text = weir__file_read_all(fd, most, &len);

    if (size <= most) {
        assert_non_null(text);
        assert_int_equal(len, size);
    } else {
        assert_null(text);
        assert_int_equal(errno, EFBIG);
        assert_int_equal(len, 77);
    }
    free(text);
    close(fd);
}

TEST(test_files_up_to_the_most)
{
    static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, 100000 };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        expect(file_of(sizes[i]), sizes[i], sizes[i]);
        expect(file_of(sizes[i]), sizes[i] + 1, sizes[i]);
        expect(file_of(sizes[i] + 1), sizes[i], sizes[i] + 1);
    }
}

/* A pipe does not say how much is to come. */
TEST(test_pipes)
{
    static const char text[10000];
    int ends[2];

    for (size_t most = 9999; most <= 10000; most++) {
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], text, sizeof(text)), sizeof(text));
        close(ends[1]);
        expect(ends[0], most, sizeof(text));
    }
}

TEST(test_what_cannot_be_read)
{
    size_t len;

    assert_null(weir__file_read_all(-1, 10, &len));
    assert_int_equal(errno, EBADF);
}
