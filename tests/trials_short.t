#!/usr/bin/perl
# The short form of tests/trust: its trials with few clients and few repetitions, against two models; no time is judged.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use List::Util qw(any);

# Two models stand for all: processes for connections, and event loops.
my @models = map { m{(\w+)_server\z} ? $1 : () } split ' ', $ENV{TEST_SERVERS} // '';
my @chosen = grep { /\A(?:fork|epoll)\z/ } @models;
@chosen = $models[0] // 'fork' if !@chosen;

# All trials except those that inject.t, mutated_requests.t and the fuzzers run.
my $top    = "$FindBin::Bin/..";
my @trials = qw(stop upgrade crash kill slow symlinks overload scarcity memory soak protection);
my $folder = scratch();
$PATIENCE = 1200;    # for all trials together
my $run    = run_command("$top/tests/trust", '--quick', '--servers', join(',', @chosen), '--only', join(',', @trials),
    '--output', $folder);
like $run->{out}, qr/^\d+ limits exceeded/m, 'tests/trust runs to its end' or diag($run->{out}, $run->{err});

my @rows = table_rows("$folder/trust.tsv");
for my $row (@rows) {
    my $name = "$row->{trial}, $row->{server}: $row->{measure}";
    if    ($row->{verdict} eq 'skip') { skip_case("$name: $row->{value}") }
    elsif ($row->{verdict} ne '')     { is $row->{verdict}, 'pass', $name or diag("$row->{case}: $row->{value}, $row->{limit}", $run->{out} =~ /^   failed: .*\n/mg) }
}
for my $trial (@trials) {
    ok any(sub { $_->{trial} eq $trial }, @rows), "$trial has results";
}
is $run->{status}, (any { $_->{verdict} eq 'FAIL' } @rows) ? 1 : 0, 'the exit status says whether a limit was exceeded';
my $page  = slurp("$folder/trust.md");
my %tried = map { join("\t", @$_{qw(trial case server)}) => 1 } grep { $_->{verdict} ne 'skip' } @rows;
like $page, qr/^# Trust/, 'tests/trust makes the page';
$page =~ s/^## Fuzzing.*//ms;
is scalar(() = $page =~ /^\| (?:fork|epoll|\Q$chosen[0]\E) \|/mg), scalar(keys %tried), 'its tables have a line for each server and case';
done_testing;
