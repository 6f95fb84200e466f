#!/usr/bin/perl
# The layers of the servers: a file includes only files of its own layer and of lower ones, and names only their types; there is no
# circle, no model includes another one, and only the registry includes services.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use File::Basename qw(dirname);
use File::Path     qw(make_path);

# The layers, the lowest first. A name is a folder, or a file of common/ without its ending; the names of one line may not
# include each other. `models` are the *_server.c at the top.
my @layers = (
    [qw(base)],
    [qw(http)],
    [qw(net)],
    [qw(access_log trace)],
    [qw(scoreboard)],
    [qw(seats)],
    [qw(service)],
    [qw(exchange escape_injection)],
    [qw(connection)],
    [qw(files proxy)],
    [qw(model)],
    [qw(options)],
    [qw(connection_room)],
    [qw(sandbox)],
    [qw(services)],
    [qw(command_line)],
    [qw(server_state)],
    [qw(summary trace_file)],
    [qw(upgrade)],
    [qw(signals)],
    [qw(acceptor)],
    [qw(startup)],
    [qw(server)],
    [qw(workers)],
    [qw(models)],
);

# The types of a higher layer that a module may name, since it only passes them on: a model's functions get the server, and the
# server holds what the functions of its model make.
my %passes_on = (
    'common/model'        => { server       => 1 },
    'common/server_state' => { process_crew => 1 },
);

# The folders of the services, which only their registry and they themselves may include. The registry's header may not: who
# includes it would have them as well.
my %is_service = map { $_ => 1 } qw(files proxy);
my $registry = 'common/services.c';

my %rank;
for my $height (0 .. $#layers) { $rank{$_} = $height for @{ $layers[$height] } }

# Returns the name in the table that a file belongs to; nothing if there is none.
sub layer_of ($file) {
    my ($layer) =
          $file =~ m{\A\w+_server\.c\z}              ? 'models'
        : $file =~ m{\Acommon/(\w+)/\w+\.[ch]\z}     ? $1
        : $file =~ m{\Acommon/(\w+)\.[ch]\z}         ? $1
        :                                              return undef;
    return exists $rank{$layer} ? $layer : undef;
}

# A header and its source are one module.
sub module_of ($file) { return $file =~ s/\.[ch]\z//r }

# Returns the path without "." and "..", except for a ".." that leads out of the tree.
sub plain ($path) {
    my @parts;
    for my $part (split m{/}, $path) {
        if    ($part eq '' || $part eq '.')                     { next }
        elsif ($part eq '..' && @parts && $parts[-1] ne '..')   { pop @parts }
        else                                                    { push @parts, $part }
    }
    return join '/', @parts;
}

sub without_comments ($text) { return $text =~ s/\\\n//gr =~ s{/\*.*?\*/}{ }gsr }

# Returns what a file includes, as it is written: <name> or "name", or the name of a macro.
sub included ($text) {
    return without_comments($text) =~ /^\s*(?:#|%:|\?\?=)\s*(?:include|include_next|import)\b\s*([^\n]*?)\s*$/mg;
}

# Returns the file of the project that an include leads to; nothing for a header of the system.
sub target ($top, $file, $words) {
    my ($quoted, $name) = $words =~ /\A(["<])([^">]+)[">]/ or return "(unreadable: $words)";
    my @candidates = map { plain($_) } ($quoted eq '"' ? dirname($file) . "/$name" : (), $name);
    my ($found) = grep { -e "$top/$_" } @candidates;
    return $found // ($quoted eq '"' || $name =~ m{\Acommon/} ? "(missing: $name)" : undef);
}

# Returns the files of common/ and the models.
sub sources ($top) {
    my @found = map { glob "$top/$_" } '*_server.c', 'common/*.[ch]', map { "common/$_.[ch]" } '*/*', '*/*/*';
    return map { s{\A\Q$top\E/}{}r } sort @found;
}

# Returns what is wrong with one include; nothing if it is right.
sub flaw ($from, $to) {
    my ($below, $above) = (layer_of($to), layer_of($from));
    return 'in no layer'             if !defined $above;
    return 'includes what is in no layer'     if !defined $below;
    return                           if module_of($from) eq module_of($to);
    return 'a model includes a model' if $below eq 'models';
    return 'upwards'                 if $rank{$below} > $rank{$above};
    return 'beside itself'           if $rank{$below} == $rank{$above} && $below ne $above;
    return 'only the registry includes services' if $is_service{$below} && !$is_service{$above} && $from ne $registry;
    return;
}

# Returns the types that files name and may not: those of a higher layer, which a declaration without an include would hide.
sub strange_types ($top) {
    my (%text, %home, @problems);
    for my $file (grep { defined layer_of($_) } sources($top)) {
        $text{$file} = without_comments(slurp("$top/$file"));
        $home{$_}{$file} = 1 for $text{$file} =~ /\b(?:struct|union|enum)\s+(\w+)\s*\{/g;
    }
    for my $file (sort keys %text) {
        my $passed = $passes_on{ module_of($file) } // {};
        my %named  = map { $_ => 1 } $text{$file} =~ /\b(?:struct|union|enum)\s+(\w+)/g;
        for my $name (grep { exists $home{$_} && !$home{$_}{$file} && !$passed->{$_} } sort keys %named) {
            my @homes = keys %{ $home{$name} };
            push @problems, "$file names $name of $homes[0]" if @homes == 1 && flaw($file, $homes[0]);
        }
    }
    return @problems;
}

# Returns a circle of modules, as a text; nothing if there is none.
sub circle ($uses) {
    my (%state, @path, $found);
    my $visit = sub ($visit, $module) {
        return if $found || ($state{$module} // '') eq 'done';
        push @path, $module;
        if (($state{$module} // '') eq 'open') {
            my ($start) = grep { $path[$_] eq $module } 0 .. $#path;
            $found = join ' -> ', @path[$start .. $#path];
            return;
        }
        $state{$module} = 'open';
        $visit->($visit, $_) for sort keys %{ $uses->{$module} // {} };
        $state{$module} = 'done';
        pop @path;
    };
    $visit->($visit, $_) for sort keys %$uses;
    return $found;
}

# Returns all that is wrong with the includes of a tree.
sub problems ($top) {
    my (@problems, %uses);
    for my $file (sources($top)) {
        push @problems, "$file: in no layer" if !defined layer_of($file);
        for my $words (included(slurp("$top/$file"))) {
            my $to = target($top, $file, $words) // next;
            my $flaw = flaw($file, $to);
            push @problems, "$file -> $to: $flaw" if defined $flaw;
            $uses{ module_of($file) }{ module_of($to) } = 1 if module_of($file) ne module_of($to);
        }
    }
    my $circle = circle(\%uses);
    push @problems, "circle: $circle" if defined $circle;
    return @problems, strange_types($top);
}

my $top = "$FindBin::Bin/..";
is join("\n", problems($top)), '', 'no file includes a file of a higher layer or names a type of it, there is no circle, and each file has a layer';
is join(' ', grep { my $layer = $_; !grep { (layer_of($_) // '') eq $layer } sources($top) } sort keys %rank), '',
    'each layer of the table has a file';

# A copy of the sources, into which the cases put mistakes.
my $copy = scratch();
for my $path (sources($top)) {
    make_path(dirname("$copy/$path"));
    spit("$copy/$path", slurp("$top/$path"));
}

# Adds a line to a file, which may be a new one, and returns all that is wrong then.
sub mistaken ($file, $line) {
    my $before = -e "$copy/$file" ? slurp("$copy/$file") : undef;
    make_path(dirname("$copy/$file"));
    spit("$copy/$file", ($before // '') . "$line\n");
    my @found = problems($copy);
    if   (defined $before) { spit("$copy/$file", $before) }
    else                   { unlink "$copy/$file" }
    return @found;
}

my @mistakes = (
    ['upwards', 'common/http/range.c', '#include "common/net/listener.h"', qr/upwards/],
    ['upwards, with blanks', 'common/http/range.c', '  #  include   "common/net/listener.h"', qr/upwards/],
    ['upwards, with tabs', 'common/http/range.c', "\t#\tinclude\t\"common/net/listener.h\"", qr/upwards/],
    ['upwards, in angle brackets', 'common/http/range.h', '#include <common/proxy/proxy_setup.h>', qr/upwards/],
    ['upwards, by a path with ..', 'common/files/files.c', '#include "../workers/worker.h"', qr/upwards/],
    ['upwards, by a path with ./', 'common/base/text.c', '#include "./../http/./path.h"', qr/upwards/],
    ['upwards, beside comments', 'common/base/text.c', '/**/ # /**/ include /**/ "common/http/path.h" /**/', qr/upwards/],
    ['upwards, over two lines', 'common/base/text.c', "#\\\ninclude \\\n \"common/http/path.h\"", qr/upwards/],
    ['upwards, by a macro', 'common/base/text.c', "#define X \"common/http/path.h\"\n#include X", qr/unreadable: X/],
    ['upwards, a source', 'common/net/listener.c', '#include "common/server.c"', qr/upwards/],
    ['upwards, at the top of common/', 'common/connection.c', '#include "common/server_state.h"', qr/upwards/],
    ['a type of a higher layer', 'common/http/range.h', 'struct listener;', qr/range\.h names listener of .*listener\.h/],
    ['a type of the server', 'common/connection.c', 'static struct server *server;', qr/connection\.c names server of /],
    ['one service includes another', 'common/files/listing.c', '#include "common/proxy/proxy_setup.h"', qr/beside itself/],
    ['a circle of two headers', 'common/base/text.h', '#include "common/base/checksum.h"', qr/circle: .*checksum/],
    ['a circle of header and source', 'common/http/date.c', '#include "common/http/conditional.h"', qr/circle: .*conditional/],
    ['the core includes a service', 'common/startup.c', '#include "common/files/files.h"', qr/only the registry/],
    ['the header of the registry includes a service', 'common/services.h', '#include "common/files/files.h"', qr/only the registry/],
    ['a model includes a service', 'fork_server.c', '#include "common/proxy/proxy_setup.h"', qr/only the registry/],
    ['a model includes a model', 'fork_server.c', '#include "thread_server.c"', qr/a model includes a model/],
    ['a file without a layer', 'common/new_file.h', '', qr/new_file\.h: in no layer/],
    ['a folder without a layer', 'common/new/file.h', '', qr/new\/file\.h: in no layer/],
    ['a folder in a folder', 'common/net/tls/file.h', '', qr/tls\/file\.h: in no layer/],
    ['a file that is not there', 'common/base/text.c', '#include "common/base/missing.h"', qr/missing: /],
    ['a file outside of the layers', 'common/base/text.c', '#include "Makefile"', qr/Makefile: includes what is in no layer/],
);
spit("$copy/Makefile", '');
for my $mistake (@mistakes) {
    my ($name, $file, $line, $flaw) = @$mistake;
    like join("\n", mistaken($file, $line)), $flaw, "a mistake is found: $name";
}
is join("\n", mistaken('common/http/range.c', qq{/*\n#include "common/net/listener.h"\n*/})), '', 'an include in a comment is no mistake';
done_testing;
