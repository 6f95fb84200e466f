package Study;

# Reads the tables that a study writes.
#
#   use Study;
#   for my $row (table("$folder/runs.tsv")) { say $row->{server} }

use v5.36;
use Exporter qw(import);

our @EXPORT = qw(lines table);

# The lines of a file with their ends; none where there is no file.
sub lines ($path) {
    open my $file, '<', $path or return;
    return <$file>;
}

# A tab-separated file as a list of hashes, by the names in its first line.
sub table ($path) {
    chomp(my ($head, @rows) = lines($path));
    my @names = split /\t/, $head // '';
    return map { my %row; @row{@names} = split /\t/, $_, -1; \%row } @rows;
}

1;
