#!/usr/bin/perl
# A stop by SIGTERM loses nothing: each request that was sent whole gets a whole response. Connections that are
# refused after the signal do not count as lost.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Crowd;
use Origin;
use ProxyFields qw(%few);
use Socket qw(SOL_SOCKET SO_RCVBUF);

my $big  = 8 * 1024 * 1024;
my $root = tree('small.txt' => 's' x 1000, 'big.bin' => 'b' x $big);
my $origin = Origin->new;

my @user = $> == 0 ? qw(setpriv --reuid=65534 --regid=65534 --clear-groups) : ();
my $can_trace = !sanitized() && run_command(@user, qw(strace -D -o /dev/null true))->{status} == 0;

# Sends SIGTERM to a server that has many clients, and runs these to their end. Returns what went wrong.
sub stop_among_clients ($server, %count) {
    $Crowd::signalled = 0;
    my %clients = map { my $kind = $_; ($kind => [map { client($server->port, $kind) } 1 .. $count{$kind}]) } qw(busy download hasty);
    $_->{hold} = 1 for @{ $clients{download} };
    my @crowd = map { @{ $clients{$_} } } qw(busy download hasty);
    run_until(\@crowd, sub {
        return $clients{busy}[0]{responses} > 0 if model()->{single};
        return !grep({ $_->{responses} < 3 } map { @{ $clients{$_} } } qw(busy hasty)) && !grep { !length $_->{in} } @{ $clients{download} };
    });
    # These may still be in the listen queue when the signal arrives.
    my @late = map { client($server->port, 'once') } 1 .. $count{late};
    writable($_) for grep { !$_->{over} } @late;
    push @crowd, @late;
    $server->signal('TERM');
    $Crowd::signalled = 1;
    for my $client (@{ $clients{download} }) {
        $client->{hold} = 0;
        setsockopt $client->{socket}, SOL_SOCKET, SO_RCVBUF, $big;
    }
    run_until(\@crowd, sub { 0 });

    my $told = grep { $_->{over} eq 'done' } @{ $clients{busy} };
    my $refused = grep { $_->{refused} } @{ $clients{hasty} };
    my @flaws = map { "a client of kind $_->{kind}: $_->{over}" } grep { $_->{lost} } @crowd;
    push @flaws, "a client of kind $_->{kind} does not end" for grep { !$_->{over} } @crowd;
    push @flaws, "a client of kind $_->{kind} gets a wrong response" for grep { $_->{bad} } @crowd;
    push @flaws, "a client of kind $_->{kind} gets $_->{responses} responses" for grep { $_->{responses} != 1 } @{ $clients{download} }, @late;
    push @flaws, "$told of $count{busy} busy clients get Connection: close" if $told != $count{busy};
    push @flaws, "$refused of $count{hasty} hasty clients are refused at the end" if $refused != $count{hasty};
    return @flaws;
}

# Returns the status of the response, and closes the connection: the server waits two seconds for a client that keeps it open.
sub status_and_end ($client) {
    my $status = $client->response->{status};
    $client->close;
    return $status;
}

each_way_to_accept(sub ($model) {
    for my $round (1 .. (sanitized() || !all_cases() ? 1 : 2)) {
        my $server = patient_server($root);
        my @flaws = stop_among_clients($server, busy => 32, download => $model->{single} ? 2 : 8, hasty => 8, late => 16);
        ok !@flaws, "round $round: SIGTERM with busy clients, downloads and new clients: each request gets its response, and persistent connections get Connection: close"
            or diag(join "\n", @flaws);
        $server->ended;
    }

    # The kernel may hold back a client that says nothing: it is not in the listen queue.
    my $patient = patient_server($root);
    my $silent  = $patient->connect;
    $patient->deliver('TERM');
    ok !$silent->fill(0.5), 'SIGTERM, a client has connected before: it says nothing for a while';
    is $silent->ask(request(GET => '/small.txt', Connection => 'close'))->{status}, 200, 'SIGTERM, a client has connected before: it gets its response';
    $silent->close;
    $patient->ended;

    # No client comes between the last look at the listen queue and the end of the queue, even where users may set no
    # filter.
    if ($can_trace) {
        my %crowd  = (busy => 2, download => 1, hasty => 4, late => 2);
        my @places = $model->{limited} ? ('--workers', 9) : ();    # for all of them at once; each is traced
        my @delay  = qw(strace -D -f -qq -o /dev/null -e trace=shutdown -e inject=shutdown:delay_enter=10000);
        my $server = patient_server($root, through => [@user, @delay], path => program_copy(), options => \@places);
        my @flaws  = stop_among_clients($server, %crowd);
        ok !@flaws, 'SIGTERM, a user, time before the port is closed: no request is lost' or diag(join "\n", @flaws);
        $server->ended;

        # Workers listen until new clients are refused, however late that is.
        @delay  = qw(strace -D -f -qq -o /dev/null -e trace=getsockname -e inject=getsockname:delay_enter=150000);
        $server = patient_server($root, through => [@user, @delay], path => program_copy(), options => \@places);
        @flaws  = stop_among_clients($server, %crowd);
        ok !@flaws, 'SIGTERM, a user, time before new clients are refused: no request is lost' or diag(join "\n", @flaws);
        $server->ended;
    }

    # Clients that wait in the listen queue when the signal arrives are served when a place is free. The client that has the only
    # place waits for an origin, so that it does not have to give way.
    $origin->play('/held', [\"held$model->{label}", @{ response(200, 'held') }]);
    $origin->play('/next', response(200, 'next'));
    my $server = start_server(options => [qw(--service proxy --no-cache --stop-timeout 3600 --max-connections 1), $model->{limited} ? qw(--workers 1) : ()]);
    my $held = $server->connect;
    $held->send(request(GET => $origin->url('/held')));
    ok until_true(sub { $origin->count('/held') }), 'SIGTERM, --max-connections 1: a client has the only place before';
    my @queued = map { $server->connect } 1 .. 3;
    $_->send(request(GET => $origin->url('/next'), Connection => 'close')) for @queued;
    ok !$queued[0]->fill(0.2), 'SIGTERM, --max-connections 1: three clients wait before';
    $server->deliver('TERM');
    ok !$queued[0]->fill(0.2), 'SIGTERM, --max-connections 1: they wait after the signal';
    $origin->open_gate("held$model->{label}");
    is status_and_end($held), 200, 'SIGTERM, --max-connections 1: the first client gets its response after the signal';
    is scalar(grep { status_and_end($_) == 200 } @queued), 3, 'SIGTERM, --max-connections 1: the three clients are served then';
    $server->ended(%few);
});

done_testing;
