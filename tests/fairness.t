#!/usr/bin/perl
# An event loop is fair: it serves at most 64 clients before it looks for others, and a client that has sent many requests at
# once gets some responses, and then others have their turn, before it gets more. No response waits for others that take long.
# A worker that serves one client at a time ends a connection that others wait for, and no other.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use IO::Select;
use POSIX ();

my $CLIENTS = 500;
my $ROUND   = 64;    # common/workers/poller.h
my $MANY    = 2000;  # requests of one client
my $TURN    = 64;    # common/service.h: STEP_REQUESTS_LIMIT
my $WRITE   = 64;    # responses of 1,000 bytes that leave together, at most

# Returns what the one worker of a server did while all clients asked at once: its activities, in the order of time.
sub activities_of ($ask) {
    my $scratch = scratch();
    my $file    = "$scratch/trace.json";
    my $server  = start_server(options => ['--workers', 1, '--trace', $file], root => "$FindBin::Bin/../data");
    my @clients = map { $server->connect } 1 .. $CLIENTS;
    $_->ask(request(GET => '/small.txt')) for @clients;
    $ask->($server, @clients);
    $_->close for @clients;
    $server->stop;
    return sort { $a->{ts} <=> $b->{ts} } grep { $_->{ph} eq 'X' } @{ json($file)->{traceEvents} };
}

# Returns the greatest number of clients that had a response between two waits.
sub most_in_a_round (@activities) {
    my ($most, %served) = (0);
    for my $activity (@activities) {
        %served = () if $activity->{name} eq 'wait' && !$activity->{args}{connection};
        $served{ $activity->{args}{connection} }++ if $activity->{name} eq 'respond';
        $most = keys %served if keys %served > $most;
    }
    return $most;
}

each_server(sub ($model) {
    if (!$model->{workers} || $model->{limited}) {
        pass('the kernel shares the processors among the clients');
        return;
    }
    my @activities = activities_of(sub ($server, @clients) {
        $server->paused(sub { $_->send(request(GET => '/small.txt')) for @clients });
        is scalar(grep { $_->response->{status} == 200 } @clients), $CLIENTS, "$CLIENTS clients that ask at once get responses";
    });
    my $most = most_in_a_round(@activities);
    cmp_ok $most, '<=', $ROUND, "at most $ROUND clients are served before the loop looks for others";
    cmp_ok $most, '>=', $ROUND / 2, 'and many are';

    my $length = length request(GET => '/small.txt', 'X-Long' => '');
    my $fitting = request(GET => '/small.txt', 'X-Long' => 'a' x (256 - $length));    # buffers end with a request
    for my $request (request(GET => '/small.txt'), $fitting) {
        @activities = activities_of(sub ($server, $greedy, @others) {
            $server->paused(sub {
                $greedy->send($request x $MANY);
                $_->send(request(GET => '/small.txt')) for @others;
            });
            $_->response for @others, ($greedy) x $MANY;
        });
        my @served = map { $_->{args}{connection} } grep { $_->{name} eq 'respond' } @activities;
        my ($row, $longest, $last, %served) = (0, 0, 0);
        for my $number (@served) {
            $served{$number}++;
            $row     = $number == $last ? $row + 1 : 1;
            $longest = $row if $row > $longest && grep { $_ == 1 } values %served;
            $last    = $number;
        }
        my $kind = 'requests of ' . length($request) . ' bytes';
        cmp_ok $longest, '<=', $TURN + $WRITE, "a client with $MANY $kind gets few responses before another one has its turn";
    }

    # A response does not wait for the next one, which takes 100 ms: some come alone, even if this program is slow to see it.
    my $server = start_server(options => [qw(--service work --workers 1)]);
    my @clients = map { $server->connect } 1 .. 10;
    $_->ask(request(GET => '/cpu/0')) for @clients;
    $server->paused(sub { $_->send(request(GET => '/block/100000')) for @clients });
    my $alone = 0;
    for my $i (0 .. $#clients) {
        my $response = $clients[$i]->response;
        $alone++ if $response->{status} == 200 && $i < $#clients && !IO::Select->new($clients[$i + 1]{socket})->can_read(0);
    }
    cmp_ok $alone, '>', 0, 'a response leaves before the next one is made, if that takes long';
    $server->stop(warnings => qr/a limit of \d+ descriptors/);
});

# Asks again and again, with so many requests at a time, until the connection ends or 100,000 responses have come.
# Returns the last response, and the number of responses.
sub ask_on ($client, $at_once) {
    my ($response, $count) = (undef, 0);
    while (!$response || $response->persistent && $count < 100_000) {
        $client->send(request(GET => '/small.txt') x $at_once);
        for (1 .. $at_once) {
            $response = $client->response;
            $count++;
            last if !$response->persistent;
        }
    }
    return ($response, $count);
}

# Starts a process that sends a request again and again, with the start of the next one, and does not wait for responses.
# Returns it.
sub send_on ($client, $request) {
    my $writer = fork // die "fork: $!\n";
    return $writer if $writer;
    my ($start, $rest) = unpack 'a20a*', $request;
    $client->send($start);
    1 while $client->send("$rest$start" x 100);
    POSIX::_exit(0);
}

each_way_to_accept(sub ($model) {
    return if !$model->{single} && !($model->{workers} && $model->{limited});
    my $server = start_server(options => [$model->{workers} ? qw(--workers 1) : ()], root => "$FindBin::Bin/../data");
    my $first = $server->connect;
    my $kept = 0;
    for (my $end = now() + 0.3; now() < $end;) {
        my $response = $first->ask(request(GET => '/small.txt'));
        $kept++ if $response->{status} == 200 && $response->persistent;
        last if !$response->persistent;
    }
    ok $first->open, "a client that no other waits for keeps its connection, for 0.3 s and $kept responses";

    for my $at_once (1, 8) {
        my $second = $server->connect;
        $second->send(request(GET => '/small.txt'));
        my ($last, $count) = ask_on($first, $at_once);
        is $last->{status}, 200, "$at_once at a time: a client that others wait for has a whole last response (after $count)";
        ok !$last->persistent, '... which says that the connection ends';
        $first->close;
        is $second->response->{status}, 200, '... and the next client is served';
        $first = $second;
    }

    # A pipeline that never runs empty ends, too: what the server has read never ends with a request.
    my $second = $server->connect;
    $second->send(request(GET => '/small.txt'));
    my $writer = send_on($first, request(GET => '/small.txt', 'X-Filler' => 'x' x 700));
    my ($response, $count) = (undef, 0);
    do { $response = $first->response } while ($response->persistent && ++$count < 100_000);
    ok !$response->persistent, "a client that always sends more while others wait: its connection ends (after $count)";
    kill KILL => $writer;
    waitpid $writer, 0;
    $first->close;
    is $second->response->{status}, 200, '... and the next client is served';
    $second->close;
    $server->stop(warnings => qr/a limit of \d+ descriptors/);
});

done_testing;
