"""horovod.run(): a function on several ranks, from Python."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence


def run(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Optional[Dict[str, Any]] = None,
    num_proc: int = 1,
    min_num_proc: Optional[int] = None,
    max_num_proc: Optional[int] = None,
    slots: Optional[int] = None,
    reset_limit: Optional[int] = None,
    cooldown_range: Any = None,
    hosts: Optional[str] = None,
    hostfile: Optional[str] = None,
    host_discovery_script: Optional[str] = None,
    start_timeout: Optional[float] = None,
    ssh_port: Optional[int] = None,
    ssh_identity_file: Optional[str] = None,
    disable_cache: Optional[bool] = None,
    output_filename: Optional[str] = None,
    verbose: Optional[bool] = None,
    use_gloo: Optional[bool] = None,
    use_mpi: Optional[bool] = None,
    mpi_args: Optional[str] = None,
    network_interface: Optional[str] = None,
    network_interfaces: Any = None,
    executable: Optional[str] = None,
    np: Optional[int] = None,
    min_np: Optional[int] = None,
    max_np: Optional[int] = None,
) -> List[Any]:
    """Every rank's value of func(*args, **kwargs), in the order of ranks."""
    import farandole

    if min_num_proc or min_np or max_num_proc or max_np or host_discovery_script or reset_limit:
        raise ValueError(
            "the number of ranks is fixed here: leave min_num_proc, max_num_proc, reset_limit and "
            "host_discovery_script away"
        )
    options: List[str] = []
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
    more: Dict[str, Any] = {}
    if options:
        more["options"] = options
    if executable:
        more["executable"] = executable
    return farandole.run(
        func, args=tuple(args), kwargs=kwargs or {}, np=np or num_proc, hosts=hosts, **more
    )


def _joined(names: Any) -> Optional[str]:
    if names is None or isinstance(names, str):
        return names
    return ",".join(names)
