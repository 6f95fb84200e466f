#!/usr/bin/perl
# A client that connects and says nothing holds no worker at first: the kernel waits for its first bytes. After about a second
# it is accepted, and has its time like any other.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $TRIES = 30;    # a busy machine may take a second for the request of the other client

each_server(sub ($model) {
    if (!describe()->{defers}) {
        pass('it waits for many clients at once');
        return;
    }
    my $server = start_server(options => [$model->{single} ? () : ('--workers', 1), '--request-timeout', 1]);
    my ($status, $waits);
    for my $try (1 .. $TRIES) {
        my $silent = $server->connect;
        $status = $server->get('/small.txt')->{status};
        $waits  = !$silent->fill(0);
        last if $waits || $status != 200;
        $silent->close;
    }
    is $status, 200, 'a client is served while another one, which came first, says nothing';
    ok $waits, 'and that one is not ended for it';

    my $silent = $server->connect;
    ok $silent->ends, 'a client that says nothing is accepted in the end, and ended when its time is over';
    is $server->get('/small.txt')->{status}, 200, 'then others are served';
});
done_testing;
