# Not through a proxy, which the environment of the host or the configuration of its package manager may have for other
# servers: this host itself and the mirrors. Names first: an empty one would be all hosts for wget.
no_proxy=${no_proxy:-${NO_PROXY-}}
no_proxy=localhost,127.0.0.1,mirror.metalform.internal${no_proxy:+,$no_proxy}
NO_PROXY=$no_proxy
export no_proxy NO_PROXY
