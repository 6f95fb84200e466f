#!/usr/bin/perl
# A server without clients: its processes and threads sleep until a client comes or the server stops. In the normal build
# alone: the thread sanitizer has a thread of its own that looks up ten times a second.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

# The processes and threads of a server wake up together at most so many times a second, to look after things.
my $MOST = 2;

# Returns how often the processes and threads of a server have waited for something.
sub waits ($server) {
    my $sum = 0;
    for my $path (map { glob "/proc/$_->[0]/task/*/status" } group_processes($server->pid)) {
        $sum += $1 if (eval { slurp($path) } // '') =~ /^voluntary_ctxt_switches:\s+(\d+)/m;
    }
    return $sum;
}

# Returns how often they wait within a second.
sub waits_in_a_second ($server) {
    my $before = waits($server);
    select undef, undef, undef, 1;
    return waits($server) - $before;
}

each_way_to_accept(sub ($model) {
    my $server = start_server();
    is $server->get('/small.txt')->{status}, 200, 'a client gets 200';
    my $seen;
    ok until_true(sub { ($seen = waits_in_a_second($server)) <= $MOST }), 'then the server sleeps'
      or diag("it waits again $seen times a second");
    is $server->get('/small.txt')->{status}, 200, 'the next client gets 200';
    my $client = $server->connect;
    is $client->ask(request(GET => '/small.txt'))->{status}, 200, 'and one that stays';
    $client->close;
    $server->stop;
});
done_testing;
