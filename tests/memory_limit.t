#!/usr/bin/perl
# In a control group with little memory, a server takes no more connections by default than fit into it.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

# A control group below the one of this test, with this limit; nothing where none can be made.
my @made;
sub group ($limit) {
    my $groups = slurp('/proc/self/cgroup');
    my ($one, $two) = ($groups =~ /^\d+:(?:[^:\n]*,)?memory(?:,[^:\n]*)?:(.*)$/m, $groups =~ /^0::(.*)$/m);
    my ($mount, $file) = $groups =~ /^\d+:(?:[^:\n]*,)?memory[,:]/m ? ("/sys/fs/cgroup/memory$one", 'memory.limit_in_bytes')
        : ("/sys/fs/cgroup$two", 'memory.max');
    my $group = "$mount/server-test-$$";
    mkdir $group or return;
    push @made, $group;
    return eval { -e "$group/$file" && spit("$group/$file", $limit); 1 } && -e "$group/$file" ? $group : undef;
}

END { rmdir for @made }

my $group = group(32 * 1024 * 1024);
my @through = ('sh', '-c', 'echo $$ >"$0/cgroup.procs" && exec "$@"', $group // '');

each_server(sub ($model) {
    my $limit = describe()->{defaults}{max_connections};
    if (!$group || sanitized()) {
        skip_case('no control group can be made here, or the build takes more memory');
    } elsif (($limit // 1) == 1) {
        my $server = start_server(through => \@through);
        is $server->get('/small.txt')->{status}, 200, 'its connections fit into 32 MiB';
        $server->stop;
    } else {
        my $server = start_server(through => \@through);
        my ($fewer) = $server->errors =~ /enough for (\d+) connections at once, not $limit$/m;
        ok $fewer && $fewer < $limit, 'it says that 32 MiB are enough for fewer connections';
        my @held = map { $server->connect } 1 .. $fewer + 200;
        $_->send("GET /small.txt HTTP/1.1\r\n") for @held;
        is $held[0]->ask("Host: localhost\r\n\r\n")->{status}, 200, 'while more clients than that hold connections, it goes on';
        $_->close for @held;
        is $server->get('/small.txt')->{status}, 200, 'and serves others when they have gone';
        $server->stop(warnings => qr/memory limit/);

        $server = start_server(through => \@through, options => ['--max-connections', $limit]);
        is $server->errors, '', '--max-connections says how many, whatever the limit';
        $server->stop;
    }
});

done_testing;
