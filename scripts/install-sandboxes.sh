#!/bin/sh
# Install podman and bubblewrap on Debian, and make the image that podman builds on.
#
#     sh scripts/install-sandboxes.sh
#
# Safe to run again: what works is left alone. As a user, run it without sudo; it
# asks for it where it must (packages, the tree of the image), and the image goes
# to your own podman. Other systems: install podman and bubblewrap with the
# system's package manager, then `podman pull docker.io/library/python:3.12-slim`.
#
# CODETAPE_BASE_IMAGE, if set, names an image that is here already; none is made then.
set -eu

SUITE=bookworm # its Python is 3.11, the oldest that codetape runs on
MADE=localhost/codetape-base:$SUITE
PULLED=docker.io/library/python:3.12-slim
PACKAGES="podman runc fuse-overlayfs slirp4netns uidmap bubblewrap debootstrap"

say() { printf '%s\n' "$*"; }
die() { printf '%s\n' "$*" >&2; exit 1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# --- Packages -------------------------------------------------------------

install_packages() {
    missing=
    for package in $PACKAGES; do
        state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
        [ "$state" = installed ] || missing="$missing $package"
    done
    if [ -z "$missing" ]; then
        say "packages: all installed"
        return
    fi
    say "packages: installing$missing"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
    # shellcheck disable=SC2086 # one word per package
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends $missing
}

# --- The base image -------------------------------------------------------

find_image() {
    for name in ${CODETAPE_BASE_IMAGE:-"$MADE" "$PULLED"}; do
        if podman image exists "$name"; then
            say "$name"
            return
        fi
    done
    return 1
}

# debootstrap takes packages from the mirror that this system takes its own from.
mirror() {
    apt-get indextargets --format '$(REPO_URI)' "Codename: $SUITE" 2>/dev/null | head -n 1
}

make_image() {
    say "base image: making $MADE with debootstrap (a minute or two, 300 MB)"
    place=$(mktemp -d -p /var/tmp) # /tmp may be too small, or mounted without devices
    trap 'as_root rm -rf "$place"' EXIT
    trap 'exit 130' INT TERM
    tree=$place/tree
    # shellcheck disable=SC2046 # no mirror: no argument
    as_root debootstrap --variant=minbase \
        --include=python3,python3-venv,python3-pip,ca-certificates \
        "$SUITE" "$tree" $(mirror) >"$place/log" 2>&1 ||
        { tail -n 20 "$place/log" >&2; die "base image: debootstrap failed"; }
    as_root tar -C "$tree" -c --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' \
        --exclude='./dev/*' . >"$place/tree.tar"
    podman import --quiet \
        --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
        --change 'CMD ["/bin/bash"]' "$place/tree.tar" "$MADE" >/dev/null
    as_root rm -rf "$place"
    trap - EXIT INT TERM
}

# --- podman's settings ----------------------------------------------------

drop_in() { # name, text: one setting in a file of its own, so that it is easy to take back
    if [ "$(id -u)" = 0 ]; then
        folder=/etc/containers/containers.conf.d
    else
        folder=${XDG_CONFIG_HOME:-$HOME/.config}/containers/containers.conf.d
    fi
    [ ! -e "$folder/$1" ] || return 1 # written before, and did not help
    mkdir -p "$folder"
    printf '%s\n' "$2" >"$folder/$1"
    say "podman: wrote $folder/$1"
}

# A setting is written only after podman failed for want of it.
mend() {
    case $1 in
    *RLIMIT* | *rlimit*)
        # Without CAP_SYS_RESOURCE, podman's default limits are higher than may be set.
        drop_in codetape-ulimits.conf '[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]'
        ;;
    *crun*)
        # crun refuses cgroup v1 in the hybrid layout; runc takes it.
        drop_in codetape-runtime.conf '[engine]
runtime = "runc"'
        ;;
    *) return 1 ;;
    esac
}

try_podman() {
    until said=$(podman run --rm --network none "$1" python3 -c 'print("runs")' 2>&1); do
        mend "$said" || die "podman: cannot run $1: $said"
    done
    say "podman: $said Python in $1"
}

# --- bubblewrap -----------------------------------------------------------

try_bubblewrap() {
    said=$(bwrap --ro-bind / / true 2>&1) ||
        die "bubblewrap: does not work here: $said (are user namespaces allowed?)"
    say "bubblewrap: works"
}

command -v apt-get >/dev/null ||
    die "This script knows Debian. Elsewhere: install podman and bubblewrap, then podman pull $PULLED"
install_packages
image=$(find_image) || {
    [ -z "${CODETAPE_BASE_IMAGE:-}" ] || [ "$CODETAPE_BASE_IMAGE" = "$MADE" ] ||
        die "base image: podman does not have $CODETAPE_BASE_IMAGE; podman pull $CODETAPE_BASE_IMAGE"
    make_image
    image=$MADE
}
say "base image: $image"
try_podman "$image"
try_bubblewrap
