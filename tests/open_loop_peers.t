#!/usr/bin/perl
# open_loop beside httperf --rate, h2load and wrk, at a server that answers after a known time: all find that time, and the two
# that also start requests when they are due get as many answers.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use StudyClients;

my $top  = "$FindBin::Bin/..";
my $wait = 200;    # ms: so long that what other work adds to the times of a client without priority is little beside it
my $path = '/sleep/' . 1000 * $wait;
my $port = start_program("$top/epoll_server", '--service', 'work', 0);
my $url  = "http://127.0.0.1:$port$path";

# 200 requests, one each 5 ms. Of wrk: as many as 40 connections make in two seconds.
my %clients = (
    open_loop => ["$top/collect/clients/open_loop", qw(--arrivals even --rate 200 --seconds 1), $port, $path],
    httperf   => [qw(httperf --server 127.0.0.1 --port), $port, '--uri', $path, qw(--num-conns 200 --rate 200)],
    h2load    => [qw(h2load --h1 -n 200 -c 100 --rps 2), $url],
    wrk       => [qw(wrk -t 1 -c 40 -d 2), $url],
);
# How each tells its answers, and the mean time of a request in milliseconds.
my %told = (
    open_loop => [qr/"answered": (\d+)/,               qr/"mean_ms": ([\d.]+)/],
    httperf   => [qr/^Reply status:.* 2xx=(\d+)/m,     qr/^Connection time.* avg ([\d.]+)/m],
    h2load    => [qr/^status codes: (\d+) 2xx/m,       qr/^time for request: +\S+ +\S+ +([\d.]+)ms/m],
    wrk       => [qr/^ +(\d+) requests in /m,          qr/^ +Latency +([\d.]+)ms/m],
);

sub measure ($name) {
    my $run = run_command(@{ $clients{$name} });
    my ($answers, $mean) = map { $run->{out} =~ $_ ? $1 : undef } @{ $told{$name} };
    return { answers => $answers // 0, mean => $mean // 0, said => $run->{out} . $run->{err} };
}

for my $name (qw(httperf h2load wrk)) {
    if (!command_exists($name)) {
        skip_case("$name is not installed");
        next;
    }
    # Beside other work, the means of a try may be far apart: what is shown is that the two agree where nothing disturbs them.
    my ($own, $other);
    for my $try (1 .. 30) {
        ($own, $other) = map { measure($_) } 'open_loop', $name;
        last if $own->{mean} && $other->{mean} && abs(log $own->{mean} / $other->{mean}) < log 1.1;
    }
    is $own->{answers}, 200, "$name: open_loop has all answers" or diag($own->{said});
    is $other->{answers}, 200, "$name: it has as many" or diag($other->{said}) if $name ne 'wrk';
    cmp_ok $_->{mean}, '>=', $wait - 0.05, "$name: no mean is below what the server takes" or diag($_->{said}) for $own, $other;
    cmp_ok abs(log(($own->{mean} || 1e-9) / ($other->{mean} || 1e-9))), '<', log 1.1, "$name: the means differ by less than a tenth"
        or diag("$own->{mean} ms, $other->{mean} ms: $own->{said} $other->{said}");
}
done_testing;
