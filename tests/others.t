#!/usr/bin/perl
# The clients of the study: those that hold connections, those that count what they lose; and servers that die of one request.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use File::Path qw(make_path);

my $top     = "$FindBin::Bin/..";
my $scratch = scratch();
$ENV{TMPDIR} = "$scratch/tmp";
make_path($ENV{TMPDIR});

# A server of this project; its port is taken from its ready line.
my @started;
sub started ($path, @options) {
    my $out = "$scratch/ready." . @started;
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDOUT, '>', $out or die $!;
        open STDERR, '>', "$out.errors" or die $!;
        exec "$top/$path", @options, '--root', "$top/data", 0 or exit 127;
    }
    push @started, $pid;
    until_true(sub { -e $out && slurp($out) =~ /\n/ }) or die "$path does not get ready\n";
    return (slurp($out) =~ /:(\d+)\//)[0];
}
END { if (@started) { local $?; kill KILL => @started; waitpid $_, 0 for @started } }

# --- The crowd -----------------------------------------------------------------------------------------------------

# A crowd that lives some seconds: what it said.
sub crowd (@arguments) { return run_command("$top/collect/clients/crowd", '--patience', 2, '--seconds', 5, @arguments) }

my $port = started('epoll_server', '--idle-timeout', 60);
is crowd('idle', 300, $port, '/small.txt')->{out}, "ready 300 300\nend 300 0 0 0\n", 'crowd: a server that can hold 300 does';
is crowd('slow', 20,  $port, '/small.txt')->{out}, "ready 20 20\nend 20 0 0 0\n",    'crowd: slow clients are there, too';
is crowd('idle', 5, started('iterative_server', '--idle-timeout', 60), '/small.txt')->{out}, "ready 1 5\nend 1 0 0 0\n",
    'crowd: one connection at a time';
like crowd('idle', 5, started('epoll_server', '--idle-timeout', 1), '/small.txt')->{out}, qr/\Aready 5 5\nend 0 5 0 0\n\z/,
    'crowd: what the server closed is lost';
like crowd('slow', 3, started('thread_server', '--request-timeout', 1), '/small.txt')->{out}, qr/\Aready 3 3\nend \d 0 [1-9]\d* 0\n\z/,
    'crowd: slow clients that are cut off are counted';
like crowd('idle', 5, 1, '/small.txt')->{out}, qr/\Aready 0 5\nend 0 0 0 5\n\z/, 'crowd: nobody listens';
is crowd('idle')->{status}, 2, 'crowd: wrong usage';
is crowd('many', 5, $port, '/')->{status}, 2, 'crowd: an unknown kind';

# --- The witness ---------------------------------------------------------------------------------------------------

my @names = qw(seconds complete lost refused unanswered non2xx length again_ms mean sd min p50 p90 p95 p99 max bytes);
sub witness (@arguments) {
    my $run = run_command("$top/collect/clients/witness", @arguments);
    my %said;
    @said{@names} = (split ' ', $run->{out})[1 .. @names];
    return { %$run, %said };
}

my $seen = witness('--requests', 50, '--concurrency', 5, $port, '/small.txt');
is_deeply [@$seen{qw(status complete lost refused unanswered non2xx length again_ms)}], [0, 50, 0, 0, 0, 0, 1000, '-'], 'witness: all is well';
is witness('--requests', 5, $port, '/absent.txt')->{non2xx}, 5, 'witness: error pages are told';
$seen = witness('--requests', 5, '--concurrency', 2, '--seconds', 1, 1, '/small.txt');
is_deeply [@$seen{qw(status complete lost unanswered)}], [0, 0, 2, 2], 'witness: nobody is there, and it ends';
cmp_ok $seen->{max}, '>=', 900, 'witness: who still waits has waited so long';
$seen = witness('--requests', 20, '--fault', '/crash', $port, '/small.txt');
is $seen->{status}, 3, 'witness: a normal server has no fault, and it says so';

# --- Servers with a fault --------------------------------------------------------------------------------------------

my $made = run_command('make', '-s', '-C', $top, 'crash');
is $made->{status}, 0, 'make crash' or diag($made->{err});
for my $server (map { s{.*/}{}r } glob "$top/build/crash/*_server") {
    unlike slurp("$top/$server"), qr{/crash\0}, "$server: the normal build has no fault";
    like slurp("$top/build/crash/$server"), qr{/crash\0}, "$server: the other one has";
}
my %outcome;
for my $model (qw(fork prefork epoll thread pool iterative)) {
    # How long it takes to come back is the machine's affair; who is gone for good is not waited for as long.
    my $patience = $model =~ /fork|epoll/ ? 60_000 : 300;
    my $outcome = witness('--requests', 300, '--concurrency', 4, '--fault', '/crash', '--patience', $patience, '--seconds', 90,
        started("build/crash/${model}_server"), '/small.txt');
    is $outcome->{status}, 0, "$model: the fault happens" or diag($outcome->{err});
    if ($model =~ /fork|epoll/) {
        like $outcome->{again_ms}, qr/\A\d+\.\d+\z/, "$model: all are served again";
        cmp_ok $outcome->{complete}, '>=', 300, "$model: all requests are answered in the end";
        is $outcome->{lost}, 0, "$model: nobody else loses a request" if $model =~ /fork/;
    }
    else {
        is $outcome->{again_ms}, 'never', "$model: nobody is served again";
        cmp_ok $outcome->{lost}, '>', 0, "$model: others lose requests";
    }
}

done_testing;
