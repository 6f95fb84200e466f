#!/usr/bin/perl
# make install and make uninstall: the installed programs work, a study writes nothing below the prefix, and uninstalling
# leaves nothing behind. The model that docs/your-own-model.md shows builds and serves.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Cwd qw(abs_path);
use File::Find ();
use File::Path qw(make_path);
use HTTP::Tiny ();

my $top     = abs_path("$FindBin::Bin/..");
my $scratch = scratch();
my $root    = "$scratch/root";
my @servers = map { s{.*/|\.c$}{}gr } glob "$top/*_server.c";
delete $ENV{MAKEFLAGS};

# Returns the files and links below a folder, each with its size.
sub inventory ($folder) {
    my %found;
    File::Find::find({ no_chdir => 1, wanted => sub { $found{s/^\Q$folder\E//r} = -s _ if lstat && !-d _ } }, $folder);
    return \%found;
}

# Starts a server, requests a document and stops the server. Returns the status, what the body is, and the exit status.
sub try_server ($path, @options) {
    my $process = open(my $out, '-|', 'sh', '-c', 'exec "$@" 2>/dev/null', 'sh', $path, @options, '0') or return "$path: $!";
    my ($url) = (readline($out) // '') =~ m{(http://\S+)} or return "$path prints no URL";
    my $response = HTTP::Tiny->new->get("${url}small.txt");
    kill TERM => $process;
    my @rest = readline $out;
    close $out;
    return "$response->{status}, " . ($response->{content} eq slurp("$top/data/small.txt") ? 'the document' : 'something else') . ", exit status $?";
}

# ---- install ----

my $made = make($top, 'install', "DESTDIR=$root", 'prefix=/usr');
is $made->{status}, 0, 'make install: exit status 0' or diag($made->{err});
is join(' ', grep { !-x "$root/usr/bin/$_" } @servers, 'dcollect'), '', 'every program is installed and executable';
is try_server("$root/usr/bin/$_", '--root', "$top/data"), '200, the document, exit status 0', "$_ serves a document from its installed place" for @servers;
is join(' ', grep { !-s "$root/usr/share/man/man1/$_.1" } map { s{.*/|\.1$}{}gr } glob "$top/man/*.1"), '', 'every manual page is installed';
is join(' ', grep { !-s "$root/usr/share/bash-completion/completions/$_" } @servers, 'dcollect'), '', 'bash completes every program';
ok -s "$root/usr/share/doc/fork-vs-thread/$_", "$_ is installed" for qw(README.md LICENSE docs/servers.md);

# Each link of the installed pages leads to a page that is installed.
my $pages = "$root/usr/share/doc/fork-vs-thread";
my @dead;
for my $page (map { s{\Q$pages\E/}{}r } glob "$pages/*.md $pages/docs/*.md") {
    my $folder = $page =~ m{(.*/)} ? $1 : '';
    push @dead, map { "$page: $_" } grep { !/^(?:https?|mailto):/ && !-e "$pages/$folder$_" } slurp("$pages/$page") =~ /\]\(<?([^)#\s>]+)[^)]*\)/g;
}
is join(', ', @dead), '', 'each link of the installed pages leads to an installed one';

my $before = inventory($root);
is join(' ', grep { /\.[cho]$|__pycache__$/ } sort keys %$before), '', 'no source file and no object file is installed';

# ---- a study with the installed dcollect ----

my $dcollect = "$root/usr/bin/dcollect";
is run_command($dcollect, '--version')->{out}, run_command("$top/dcollect.sh", '--version')->{out}, 'the installed dcollect --version prints what ./dcollect.sh prints';

# The times are those of the runs that were made last, which may differ.
my @lists = map { run_command($_, '--list')->{out} } $dcollect, "$top/dcollect.sh";
my ($installed, $here) = map { s/(?: +[\d.]+ (?:s|min|h)){2}  /  /gmr } @lists;
is $installed, $here, 'the installed dcollect --list prints what ./dcollect.sh prints';
unlike $lists[0], qr/\N{U+2013}|\xE2\x80\x93/, 'the installed dcollect --list knows how long each study takes';
is run_command($dcollect, '--help')->{out}, run_command("$top/dcollect.sh", '--help')->{out} =~ s{\./dcollect\.sh}{dcollect}gr, 'the installed dcollect --help calls itself dcollect';
mkdir "$scratch/work" or die "mkdir: $!";
# With a temporary folder of its own it waits for no other study.
mkdir "$scratch/temporary" or die "mkdir: $!";
# A calibration asks the floors 48,000 times: a Python of this user asks less.
my $place = run_command('/usr/bin/python3', '-c', "import sysconfig; print(sysconfig.get_path('purelib', 'posix_user', {'userbase': '$scratch/user'}))")->{out} =~ s/\n//r;
make_path($place);
spit("$place/usercustomize.py", "from collect.measure import one_run\none_run.CALIBRATION_REQUESTS = 100\n");
my $study = run_command('env', '-C', "$scratch/work", "TMPDIR=$scratch/temporary", "PYTHONUSERBASE=$scratch/user", $dcollect,
    qw(--servers thread --files small.txt --concurrency 1 --requests 20 --repetitions 2 --seed 1));
is $study->{status}, 0, 'the installed dcollect runs a study' or diag($study->{err});
my ($report) = glob "$scratch/work/results/*/*/report.md";
ok $report && -s $report, 'the results are below the current folder';
is_deeply inventory($root), $before, 'the study changes nothing below the prefix';

# ---- uninstall ----

spit("$root/usr/bin/another", "of somebody else\n");
is make($top, 'uninstall', "DESTDIR=$root", 'prefix=/usr')->{status}, 0, 'make uninstall: exit status 0';
is_deeply [keys %{ inventory($root) }], ['/usr/bin/another'], 'make uninstall removes all that was installed, and nothing else';

# ---- the model of docs/your-own-model.md ----

my ($source) = slurp("$top/docs/your-own-model.md") =~ /^```c\n(.*?)^```$/ms;
my $copy = scratch();
run_command('sh', '-c', 'cd "$1" && tar -c --exclude="build/*/[!a-z]*" --exclude=build/asan --exclude=build/tsan --exclude=build/debug '
    . '--exclude=build/crash Makefile VERSION common data build | tar -x -C "$2"', 'sh', $top, "$copy");
spit("$copy/mine_server.c", $source);
my $built = make($copy, 'mine_server');
is "$built->{status} $built->{out}$built->{err}", '0 ', 'the model that docs/your-own-model.md shows builds without a warning';
is try_server("$copy/mine_server", '--root', "$copy/data"), '200, the document, exit status 0', 'the model that docs/your-own-model.md shows serves a document';

done_testing;
