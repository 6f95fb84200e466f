/* Tests of fd_message.c: a message without bytes is no end, and leaves no descriptor open. */
#include "common/base/fd_message.h"

#include "tests/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct pair {
    int sender, receiver;
};

static struct pair open_pair(bool tells_sender)
{
    int ends[2], on = 1;

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    if (tells_sender)
        assert_int_equal(setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
    return (struct pair){ends[0], ends[1]};
}

static void close_pair(struct pair pair)
{
    close(pair.sender);
    close(pair.receiver);
}

/* The lowest descriptor that is free: it rises where one stays open. */
static int free_descriptor(void)
{
    int free = open("/dev/null", O_RDONLY | O_CLOEXEC);

    close(free);
    return free;
}

static void test_both(void **state)
{
    struct pair pair = open_pair(false);
    const int given[] = {pair.sender, pair.receiver};
    struct fd_message message;
    char bytes[8];
    size_t size;

    (void)state;
    assert_true(fd_message_send(pair.sender, "text", 4, given, 2));
    assert_true(fd_message_receive(pair.receiver, bytes, sizeof bytes, &size, &message));
    assert_int_equal(size, 4);
    assert_memory_equal(bytes, "text", 4);
    assert_int_equal(message.count, 2);
    assert_int_equal(message.sender, 0);
    fd_message_close(&message);
    close_pair(pair);
}

static void test_no_bytes(void **state)
{
    struct pair pair = open_pair(false);
    int before = free_descriptor();
    struct fd_message message;
    char bytes[8];
    size_t size;

    (void)state;
    for (int i = 0; i < 10; i++) {
        assert_true(fd_message_send(pair.sender, "", 0, &pair.sender, 1));
        assert_true(fd_message_receive(pair.receiver, bytes, sizeof bytes, &size, &message));
        assert_int_equal(size, 0);
        fd_message_close(&message);
    }
    assert_int_equal(free_descriptor(), before);
    close_pair(pair);
}

static void test_no_end(void **state)
{
    struct pair pair = open_pair(true);
    struct fd_message message;
    char bytes[8];
    size_t size;

    (void)state;
    assert_int_equal(send(pair.sender, "", 0, MSG_NOSIGNAL), 0);
    assert_true(fd_message_receive(pair.receiver, bytes, sizeof bytes, &size, &message));
    assert_int_equal(size, 0);
    assert_int_equal(message.sender, getpid());
    close(pair.sender);
    assert_false(fd_message_receive(pair.receiver, bytes, sizeof bytes, &size, &message));
    close(pair.receiver);
}

/* Sends a byte with so many copies of a descriptor, as a sender that is not trusted may. */
static void send_many(int socket, int descriptor, int count)
{
    size_t length = (size_t)count * sizeof descriptor;
    struct msghdr header = {.msg_iov = &(struct iovec){.iov_base = "", .iov_len = 1},
                            .msg_iovlen = 1,
                            .msg_control = calloc(1, CMSG_SPACE(length)),
                            .msg_controllen = CMSG_SPACE(length)};
    struct cmsghdr *part = header.msg_control;

    *part = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(length)};
    for (int i = 0; i < count; i++)
        memcpy(CMSG_DATA(part) + (size_t)i * sizeof descriptor, &descriptor, sizeof descriptor);
    assert_int_equal(sendmsg(socket, &header, MSG_NOSIGNAL), 1);
    free(header.msg_control);
}

static void test_too_many(void **state)
{
    const bool told[] = {false, true};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct pair pair = open_pair(told[i]);
        int before = free_descriptor();
        struct {
            struct fd_message message;
            int after[64];
        } received;
        char byte;
        size_t size;
        memset(&received, 0x55, sizeof received);
        send_many(pair.sender, pair.sender, 200);
        assert_true(fd_message_receive(pair.receiver, &byte, 1, &size, &received.message));
        assert_int_equal(received.message.count, FD_MESSAGE_LIMIT);
        assert_int_equal(received.message.sender, told[i] ? getpid() : 0);
        for (int k = 0; k < 64; k++)
            assert_int_equal(received.after[k], 0x55555555);
        fd_message_close(&received.message);
        assert_int_equal(free_descriptor(), before);
        close_pair(pair);
    }
}

int main(void)
{
    unit_add("bytes and descriptors arrive together", test_both, NULL);
    unit_add("a message without bytes leaves no descriptor open", test_no_bytes, NULL);
    unit_add("a message without bytes is no end where senders are told", test_no_end, NULL);
    unit_add("of too many descriptors, those that do not fit are closed", test_too_many, NULL);
    return unit_run("fd_message");
}
