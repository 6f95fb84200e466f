#!/usr/bin/perl
# open_loop beside httperf --rate, h2load and wrk, at a server that answers after a known time: all find that time, and the two
# that also start requests when they are due get as many answers.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use StudyClients;
use List::Util qw(min);

my $RUNS = 3;
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
    wrk       => [qw(wrk -t 1 -c 40 -d 2 --latency), $url],
);
# How each tells its answers, and the mean time of a request in milliseconds, and the median if it does.
my %told = (
    open_loop => [qr/"answered": (\d+)/,           qr/"mean_ms": ([\d.]+)/,                     qr/"p50_ms": ([\d.]+)/],
    httperf   => [qr/^Reply status:.* 2xx=(\d+)/m, qr/^Connection time.* avg ([\d.]+)/m,       qr/^Connection time.* median ([\d.]+)/m],
    h2load    => [qr/^status codes: (\d+) 2xx/m,   qr/^time for request: +\S+ +\S+ +([\d.]+)ms/m],
    wrk       => [qr/^ +(\d+) requests in /m,      qr/^ +Latency +([\d.]+)ms/m,                qr/^ +50% +([\d.]+)ms/m],
);

sub measure ($name) {
    my $run = run_command(@{ $clients{$name} });
    my ($answers, @times) = map { $run->{out} =~ $_ ? $1 : 0 } @{ $told{$name} };
    return { answers => $answers, mean => $times[0], median => $times[1], said => $run->{out} . $run->{err} };
}

for my $name (qw(httperf h2load wrk)) {
    if (!command_exists($name)) {
        skip_case("$name is not installed");
        next;
    }
    my (@own, @other);
    for (1 .. $RUNS) {
        push @own,   measure('open_loop');
        push @other, measure($name);
    }
    is scalar(grep { $_->{answers} == 200 } @own), $RUNS, "$name: open_loop has all answers" or diag($own[0]{said});
    is scalar(grep { $_->{answers} == 200 } @other), $RUNS, "$name: it has as many" or diag($other[0]{said}) if $name ne 'wrk';
    for my $time ('mean', defined $told{$name}[2] ? 'median' : ()) {
        # Other work on this machine only makes a time longer: the least of some runs is the least disturbed.
        my ($own, $other) = map { min(map { $_->{$time} } @$_) } \@own, \@other;
        cmp_ok $own,   '>=', $wait - 0.05, "$name: no $time of open_loop is below what the server takes";
        cmp_ok $other, '>=', $wait - 1,    "$name: nor of its own";
        cmp_ok abs(log(($own || 1e-9) / ($other || 1e-9))), '<', log 1.1, "$name: the least $time of the two differs by less than a tenth"
            or diag("$own ms, $other ms: $own[0]{said} $other[0]{said}");
    }
}
done_testing;
