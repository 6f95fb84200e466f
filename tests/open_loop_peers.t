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
my $MORE = 30;    # further runs at most, where other work still lengthens the times of one client
my $top  = "$FindBin::Bin/..";
my $port = start_program("$top/epoll_server", '--service', 'work', 0);

# The requests of a second; how many milliseconds the server waits for each; the factor by which the times of two
# clients may differ. Other work adds to the times of a client without priority: little where the wait is long and the
# requests are few. At the other loads the times are not compared.
my @loads = (
    { rate => 200,  wait => 200, within => 1.1 },
    { rate => 1000, wait => 100 },
    { rate => 500,  wait => 2 },
);

# Returns the command of a client. wrk has no rate: it makes as many requests as 40 connections can in two seconds.
sub command ($name, $load) {
    my ($rate, $path) = ($load->{rate}, '/sleep/' . 1000 * $load->{wait});
    my $url = "http://127.0.0.1:$port$path";
    return ("$top/collect/clients/open_loop", qw(--arrivals even --seconds 1), '--rate', $rate, $port, $path) if $name eq 'open_loop';
    return (qw(httperf --server 127.0.0.1 --port), $port, '--uri', $path, '--num-conns', $rate, '--rate', $rate) if $name eq 'httperf';
    return (qw(h2load --h1 -c 100), '-n', $rate, '--rps', $rate / 100, $url) if $name eq 'h2load';
    return (qw(wrk -t 1 -c 40 -d 2 --latency), $url);
}

# The patterns of the number of answers, and of the times of a request in milliseconds, in what each client prints.
my $MS   = qr/([\d.]+)ms/;
my %told = (
    open_loop => { answers => qr/"answered": (\d+)/, mean => qr/"mean_ms": ([\d.]+)/, median => qr/"p50_ms": ([\d.]+)/, p99 => qr/"p99_ms": ([\d.]+)/ },
    httperf   => { answers => qr/^Reply status:.* 2xx=(\d+)/m, mean => qr/^Connection time.* avg ([\d.]+)/m, median => qr/^Connection time.* median ([\d.]+)/m },
    h2load    => { answers => qr/^status codes: (\d+) 2xx/m, mean => qr/^time for request: +\S+ +\S+ +$MS/m },
    wrk       => { answers => qr/^ +(\d+) requests in /m, mean => qr/^ +Latency +$MS/m, median => qr/^ +50% +$MS/m, p99 => qr/^ +99% +$MS/m },
);

sub measure ($name, $load) {
    my $run  = run_command(command($name, $load));
    my %seen = map { $_ => $run->{out} =~ $told{$name}{$_} ? $1 : 0 } keys %{ $told{$name} };
    return { %seen, said => $run->{out} . $run->{err} };
}

# Returns the factor by which two times differ.
sub apart ($one, $other) { return exp abs log(($one || 1e-9) / ($other || 1e-9)) }

for my $name (qw(httperf h2load wrk)) {
    if (!command_exists($name)) {
        skip_case("$name is not installed");
        next;
    }
    for my $load (@loads) {
        my ($rate, $wait, $within) = @$load{qw(rate wait within)};
        my $case = "$name, $rate/s, $wait ms";
        my (@own, @other);
        for (1 .. $RUNS) {
            push @own,   measure('open_loop', $load);
            push @other, measure($name,       $load);
        }
        is scalar(grep { $_->{answers} == $rate } @own), $RUNS, "$case: open_loop has all answers" or diag($own[0]{said});
        is scalar(grep { $_->{answers} == $rate } @other), $RUNS, "$case: it has as many" or diag($other[0]{said}) if $name ne 'wrk';
        for my $time (grep { $told{$name}{$_} } qw(mean median p99)) {
            # Other work on this machine only makes a time longer: the least of some runs is the least disturbed.
            my ($own, $other) = map { min(map { $_->{$time} } @$_) } \@own, \@other;
            cmp_ok $own,   '>=', $wait - 0.05, "$case: no $time of open_loop is below what the server takes";
            cmp_ok $other, '>=', 0.99 * $wait, "$case: nor of its own";
            next if !$within || $time eq 'p99';    # other work shows in the last percent first
            for (1 .. $MORE) {
                last if apart($own, $other) < $within;
                $own   = min($own,   measure('open_loop', $load)->{$time});
                $other = min($other, measure($name,       $load)->{$time});
            }
            cmp_ok apart($own, $other), '<', $within, "$case: the least $time of the two differs by less than a factor of $within"
                or diag("$own ms, $other ms: $own[0]{said} $other[0]{said}");
        }
    }
}
done_testing;
