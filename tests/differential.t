#!/usr/bin/perl
# Mutated requests: what this server makes of each is as recorded in tests/differential.tsv, and what its proxy forwards is strict.
# The peers are asked by tests/differential itself.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

each_server(sub ($model) {
    my $run = run_command("$FindBin::Bin/differential", '--quick', '--peers', 'none', '--server', $model->{path});
    is $run->{status}, 0, 'all outcomes are known' or diag("$run->{out}$run->{err}");
    like $run->{out}, qr/^behind the proxy: [1-9]\d* requests, 0 of them not strict$/m, 'an origin gets strict requests, one for each connection';
});
done_testing;
