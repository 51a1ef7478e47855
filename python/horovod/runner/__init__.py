"""horovod.run(): a function on several ranks, from Python."""

from __future__ import annotations

from typing import Any, Callable, Sequence


def run(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    num_proc: int = 1,
    min_num_proc: int | None = None,
    max_num_proc: int | None = None,
    slots: int | None = None,
    reset_limit: int | None = None,
    cooldown_range: Any = None,
    hosts: str | None = None,
    hostfile: str | None = None,
    host_discovery_script: str | None = None,
    start_timeout: float | None = None,
    ssh_port: int | None = None,
    ssh_identity_file: str | None = None,
    disable_cache: bool | None = None,
    output_filename: str | None = None,
    verbose: bool | None = None,
    use_gloo: bool | None = None,
    use_mpi: bool | None = None,
    mpi_args: str | None = None,
    network_interface: str | None = None,
    network_interfaces: Any = None,
    executable: str | None = None,
    np: int | None = None,
    min_np: int | None = None,
    max_np: int | None = None,
) -> list[Any]:
    """Every rank's value of func(*args, **kwargs), in the order of ranks."""
    import farandole

    if min_num_proc or min_np or max_num_proc or max_np or host_discovery_script or reset_limit:
        raise ValueError(
            "the number of ranks is fixed here: leave min_num_proc, max_num_proc, reset_limit and "
            "host_discovery_script away"
        )
    options: list[str] = []
    given = {
        "--hostfile": hostfile,
        "--start-timeout": start_timeout,
        "--ssh-port": ssh_port,
        "--ssh-identity-file": ssh_identity_file,
        "--output-filename": output_filename,
        "--network-interfaces": _joined(network_interfaces or network_interface),
    }
    for flag, value in given.items():
        if value is not None:
            options += [flag, str(value)]
    if verbose:
        options.append("--verbose")
    more: dict[str, Any] = {}
    if options:
        more["options"] = options
    if executable:
        more["executable"] = executable
    return farandole.run(
        func, args=tuple(args), kwargs=kwargs or {}, np=np or num_proc, hosts=hosts, **more
    )


def _joined(names: Any) -> str | None:
    if names is None or isinstance(names, str):
        return names
    return ",".join(names)
