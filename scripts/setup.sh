#!/usr/bin/env bash
# Makes .venv with the exact packages of requirements.lock, and finds or installs Java 17 or 21.
#
#   scripts/setup.sh            packages and Java: all that Headgate needs
#   scripts/setup.sh packages   packages alone: enough for the checks, the docs and the fast tests
#   scripts/setup.sh venv       an empty .venv: enough to make the lock
#
# A finished set-up leaves a stamp, .venv/stamp, and the next run ends at once. An interrupted one leaves none, and the
# next run starts .venv afresh, from what pip's cache has. The Java found is written to .venv/java-home.
# Works in bash 3.2, which is what macOS has.
set -euo pipefail
CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
unset PYTHONHOME PIP_USER PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

say() { printf '%s\n' "set-up: $*"; }
die() { printf '%s\n' "set-up failed: $*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# ---- the system's package manager, where we may use it ----

as_root() { if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi; }
may_be_root() { [ "$(id -u)" -eq 0 ] || { have sudo && sudo -n true 2>/dev/null; }; }
system_packager() {
    local name
    for name in apt-get dnf apk brew; do
        if have "$name"; then echo "$name"; return; fi
    done
}

# Runs a command with its words kept in the log.
quietly() { "$@" >"$log" 2>&1 </dev/null; }
show_log() { tail -n 15 "$log" >&2; }

# Installs the first of the named packages that the system offers; fails when there is none or we may not.
system_install() {
    local packager package
    packager=$(system_packager)
    case $packager in
        apt-get | dnf | apk) may_be_root || return 1 ;;
        brew) ;;
        *) return 1 ;;
    esac
    if [ "$packager" = apt-get ]; then
        quietly as_root apt-get update -qq || say "apt-get update failed; going on with the package lists that are there"
    fi
    for package in "$@"; do
        say "installing $package with $packager"
        case $packager in
            apt-get) quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
                --no-install-recommends -o DPkg::Lock::Timeout=120 "$package" && return ;;
            dnf) quietly as_root dnf install -y -q "$package" && return ;;
            apk) quietly as_root apk add -q "$package" && return ;;
            brew) quietly brew install -q "$package" && return ;;
        esac
    done
    show_log
    return 1
}

# ---- Java ----

# Prints the home of the Java that command $1 starts, if that is version 17 or 21.
java_home_of() {
    "$1" -XshowSettings:properties -version 2>&1 </dev/null | awk -F ' = ' '
        $1 ~ /^ *java\.home$/ { home = $2 }
        $1 ~ /^ *java\.specification\.version$/ { version = $2 }
        END { if (version != 17 && version != 21) exit 1; print home }'
}

find_java() {
    local java
    for java in "${JAVA_HOME:-/nowhere}/bin/java" "$(command -v java || true)" /usr/lib/jvm/*/bin/java \
        /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java \
        /opt/homebrew/opt/openjdk@*/bin/java /usr/local/opt/openjdk@*/bin/java; do
        if [ -x "$java" ] && java_home_of "$java"; then return; fi
    done
    return 1
}

find_or_install_java() {
    local packages
    if java_home=$(find_java); then return; fi
    case $(system_packager) in
        apt-get) packages="openjdk-17-jre-headless openjdk-21-jre-headless" ;;
        dnf) packages="java-17-openjdk-headless java-21-openjdk-headless" ;;
        apk) packages="openjdk17-jre-headless openjdk21-jre-headless" ;;
        *) packages="openjdk@17 openjdk@21" ;;
    esac
    say "no Java 17 or 21 found"
    # shellcheck disable=SC2086  # a list of names
    system_install $packages || true
    java_home=$(find_java) || die "Headgate needs Java 17 or 21 and found neither: install one" \
        "(a headless JRE is enough, such as the package ${packages%% *}) or point JAVA_HOME at it, then run make setup again."
}

# The Java of the last set-up will do, unless it is gone or JAVA_HOME now names another.
java_is_known() {
    java_home=$(cat .venv/java-home 2>/dev/null) && [ -x "$java_home/bin/java" ] &&
        { [ -z "${JAVA_HOME:-}" ] || [ "$JAVA_HOME" -ef "$java_home" ]; }
}

# A browser for the tests of the console, where we may install one. Without it these tests are skipped.
find_or_install_browser() {
    if have chromium || have chromium-browser || [ "$(system_packager)" = brew ]; then return; fi
    system_install chromium chromium-browser || say "no chromium: tests of the console are skipped here"
}

# ---- Python and its packages ----

# Prints the first Python from 3.11 on for which the statement $1 works.
find_python() {
    local name
    for name in python3.13 python3.12 python3.11 python3; do
        if "$name" -c "import sys; sys.version_info >= (3, 11) or sys.exit(1); $1" >/dev/null 2>&1; then
            echo "$name"
            return
        fi
    done
    return 1
}

make_venv() {
    local python version can_make_venv="import venv, ensurepip; ensurepip.version()"
    if ! python=$(find_python "$can_make_venv"); then
        python=$(find_python pass) || die "Headgate needs Python 3.11 or newer and found none on the PATH: install it," \
            "then run make setup again."
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        say "Python $version lacks its venv module"
        system_install "python$version-venv" python3-venv || true
        python=$(find_python "$can_make_venv") || die "Python $version lacks its venv module: install it" \
            "(on Debian and Ubuntu the package python$version-venv), then run make setup again."
    fi
    say "making .venv with $("$python" --version)"
    [ ! -L .venv ] || die ".venv is a link, and to begin it anew would empty $(readlink .venv): remove the link, then run make setup again."
    quietly "$python" -m venv --clear .venv || {
        show_log
        die "$python could not make .venv (its own words are above): put that right, then run make setup again."
    }
}

# .venv is whole when a set-up has finished here (not where the folder was copied from) and its Python still runs.
venv_is_whole() { [ "$(head -n 1 .venv/stamp 2>/dev/null)" = "$here" ] && .venv/bin/python -c '' 2>/dev/null; }
packages_are_current() { venv_is_whole && [ "$(cat .venv/stamp)" = "$stamp" ]; }

# Of what pip says, passes on what takes long.
show_progress() {
    local line bytes
    while IFS= read -r line; do
        case $line in
            *'Downloading '*'('[0-9][0-9]*' MB)') say "  downloading ${line#*Downloading }" ;;
            'Progress '*' of '????????*) # bytes so far, of 10 MB or more
                bytes=${line#Progress }
                if [ -t 1 ]; then printf '\r  %3d %%\r' $((100 * ${bytes%% *} / ${line##* })); fi ;;
            *'Building wheel for '*': started') line=${line#*Building wheel for }; say "  building ${line%% *}" ;;
            'Installing collected packages'*) say "  unpacking" ;;
        esac
    done
}

pip_install() {
    .venv/bin/python -m pip install "$@" 2>&1 </dev/null | tee "$log" | show_progress || {
        grep -v -E '^ *(Collecting|Downloading|Using cached|Progress|Requirement already)' "$log" | tail -n 15 >&2
        return 1
    }
}

install_locked() {
    pip_install --require-hashes "$@" ||
        die "pip could not install the locked packages (its own words are above): check the network and that 3 GB of" \
            "disk are free, then run make setup again."
}

install_packages() {
    rm -f .venv/stamp # from here on .venv is half-done until the stamp is back
    # First pip and setuptools as locked, so that every machine installs the rest in the same way.
    awk '/^[^ ]/ { wanted = /^(pip|setuptools)==/ } wanted' requirements.lock >.venv/first.lock
    install_locked -q -r .venv/first.lock
    say "installing $(grep -c '^[a-z]' requirements.lock) packages; the first time Spark alone is a download of 450 MB"
    install_locked --progress-bar raw --no-build-isolation -r requirements.lock
    pip_install -q --no-deps --no-build-isolation "${own_packages[@]/#/--editable=}" ||
        die "pip could not install Headgate itself (its own words are above): put right what it names in" \
            "pyproject.toml, then run make setup again."
    printf '%s' "$stamp" >.venv/stamp
}

# ---- what is asked for ----

want=${1:-all}
case $want in
    all | packages | venv) ;;
    *) die "'$want' is none of all, packages, venv." ;;
esac
here=$(pwd -P)
own_packages=(. benchmarks)
for plugin in plugins/*/; do [ -f "$plugin/pyproject.toml" ] && own_packages+=("${plugin%/}"); done
if [ "$want" != venv ]; then
    [ -f requirements.lock ] || die "requirements.lock is missing: get it back with git, or make it with make lock."
    stamp=$here$'\n'$(cksum requirements.lock "${own_packages[@]/%//pyproject.toml}")
fi
is_done() {
    case $want in
        venv) venv_is_whole ;;
        packages) packages_are_current ;;
        all) packages_are_current && java_is_known ;;
    esac
}
if is_done; then exit; fi

# One set-up at a time: another waits here and then finds the work done.
if have flock; then
    exec 9<scripts/setup.sh
    flock -n 9 || { say "waiting for another set-up of this folder"; flock 9; }
    if is_done; then exit; fi
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'printf "\n" >&2; die "interrupted; run make setup again to go on."' INT TERM

if [ "$want" = all ]; then java_is_known || find_or_install_java; find_or_install_browser; fi
venv_is_whole || make_venv
if [ "$want" != venv ]; then packages_are_current || install_packages; fi
if [ "$want" = all ]; then
    printf '%s\n' "$java_home" >.venv/java-home
    say "Java at $java_home"
fi
say "done"
