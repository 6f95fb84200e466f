#!/usr/bin/perl
# clone_server: what its children share, by what the kernel says; children that are killed; the places of those that share memory.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Errno qw(ENOSYS);

my $CLIENTS = 200;

# The types of resources of kcmp(), by the words of --share.
my %resource = (memory => 1, files => 2, fs => 3, signals => 4);

# Returns true if two processes or threads have the same resource; undef if this kernel cannot tell.
sub is_same ($one, $other, $what) {
    my $order = syscall 312, $one + 0, $other + 0, $resource{$what}, 0, 0;
    return $order == 0 if $order >= 0;
    die "kcmp: $!" if $! != ENOSYS;
    return undef;
}

# Returns the words of a way to share.
sub words ($model) {
    my ($way) = $model->{label} =~ /share=(.*)/ or return;
    return $way eq 'all' ? sort keys %resource : split /-/, $way;
}

# Returns the processes and threads of the server that serve a connection.
sub children ($server) {
    return grep { $_ != $server->pid } map { map { m{/(\d+)\z} } glob "/proc/$_->[0]/task/*" } serving_processes($server->pid);
}

# The table of open files of the first process.
sub open_files ($server) { return scalar(() = glob '/proc/' . $server->pid . '/fd/*') }

# The mappings of the first process.
sub mappings ($server) { return scalar(() = slurp('/proc/' . $server->pid . '/maps') =~ /\n/g) }

if (($ENV{TEST_SERVERS} // 'clone_server') !~ /\bclone_server\b/) {
    print "1..0 # SKIP clone_server is not tested\n";
    exit;
}

each_way_to_accept(sub ($model) {
    return if $model->{name} ne 'clone';
    my %shares = map { $_ => 1 } words($model);
    my $thread = $model->{label} =~ /=all\z/;
    my $server = start_server();
    my $client = $server->connect;
    is $client->ask(request(GET => '/small.txt'))->{status}, 200, 'a request gets 200';
    my ($child, @others) = children($server);
    ok defined $child && !@others, 'one child serves one connection';
    for my $what (sort keys %resource) {
        my $same = is_same($server->pid, $child, $what);
        if (!defined $same) { skip_case("this kernel cannot tell who shares $what") }
        else                { is !!$same, !!$shares{$what}, "$what: " . ($shares{$what} ? 'shared' : 'not shared') }
    }
    if (keys %shares > 1 && !$thread) {
        my $words = join ',', words($model);
        is run_server('--share', $words,            '--help')->{status}, 0, "--share $words is the same";
        is run_server('--share', $words =~ s/,/,,/r, '--help')->{status}, 2, 'two commas are refused';
        is run_server('--share', $words =~ s/,/-/r,  '--help')->{status}, 2, 'a comma and a hyphen are refused' if $words =~ /,.*,/;
    }
    is -e "/proc/@{[$server->pid]}/task/$child" ? 1 : 0, $thread ? 1 : 0, $thread ? 'the child is a thread' : 'the child is a process';

    # A child that is killed loses its connection alone.
    if (!$thread) {
        my $before = open_files($server);
        my $other  = $server->connect;
        is $other->ask(request(GET => '/small.txt'))->{status}, 200, 'a second client gets 200';
        kill KILL => grep { $_ != $child } children($server);
        $other->drain;
        ok $other->{ended}, 'the connection of a child that was killed ends';
        is $client->ask(request(GET => '/small.txt'))->{status}, 200, 'the other connection goes on';
        ok until_true(sub { open_files($server) == $before }), 'no open file of a child that was killed is left';
        $other->close;
    }
    $client->close;
    $server->stop($thread ? () : (warnings => qr/signal 9/));

    # Many at once, twice: the second time nobody needs memory that is not there.
    $server = start_server(options => ['--max-connections', $CLIENTS + 10]);
    my @needed;
    for my $round (1, 2) {
        my @crowd = map { $server->connect } 1 .. $CLIENTS;
        is scalar(grep { $_->ask(request(GET => '/small.txt'))->{status} == 200 } @crowd), $CLIENTS, "round $round: $CLIENTS clients at once get 200";
        push @needed, mappings($server);
        $_->close for @crowd;
        ok until_true(sub { !children($server) }), "round $round: all children end";
    }
    cmp_ok $needed[1], '<=', $needed[0] + 20, 'the second crowd has the places of the first' or diag("@needed mappings");
    is $server->get('/small.txt')->{status}, 200, 'after the crowds a request gets 200';
    $server->stop;
});

done_testing;
