#!/usr/bin/perl
# System calls that fail: a server survives one failure of each call on the path of a request. tests/inject tries all errors.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

# Each case has a patience of its own: a busy machine may need long for all of them.
$PATIENCE = 3600;

each_server(sub ($model) {
    my $run = run_command("$FindBin::Bin/inject", '--quick', '--server', $model->{path});
    if ($run->{status} == 77) {
        skip_case("strace cannot be used here: $run->{out}" =~ s/\s+/ /gr);
        return;
    }
    is $run->{status}, 0, 'tests/inject: exit status 0' or diag("$run->{out}$run->{err}");
    like $run->{out}, qr/^[1-9]\d+ failures injected, 0 of them/m, 'each system call fails once, and no failure does harm';
});
done_testing;
