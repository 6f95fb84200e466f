#!/usr/bin/perl
# The documentation: every link resolves, prose lines are short, the tables of options agree with --describe, and the
# manual pages are up to date.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use JSON::PP ();

my $top   = abs_path("$FindBin::Bin/..");
my @pages = map { s{^\Q$top\E/}{}r } sort glob "$top/*.md $top/docs/*.md $top/report/*.md $top/collect/*.md";

# Returns the text of a page without its code blocks; with `made`, also without the blocks that programs write.
sub prose ($page, %without) {
    my $text = slurp("$top/$page") =~ s/^```.*?^```$//gmsr;
    $text =~ s/^<!-- made: .*?^<!-- \/made -->$//gms if $without{made};
    return $text;
}

# Returns the anchors of a page, as GitHub makes them from headings.
sub anchors ($page) {
    my %found;
    for my $heading (prose($page) =~ /^#+ +(.*)$/mg) {
        my $name = lc $heading =~ s/\[([^\]]*)\]\([^)]*\)/$1/gr =~ s/[^\w\- ]//gr =~ s/ /-/gr;
        $found{$name} = 1;
    }
    $found{$_} = 1 for prose($page) =~ /\bid="([^"]+)"/g;
    return \%found;
}

sub broken_link ($page, $link) {
    return if $link =~ /^(?:https?|mailto):/;
    my ($path, $anchor) = $link =~ /^([^#]*)(?:#(.*))?$/;
    my $target = $path eq '' ? $page : abs_path("$top/" . dirname($page) . "/$path") // '';
    $target =~ s{^\Q$top\E/}{};
    return "$link (no file)" if $target eq '' || !-e "$top/$target";
    return "$link (no such heading)" if defined $anchor && $target =~ /\.md$/ && !anchors($target)->{$anchor};
    return;
}

for my $page (@pages) {
    my @links = prose($page) =~ /\]\(<?([^)\s>]+)>?\)/g;
    is join(', ', map { broken_link($page, $_) } @links), '', "$page: each of its " . @links . ' links resolves';
    next if $page =~ m{^(?:report|collect)/};    # programs write these
    my @long = grep { length > 120 && !/^[|!\[]/ } split /\n/, prose($page, made => 1);
    is join("\n", @long), '', "$page: no prose line has more than 120 columns";
}

is join(' ', slurp("$top/README.md") =~ /\(([^()]*\.png)\)/g), join(' ', map { s{^\Q$top\E/}{}r } glob "$top/report/fork-vs-thread/*/figures/small-requests.png"),
    'README.md shows one figure, that of fork and thread';
SKIP: {
    my $tracked = run_command('git', '-C', $top, 'ls-files', '*.png');
    skip('the project is not in git here', 1) if $tracked->{status} != 0;
    is $tracked->{out} =~ s/\n//gr, join('', map { s{^\Q$top\E/}{}r } glob "$top/report/fork-vs-thread/*/figures/small-requests.png"),
        'git has no other PNG';
}
cmp_ok scalar(() = slurp("$top/README.md") =~ /\n/g), '<=', 110, 'README.md has about a hundred lines';
like slurp("$top/VERSION"), qr/\A\d+\.\d+(?:\.\d+)?(?:-\w+)?\n\z/, 'VERSION has one line with a version';

# ---- code that a page quotes ----

# Returns the lines of a quotation that its file does not have.
sub strange_lines ($file, $quoted) {
    my %line = map { $_ => 1 } split /\n/, slurp("$top/$file");
    return grep { !$line{$_} } split /\n/, $quoted;
}

{
    my @quoted = slurp("$top/docs/tour.md") =~ /^<!-- from: (\S+) -->\n```c\n(.*?)^```$/gms;
    cmp_ok scalar(@quoted), '>', 10, 'docs/tour.md quotes code at its stops';
    while (my ($file, $code) = splice @quoted, 0, 2) {
        is join("\n", strange_lines($file, $code)), '', "docs/tour.md: $file has each line that is quoted of it";
    }
    my $tour = prose('docs/tour.md');
    is join(', ', grep { /^[1-6]\. / && !/!\[[^\]]+\]\([^)]+\.svg\)/ } split /^## /m, $tour), '', 'each stop of docs/tour.md has a figure';
    is scalar(() = $tour =~ /^## [1-6]\. /mg), 6, 'docs/tour.md has six stops';
    my $table = slurp("$top/README.md");
    my %of = map { /`(\w+)_server` \| [^|]* \| ([\d.]+) \(/ ? ($1 => $2) : () } split /\n/, $table;
    is join(' ', grep { index($tour, $of{$_}) < 0 } sort keys %of), '', 'docs/tour.md has the figures of the table in README.md';
}

{
    my $folder = scratch();
    spit("$folder/$_", '') for qw(our_server our_server.c my_server my_server.go);
    is join(' ', model_programs($folder)), "$folder/our_server", 'a program without a source in C is no model';
}

# The tables of options: the row of each option must agree with --describe.
my %row;
for (map { split /\n/, prose("docs/$_.md") } qw(servers proxy)) {
    $row{$1} //= $_ if /^\| `--([a-z-]+)/;
}
my (%known, @wrong);
for my $server (model_programs($top)) {
    for my $option (JSON::PP::decode_json(run_command($server, '--describe')->{out})->{options}->@*) {
        my $name = "--$option->{name}" . (defined $option->{argument} ? " $option->{argument}" : '');
        my $row  = ($row{ $option->{name} } // '') =~ tr/`//dr;
        push @wrong, "$name ($option->{default})" if index($row, "| $name |") < 0 || index($row, $option->{default} // '') < 0;
        $known{ $option->{name} } = 1;
    }
}
cmp_ok scalar(keys %known), '>', 25, '--describe of all servers together gives more than 25 options';
is join(', ', @wrong), '', 'docs/ explains each option of each server, with its default';
is join(' ', grep { !$known{$_} } sort keys %row), '', 'docs/ explains no option that the servers do not have';

# ---- manual pages ----

my $run = run_command("$top/tools/man_pages.py", '--check');
ok $run->{status} == 0, 'man/ holds what `make man` makes' or diag($run->{err});

# ---- the columns of tables, and the keys of study files ----

is slurp("$top/collect/SCHEMA.md"), run_command("$top/dcollect.sh", 'schema')->{out}, 'collect/SCHEMA.md is what `./dcollect.sh schema` prints';
my $keys = run_command('env', "PYTHONPATH=$top", '/usr/bin/python3', '-c',
    'from collect.design.study import KEYS; print(*(key for key in KEYS if key not in ("name", "given")))')->{out};
my $studies = prose('docs/studies.md');
cmp_ok scalar(my @keys = split ' ', $keys), '>', 25, 'study files have more than 25 keys';
is join(' ', grep { $studies !~ /^\|[^|]*`\[*\Q$_\E\]*`/m } @keys), '', 'docs/studies.md explains each key of a study file';

SKIP: {
    skip_case('mandoc is not installed'), last SKIP if !command_exists('mandoc');
    is run_command('mandoc', '-T', 'lint', '-W', 'style', glob "$top/man/*.1")->{out}, '', 'mandoc finds nothing wrong with the manual pages';
}

done_testing;
