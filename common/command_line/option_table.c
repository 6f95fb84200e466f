/* The table of options, and the texts of those that depend on the model. */
#include "common/command_line/option_table.h"

#include <stdio.h>

#define AT(member) offsetof(struct options, member)

const struct option_row option_table[] = {
    {"root", "DIR", OPTION_TEXT, AT(root), "data", "the documents", 0},
    {"bind", "ADDRESS", OPTION_ADDRESS, 0, NULL, "listen at this address; may be repeated", 0},
    {"service", "NAME", OPTION_SERVICE, AT(service), "files",
     "files: the documents; sized: /N is a generated document of N bytes, 100 to 20000; work: "
     "/cpu/N computes, /sleep/N waits, /block/N blocks its thread for N microseconds, /touch/N "
     "writes to N KiB of memory; proxy: a caching proxy",
     0},
    {"max-age", "S", OPTION_COUNT, AT(max_age), "60",
     "sized: how long caches may keep documents of odd length, in seconds; those of even length "
     "are new each time",
     0},
    {"tls", NULL, OPTION_FLAG, AT(tls), NULL,
     "HTTPS: TLS 1.2 and 1.3. SIGHUP reads the certificate again", 0},
    {"cert", "FILE", OPTION_TEXT, AT(certificate), "certificate/cert.pem",
     "the certificate and its chain, in PEM form", 0},
    {"key", "FILE", OPTION_TEXT, AT(key), "certificate/key.pem", "the private key, in PEM form", 0},
    {"key-process", "HOW", OPTION_SWITCH, AT(key_process), "on",
     "on: a process of its own holds the private key and signs with it, and no worker ever has it; "
     "off: the server has it",
     0},
    {"udp", NULL, OPTION_FLAG, AT(udp), NULL,
     "also answer requests in UDP datagrams on the same port: one request and one response each",
     0},
    {"protocol", "NAME", OPTION_PROTOCOL, AT(protocol), "pipelined",
     "simple: one HTTP/1.0 response per connection; persistent: keep-alive, one response per "
     "write; pipelined: all requests that have arrived are answered together",
     0},
    {"max-connections", "N", OPTION_CONNECTIONS, AT(max_connections), NULL,
     "at most N connections at once; more wait in the kernel's queue. The default is lower in a "
     "control group with little memory",
     1},
    {"max-per-address", "N", OPTION_LIMIT, AT(max_per_address), NULL,
     "at most N connections at once of one client address (IPv6: of one /64); more are closed. By "
     "default half of --max-connections, at least 64, and no limit for loopback addresses",
     1},
    {"rate-per-address", "N", OPTION_LIMIT, AT(rate_per_address), NULL,
     "at most N new connections a second of one client address; more are closed. By default no "
     "limit",
     1},
    {"workers", "N", OPTION_WORKERS, AT(workers), NULL, "the number of workers", 1},
    {"accept", "HOW", OPTION_ACCEPT, AT(accept), NULL, "how the workers get connections", 0},
    {"share", "WHAT", OPTION_SHARE, AT(share), NULL,
     "what the child of a connection shares with its parent", 0},
    {"template", NULL, OPTION_TEMPLATE, AT(template), NULL,
     "fork from a small process beside the server, which does not grow as the server does", 0},
    {"request-timeout", "S", OPTION_SECONDS, AT(request_timeout), "10",
     "seconds for a whole request to arrive", 0},
    {"idle-timeout", "S", OPTION_SECONDS, AT(idle_timeout), "5", "seconds between two requests", 0},
    {"write-timeout", "S", OPTION_SECONDS, AT(write_timeout), "30",
     "seconds for a client that reads no data", 0},
    {"stop-timeout", "S", OPTION_SECONDS, AT(stop_timeout), "5",
     "seconds that a stop gives to the requests in progress", 0},
    {"backlog", "N", OPTION_COUNT, AT(backlog), "4096",
     "the listen queue; the kernel's limit applies, too", 1},
    {"list", NULL, OPTION_FLAG, AT(list), NULL, "list directories that have no index.html", 0},
    {"status", NULL, OPTION_FLAG, AT(status), NULL,
     "answer /.status with the counters as JSON, which the page / of the folder data shows", 0},
    {"log", "FILE", OPTION_TEXT, AT(log), NULL,
     "append to an access log in the combined format; - is standard output. SIGHUP opens the file "
     "again",
     0},
    {"stats", "FILE", OPTION_TEXT, AT(stats), NULL,
     "write the counters as JSON at exit and at SIGUSR1", 0},
    {"trace", "FILE", OPTION_TEXT, AT(trace), NULL,
     "record what each process and thread does with each connection, and write it at exit as JSON "
     "that Perfetto and speedscope open",
     0},
    {"trace-events", "N", OPTION_COUNT, AT(trace_events), "1000000",
     "the most events of a trace; further ones are counted and lost", 1},
    {"user", "NAME", OPTION_TEXT, AT(user), NULL,
     "run as this user; a server that root starts runs as nobody by default", 0},
    {"no-sandbox", NULL, OPTION_FLAG, AT(no_sandbox), NULL, "run without the sandbox", 0},
    {"sandbox-kills", NULL, OPTION_FLAG, AT(sandbox_kills), NULL,
     "end a process that makes a forbidden system call; otherwise the call fails", 0},
    {"no-file-cache", NULL, OPTION_FLAG, AT(no_file_cache), NULL,
     "open the file for each request, even where the server could keep it in memory", 0},
    {"no-shelf", NULL, OPTION_FLAG, AT(no_file_cache), NULL, NULL, 0},
    {"ballast", "SIZE", OPTION_SIZE, AT(ballast), NULL,
     "hold so much memory, in bytes or with K, M or G, like a process that has grown; for "
     "studies",
     0},
    {"ballast-pages", "KIND", OPTION_PAGES, AT(ballast_huge), "small",
     "the pages of the ballast: small, or huge if the kernel has them", 0},
    {"origin", "URL", OPTION_ORIGIN, AT(origin), NULL,
     "proxy: forward to this one origin, http://HOST:PORT or https://HOST:PORT, instead of the "
     "host that the client names. HOST is numeric, localhost, or a name: one that is not in "
     "/etc/hosts is looked up, again and again",
     0},
    {"origin-ca", "FILE", OPTION_TEXT, AT(origin_ca), "/etc/ssl/certs/ca-certificates.crt",
     "proxy: the certificates of authorities, in PEM form, one of which must have signed that of "
     "an origin of https",
     0},
    {"name-server", "ADDRESS:PORT", OPTION_TEXT, AT(name_server), NULL,
     "proxy: the name server that is asked for the name of --origin; by default those of "
     "/etc/resolv.conf",
     0},
    {"allow", "HOST:PORT", OPTION_ALLOW, 0, NULL,
     "proxy: allow connections to this address beside loopback; may be repeated. Clients of other "
     "machines may reach these addresses only; loopback: all loopback addresses, too",
     0},
    {"forwarded", "WHICH", OPTION_FORWARDED, AT(forwarded), "both",
     "proxy with --origin: how the origin learns of the client: standard (the field Forwarded), x "
     "(X-Forwarded-For and X-Forwarded-Proto), both, or off. What the client says there is removed",
     0},
    {"forwarded-append", NULL, OPTION_FLAG, AT(forwarded_append), NULL,
     "proxy with --origin: the clients are proxies that are trusted: what they say there is kept, "
     "and the address of the proxy itself is appended",
     0},
    {"cache", "DIR", OPTION_TEXT, AT(cache), "cache",
     "proxy: the directory of the cache; it is made if it does not exist", 0},
    {"cache-size", "SIZE", OPTION_SIZE, AT(cache_size), "256M",
     "proxy: the size of the cache; the least recently used entries are removed first", 0},
    {"no-cache", NULL, OPTION_FLAG, AT(no_cache), NULL, "proxy: store nothing", 0},
    {"stale-if-error", "S", OPTION_SECONDS, AT(stale_if_error), NULL,
     "proxy: where the origin cannot be reached, respond with an entry that has been stale for at "
     "most S seconds, unless the origin forbids that",
     0},
    {"origin-timeout", "S", OPTION_SECONDS, AT(origin_timeout), "15",
     "proxy: seconds for an origin to connect, to answer, or to continue", 0},
    {"origin-idle", "N", OPTION_COUNT, AT(origin_idle), "32",
     "proxy: keep at most N idle connections to each origin, in each process", 0},
    {"origin-idle-all", "N", OPTION_COUNT, AT(origin_idle_all), "128",
     "proxy: keep at most N idle connections to all origins, in each process, at most 1024; a "
     "process for one client keeps at most 4",
     0},
    {"origin-idle-timeout", "S", OPTION_SECONDS, AT(origin_idle_timeout), "15",
     "proxy: seconds that an idle connection to an origin is kept", 0},
    {"max-body", "SIZE", OPTION_SIZE, AT(max_body), "1G",
     "proxy: the largest body of a request, in bytes or with K, M or G", 0},
    {"classroom", NULL, OPTION_FLAG, AT(classroom), NULL,
     "proxy: /N with N above 9999 is 414; if the origin does not run, all is 404", 0},
    {"help", NULL, OPTION_HELP, 0, NULL, "print this, as -h does", 0},
    {"version", NULL, OPTION_VERSION, 0, NULL, "print the version", 0},
    {"describe", NULL, OPTION_DESCRIBE, 0, NULL, "print what this server is as JSON", 0},
};

_Static_assert(sizeof option_table / sizeof option_table[0] <= OPTION_TABLE_LIMIT,
               "OPTION_TABLE_LIMIT is too small");

const int option_table_rows = (int)(sizeof option_table / sizeof option_table[0]);

const struct model_ways *option_table_ways(const struct option_row *row)
{
    if (row->kind == OPTION_ACCEPT)
        return &model_accept_ways;
    return row->kind == OPTION_SHARE ? &model_share_ways : NULL;
}

bool option_table_has(const struct option_row *row, const struct model *model)
{
    const struct model_ways *ways = option_table_ways(row);

    if (ways != NULL)
        return model_first_way(ways, model) >= 0;
    if (row->kind == OPTION_TEMPLATE)
        return model->has_template;
    return row->kind != OPTION_WORKERS || model->workers_per_processor > 0;
}

static void write_ways_help(const struct option_row *row, const struct model *model, char *help,
                            size_t size)
{
    const struct model_ways *ways = option_table_ways(row);
    int length = snprintf(help, size, "%s: ", row->help);
    const char *separator = "";

    for (int way = 0; way < ways->count; way++) {
        if (!ways->knows(model, way))
            continue;
        length += snprintf(help + length, size - (size_t)length, "%s%s: %s", separator,
                           ways->ways[way].name, ways->ways[way].help);
        separator = "; ";
    }
}

void option_table_help(const struct option_row *row, const struct model *model, char *help,
                       size_t size)
{
    if (option_table_ways(row) != NULL)
        write_ways_help(row, model, help, size);
    else
        snprintf(help, size, "%s", row->help);
}

static void write_connections(const struct model *model, char *text, size_t size)
{
    if (model->max_connections > 0)
        snprintf(text, size, "%d", model->max_connections);
    else if (model_knows(model, ACCEPT_QUEUE))
        snprintf(text, size, "one for each worker; %d with a queue", OPTION_TABLE_QUEUE);
    else
        snprintf(text, size, "one for each worker");
}

void option_table_default(const struct option_row *row, const struct model *model, char *text,
                          size_t size)
{
    const struct model_ways *ways = option_table_ways(row);

    text[0] = '\0';
    if (row->kind == OPTION_ADDRESS)
        snprintf(text, size, "127.0.0.1 and ::1");
    else if (row->kind == OPTION_WORKERS)
        snprintf(text, size, "%d for each processor", model->workers_per_processor);
    else if (ways != NULL)
        snprintf(text, size, "%s", ways->ways[model_first_way(ways, model)].name);
    else if (row->kind == OPTION_CONNECTIONS)
        write_connections(model, text, size);
    else if (row->standard != NULL)
        snprintf(text, size, "%s", row->standard);
}

const char *option_table_forwarded(int number)
{
    static const char *const words[] = {"off", "standard", "x", "both"};

    return number < (int)(sizeof words / sizeof words[0]) ? words[number] : NULL;
}

const char *option_table_protocol(enum protocol protocol)
{
    static const char *const names[] = {
        [PROTOCOL_SIMPLE] = "simple",
        [PROTOCOL_PERSISTENT] = "persistent",
        [PROTOCOL_PIPELINED] = "pipelined",
    };

    return names[protocol];
}
