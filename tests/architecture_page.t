#!/usr/bin/perl
# ARCHITECTURE.md and docs/files.md are true: they list each folder and each file, and each function that is named is in the file
# beside it.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Cwd qw(abs_path);

my $top  = abs_path("$FindBin::Bin/..");
my $page = slurp("$top/ARCHITECTURE.md");

my $run = run_command("$top/tools/file_map.py", '--check');
ok $run->{status} == 0, 'the lists of files are what `make map` writes, and each file says what it is for' or diag($run->{err});

# The picture of the layers.
my ($picture) = $page =~ /^```\n(.*?)^```$/ms;
my %modules = map { s{.*/|\.[ch]\z}{}gr => 1 } glob "$top/common/*.[ch]";
my @folders = map { s{.*/common/}{}r } grep { -d } glob "$top/common/*";
is join(' ', grep { $picture !~ /\b\Q$_\E\b/ } sort keys %modules), '', 'the picture of the layers has each file at the top of common/';
is join(' ', grep { $picture !~ /\b\Q$_\E\// } @folders), '', 'the picture of the layers has each folder of common/';

# The paths and functions that the prose names, as `path` and as `function()` (`path`).
my $prose = $page =~ s/^<!-- made: .*?^<!-- \/made -->$//gmsr;
my @paths = $prose =~ /`((?:[\w.-]+\/)*[\w-]+\.(?:[chtp]|py|sh|md|toml|tsv))`/g;
my %made  = map { $_ => 1 } qw(plan.tsv runs.tsv summary.tsv comparisons.tsv claims.tsv report.md);    # by a study
is join(' ', grep { !-e "$top/$_" && !$made{$_} && !/NAME/ } @paths), '', 'each of the ' . @paths . ' files that ARCHITECTURE.md names exists';

# Returns true if the file defines the function. In C its name follows its type at the start of a line, in Python it follows def.
sub defines ($path, $function) {
    my $text = -e "$top/$path" ? slurp("$top/$path") : '';
    return $path =~ /\.py$/ ? $text =~ /^\s*def \Q$function\E\(/m : $text =~ /^[a-z][^;{}()=]*\b\Q$function\E\([^;]*?\)\s*\{/m;
}

my @walks = $prose =~ /`(\w+)\(\)`\s+\(`([^`]+)`\)/g;
my @wrong;
for (my $i = 0; $i < @walks; $i += 2) {
    push @wrong, "$walks[$i]() in $walks[$i + 1]" if !defines($walks[ $i + 1 ], $walks[$i]);
}
cmp_ok scalar(@walks) / 2, '>', 20, 'the walks name more than 20 functions with their files';
is join(', ', @wrong), '', 'each function that the walks name is in the file beside it';

my %with_file = map { $walks[ 2 * $_ ] => 1 } 0 .. @walks / 2 - 1;
my %named     = map { $_ => 1 } $prose =~ /`(\w+)\(\)`/g;
is join(' ', grep { !$with_file{$_} } sort keys %named), '', 'no function is named without its file';

# The files that comments name.
my @tree = grep { chomp; m{^(?:common|collect|tools|tests)/|_server\.c$} } qx(git -C $top ls-files);
my %known = map { s{.*/}{}r => 1 } @tree;
my (@told, @gone);
for my $path (grep { m{^(?:common|collect)/.*\.[ch]$|_server\.c$} } @tree) {
    for my $comment (slurp("$top/$path") =~ m{/\*.*?\*/}gs) {
        push @told, my @names = $comment =~ m{(?<![\w./-])(?:[\w-]+/)*([\w-]+\.[ch])\b}g;
        push @gone, map { "$_ in $path" } grep { !$known{$_} } @names;
    }
}
cmp_ok scalar @told, '>', 30, 'comments name more than 30 files';
is join(', ', @gone), '', 'each file that a comment in C names exists';

done_testing;
