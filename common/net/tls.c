/* TLS by OpenSSL: certificate and key, session tickets, and their renewal. */

/* RAND_set_rand_method() is deprecated and has no successor. */
#define OPENSSL_API_COMPAT 10101

#include "common/net/tls.h"

#include "common/base/clock.h"
#include "common/net/remote_key.h"
#include "common/net/tls_bio.h"
#include "common/net/tls_tickets.h"
#include "common/net/tls_warmup.h"

#include <err.h>
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define GROUPS "X25519:P-256:P-384"

enum { CERTIFICATE, KEY };

/* Lies in memory that all processes of the server share. */
struct shared {
    struct tls_tickets tickets;
    _Atomic unsigned version; /* of the files; odd while they are written */
    struct key_file
        files[KEY_READER_FILES]; /* set from the second version on: the first is inherited */
};

struct tls {
    struct shared *shared;
    struct key_reader key_reader;  /* if this process signs itself */
    struct remote_key key_process; /* if another one does */
    struct key_name used;          /* the key of `context`, if another process has it */
    struct key_files files;
    BIO_METHOD *wire;
    EVP_CIPHER *cipher;    /* of tickets */
    pthread_mutex_t mutex; /* protects the rest among the threads of this process */
    SSL_CTX *context;
    unsigned version;   /* of the files that `context` was made of */
    unsigned published; /* of the files that this process has read; 0: they were the first */
};

/* ---- the context ---- */

const char *tls_reason(void)
{
    unsigned long first = ERR_peek_error();
    /* An error of the system comes first, and OpenSSL has no text for it. */
    const char *text = ERR_SYSTEM_ERROR(first) ? strerror(ERR_GET_REASON(first))
                                               : ERR_reason_error_string(ERR_peek_last_error());

    return text != NULL ? text : "there is no memory";
}

static int refuse_passphrase(char *buffer, int size, int writing, void *argument)
{
    (void)buffer;
    (void)size;
    (void)writing;
    *(bool *)argument = true;
    return -1;
}

static void warn_locked(const char *name)
{
    warnx("the key '%s' is locked by a passphrase: it cannot be used without somebody who enters "
          "it",
          name);
}

static void warn_bad(const char *name, const char *why)
{
    warnx("'%s' holds no private key in PEM form: %s", name, why);
}

static EVP_PKEY *read_key(const struct key_file *file, const char *name)
{
    BIO *text = BIO_new_mem_buf(file->data, (int)file->length);
    bool locked = false;
    EVP_PKEY *key =
        text != NULL ? PEM_read_bio_PrivateKey(text, NULL, refuse_passphrase, &locked) : NULL;

    BIO_free(text);
    if (locked)
        warn_locked(name);
    else if (key == NULL)
        warn_bad(name, tls_reason());
    return key;
}

/* Loads the certificate and the chain behind it. */
static bool use_chain(SSL_CTX *context, BIO *text, const char *name)
{
    X509 *certificate = PEM_read_bio_X509(text, NULL, NULL, NULL);
    bool good = certificate != NULL;

    if (!good)
        warnx("'%s' holds no certificate in PEM form: %s", name, tls_reason());
    if (good && SSL_CTX_use_certificate(context, certificate) != 1) {
        warnx("the certificate '%s' cannot be used: %s", name, tls_reason());
        good = false;
    }
    if (good && X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0)
        warnx("the certificate '%s' has expired: clients will refuse it", name);
    X509_free(certificate);
    while (good && (certificate = PEM_read_bio_X509(text, NULL, NULL, NULL)) != NULL) {
        good = SSL_CTX_add0_chain_cert(context, certificate) == 1;
        if (!good)
            X509_free(certificate);
    }
    return good;
}

/* Prints what is wrong with the key of the other process. */
static bool is_good(const struct tls *tls, const struct key_report *report)
{
    if (report->verdict == KEY_LOCKED)
        warn_locked(tls->files.paths[KEY]);
    else if (report->verdict == KEY_BAD)
        warn_bad(tls->files.paths[KEY], report->reason);
    return report->verdict == KEY_GOOD;
}

/* Returns a key that signs through the other process. With a report, that process has just read the
 * key. */
static EVP_PKEY *find_key(struct tls *tls, SSL_CTX *context, const struct key_report *report)
{
    X509 *certificate = SSL_CTX_get0_certificate(context);
    struct key_name name;
    EVP_PKEY *key;

    if (report != NULL && !is_good(tls, report))
        return NULL;
    if (report != NULL && (!key_process_name(X509_get0_pubkey(certificate), &name) ||
                           memcmp(&name, &report->name, sizeof name) != 0)) {
        warnx("the key '%s' does not belong to the certificate '%s'", tls->files.paths[KEY],
              tls->files.paths[CERTIFICATE]);
        return NULL;
    }
    key = remote_key_make(&tls->key_process, certificate);
    if (key == NULL)
        warnx("the key '%s' is none of RSA, EC, Ed25519 and Ed448: it needs --key-process off",
              tls->files.paths[KEY]);
    return key;
}

static bool use_files(SSL_CTX *context, struct tls *tls, const struct key_file *files,
                      const struct key_report *report)
{
    const char *const *names = tls->files.paths;
    BIO *text = BIO_new_mem_buf(files[CERTIFICATE].data, (int)files[CERTIFICATE].length);
    bool good = text != NULL && use_chain(context, text, names[CERTIFICATE]);
    EVP_PKEY *key = NULL;

    BIO_free(text);
    if (good)
        key = tls->key_process.socket >= 0 ? find_key(tls, context, report)
                                           : read_key(&files[KEY], names[KEY]);
    if (key == NULL)
        return false;
    good = SSL_CTX_use_PrivateKey(context, key) == 1 && SSL_CTX_check_private_key(context) == 1;
    if (!good)
        warnx("the key '%s' does not belong to the certificate '%s': %s", names[KEY],
              names[CERTIFICATE], tls_reason());
    EVP_PKEY_free(key);
    return good;
}

/* Selects HTTP/1.1, which a client that offers protocols (ALPN) must offer. */
static int choose_protocol(SSL *session, const unsigned char **chosen, unsigned char *length,
                           const unsigned char *offered, unsigned offered_length, void *argument)
{
    static const unsigned char ours[] = "\x08http/1.1";

    (void)session;
    (void)argument;
    if (SSL_select_next_proto((unsigned char **)chosen, length, ours, sizeof ours - 1, offered,
                              offered_length) == OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_OK;
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static int use_ticket(SSL *session, unsigned char *name, unsigned char *vector,
                      EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *digest, int making);

static bool configure(SSL_CTX *context, struct tls *tls)
{
    SSL_CTX_set_app_data(context, tls);
    /* A client may close without an alert: messages have their own end (RFC 9112, section 9.8). */
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                     SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
                                     SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    /* With it, one read would last as long as a client sends records without data. */
    SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF); /* tickets hold the sessions */
    SSL_CTX_set_timeout(context, TLS_TICKETS_SECONDS);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_cipher_list(context, TLS_CIPHERS) == 1 &&
           SSL_CTX_set1_groups_list(context, GROUPS) == 1 &&
           SSL_CTX_set_tlsext_ticket_key_evp_cb(context, use_ticket) == 1;
}

/* Returns NULL on failure, and prints why. */
static SSL_CTX *make_context(struct tls *tls, const struct key_file *files,
                             const struct key_report *report)
{
    SSL_CTX *context;

    ERR_clear_error();
    context = SSL_CTX_new(TLS_server_method());
    if (context != NULL && configure(context, tls)) {
        if (use_files(context, tls, files, report))
            return context;
    } else {
        warnx("cannot prepare TLS: %s", tls_reason());
    }
    SSL_CTX_free(context);
    return NULL;
}

/* Works as make_context(), and tries the context by serving a client. */
static SSL_CTX *make_tried_context(struct tls *tls, const struct key_file *files,
                                   const struct key_report *report)
{
    SSL_CTX *context = make_context(tls, files, report);

    if (context == NULL || tls_warmup_run(context))
        return context;
    warnx("a handshake with the certificate '%s' fails: %s", tls->files.paths[CERTIFICATE],
          tls_reason());
    SSL_CTX_free(context);
    return NULL;
}

/* ---- the memory of the library ---- */

/* The Makefile renames sections of OpenSSL: constant tables with relocations, and variables. The
 * linker defines these symbols. */
#define UNSURE weak, visibility("hidden") /* sanitizer builds have no such sections */
extern char tables_start[] __asm__("__start_tls_tables") __attribute__((UNSURE));
extern char tables_stop[] __asm__("__stop_tls_tables") __attribute__((UNSURE));
extern char variables_start[] __asm__("__start_tls_variables") __attribute__((UNSURE));
extern char variables_stop[] __asm__("__stop_tls_variables") __attribute__((UNSURE));

/* Returns the bytes of the whole pages between two addresses, and moves *start to the first. */
static size_t pages(char **start, const char *stop)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)*start + page - 1) & -page;
    uintptr_t end = (uintptr_t)stop & -page;

    *start = (char *)first;
    return end > first ? end - first : 0;
}

/* The relocated pages are dropped. An access would read them from the file, without relocations:
 * but nothing uses them without TLS. */
void tls_forgo(void)
{
    char *tables = tables_start, *variables = variables_start;
    size_t table_bytes = pages(&tables, tables_stop);
    size_t variable_bytes = pages(&variables, variables_stop);

    if (table_bytes > 0)
        madvise(tables, table_bytes, MADV_DONTNEED);
    if (variable_bytes > 0)
        madvise(variables, variable_bytes, MADV_DONTNEED);
}

/* The tables hold addresses of functions, and RELRO does not cover the renamed sections. */
static bool protect_tables(void)
{
    char *tables = tables_start;
    size_t bytes = pages(&tables, tables_stop);

    return bytes == 0 || mprotect(tables, bytes, PROT_READ) == 0;
}

/* ---- tickets ---- */

static bool prepare_ticket(const struct tls *tls, const struct ticket_key *key,
                           const unsigned char *vector, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *digest,
                           bool making)
{
    char hash[] = "SHA256";
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)(uintptr_t)key->digest,
                                          sizeof key->digest),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, hash, 0),
        OSSL_PARAM_construct_end(),
    };

    return EVP_CipherInit_ex(cipher, tls->cipher, NULL, key->cipher, vector, making) == 1 &&
           EVP_MAC_CTX_set_params(digest, parameters) == 1;
}

/* A callback of OpenSSL: returns -1 for an error, 0 for an unknown ticket, 1 for a good one, 2 for
 * one that needs renewal. */
static int use_ticket(SSL *session, unsigned char *name, unsigned char *vector,
                      EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *digest, int making)
{
    struct tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(session));
    struct tls_tickets *tickets = &tls->shared->tickets;
    int64_t now = clock_now().milliseconds / 1000;
    enum ticket_age age = TICKET_FRESH;
    struct ticket_key key;
    bool good;

    if (!making) {
        age = tls_tickets_find(tickets, name, now, &key);
        if (age == TICKET_UNKNOWN)
            return 0;
    } else {
        if (!tls_tickets_current(tickets, now, &key) || RAND_bytes(vector, 16) != 1)
            return -1;
        memcpy(name, key.name, sizeof key.name);
    }
    good = prepare_ticket(tls, &key, vector, cipher, digest, making != 0);
    OPENSSL_cleanse(&key, sizeof key);
    if (!good)
        return -1;
    /* In TLS 1.3 a client uses a ticket once: each session needs a new one. */
    return age == TICKET_FRESH && SSL_version(session) < TLS1_3_VERSION ? 1 : 2;
}

/* ---- random numbers ---- */

/* Random bytes come from the kernel directly. OpenSSL would make three generators in each thread,
 * and seed them again in each process. */
static int get_random(unsigned char *data, int size)
{
    size_t done = 0;

    while (done < (size_t)size) {
        ssize_t count = getrandom(data + done, (size_t)size - done, 0);
        if (count < 0 && errno != EINTR)
            return 0;
        done += count > 0 ? (size_t)count : 0;
    }
    return 1;
}

static int is_random(void)
{
    return 1;
}

static const RAND_METHOD kernel_random = {
    .bytes = get_random,
    .pseudorand = get_random,
    .status = is_random,
};

/* ---- opening ---- */

static struct shared *open_shared(void)
{
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED)
        return NULL;
    madvise(shared, sizeof *shared, MADV_DONTDUMP); /* no keys in a core file */
    return shared;
}

static bool open_helper(struct tls *tls, bool key_process)
{
    if (key_process ? remote_key_open(&tls->key_process, &tls->files)
                    : key_reader_open(&tls->key_reader, &tls->files))
        return true;
    warn("cannot make a process that reads the certificate again");
    return false;
}

bool tls_prepare(void)
{
    const uint64_t settings = OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_LOAD_SSL_STRINGS |
                              OPENSSL_INIT_LOAD_CRYPTO_STRINGS |
                              OPENSSL_INIT_NO_ATEXIT; /* threads may run until the end */

    return protect_tables() && OPENSSL_init_ssl(settings, NULL) == 1 &&
           RAND_set_rand_method(&kernel_random) == 1;
}

static bool open_all(struct tls *tls, bool key_process)
{
    tls->shared = open_shared();
    if (tls->shared == NULL || !tls_prepare()) {
        warnx("cannot prepare TLS: there is no memory");
        return false;
    }
    tls->wire = tls_bio_method();
    tls->cipher = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
    if (tls->wire == NULL || tls->cipher == NULL) {
        warnx("cannot prepare TLS: %s", tls_reason());
        return false;
    }
    return open_helper(tls, key_process);
}

static bool have_all(const struct key_file *files, const char *const *names)
{
    static const char *const roles[] = {[CERTIFICATE] = "certificate", [KEY] = "key"};
    bool good = true;

    for (int i = 0; i < KEY_READER_FILES; i++) {
        if (files[i].error == 0)
            continue;
        warnx("cannot read the %s '%s': %s%s", roles[i], names[i], strerror(files[i].error),
              files[i].error == ENOENT ? " (`make certificate` makes one to try)" : "");
        good = false;
        break;
    }
    return good;
}

static void forget(struct key_file *files)
{
    if (files != NULL)
        OPENSSL_cleanse(files, KEY_READER_FILES * sizeof *files);
    free(files);
}

/* Reads both files; the other process keeps the key to itself, and reports on it. */
static bool read_files(struct tls *tls, struct key_file *files, struct key_report *report)
{
    if (tls->key_process.socket < 0 && tls->context != NULL)
        return key_reader_reload(&tls->key_reader, files);
    if (tls->key_process.socket < 0) {
        for (int i = 0; i < KEY_READER_FILES; i++)
            key_reader_load(tls->files.paths[i], &files[i]);
        return true;
    }
    if (!remote_key_load(&tls->key_process, &tls->used, report, &files[CERTIFICATE]))
        return false;
    files[KEY].error = report->key_error;
    files[KEY].length = 0;
    return true;
}

static bool read_first(struct tls *tls)
{
    struct key_file *files = calloc(KEY_READER_FILES, sizeof *files);
    struct key_report report = {0};

    if (files == NULL || !read_files(tls, files, &report))
        warn("cannot read the certificate");
    else if (have_all(files, tls->files.paths))
        tls->context = make_tried_context(tls, files, &report);
    tls->used = report.name;
    forget(files);
    return tls->context != NULL;
}

struct tls *tls_open(const struct key_files *files, bool key_process)
{
    struct tls *tls = calloc(1, sizeof *tls);

    if (tls == NULL) {
        warn("cannot prepare TLS");
        return NULL;
    }
    *tls = (struct tls){.files = *files,
                        .key_reader = {.socket = -1},
                        .key_process = {.socket = -1, .channel = -1},
                        .mutex = PTHREAD_MUTEX_INITIALIZER};
    if (open_all(tls, key_process) && read_first(tls))
        return tls;
    tls_close(tls);
    return NULL;
}

void tls_begin_worker(struct tls *tls)
{
    if (tls->key_process.socket >= 0)
        remote_key_stay(&tls->key_process);
}

void tls_close(struct tls *tls)
{
    SSL_CTX_free(tls->context);
    EVP_CIPHER_free(tls->cipher);
    BIO_meth_free(tls->wire);
    key_reader_close(&tls->key_reader);
    remote_key_close(&tls->key_process);
    if (tls->shared != NULL) {
        OPENSSL_cleanse(&tls->shared->tickets, sizeof tls->shared->tickets);
        munmap(tls->shared, sizeof *tls->shared);
    }
    free(tls);
}

/* ---- renewal ---- */

/* Sets the context of new sessions, unless there is a newer one; older sessions keep theirs. */
static void replace(struct tls *tls, SSL_CTX *context, unsigned version)
{
    SSL_CTX *old = context;

    pthread_mutex_lock(&tls->mutex);
    if ((int)(version - tls->version) > 0) {
        old = tls->context;
        tls->context = context;
        tls->version = version;
    }
    pthread_mutex_unlock(&tls->mutex);
    SSL_CTX_free(old);
}

/* Only the process that reads the files gets here, and it waits for nobody. */
static void publish(struct shared *shared, const struct key_file *files, unsigned version)
{
    atomic_exchange(&shared->version, version - 1);
    memcpy(shared->files, files, sizeof shared->files);
    atomic_store(&shared->version, version);
}

void tls_renew(struct tls *tls)
{
    struct key_file *files = calloc(KEY_READER_FILES, sizeof *files);
    struct key_report report = {0};
    SSL_CTX *context = NULL;

    if (files == NULL || !read_files(tls, files, &report))
        warnx("the certificate cannot be read again: the server has to be restarted for that");
    else if (have_all(files, tls->files.paths))
        context = make_tried_context(tls, files, &report);
    if (context != NULL) {
        tls->used = report.name;
        tls->published += 2;
        publish(tls->shared, files, tls->published);
        replace(tls, context, tls->published);
        warnx("the certificate '%s' was read again", tls->files.paths[CERTIFICATE]);
    } else {
        warnx("the old certificate stays in use");
    }
    forget(files);
}

/* Copies the files of that version; false if there are others by now. All processes can write to
 * the memory that they come from, so the lengths are checked. */
static bool copy_files(struct shared *shared, unsigned version,
                       struct key_file files[KEY_READER_FILES])
{
    if (version % 2 != 0)
        return false;
    memcpy(files, shared->files, sizeof shared->files);
    for (int i = 0; i < KEY_READER_FILES; i++)
        if (files[i].length > sizeof files[i].data)
            return false;
    return atomic_compare_exchange_strong(&shared->version, &version, version);
}

/* Loads a certificate that another process has read and tried. If that fails here, memory is short,
 * or a newer one is being written: the old certificate remains in use until the next session. */
static void adopt(struct tls *tls)
{
    unsigned version = atomic_load(&tls->shared->version);
    struct key_file *files = malloc(KEY_READER_FILES * sizeof *files);
    SSL_CTX *context = NULL;

    if (files == NULL)
        return;
    if (copy_files(tls->shared, version, files))
        context = make_context(tls, files, NULL);
    if (context != NULL)
        replace(tls, context, version);
    forget(files);
}

/* Returns a reference to the current context. `*old` says whether there is a newer certificate. */
static SSL_CTX *hold_context(struct tls *tls, bool *old)
{
    SSL_CTX *context;

    pthread_mutex_lock(&tls->mutex);
    *old = tls->version != atomic_load(&tls->shared->version);
    context = tls->context;
    SSL_CTX_up_ref(context);
    pthread_mutex_unlock(&tls->mutex);
    return context;
}

struct ssl_st *tls_begin(struct tls *tls, struct tls_bio *wire)
{
    bool old;
    SSL_CTX *context = hold_context(tls, &old);
    SSL *session;
    BIO *bio;

    if (old) {
        SSL_CTX_free(context);
        adopt(tls);
        context = hold_context(tls, &old);
    }
    session = SSL_new(context);
    SSL_CTX_free(context);
    bio = tls_bio_make(tls->wire, wire);
    if (session == NULL || bio == NULL) {
        SSL_free(session);
        BIO_free(bio);
        return NULL;
    }
    SSL_set_bio(session, bio, bio);
    SSL_set_accept_state(session);
    return session;
}
