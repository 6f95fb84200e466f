#!/bin/bash
# dcollect.sh: runs a study of web servers on this machine. It installs Python if needed, and runs the package collect.
#
# usage:    ./dcollect.sh --help
# example:  ./dcollect.sh --quick
set -euo pipefail
project=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
# shellcheck source=collect/install_missing.sh
. "$project/collect/install_missing.sh"
install_missing /usr/bin/python3:python3
[ -e "$project/Makefile" ] || export PYTHONDONTWRITEBYTECODE=1 # an installed study changes nothing where it lies
PYTHONPATH=$project exec /usr/bin/python3 -P -m collect "$@"
