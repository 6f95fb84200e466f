#!/usr/bin/perl
# statistics.t: the statistics of the study against known answers, under every awk that is installed.
#
# usage:    prove tests/statistics.t
#
# Where an answer comes from R, the expression that gives it stands beside it (R 4.2).
use strict;
use warnings;
use Test::More;
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use FindBin;
use lib "$FindBin::Bin/lib";
use Study;

my $here = dirname(__FILE__);
my $collect = "$here/../collect";
my $work = tempdir(CLEANUP => 1);
$ENV{LC_ALL} = 'C';    # as the programs of the study do: awk writes numbers as the locale does
my @awks = grep { !system "command -v $_ >$work/null 2>&1" } qw(mawk gawk original-awk);
BAIL_OUT('no awk is installed') unless @awks;

# What an awk program that may call the functions of statistics.awk prints, word by word.
sub computed {
    my ($awk, $program) = @_;
    open my $file, '>', "$work/program.awk" or die $!;
    print $file "BEGIN { OFMT = CONVFMT = \"%.12g\"; $program }\n";
    close $file;
    return split ' ', qx($awk -f '$collect/statistics.awk' -f '$work/program.awk' </dev/null);
}

# All of the expected numbers, each within a relative (near zero: absolute) difference.
sub near {
    my ($got, $expected, $within, $name) = @_;
    my @wrong;
    for my $i (0 .. $#$expected) {
        my $e = $expected->[$i];
        my $g = $got->[$i] // 'nothing';
        my $scale = abs($e) > 1e-300 ? abs $e : 1;
        push @wrong, "number $i: got $g, expected $e" unless $g =~ /^-?[\d.]+(e[-+]?\d+)?$/ && abs($g - $e) <= $within * $scale;
    }
    push @wrong, scalar(@$got) . ' numbers instead of ' . @$expected if @$got != @$expected;
    ok(!@wrong, $name) or diag join "\n", @wrong;
}

sub analysed {
    my ($awk, $name, @options) = @_;
    my $folder = "$work/$name";
    system("$here/synthetic.pl", @options, $folder) == 0 or die 'no synthetic data';
    for my $stage (qw(summary compare)) {
        system("AWK=$awk '$collect/$stage.sh' '$folder'") == 0 or die "$stage.sh failed";
    }
    return $folder;
}

sub values_of {
    my ($name, @numbers) = @_;
    my $i = 0;
    return join ' ', map { $i++; "$name\[$i] = $_;" } @numbers;
}

for my $awk (@awks) {
    # qt(c(.975,.995,.9999,.6), 9); qt(.975, c(1,2,31,1000)); qt(1 - 0.025/120, 31)
    near([computed($awk, 'print t_quantile(.975, 9), t_quantile(.995, 9), t_quantile(.9999, 9), t_quantile(.6, 9)')],
        [2.2621571628, 3.2498355416, 6.0101321291, 0.2609553365], 1e-9, "$awk: quantiles of t, 9 degrees of freedom");
    near([computed($awk, 'print t_quantile(.975, 1), t_quantile(.975, 2), t_quantile(.975, 31), t_quantile(.975, 1000)')],
        [12.706204736, 4.302652730, 2.039513446, 1.962339081], 1e-9, "$awk: 97.5% quantile of t for 1 to 1000");
    near([computed($awk, 'print t_quantile(1 - 0.025 / 120, 31), t_quantile(.025, 9), t_quantile(.5, 9)')],
        [3.952609768, -2.2621571628, 0], 1e-9, "$awk: far, negative and middle quantile of t");
    # 2 * pt(-10, 31); pt(-1, 1) is 1/4 exactly (Cauchy); pt(1, 1) 3/4
    near([computed($awk, 'print t_two_sided(-10, 31), t_cdf(-1, 1), t_cdf(1, 1), t_two_sided(0, 5)')],
        [3.204795492e-11, 0.25, 0.75, 1], 1e-9, "$awk: distribution of t");
    # pbeta(c(.1, .5, .9), 2, 3) is 0.0523, 0.6875, 0.9963 exactly: 6x^2 - 8x^3 + 3x^4
    near([computed($awk, 'print beta_cdf(.1, 2, 3), beta_cdf(.5, 2, 3), beta_cdf(.9, 2, 3), beta_quantile(.6875, 2, 3)')],
        [0.0523, 0.6875, 0.9963, 0.5], 1e-12, "$awk: incomplete beta function and its inverse");
    # Gamma(5) = 24, Gamma(1/2) = sqrt(pi)
    near([computed($awk, 'print exp(log_gamma(5)), exp(log_gamma(.5)) ^ 2')], [24, 3.14159265359], 1e-11, "$awk: gamma function");

    # Student's sleep data, the worked example of R's help page of t.test: t.test(extra ~ group, data = sleep, paired = TRUE)
    # t = -4.0621, df = 9, p-value = 0.002833, 95 percent confidence interval -2.4598858 -0.7001142, mean difference -1.58
    my @first = (0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0);
    my @second = (1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4);
    my $differences = values_of('d', map { "$first[$_] - $second[$_]" } 0 .. 9);
    near([computed($awk, "$differences paired_test(d, 10, o); print o[\"low\"], o[\"high\"], o[\"estimate\"], o[\"df\"]")],
        [-2.4598858, -0.7001142, -1.58, 9], 1e-7, "$awk: paired t-test of the sleep data: interval");
    near([computed($awk, "$differences paired_test(d, 10, o); print o[\"t\"], o[\"p\"]")],
        [-4.0621, 0.002833], 2e-4, "$awk: paired t-test of the sleep data: t and p");
    is_deeply([computed($awk, values_of('d', (0.5) x 4) . ' paired_test(d, 4, o); print o["t"], o["p"], o["low"], o["high"];'
        . values_of('e', (0) x 4) . ' paired_test(e, 4, o); print o["p"]')], ['-', 0, 0.5, 0.5, 1],
        "$awk: differences that are all the same");

    # p.adjust(c(0.01,0.02,0.03,0.04,0.05), "holm"); p.adjust(c(0.001,0.04,0.03,0.9,0.005), "holm")
    my $print = 'for (i = 1; i <= 5; i++) print a[i];';
    near([computed($awk, values_of('p', 0.01, 0.02, 0.03, 0.04, 0.05) . "holm(p, 5, a); $print")],
        [0.05, 0.08, 0.09, 0.09, 0.09], 1e-12, "$awk: Holm's adjustment");
    near([computed($awk, values_of('p', 0.001, 0.04, 0.03, 0.9, 0.005) . "holm(p, 5, a); $print")],
        [0.005, 0.09, 0.09, 0.9, 0.02], 1e-12, "$awk: Holm's adjustment of unsorted values");

    # Anscombe's first data set, F. J. Anscombe, "Graphs in Statistical Analysis", 1973: slope 0.5001, intercept 3.0001,
    # standard errors 0.1179 and 1.1247 (coef(summary(lm(y1 ~ x1, anscombe))))
    my $anscombe = values_of('x', 10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5)
        . values_of('y', 8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68);
    near([computed($awk, "$anscombe line_fit(x, y, 11, o); print o[\"slope\"], o[\"intercept\"], o[\"slope_error\"], o[\"intercept_error\"], o[\"df\"]")],
        [0.5001, 3.0001, 0.1179, 1.1247, 9], 3e-4, "$awk: least squares line");

    # binom.test(7, 60)$conf.int; binom.test(0, 60)$conf.int
    near([computed($awk, 'share_interval(7, 60, o); print o["low"], o["high"]; share_interval(0, 60, o); print o["low"], o["high"]')],
        [0.04821484187, 0.22571615315, 0, 0.05962949229], 1e-9, "$awk: interval of a share");

    # Eight numbers of mean 5 whose squares sum to 32: sd sqrt(32/7), median 4.5
    near([computed($awk, values_of('v', 9, 2, 4, 4, 7, 4, 5, 5) . 'describe(v, 8, o); print o["mean"], o["sd"], o["median"], o["min"], o["max"], o["low"]')],
        [5, sqrt(32 / 7), 4.5, 2, 9, 5 - 2.364624252 * sqrt(32 / 7 / 8)], 1e-9, "$awk: mean, standard deviation, median, interval");
    is_deeply([computed($awk, 'v[1] = 3; describe(v, 1, o); print o["mean"], o["sd"], o["low"]; describe(v, 0, o); print o["mean"]')],
        [3, '-', '-', '-'], "$awk: one value has no spread, none has nothing");

    # The stages on invented data. --invalid spoils runs, which are counted and left out.
    my $folder = analysed($awk, "spoilt-$awk", '--blocks', 8, '--concurrency', 4, '--invalid', 3);
    my @summary = table("$folder/summary.tsv");
    my $invalid = 0;
    my $n = 0;
    $invalid += $_->{n_invalid}, $n += $_->{n} for @summary;
    is(scalar @summary, 16, "$awk: a row for each of the cells");
    is("$n $invalid", '125 3', "$awk: invalid runs are counted and left out");
    is_deeply([map { "$_->{server} $_->{file} $_->{concurrency}" } @summary[0, 3, 4, 8]],
        ['fork small.txt 1', 'fork small.txt 4', 'fork big.txt 1', 'thread small.txt 1'], "$awk: cells in the order of the study");

    # Every cell against datamash.
    SKIP: {
        skip 'datamash is not installed', 1 if system "command -v datamash >$work/null 2>&1";
        my @expected = map { split ' ' } sort qx(awk -F'\\t' '\$NF == "yes"' '$folder/runs.tsv' | datamash -s -g 4,5,6 mean 21 sstdev 21 median 21);
        my @got = map { split ' ' } sort map { "$_->{server}\t$_->{file}\t$_->{concurrency}\t$_->{rps_mean}\t$_->{rps_sd}\t$_->{rps_median}\n" } @summary;
        near([grep { /^[\d.]+$/ } @got], [grep { /^[\d.]+$/ } @expected], 1e-5, "$awk: mean, sd and median of each cell as datamash has them");
    }

    # A last line that was cut off and a run told twice are not believed.
    my $before = qx(cat '$folder/summary.tsv');
    open my $runs, '>>', "$folder/runs.tsv" or die $!;
    my ($second_line) = qx(sed -n 2p '$folder/runs.tsv');
    print $runs $second_line, substr($second_line, 0, length($second_line) - 4);
    close $runs;
    system("AWK=$awk '$collect/summary.sh' '$folder'");
    is(qx(cat '$folder/summary.tsv'), $before, "$awk: half a row and a row told twice change nothing");

    # A study whose servers belong to different baselines, and in which factors vary for some servers alone.
    my $parts = analysed($awk, "parts-$awk", '--kind', 'mistakes', '--blocks', 4);
    my %pairs = map { ("$_->{server} / $_->{baseline} by $_->{load}" => 1) } table("$parts/comparisons.tsv");
    is(join("\n", sort keys %pairs), join("\n", 'floor-one+work8000+backlog5 / floor-one+work8000 by *',
        'floor-one+work8000+backlog5 / floor-one+work8000 by ab', 'floor-one+work8000+backlog5 / floor-one+work8000 by httperf',
        'floor-thread+joinable / floor-thread by ab', 'floor-thread+split-writes / floor-thread by httperf'),
        "$awk: every mistake meets the same server without it");

    # A/A: a server against itself. No difference is found; the plain 5% tests reject about 5% of the time.
    my $same = analysed($awk, "same-$awk", '--kind', 'same-server', '--concurrency', 15, '--seed', 3);
    my @cells = grep { $_->{scope} eq 'cell' } table("$same/comparisons.tsv");
    is(scalar @cells, 60, "$awk: A/A: every cell is compared");
    is(scalar(grep { $_->{difference} ne 'not shown' } table("$same/comparisons.tsv")), 0, "$awk: A/A: no difference is found");
    my $share = grep { $_->{p} < 0.05 } @cells;
    cmp_ok($share, '<=', 8, "$awk: A/A: $share of 60 plain tests are below 0.05, expected 3");

    # The same data with the second server slowed down by 4%: found in nearly every cell, and on average.
    my $slow = analysed($awk, "slow-$awk", '--kind', 'same-server', '--concurrency', 15, '--seed', 3, '--slow', 0.96);
    @cells = grep { $_->{scope} eq 'cell' && $_->{measure} eq 'rps' } table("$slow/comparisons.tsv");
    my $found = grep { $_->{difference} eq 'lower' } @cells;
    cmp_ok($found, '>=', 24, "$awk: a slow-down by 4% is found in $found of 30 cells");
    is(scalar(grep { $_->{difference} eq 'higher' } @cells), 0, "$awk: and never taken for a gain");
    my ($all) = grep { $_->{scope} eq 'all' && $_->{measure} eq 'rps' } table("$slow/comparisons.tsv");
    ok($all->{low} <= 0.96 && 0.96 <= $all->{high} && $all->{high} - $all->{low} < 0.01,
        "$awk: its size is told: $all->{ratio} ($all->{low} to $all->{high})");
}

if (@awks > 1) {
    for my $file (qw(summary comparisons)) {
        is(qx(cat '$work/same-$awks[0]/$file.tsv'), qx(cat '$work/same-$awks[1]/$file.tsv'), "$file.tsv is the same from $awks[0] and $awks[1]");
    }
}

like(qx('$collect/summary.sh' '$work' 2>&1), qr/not the folder of a run/, 'a folder without runs: one clear line');
isnt(system("'$collect/compare.sh' '$work' 2>$work/null"), 0, 'and a failure');

done_testing;
