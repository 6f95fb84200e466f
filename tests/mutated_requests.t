#!/usr/bin/perl
# Mutated requests: the server responds to each as tests/differential.tsv says, and its proxy forwards strict requests only.
# tests/differential also compares with other servers.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

each_server(sub ($model) {
    my $run = run_command("$FindBin::Bin/differential", '--quick', '--peers', 'none', '--server', $model->{path});
    is $run->{status}, 0, 'all responses are those of tests/differential.tsv' or diag("$run->{out}$run->{err}");
    like $run->{out}, qr/^behind the proxy: [1-9]\d* requests, 0 of them not strict$/m, 'an origin gets strict requests only, one on each connection';
});
done_testing;
