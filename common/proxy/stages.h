/* The stages of a passage, and in which room each of them lives. A room knows those that stand
 * before it here alone: relay, storage, keeping, delivering, tunnel, asking, uploading, serving,
 * stored, passage. */
#ifndef COMMON_PROXY_STAGES_H
#define COMMON_PROXY_STAGES_H

enum stage {
    STAGE_BEGINNING,  /* passage */
    STAGE_LOOKING,    /* stored: for a reply; or for one that somebody else is fetching */
    STAGE_SERVING,    /* serving: a stored reply, before the origin is asked about it */
    STAGE_OPENING,    /* asking: the origin has to be asked */
    STAGE_CONNECTING, /* asking */
    STAGE_SENDING,    /* asking: the head of the request, to the origin */
    STAGE_UPLOADING,  /* uploading: its body */
    STAGE_AWAITING,   /* asking: the head of the reply */
    STAGE_HINTING,    /* asking: what an origin says before that, to the client */
    STAGE_JUDGING,    /* stored: whether it is that, or a stored reply, that goes to the client */
    STAGE_DELIVERING, /* delivering: it, to the client */
    STAGE_TUNNELLING, /* tunnel: bytes in both directions */
    STAGE_FAILING,    /* stored: it bridges that, or the client is told */
};

#endif
