/* The passage of one request through the proxy: what its stages share. */
#ifndef COMMON_PASSAGE_H
#define COMMON_PASSAGE_H

#include "common/cache.h"
#include "common/delivery.h"
#include "common/forward.h"
#include "common/pair.h"
#include "common/policy.h"
#include "common/proxy.h"
#include "common/upstream.h"

enum stage {
    STAGE_BEGINNING,
    STAGE_LOOKING, /* for a stored reply; or for one that somebody else is fetching */
    STAGE_SERVING, /* a stored reply, to the client, before the origin is asked about it */
    STAGE_OPENING, /* the origin has to be asked */
    STAGE_CONNECTING,
    STAGE_SENDING,    /* the head of the request, to the origin */
    STAGE_UPLOADING,  /* its body */
    STAGE_AWAITING,   /* the head of the reply */
    STAGE_DELIVERING, /* it, to the client */
    STAGE_TUNNELLING, /* bytes in both directions */
};

/* What is only needed once the origin is asked. */
struct fetch {
    struct upstream upstream;
    struct delivery delivery;
    size_t sent;         /* of the lines */
    struct buffer lines; /* to the origin: the head, or what frames a chunk */
    char space[DELIVERY_HEAD_LIMIT];
};

struct passage {
    const struct proxy *proxy;
    enum stage stage;
    struct text host; /* of the origin; without the port */
    uint16_t port;
    struct text authority; /* of the origin, as Host says it */
    struct destination destination;
    int tried;      /* of its addresses */
    bool late;      /* one did not answer in time */
    int64_t origin; /* when the origin must have moved, in milliseconds */
    struct pair pair;
    struct fetch *fetch;

    /* The store. */
    const struct cache *cache; /* NULL: none */
    struct text uri;           /* from malloc */
    char name[CACHE_NAME_SIZE];
    struct directives asked;
    bool reads, writes;       /* stored replies may be used; the reply may be stored */
    struct cache_entry entry; /* that was found; it has a file, then */
    struct policy_reply kept; /* what that says */
    const char *why;          /* the origin is asked, as Cache-Status names it */
    bool validates;           /* the origin is asked whether the entry is still good */
    bool retried;             /* it was asked again, without that */
    bool background;          /* the client has its reply already */
    int served;               /* with that status */
    int lock;                 /* -1: not held */
    bool locked_once;         /* the store was looked at again with it */
    bool followed;            /* somebody else was waited for */
    int64_t follow_until;     /* in milliseconds; 0: not begun */
    int follow_wait;
    int64_t requested; /* when the request went out, in seconds */
    struct cache_writer writer;
    bool storing;
    int64_t finish_by; /* once the client has left; 0: it has not */

    /* The request's body. */
    struct content content;
    struct text piece;    /* of it, that is being sent */
    bool uploaded;        /* all of it is sent, or there is none */
    bool client_slow;     /* it is the client that is waited for */
    int64_t upload_until; /* it must have sent something by then, in milliseconds */
    size_t upload_moved;  /* since that was set */
    int interims;         /* replies before the final one */

    /* A tunnel: who has ended. */
    bool client_ended, origin_ended;
};

/* Answers with a page that says what is wrong. */
enum progress passage_refuse(struct errand *errand, int status, const char *problem);

/* Waits for one or both sides, as pair.h says it. */
enum progress passage_wait(struct errand *errand, unsigned client, unsigned origin);
/* What to wait for after such a transfer. */
unsigned passage_wanted(enum transfer transfer);

/* For the stages of the store: writes the line that begins a reply, and the field that says whether
 * the connection stays open; and whether it does. */
void passage_write_status(const struct errand *errand, int status, struct text reason,
                          struct buffer *lines);
void passage_write_persistence(const struct errand *errand, struct buffer *lines);
bool passage_goes_on(const struct errand *errand);
/* Makes what is needed to ask the origin. */
bool passage_make_fetch(struct errand *errand);
/* Asks the origin once more, without conditions. */
enum progress passage_ask_again(struct errand *errand);
/* The stage of delivering. */
enum progress passage_deliver(struct errand *errand);

/* Gives the origin its time again. */
void passage_renew(struct errand *errand);

/* The store: the stage of looking, */
enum progress storage_look(struct errand *errand);
/* and of serving what is stale before that is asked about. */
enum progress storage_serve(struct errand *errand);
/* The head of a reply has come that confirms the entry: answers with it, if it does. */
enum progress storage_confirm(struct errand *errand);
/* The origin has failed: whether the entry may be used nevertheless. It is answered with then. */
bool storage_bridge(struct errand *errand, int status);
/* The head of a final reply has come: removes what it makes invalid, begins to store it, or gives
 * way to others that wait for it. */
void storage_take(struct errand *errand);
/* A piece of its body has come: whether it is stored now. */
bool storage_add(struct errand *errand, struct text data);
/* It is whole, or will never be. */
void storage_finish(struct errand *errand, bool whole);
/* Writes Cache-Status for a reply from the origin. */
void storage_describe(const struct errand *errand, struct buffer *lines);
/* Gives the passage its URI, and its part of the store. False if there is no memory. */
bool storage_begin(struct errand *errand);
void storage_end(struct errand *errand);

/* The stage of a tunnel, and its beginning. */
enum progress tunnel_begin(struct errand *errand);
enum progress tunnel_relay(struct errand *errand);

#endif
