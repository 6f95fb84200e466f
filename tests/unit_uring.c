/* Tests of uring.c: entries that the kernel does not take are emptied before what they name goes.
 */
#include "common/base/uring.h"

#include "tests/unit.h"

#include <sys/socket.h>
#include <unistd.h>

#define MASK UINT64_C(3)
enum { OWNER = 64, OTHER = 128, SEND = 1, RECEIVE = 2 };

static struct uring ring;
static bool is_open;

static unsigned add(uint64_t data, uint8_t operation, int descriptor)
{
    struct io_uring_sqe *entry = uring_entry(&ring);

    assert_non_null(entry);
    entry->opcode = operation;
    entry->fd = descriptor;
    entry->user_data = data;
    return uring_position(&ring);
}

static const struct io_uring_sqe *at(unsigned position)
{
    return (struct io_uring_sqe *)ring.entries + (position & (ring.entry_count - 1));
}

/* The kernel takes all entries: nothing is left to empty. */
static void test_taken(void **state)
{
    struct io_uring_cqe completion;
    unsigned position;

    (void)state;
    if (!is_open)
        UNIT_SKIP("no ring can be made here");
    position = add(OWNER | SEND, IORING_OP_NOP, -1);
    assert_true(uring_is_queued(&ring, position));
    uring_settle(&ring, position, OWNER, MASK);
    assert_false(uring_has_entries(&ring));
    assert_true(uring_take(&ring, &completion));
    assert_int_equal(completion.user_data, OWNER | SEND);
}

/* The kernel takes nothing, as where it has no memory. */
static void test_not_taken(void **state)
{
    int ends[2], file = ring.file, taken = 0;
    struct io_uring_cqe completion;
    unsigned other, send, receive;

    (void)state;
    if (!is_open)
        UNIT_SKIP("no ring can be made here");
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ring.file = -1;
    other = add(OTHER | SEND, IORING_OP_POLL_ADD, ends[0]);
    send = add(OWNER | SEND, IORING_OP_SEND, ends[0]);
    receive = add(OWNER | RECEIVE, IORING_OP_RECV, ends[0]);
    uring_settle(&ring, receive, OWNER, MASK);
    assert_int_equal(at(send)->opcode, IORING_OP_NOP);
    assert_int_equal(at(receive)->opcode, IORING_OP_NOP);
    assert_int_equal(at(send)->fd, -1);
    assert_int_equal(at(other)->opcode, IORING_OP_POLL_ADD);
    assert_int_equal(at(other)->fd, ends[0]);
    ring.file = file;
    uring_submit(&ring);
    while (uring_take(&ring, &completion)) {
        assert_int_equal(completion.user_data & ~MASK, OWNER); /* the poll goes on */
        taken++;
    }
    assert_int_equal(taken, 2);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken),
        cmocka_unit_test(test_not_taken),
    };
    int failed;

    is_open = uring_open(&ring, false);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (is_open)
        uring_close(&ring);
    return failed;
}
