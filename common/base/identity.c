/* Changes the user of the process, and takes the rights of root from it. */
#include "common/base/identity.h"

#include <err.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The number of "nobody" if /etc/passwd does not have it, as in a container of one program. */
#define NOBODY 65534

static bool find_user(const char *name, struct identity *found)
{
    /* A static program cannot load the name services: this reads the file. */
    FILE *users = fopen("/etc/passwd", "re");
    struct passwd *user = NULL;

    if (users == NULL)
        return false;
    while ((user = fgetpwent(users)) != NULL && strcmp(user->pw_name, name) != 0)
        ;
    if (user != NULL)
        *found = (struct identity){.name = name, .user = user->pw_uid, .group = user->pw_gid};
    fclose(users);
    return user != NULL;
}

bool identity_find(struct identity *identity, const char *name)
{
    *identity = (struct identity){.name = NULL, .user = geteuid(), .group = getegid()};
    if (name == NULL && identity->user != 0)
        return true;
    if (find_user(name != NULL ? name : "nobody", identity))
        return true;
    *identity = (struct identity){.name = "nobody", .user = NOBODY, .group = NOBODY};
    if (name != NULL)
        warnx("there is no user '%s'", name);
    return name == NULL;
}

/* No program that this process might start can get a right of root back. A container may lack the
 * right to do this: then the set remains as small as the container made it. */
static void empty_bounding_set(void)
{
    for (unsigned long right = 0; right <= CAP_LAST_CAP; right++)
        if (prctl(PR_CAPBSET_READ, right, 0, 0, 0) == 1)
            prctl(PR_CAPBSET_DROP, right, 0, 0, 0);
}

/* The kernel forgets the signal for the death of the parent when the user changes. */
static void restore_death_signal(int number, pid_t parent)
{
    if (number == 0)
        return;
    prctl(PR_SET_PDEATHSIG, number);
    if (getppid() != parent)
        raise(number);
}

static bool change(const struct identity *identity)
{
    uid_t user = identity->user;
    gid_t group = identity->group;

    return setgroups(1, &group) == 0 && setresgid(group, group, group) == 0 &&
           setresuid(user, user, user) == 0;
}

bool identity_take(const struct identity *identity)
{
    pid_t parent = getppid();
    int death_signal = 0;

    if (identity->name == NULL || (geteuid() == identity->user && getegid() == identity->group))
        return true;
    prctl(PR_GET_PDEATHSIG, &death_signal);
    empty_bounding_set();
    if (!change(identity)) {
        warn("cannot become user '%s' (see --user)", identity->name);
        return false;
    }
    restore_death_signal(death_signal, parent);
    return true;
}
