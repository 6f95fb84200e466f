/* What is kept of the replies of the origin. */
#ifndef COMMON_PROXY_CACHE_STORE_H
#define COMMON_PROXY_CACHE_STORE_H

#include "common/proxy/proxy_request.h"

/* Makes of the entry what the head of a newer reply says, and stores it so, if it may still be
 * stored. Its fields are from malloc then. False if there is no memory. */
bool keeping_renew(struct errand *errand, struct buffer *fields, struct policy_reply *reply);

/* The head of a final reply has come: removes what it makes invalid, begins to store it, or gives
 * way to others that wait for it. */
void keeping_take(struct errand *errand);
/* A piece of its body has come: whether it is stored now. */
bool keeping_add(struct errand *errand, struct text data);
/* It is whole, or will never be. */
void keeping_finish(struct errand *errand, bool whole);
/* Writes Cache-Status for a reply from the origin. */
void keeping_describe(const struct errand *errand, struct buffer *lines);

#endif
