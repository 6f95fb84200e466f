/* Tests of poller_epoll.c: an event of a descriptor of the service comes once, and to the client
 * that awaits it now. */
#include "common/workers/poller_epoll.h"

#include "tests/unit.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static struct poller poller;
static int ends[2];
static struct watch watches[2];

static int set_up(void **state)
{
    (void)state;
    poller = (struct poller){.kind = &poller_epoll};
    for (int i = 0; i < 2; i++)
        watches[i] = (struct watch){.socket = -1, .other = -1};
    assert_true(poller_epoll.open(&poller, NULL));
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends);
}

static int tear_down(void **state)
{
    (void)state;
    close(ends[0]);
    close(ends[1]);
    poller_epoll.close(&poller);
    return 0;
}

static void await(struct watch *watch)
{
    watch->other = ends[0];
    watch->need = NEED_READ;
    assert_true(poller_epoll.watch(&poller, watch));
}

/* Returns the watch that has an event; NULL: none. */
static const struct watch *look(void)
{
    struct epoll_event events[POLLER_EVENTS];

    return poller_epoll.wait(&poller, events, 0) == 1 ? events[0].data.ptr : NULL;
}

/* Adds the descriptor to epoll. Returns false if it is there already. */
static bool add(void)
{
    return epoll_ctl(poller.epoll, EPOLL_CTL_ADD, ends[0], &(struct epoll_event){0}) == 0 ||
           errno != EEXIST;
}

static void check_event(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        await(&watches[i % 2]);
        assert_null(look());
        assert_int_equal(write(ends[1], "x", 1), 1);
        assert_ptr_equal(look(), &watches[i % 2]);
        poller_epoll.unwatch_other(&poller, &watches[i % 2]);
        assert_null(look()); /* nobody awaits it, although the byte is there */
        assert_false(add()); /* for the next one, the descriptor stays in epoll */
        assert_int_equal(read(ends[0], &(char){0}, 1), 1);
    }
}

/* Nobody awaits the end of an idle connection. */
static void check_end(void **state)
{
    (void)state;
    await(&watches[0]);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_ptr_equal(look(), &watches[0]);
    poller_epoll.unwatch_other(&poller, &watches[0]);
    shutdown(ends[1], SHUT_RDWR);
    assert_null(look());
}

/* The client goes on without the event, and may end: its address must not come back. */
static void check_no_event(void **state)
{
    (void)state;
    await(&watches[0]);
    poller_epoll.unwatch_other(&poller, &watches[0]);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_null(look());
    assert_true(add());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"events of two clients", check_event, set_up, tear_down, NULL},
        {"the end of an idle connection", check_end, set_up, tear_down, NULL},
        {"a wait that is given up", check_no_event, set_up, tear_down, NULL},
    };

    return cmocka_run_group_tests_name("poller_epoll", tests, NULL, NULL);
}
