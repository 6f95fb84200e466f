/* Restricts the process: its files and ports by Landlock, its system calls by a filter. */
#include "common/sandbox/sandbox.h"

#include "common/sandbox/sandbox_calls.h"

#include <err.h>
#include <errno.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Rights that older headers lack, with the version of Landlock that introduced them. */
#define FS_REFER     (UINT64_C(1) << 13) /* 2 */
#define FS_TRUNCATE  (UINT64_C(1) << 14) /* 3 */
#define FS_IOCTL_DEV (UINT64_C(1) << 15) /* 5 */
#define NET_BIND     UINT64_C(1)         /* 4 */
#define NET_CONNECT  UINT64_C(2)
#define SCOPE_UNIX   UINT64_C(1) /* 6: abstract sockets */
#define SCOPE_SIGNAL UINT64_C(2)

struct ruleset {
    uint64_t files;
    uint64_t net;
    uint64_t scope;
};

/* The kernel's format of a rule for one port. */
#define RULE_NET_PORT 2
struct net_port {
    uint64_t allowed;
    uint64_t port;
};

static struct ruleset rules_for(long version, const struct sandbox *sandbox)
{
    struct ruleset rules = {.files = FS_REFER - 1}; /* all rights of version 1 */

    if (version >= 2)
        rules.files |= FS_REFER;
    if (version >= 3)
        rules.files |= FS_TRUNCATE;
    if (version >= 4) /* a right that is not listed is not restricted */
        rules.net = NET_BIND | (sandbox->connects && sandbox->port == 0 ? 0 : NET_CONNECT);
    if (version >= 5)
        rules.files |= FS_IOCTL_DEV;
    if (version >= 6)
        rules.scope = SCOPE_UNIX | (sandbox->server == 0 ? SCOPE_SIGNAL : 0);
    return rules;
}

static bool allow_files(int ruleset, int directory, uint64_t rights)
{
    struct landlock_path_beneath_attr beneath = {.allowed_access = rights, .parent_fd = directory};

    return directory < 0 ||
           syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) == 0;
}

static bool allow_connecting(int ruleset, uint16_t port)
{
    struct net_port rule = {.allowed = NET_CONNECT, .port = port};

    return syscall(SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &rule, 0) == 0;
}

static bool allow_all(int ruleset, const struct ruleset *rules, const struct sandbox *sandbox)
{
    uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    uint64_t writing = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |
                       LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                       (rules->files & FS_TRUNCATE);

    if (sandbox->connects && sandbox->port != 0 && (rules->net & NET_CONNECT) &&
        !allow_connecting(ruleset, sandbox->port))
        return false;
    return allow_files(ruleset, sandbox->root, reading) &&
           allow_files(ruleset, sandbox->writable, reading | writing);
}

/* Tests can make the kernel look older. */
static long landlock_version(void)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
#ifdef ESCAPE_PATH
    const char *older = getenv("LANDLOCK_VERSION");

    if (older != NULL && strtol(older, NULL, 10) < version)
        version = strtol(older, NULL, 10);
#endif
    return version;
}

/* Returns the rules; -1 on failure, with errno set. */
static int make_domain(long version, const struct sandbox *sandbox)
{
    struct ruleset rules = rules_for(version, sandbox);
    size_t size = version >= 6 ? sizeof rules : version >= 4 ? 16 : 8;
    long ruleset = syscall(SYS_landlock_create_ruleset, &rules, size, 0);

    if (ruleset < 0 || allow_all((int)ruleset, &rules, sandbox))
        return (int)ruleset;
    close((int)ruleset);
    return -1;
}

static bool enter_domain(int domain)
{
    return syscall(SYS_landlock_restrict_self, domain, 0) == 0;
}

static void restrict_files(struct sandbox *sandbox)
{
    long version = landlock_version();

    if (version < 1) {
        warnx("this kernel has no Landlock: files and ports are not restricted (--no-sandbox "
              "silences this)");
        return;
    }
    sandbox->domain = make_domain(version, sandbox);
    if (sandbox->domain < 0 || !enter_domain(sandbox->domain))
        warn("cannot enter the sandbox");
}

static void restrict_calls(const struct sandbox *sandbox,
                           void (*list)(const struct sandbox *sandbox,
                                        struct syscall_filter *filter))
{
    struct syscall_filter filter;

    list(sandbox, &filter);
    if (!syscall_filter_load(&filter, sandbox->kills))
        warn("cannot restrict the system calls (--no-sandbox silences this)");
}

void sandbox_enter(struct sandbox *sandbox)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        warn("cannot give up new privileges");
    sandbox->entered = true;
    restrict_files(sandbox);
    restrict_calls(sandbox, sandbox_calls_server);
}

void sandbox_enter_worker(const struct sandbox *sandbox)
{
    if (!sandbox->entered)
        return;
    if (sandbox->domain >= 0 && !enter_domain(sandbox->domain))
        warn("cannot enter the sandbox of a worker");
    restrict_calls(sandbox, sandbox_calls_worker);
}

void sandbox_enter_helper(struct sandbox *sandbox)
{
    if (sandbox->writable >= 0)
        restrict_files(sandbox);
    restrict_calls(sandbox, sandbox_calls_helper);
}

void sandbox_enter_child(const struct sandbox *sandbox)
{
    const struct rlimit none = {0};

    if (sandbox->entered)
        setrlimit(RLIMIT_NPROC, &none);
}
