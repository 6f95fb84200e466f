#!/usr/bin/perl
# tests/series: the conditions hold while the command runs, each run has a row, and a run that fails is told.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $folder = scratch();
# A project that a run clones at once: the command itself, what it is made of, and one server.
my $project = scratch();
my $series  = "$project/tests/series";
my $top     = "$FindBin::Bin/..";
is run_command('sh', '-ec', <<~'END', 'copy', $top, $project)->{status}, 0, 'the small project is there';
    mkdir "$2/tests"
    cp -R "$1/tests/series" "$1/tests/trials" "$2/tests"
    cp -R "$1/collect" "$1/fork_server.c" "$1/.gitignore" "$2"
    cd "$2"
    git init --quiet
    git add .
    git -c user.name=series -c user.email=series@localhost commit --quiet --message=small
    END

sub series (@arguments) { return run_command($series, @arguments) }

sub rows ($output) {
    return table_rows("$output/runs.tsv");
}

like series('--help')->{out}, qr/^usage: +tests\/series/m, '--help';
for my $case (['snow', "there is no condition 'snow'"], ['quiet=0', "'0' is no number of runs"]) {
    my $run = series('--runs', $case->[0]);
    is $run->{status}, 2, "--runs $case->[0]: the command line is bad";
    like $run->{err}, qr/\Q$case->[1]\E/, "--runs $case->[0]: it says why";
}
if ($> != 0) {
    my $run = series('--runs', 'quiet');
    is $run->{status}, 2, 'not as root: it stops';
    like $run->{err}, qr/it needs root/, 'not as root: it says so';
    skip_case('the conditions need root');
    done_testing;
    exit;
}

# A shell command for each condition, which is true in a run under that condition.
my $passes = 'echo Files=1, Tests=7; echo Result: PASS';
my %holds  = (
    quiet   => '[ -e fork_server.c ] && [ "$(id -u)" = 0 ]',
    network => '[ "$(ip -o link | wc -l)" = 1 ]',
    user    => '[ "$(id -u)" = 65534 ] && touch here',
    german  => '[ "$(LC_ALL=$LC_ALL locale decimal_point)" = , ]',
    memory  => 'grep -q trust- /proc/self/cgroup',
    stress  => 'pgrep -x stress-ng',
);
my %have = (stress => 'stress-ng', german => '/usr/share/i18n/locales/de_DE');
for my $condition (sort keys %holds) {
    my $needed = $have{$condition};
    if ($needed && !-e $needed && !command_exists($needed)) {
        skip_case("$condition: $needed is not installed");
        next;
    }
    my $run = series('--runs', $condition, '--command', "bash -c '$holds{$condition} && { $passes; }'", '--output', "$folder/$condition");
    if ($run->{err} =~ /does not let me limit/) {
        skip_case('memory: this machine limits no group');
        next;
    }
    is $run->{status}, 0, "$condition: the condition holds" or diag($run->{out}, $run->{err});
    my ($row) = rows("$folder/$condition");
    is "@$row{qw(run condition tests result)}", "1 $condition 7 pass", "$condition: the run has a row";
}

my $run = series('--runs', 'quiet=2,network=1', '--command', "bash -c '[ -e /sys/class/net/lo ] && echo broken; exit 1'", '--output', "$folder/bad");
is $run->{status}, 1, 'a run that fails: the status says so';
is join(' ', map { $_->{condition} } rows("$folder/bad")), 'quiet network quiet', 'the conditions come in turn';
like $run->{out}, qr/^0 passed, 3 failed/m, 'a run that fails is counted';
is slurp("$folder/bad/2-network.txt"), "broken\n", 'the output of a run that fails is kept';
done_testing;
