#!/usr/bin/perl
# The default limit of connections: a server in a control group takes only as many connections as fit into its memory.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

# Makes a control group below that of this test, with this limit of memory. Returns its folder; nothing if that is not possible.
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
        is $server->get('/small.txt')->{status}, 200, 'a model with one connection serves it within 32 MiB';
        $server->stop;
    } else {
        my $server = start_server(through => \@through);
        my ($fewer) = $server->errors =~ /enough for (\d+) connections at once, not $limit$/m;
        ok $fewer && $fewer < $limit, 'the server says that 32 MiB are enough for fewer connections than its default';
        my @held = map { $server->connect } 1 .. $fewer + 200;
        $_->send("GET /small.txt HTTP/1.1\r\n") for @held;
        is $held[-1]->ask("Host: localhost\r\n\r\n")->{status}, 200, 'the server serves while more clients hold connections than its memory allows';
        $_->close for @held;
        is $server->get('/small.txt')->{status}, 200, 'the server serves others when these clients have left';
        $server->stop(warnings => qr/memory limit/);

        $server = start_server(through => \@through, options => ['--max-connections', $limit]);
        is $server->errors, '', '--max-connections overrides the limit that comes from the memory';
        $server->stop;
    }
});

done_testing;
